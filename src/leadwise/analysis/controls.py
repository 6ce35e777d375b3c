"""Controls beside a learned policy: what chooses without knowing the patient, and its place among all fixed sets."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from leadwise.analysis.paired import paired_frame
from leadwise.analysis.readings import Readings
from leadwise.leads import LEADS, LeadSet
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation
from leadwise.references import MATCHED_METRICS, References

UNTRAINED, DERIVED, ANCHORED = "untrained policy", "policy made from it", "anchored set"
"""Kinds of controls: a policy without a target, one that is made from the policy itself, and the best fixed set that
contains the policy's first lead."""


def anchored_set(references: References, metric: str, k: int, lead: str) -> LeadSet | None:
    """The best set of k leads, on the records of the search, of those that contain a lead; None if none does."""
    ranked = references.ranking(metric, k)["bits"].to_numpy()
    having = ranked[ranked >> LEADS.index(lead) & 1 == 1]
    return LeadSet(int(having[0])) if len(having) else None


def controls_frame(
    readings: Readings,
    evaluator: str,
    allocation: Allocation,
    controls: Iterable[tuple[str, Allocation]],
    references: References | None,
    first_lead: str | None,
) -> pd.DataFrame:
    """``controls.csv``: metric of a policy minus that of each control, under one evaluator.

    ``controls`` are kinds with allocations of the same records. The anchored set is that of the evaluator's
    ``references``, for each metric its own; records that lack one of its leads are left out of both arms.
    """
    pairs = [(kind, "", allocation, each, list(MATCHED_METRICS)) for kind, each in controls]
    if references is not None and allocation.k in references.budgets and first_lead is not None:
        for metric in MATCHED_METRICS:
            leads = anchored_set(references, metric, allocation.k, first_lead)
            if leads is not None:
                part = allocation.having(leads)
                order = np.tile(leads.indices, (len(part.records), 1))
                pairs.append((ANCHORED, str(leads), part, Allocation(part.records, ANCHORED, "", order), [metric]))
    names, frames = {"policy_a": "policy", "policy_b": "versus", "delta": "value"}, []
    for kind, fixed, one, other, metrics in pairs:
        frame = paired_frame(readings, [(one, other)], metrics, [evaluator])
        frames.append(frame.rename(columns=names).assign(kind=kind, leads=fixed))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def places_frame(readings: Readings, evaluator: str, allocation: Allocation, references: References) -> pd.DataFrame:
    """``places.csv``: a policy on the records of a search, and its place among all fixed sets of its size there.

    A rank is one more than the number of sets that are better; both sides are rounded to 1e-12, as in a search.
    """
    records, rows = allocation.records, []
    (probabilities,) = readings.probabilities(evaluator, records, [allocation.masks])
    for metric in MATCHED_METRICS:
        value = METRICS[metric](records.labels, probabilities, None)
        candidates = references.ranking(metric, allocation.k)[metric]
        facts = {"role": records.role, "policy": allocation.policy, "evaluator": evaluator, "k": allocation.k}
        rank = 1 + int((candidates.round(12) < round(value, 12)).sum())
        rows.append(facts | {"metric": metric, "value": value, "rank": rank, "candidates": len(candidates)})
    return pd.DataFrame(rows)
