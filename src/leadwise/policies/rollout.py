"""Policies at work: all records of a role step together, one lead at a time, to exactly k leads."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import as_array, evaluator_name
from leadwise.evaluators.scoring import Scorers
from leadwise.evaluators.statistics import lead_statistics
from leadwise.leads import LEADS, lead_index, order_masks
from leadwise.policies.allocation import Allocation
from leadwise.policies.observation import Observation, unchangeable

if TYPE_CHECKING:
    from leadwise.policies.contract import Policy


def allocate(policy: "Policy", records: Records, budget: int) -> Allocation:
    """Let a policy choose ``budget`` leads for each record that has as many; the others are left out."""
    return Rollout(policy, records).allocate(budget)


def allocate_budgets(
    policy: "Policy", records: Records, budgets: Sequence[int], scorers: Scorers | None = None
) -> list[Allocation]:
    """The same for several budgets; a policy that does not look at the budget is rolled out once."""
    rollout = Rollout(policy, records, scorers)
    if not getattr(policy, "budget_agnostic", False) or not records.available.all():
        return [rollout.allocate(budget) for budget in budgets]
    for budget in budgets:
        check_budget(budget)
    longest = rollout.allocate(max(budgets))
    return [replace(longest, order=longest.order[:, :budget]) for budget in budgets]


class Rollout:
    """A policy on some records, prepared once for several budgets.

    The state evaluator reads with ``scorers`` of the same records, whose memory others may share.
    """

    def __init__(self, policy: "Policy", records: Records, scorers: Scorers | None = None) -> None:
        check_members(policy)
        if not len(records):
            raise InputError(f"There are no records in {records.name} to choose leads for.")
        self.policy, self.records = policy, records
        self.ranking = None if policy.first_lead is None else ranking_of(policy.first_lead)
        self.statistics = lead_statistics(records)
        state = policy.state_evaluator
        self.scorer = None if state is None else (scorers or Scorers(records)).of(state)

    def allocate(self, budget: int) -> Allocation:
        """Exactly ``budget`` leads for each record that has as many."""
        check_budget(budget)
        kept, positions = self.records.with_leads(budget), np.flatnonzero(self.records.lead_counts >= budget)
        order = self.allocate_at(positions, budget)
        return Allocation(kept, policy_name(self.policy), trained_on(self.policy), order)

    def allocate_at(self, positions: Int[np.ndarray, " n"], budget: int) -> Int[np.ndarray, "n k"]:
        """Leads in order of acquisition for the records at these positions, all of which have enough of them."""
        order = np.empty((len(positions), budget), dtype=np.int64)
        for step in range(budget):
            order[:, step] = self._next(positions, order[:, :step], budget - step)
        return order

    def observe(self, positions: Int[np.ndarray, " n"], mask: Bool[np.ndarray, "n 12"], remaining: int) -> Observation:
        """Observation of these records with these leads acquired."""
        acquired = unchangeable(mask)  # whatever becomes of the caller's mask

        def waveforms() -> np.ndarray:
            return self.records.signals.millivolts(positions) * acquired[..., None]

        return Observation(
            statistics=self.statistics[positions] * mask[..., None],
            mask=acquired,
            available=self.records.available[positions],
            probabilities=self.scorer.pairs(positions, mask) if self.scorer and mask.any() else None,
            remaining=remaining,
            waveforms=waveforms,
            ids=self.records.ids[positions] if getattr(self.policy, "needs_ids", False) else None,
        )

    def _next(
        self, positions: Int[np.ndarray, " n"], order: Int[np.ndarray, "n step"], remaining: int
    ) -> Int[np.ndarray, " n"]:
        mask = order_masks(order)
        if not order.shape[1] and self.ranking is not None:
            return first_available(self.ranking, self.records.available[positions])
        answer = self.policy.choose(self.observe(positions, mask, remaining))
        chosen = as_array(answer, f"Policy {policy_name(self.policy)}")
        check_choice(self.policy, self.records.select(positions), mask, chosen)
        return chosen


def check_members(policy: "Policy") -> None:
    """Raise unless something has what every policy has."""
    if not all(hasattr(policy, member) for member in ("choose", "state_evaluator", "first_lead")):
        name = policy_name(policy)
        raise InputError(f"Policy {name} needs 'choose(observation)', 'state_evaluator' and 'first_lead'.")


def check_budget(budget: int) -> None:
    """Raise unless so many leads can be chosen."""
    if not 1 <= budget <= len(LEADS):
        raise InputError(f"A budget of {budget} leads is impossible; it lies between 1 and 12.")


def first_available(ranking: Sequence[int], available: Bool[np.ndarray, "n 12"]) -> Int[np.ndarray, " n"]:
    """For each record the first lead of a ranking that it has."""
    order = np.array(ranking)
    return order[available[:, order].argmax(axis=1)]


def check_choice(policy: "Policy", records: Records, mask: Bool[np.ndarray, "n 12"], chosen: np.ndarray) -> None:
    """Raise unless a policy chose one lead for each record, among those that it has and that are not acquired."""
    name = policy_name(policy)
    if chosen.shape != (len(records),) or not np.issubdtype(chosen.dtype, np.integer):
        raise InputError(f"Policy {name} must choose one lead index for each of {len(records)} records.")
    unknown = chosen[(chosen < 0) | (chosen >= len(LEADS))]
    if len(unknown):
        raise InputError(f"Policy {name} chose lead {unknown[0]}; leads are numbered 0 to 11.")
    allowed = (records.available & ~mask)[np.arange(len(chosen)), chosen]
    if not allowed.all():
        at = int(np.argmin(allowed))
        why = "is acquired already" if mask[at, chosen[at]] else "was not recorded"
        raise InputError(f"Policy {name} chose {LEADS[chosen[at]]} for record {records.ids[at]}, which {why}.")


def policy_name(policy: "Policy") -> str:
    """Name of a policy in results."""
    return str(getattr(policy, "name", type(policy).__name__))


def trained_on(policy: "Policy") -> str:
    """Name of the evaluator that a policy was trained on; empty if there is none."""
    target = getattr(policy, "target", None)
    return "" if target is None else evaluator_name(target)


def ranking_of(first_lead: Sequence[str | int]) -> list[int]:
    """Indices of the given leads, and then of all, so that every record has one of them."""
    given = first_lead.split() if isinstance(first_lead, str) else first_lead
    return [*(lead_index(lead) if isinstance(lead, str) else int(lead) for lead in given), *range(len(LEADS))]
