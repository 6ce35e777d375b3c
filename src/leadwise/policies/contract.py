"""Protocols and registry of policies, and the check of a policy against them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import Complaints
from leadwise.evaluators.contract import Evaluator
from leadwise.policies.allocation import Allocation
from leadwise.policies.observation import Observation
from leadwise.policies.rollout import allocate, check_members, policy_name
from leadwise.registry import Registry, Settings


@runtime_checkable
class Policy(Protocol):
    """Chooses leads one at a time. A class with these members fits; it inherits nothing.

    Optional members:

    - ``name``: how it is called in results (else the name of its class);
    - ``target``: the evaluator that it was trained on;
    - ``scores(observation) -> (n, 12)``, and ``scores_are_gains`` if they are predicted gains in NLL;
    - ``budget_agnostic``: that it does not look at the remaining budget, so one rollout serves all budgets;
    - ``needs_ids``: that it needs the records' ids, as random leads for each record do; else it does not get them;
    - ``serve(available, budgets)``: to be told before a role is scored which leads its records have; it raises if it
      cannot serve them.
    """

    @property
    def state_evaluator(self) -> Evaluator | None:
        """Whose probabilities its observations hold, or None."""

    @property
    def first_lead(self) -> Sequence[str] | None:
        """Ranking of the leads, of which every record begins with the first that it has; or None."""

    def choose(self, observation: Observation) -> Int[np.ndarray, " n"]:
        """The index of the next lead for each record, among ``observation.candidates``."""


@dataclass(frozen=True)
class Material:
    """Material that a policy of a plan is made from."""

    name: str
    train: Records
    validation: Records
    budgets: Sequence[int]
    ranking: Sequence[str]
    """Leads by how good they are alone; policies that have a first lead begin with the first one that a record has."""
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """Those that its settings name."""
    patterns: Bool[np.ndarray, "p 12"] | None = None
    """The leads that records of the study have, whatever their role, each pattern once; if its settings need them."""
    directory: Path | None = None
    """Directory where readings are kept as they are made, and found again."""


class PolicyKind(Protocol):
    """A kind of policy that plans can name. Its instances are policies with ``name`` and ``save``.

    Optional: ``trials(settings, train, validation) -> {unit: (amount, work)}``, a little of each kind of work that
    `Settings.cost` counts, so that a forecast can time it.
    ``version`` (1): a whole number, raised whenever `make` would make another one of the same material.
    """

    Settings: type[Settings]

    @classmethod
    def make(cls, settings: Any, material: Material) -> "SavedPolicy":
        """Train or read one."""

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator], policies: Mapping[str, Policy]) -> "SavedPolicy":
        """Read what ``save`` wrote; given are those that its settings name."""


class SavedPolicy(Policy, Protocol):
    """A policy that can be kept."""

    name: str

    def save(self, path: Path) -> None:
        """Write one file."""


class TrainedPolicy(SavedPolicy, Protocol):
    """A policy that learned from an evaluator, its ``target``, and sees the probabilities of one."""

    target: Evaluator

    @property
    def state_evaluator(self) -> Evaluator: ...

    @property
    def first_lead(self) -> Sequence[str]: ...


POLICIES: Registry[type[PolicyKind]] = Registry("policy", "leadwise.policies", "leadwise.policies", ("make", "load"))
register_policy = POLICIES.register
list_policies = POLICIES.names
_ORACLES: dict[str, Callable[[Any, Records, int], Allocation]] = {}


def register_oracle(name: str) -> Callable[[Any], Any]:
    """Make ``allocate(evaluator, records, budget)`` known as an oracle: it sees labels, so it is kept apart."""

    def register(oracle: Callable[[Any, Records, int], Allocation]) -> Callable[[Any, Records, int], Allocation]:
        _ORACLES[name] = oracle
        return oracle

    return register


def list_oracles() -> list[str]:
    """Names of all registered oracles. They look at labels and can never be deployed."""
    import leadwise.policies.oracle  # noqa: F401  it registers its own

    return sorted(_ORACLES)


def check_policy(policy: Policy, records: Records, budgets: Sequence[int] = (2, 4)) -> None:
    """Raise `InputError`, a line for each complaint, unless a policy keeps the contract on some of these records.

    Looked at: exactly k different leads that the record has; the same choice when asked again, whatever else is in the
    batch, and whatever the leads hold that were not acquired; and that it leaves what it observes as it is.
    """
    name = policy_name(policy)
    check_members(policy)
    few, complaints = Cohort.of(records.select(slice(0, 16))).records, Complaints(f"Policy {name}")
    rng = np.random.default_rng(0)
    for budget in budgets:
        with complaints.gather():
            chosen = allocate(policy, few, budget)
            sample = chosen.records  # those that have as many leads
            if not np.array_equal(allocate(policy, sample, budget).order, chosen.order):
                complaints.add(f"Policy {name} is not deterministic: asked twice, it chooses differently.")
                continue  # whatever differs below might differ for that reason
            alone = np.concatenate([allocate(policy, sample[i], budget).order for i in range(len(sample))])
            if not np.array_equal(alone, chosen.order):
                complaints.add(f"Policy {name} lets the other records of a batch change its choice.")
            noise = rng.integers(-2000, 2000, sample.signals.shape).astype(np.int16)
            changed = Cohort.of(sample, np.where(chosen.masks[..., None], sample.signals[:], noise)).records
            if not np.array_equal(allocate(policy, changed, budget).order, chosen.order):
                complaints.add(f"Policy {name} lets leads that it has not acquired change its choice.")
    complaints.say()
