"""Controls that separate conditioning on the patient from mere diversity of lead sets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, UInt64

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Fitted
from leadwise.evaluators.scoring import Scorer
from leadwise.evaluators.statistics import STATISTICS, lead_moments, lead_statistics
from leadwise.leads import LeadSet, lead_index, mask_bits
from leadwise.policies.contract import build_policy, register_policy
from leadwise.policies.learned import FORMAT, read_policy
from leadwise.policies.observation import Observation
from leadwise.store import check_tensors, whole_file, write_tensors


class CohortState(Fitted):
    """A trained policy that is fed the training role's average state under the same mask: one set a budget.

    Parameters
    ----------
    policy
        The trained policy.
    name
        How it is called in results.
    """

    kind = "cohort-state"
    scores_are_gains = False

    def __init__(self, policy: Any, name: str = "cohort-state") -> None:
        self.policy, self.name = policy, name
        self.first_lead, self.target = policy.first_lead, policy.target
        self.state_evaluator = None  # its probabilities are averages, not this record's
        self.budget_agnostic = getattr(policy, "budget_agnostic", False)

    def fit(self, train: Records, _validation: Records | None = None) -> "CohortState":
        """Take the averages from the train role."""
        self._scorer: Scorer | None = Scorer(self.policy.state_evaluator, train)
        self.statistics_, _ = lead_moments(lead_statistics(train), train.available)
        self.averages_: dict[int, Float64[np.ndarray, " l"]] = {}
        return self

    def choose(self, observation: Observation) -> Int[np.ndarray, " n"]:
        """What the policy would choose for the average record, for each mask and set of available leads."""
        both = np.stack([mask_bits(observation.mask), mask_bits(observation.available)], axis=1)
        situations, inverse = np.unique(both, axis=0, return_inverse=True)
        chosen = []
        for acquired, available in situations.tolist():
            mask = LeadSet(acquired).mask
            average = Observation(
                statistics=(self.statistics_ * mask[:, None])[None],
                mask=mask[None],
                available=LeadSet(available).mask[None],
                probabilities=self._probabilities(acquired)[None] if acquired else None,
                remaining=observation.remaining,
                waveforms=_no_signal,
            )
            chosen.append(int(self.policy.choose(average)[0]))
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
                    "have all leads; fit it again for others."
                )
            mask = LeadSet(bits).mask
            masks = mask & self._scorer.records.available
            whole = (masks == mask).all(axis=1)
            has = np.flatnonzero(whole if whole.any() else masks.any(axis=1))
            if not len(has):
                raise InputError(f"No record that {self.name} was fitted on has {LeadSet(bits)}; fit it on others.")
            self.averages_[bits] = self._scorer.pairs(has, masks[has]).mean(axis=0)
        return self.averages_[bits]

    def save(self, path: Path) -> None:
        """Write one safetensors file: the averages that records with all leads need; the policy is saved on its own."""
        everything = np.full((1, 12), True)
        for budget in range(1, 13):
            mask = np.zeros((1, 12), dtype=bool)
            mask[0, lead_index(self.first_lead[0])] = True
            for remaining in range(budget - 1, 0, -1):
                state = Observation(np.zeros((1, 12, 10)), mask, everything, None, remaining, _no_signal)
                mask[0, self.choose(state)[0]] = True
        bits = sorted(self.averages_)
        tensors = {
            "statistics": self.statistics_,
            "bits": np.array(bits),
            "averages": np.array([self.averages_[b] for b in bits]),
        }
        write_tensors(
            path, tensors, FORMAT, {"kind": self.kind, "settings": {"name": self.name}, "policy": self.policy.name}
        )

    @classmethod
    def load(cls, path: Path, policy: Any) -> "CohortState":
        """Read what `save` wrote, around the same trained policy."""
        with whole_file(path, "policy"):
            tensors, facts = read_policy(path, cls.kind)
            if facts["policy"] != policy.name:
                raise InputError(f"{path} is about policy {facts['policy']}, not {policy.name}; give it that one.")
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


class RandomSubset:
    """Random leads for each record, the same for the same seed whatever else is in the batch.

    Every record draws one random key a lead from its id and the seed; the smallest key that can be chosen comes next.
    """

    kind = "random-subset"
    needs_ids = True
    first_lead = None
    state_evaluator = None
    target = None
    scores_are_gains = False
    budget_agnostic = True

    def __init__(self, seed: int = 0, name: str = "random-subset") -> None:
        if not (isinstance(seed, int) and 0 <= seed < 2**64):
            raise InputError(f"The seed of random leads cannot be {seed}; give a whole number from 0 to 2^64 − 1.")
        self.seed, self.name = seed, name

    def fit(self, _train: Records | None = None, _validation: Records | None = None) -> "RandomSubset":
        """Nothing to learn."""
        return self

    def __repr__(self) -> str:
        return f"<RandomSubset {self.name}: seed {self.seed}>"

    def choose(self, observation: Observation) -> Int[np.ndarray, " n"]:
        """The lead with the smallest key among those that can be chosen."""
        assert observation.ids is not None  # needs_ids says so
        record = _mix(observation.ids.astype(np.uint64) + _mix(np.array([self.seed], dtype=np.uint64)))
        keys = _mix(record[:, None] + np.arange(12, dtype=np.uint64))
        return np.where(observation.candidates, keys, np.uint64(2**64 - 1)).argmin(axis=1)

    def save(self, path: Path) -> None:
        """Write one safetensors file, which holds nothing but settings."""
        write_tensors(path, {}, FORMAT, {"kind": self.kind, "settings": {"seed": self.seed, "name": self.name}})

    @classmethod
    def load(cls, path: Path) -> "RandomSubset":
        """Read what `save` wrote."""
        with whole_file(path, "policy"):
            tensors, facts = read_policy(path, cls.kind)
            check_tensors(tensors, {})
            return cls(**facts["settings"])


def _mix(x: UInt64[np.ndarray, "..."]) -> UInt64[np.ndarray, "..."]:
    """SplitMix64: well-mixed bits for any counter. NumPy's generators would need one object for each record."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@register_policy("cohort-state")
def _build_cohort_state(
    target: Any, first_lead: Sequence[str], train: Records, validation: Records, seed: int, **settings: Any
) -> CohortState:
    policy = build_policy("ecg-on-demand", target, first_lead, train, validation, seed, **settings)
    return CohortState(policy).fit(train)


@register_policy("random-subset")
def _build_random_subset(
    _target: Any, _first_lead: Sequence[str], _train: Records, _validation: Records, seed: int
) -> RandomSubset:
    return RandomSubset(seed)
