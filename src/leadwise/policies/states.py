"""States that policies learn from: training records with some leads acquired, and what each further lead would gain.

A lead's gain is the target evaluator's NLL of the record without it minus that with it, a number that only labels can
tell; policies learn to predict it from what was observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.scoring import Scorer
from leadwise.metrics import record_nll
from leadwise.policies.rollout import first_available


@dataclass(frozen=True, eq=False)
class States:
    """m states: which record, which leads it has, how many are still to come."""

    positions: Int[np.ndarray, " m"]
    masks: Bool[np.ndarray, "m 12"]
    remaining: Int[np.ndarray, " m"]

    def __len__(self) -> int:
        return len(self.positions)

    def __add__(self, other: "States") -> "States":
        both = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return States(*map(np.concatenate, both))


def random_states(
    records: Records, ranking: Sequence[int], count: int, budgets: Sequence[int], rng: np.random.Generator
) -> States:
    """States on the way to a random budget: the first lead, and a random number of random others.

    A budget k is drawn from ``budgets``, then the number of acquired leads from 1 to k − 1.
    """
    available = records.available
    positions = rng.integers(len(records), size=count)
    budget = rng.choice([k for k in budgets if k > 1], count)
    acquired = 1 + (rng.random(count) * (budget - 1)).astype(int)
    key = rng.random((count, 12))
    key[np.arange(count), first_available(ranking, available[positions])] = -1  # the first lead comes first
    key[~available[positions]] = 2
    masks = key.argsort(axis=1).argsort(axis=1) < acquired[:, None]
    usable = available[positions].sum(axis=1) > acquired  # something must be left to choose
    if not usable.any():
        raise InputError(
            f"None of the {count:,} states that were drawn from {records.name} has a lead left to choose; its records "
            "have too few leads for a policy to learn from."
        )
    return States(positions[usable], masks[usable], (budget - acquired)[usable])


def candidate_gains(
    scorer: Scorer, states: States, completions: Bool[np.ndarray, "m 12 12"] | None = None
) -> Float64[np.ndarray, "m 12"]:
    """Gain in NLL of each lead that could come next, NaN for the others.

    With ``completions`` the gain is that of the lead together with these further leads (m, candidate, 12).
    """
    labels, available = scorer.records.labels, scorer.records.available
    before = record_nll(labels[states.positions], scorer.pairs(states.positions, states.masks))
    candidates = available[states.positions] & ~states.masks
    row, lead = np.nonzero(candidates)
    after_masks = states.masks[row].copy()
    after_masks[np.arange(len(row)), lead] = True
    if completions is not None:
        after_masks |= completions[row, lead]
    after = record_nll(labels[states.positions[row]], scorer.pairs(states.positions[row], after_masks))
    gains = np.full(candidates.shape, np.nan)
    gains[row, lead] = before[row] - after
    return gains
