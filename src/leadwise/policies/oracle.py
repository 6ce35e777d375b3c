"""Label-aware oracles: how much there would be to gain. They look at labels, so they can never be deployed."""

import numpy as np

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, evaluator_name
from leadwise.evaluators.scoring import Scorer
from leadwise.leads import LEADS, order_masks, subsets
from leadwise.metrics import record_nll
from leadwise.policies.allocation import Allocation
from leadwise.policies.contract import register_oracle
from leadwise.policies.states import States, candidate_gains

NAME = "oracle"


@register_oracle("greedy")
def greedy_oracle(evaluator: Evaluator, records: Records, budget: int) -> Allocation:
    """For each record, the lead that lowers its NLL most, then the next; the first lead is free to be any."""
    scorer = Scorer(evaluator, _with_leads(records, budget))
    n = len(scorer.records)
    everyone, labels = np.arange(n), scorer.records.labels
    single = np.full((n, 12), np.inf)
    row, lead = np.nonzero(scorer.records.available)
    single[row, lead] = record_nll(labels[row], scorer.pairs(row, np.eye(12, dtype=bool)[lead]))
    order = single.argmin(axis=1)[:, None]
    while order.shape[1] < budget:
        mask = order_masks(order)
        gains = candidate_gains(scorer, States(everyone, mask, np.full(n, budget - order.shape[1])))
        order = np.column_stack([order, np.where(np.isnan(gains), -np.inf, gains).argmax(axis=1)])
    return Allocation(scorer.records, NAME, evaluator_name(evaluator), order)


@register_oracle("exhaustive")
def exhaustive_oracle(evaluator: Evaluator, records: Records, budget: int) -> Allocation:
    """For each record, the best of all sets of ``budget`` leads that it has. There are 495 sets of four."""
    kept = _with_leads(records, budget)
    scorer, masks, labels, available = Scorer(evaluator, kept), subsets(budget), kept.labels, kept.available
    best, chosen = np.full(len(kept), np.inf), np.zeros(len(kept), dtype=np.int64)
    for number, mask in enumerate(masks):
        has = np.flatnonzero(~(mask & ~available).any(axis=1))
        if len(has):
            loss = record_nll(labels[has], scorer.pairs(has, np.tile(mask, (len(has), 1))))
            better = loss < best[has]
            best[has[better]], chosen[has[better]] = loss[better], number
    order = np.array([np.flatnonzero(masks[number]) for number in chosen])
    return Allocation(kept, NAME, evaluator_name(evaluator), order)


def _with_leads(records: Records, budget: int) -> Records:
    if not 1 <= budget <= len(LEADS):
        raise InputError(f"A budget of {budget} leads is impossible; it lies between 1 and 12.")
    return records.with_leads(budget)
