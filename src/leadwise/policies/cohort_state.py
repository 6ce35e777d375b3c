"""A control: the same policy for everybody, so that what is left of its advantage is not due to the patient."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, PlanError
from leadwise.evaluators.contract import Fitted
from leadwise.evaluators.scoring import Scorer
from leadwise.evaluators.statistics import STATISTICS, lead_moments, lead_statistics
from leadwise.leads import LeadSet, mask_bits
from leadwise.policies.contract import Material, Policy, TrainedPolicy, register_policy
from leadwise.policies.learned import FORMAT, named, read_policy
from leadwise.policies.observation import Observation
from leadwise.policies.rollout import first_available, ranking_of
from leadwise.registry import Settings
from leadwise.store import check_tensors, whole_file, write_tensors


class CohortStateSettings(Settings):
    """Settings of a cohort-state control in a plan."""

    of: str
    """The policy that is fed the average state."""

    @property
    def policies(self) -> list[str]:
        return [self.of]

    @property
    def needs_patterns(self) -> bool:
        return True


@register_policy("cohort-state")
class CohortState(Fitted):
    """A trained policy that is fed the training role's average state under the same mask: one set a budget."""

    Settings = CohortStateSettings
    kind = "cohort-state"
    scores_are_gains = False

    def __init__(self, policy: TrainedPolicy, name: str = "cohort-state") -> None:
        self.policy, self.name = policy, name
        self.first_lead, self.target = policy.first_lead, policy.target
        self.state_evaluator = None  # its probabilities are averages, not this record's
        self.budget_agnostic = getattr(policy, "budget_agnostic", False)

    @classmethod
    def make(cls, settings: CohortStateSettings, material: Material) -> "CohortState":
        """Take the averages for a policy of the plan."""
        policy: Any = material.policies[settings.of]
        if policy.state_evaluator is None or policy.first_lead is None:
            raise PlanError(
                f"'policies.{material.name}.of' is {settings.of}, which sees no probabilities, so it has no average "
                "state to be fed; name a policy that does."
            )
        control = cls(policy, material.name).fit(material.train)
        if material.patterns is not None:
            control.serve(material.patterns)
        return control

    def fit(self, train: Records, _validation: Records | None = None) -> "CohortState":
        """Take the averages from the train role."""
        self._scorer: Scorer | None = Scorer(self.policy.state_evaluator, train)
        self.statistics_, _ = lead_moments(lead_statistics(train), train.available)
        self.averages_: dict[int, Float64[np.ndarray, " l"]] = {}
        return self

    def choose(self, observation: Observation) -> Int[np.ndarray, " n"]:
        """Choice of the policy for the average record, for each mask and set of available leads."""
        both = np.stack([mask_bits(observation.mask), mask_bits(observation.available)], axis=1)
        situations, inverse = np.unique(both, axis=0, return_inverse=True)
        chosen = []
        for acquired, available in situations.tolist():
            mask = LeadSet(acquired).mask
            statistics, available_mask = self.statistics_ * mask[:, None], LeadSet(available).mask
            probabilities = self._probabilities(acquired)[None] if acquired else None
            average = statistics[None], mask[None], available_mask[None], probabilities, observation.remaining
            chosen.append(int(self.policy.choose(Observation(*average, waveforms=_no_signal))[0]))
        return np.array(chosen)[inverse.ravel()]

    def __repr__(self) -> str:
        return f"<CohortState {self.name}: one set a budget, from {self.policy!r}>"

    def _probabilities(self, bits: int) -> Float64[np.ndarray, " l"]:
        """The training role's mean probabilities under a mask, over the records that have its leads.

        Where none has them all, each record that has some of them is read with those.
        """
        if bits not in self.averages_:
            if self._scorer is None:
                raise InputError(
                    f"{self.name} was saved without the averages for {LeadSet(bits)}: it can serve only records that "
                    "have all leads, or lack the same ones as records that it was made for; fit it again for others."
                )
            mask = LeadSet(bits).mask
            masks = mask & self._scorer.records.available
            whole = (masks == mask).all(axis=1)
            has = np.flatnonzero(whole if whole.any() else masks.any(axis=1))
            if not len(has):
                raise InputError(f"No record that {self.name} was fitted on has {LeadSet(bits)}; fit it on others.")
            self.averages_[bits] = self._scorer.pairs(has, masks[has]).mean(axis=0)
        return self.averages_[bits]

    def serve(self, available: Bool[np.ndarray, "n 12"], budgets: Sequence[int] = range(1, 13)) -> None:
        """Take the averages that records with these leads need; raises `InputError` if there are none to be had."""
        ranking = ranking_of(self.first_lead)
        for pattern, budget in product(np.unique(available, axis=0)[:, None], budgets):
            if budget > pattern.sum():
                continue
            mask = np.zeros((1, 12), dtype=bool)
            mask[0, first_available(ranking, pattern)] = True
            for remaining in range(budget - 1, 0, -1):
                state = Observation(np.zeros((1, 12, 10)), mask, pattern, None, remaining, _no_signal)
                mask[0, self.choose(state)[0]] = True

    def save(self, path: Path) -> None:
        """Write one safetensors file: the averages for records with all leads, and those that were taken for others.

        The policy is saved on its own.
        """
        self.serve(np.full((1, 12), True))
        bits = sorted(self.averages_)
        averages = np.array([self.averages_[b] for b in bits])
        tensors = {"statistics": self.statistics_, "bits": np.array(bits), "averages": averages}
        facts = {"kind": self.kind, "settings": {"name": self.name}, "policy": self.policy.name}
        write_tensors(path, tensors, FORMAT, facts)

    @classmethod
    def load(cls, path: Path, _evaluators: object, policies: Mapping[str, Policy]) -> "CohortState":
        """Read what `save` wrote, around the same trained policy, which is found by name."""
        with whole_file(path, "policy"):
            tensors, facts = read_policy(path, cls.kind)
            policy: Any = named(facts["policy"], policies, path)  # it was saved around a trained one
            labels = len(policy.state_evaluator.labels)
            due = {"bits": ("<i8", ("sets",)), "averages": ("<f8", ("sets", labels))}
            check_tensors(tensors, due | {"statistics": ("<f8", (12, len(STATISTICS)))})
            bits, averages = tensors["bits"], tensors["averages"]
            if not (len(bits) and bits.min() > 0 and bits.max() < 4096 and averages.min() >= 0 and averages.max() <= 1):
                raise ValueError("tensors 'bits' and 'averages' need lead sets and their probabilities")
            control = cls(policy, **facts["settings"])
            control._scorer, control.statistics_ = None, tensors["statistics"]
            control.averages_ = dict(zip(bits.tolist(), averages, strict=True))
        return control


def _no_signal() -> np.ndarray:
    return np.zeros((1, 12, 0))
