"""Leads that policies choose: their likeness to a reference and to each other, and their cost in electrodes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int

from leadwise.analysis.bootstrap import Estimate, PatientBootstrap
from leadwise.analysis.tidy import REFERENCE, frame, row
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import ELECTRODES, LEADS, LeadSet, lead_names, mask_bits
from leadwise.policies.allocation import Allocation

_NEEDS: Bool[np.ndarray, "12 9"] = np.array(
    [[electrode in LeadSet.of([lead]).electrodes for electrode in ELECTRODES] for lead in LEADS]
)
_LIMB_LEADS = 6


def jaccard(a: Bool[np.ndarray, "n 12"], b: Bool[np.ndarray, "n 12"]) -> Float64[np.ndarray, " n"]:
    """|A ∩ B| / |A ∪ B| of each pair of lead sets."""
    return (a & b).sum(axis=1) / (a | b).sum(axis=1)


def alignment_frame(
    bootstrap: PatientBootstrap,
    allocation: Allocation,
    reference: LeadSet,
    reference_evaluator: str,
    reference_metric: str,
) -> pd.DataFrame:
    """``alignment.csv`` of a policy against a reference: Jaccard with range, identical sets, overlap counts."""
    versus = {"versus": REFERENCE, "evaluator": reference_evaluator, "reference_metric": reference_metric}
    return frame(_similarity(bootstrap, allocation, versus, np.tile(reference.mask, (len(allocation.records), 1))))


def policies_alignment_frame(bootstrap: PatientBootstrap, a: Allocation, b: Allocation) -> pd.DataFrame:
    """``alignment.csv`` of two policies, record by record."""
    if not np.array_equal(a.records.rows, b.records.rows) or a.k != b.k:
        raise InputError(f"{a.policy} and {b.policy} cannot be compared: they differ in their records or their budget.")
    return frame(_similarity(bootstrap, a, {"versus": b.policy}, b.masks))


def choice_frame(bootstrap: PatientBootstrap, allocation: Allocation) -> pd.DataFrame:
    """``alignment.csv`` of a policy alone: how often each lead is chosen, electrodes, and limb leads that were free.

    ``followed limb share`` is the share of acquired limb leads that already followed from two limb leads in hand.
    """
    records, masks, facts = allocation.records, allocation.masks, _facts(allocation)
    chosen = [_mean(bootstrap, records, column) for column in masks.T]
    rows = [row(facts, "lead frequency", share, name) for name, share in zip(LEADS, chosen, strict=True)]
    electrodes = (masks.astype(int) @ _NEEDS > 0).sum(axis=1)
    rows.append(row(facts, "electrodes", _mean(bootstrap, records, electrodes)))
    rows += [row(facts, "electrodes range", float(value), name) for name, value in _range(electrodes)]
    counts = np.stack(_followed_limb_leads(allocation.order), axis=1).astype(float)
    share = bootstrap.statistic(records, counts, lambda means: means[:, 0] / means[:, 1])
    rows.append(row(facts, "followed limb share", share))
    return frame(rows)


def modal_sets(allocation: Allocation, top: int = 10) -> pd.DataFrame:
    """The lead sets that a policy chooses most often: policy, trained_on, k, rank, leads, share."""
    bits, counts = np.unique(mask_bits(allocation.masks), return_counts=True)
    order = np.lexsort((bits, -counts))[:top]
    facts = {"role": allocation.records.role, "policy": allocation.policy, "trained_on": allocation.trained_on}
    ranks = {"k": allocation.k, "rank": np.arange(1, len(order) + 1), "leads": lead_names(bits[order])}
    return pd.DataFrame(facts | ranks | {"share": counts[order] / counts.sum()})


def _facts(allocation: Allocation) -> dict[str, object]:
    return {"role": allocation.records.role, "policy": allocation.policy, "k": allocation.k}


def _similarity(
    bootstrap: PatientBootstrap, allocation: Allocation, versus: dict[str, str], b: Bool[np.ndarray, "n 12"]
) -> Sequence[dict[str, object]]:
    records, facts, a = allocation.records, _facts(allocation) | versus, allocation.masks
    similarity, shared = jaccard(a, b), (a & b).sum(axis=1)
    rows = [row(facts, "jaccard", _mean(bootstrap, records, similarity))]
    rows += [row(facts, "jaccard range", value, name) for name, value in _range(similarity)]
    rows.append(row(facts, "identical", _mean(bootstrap, records, (a == b).all(axis=1))))
    most = int(min(a.sum(axis=1).max(), b.sum(axis=1).max()))
    rows += [row(facts, "shared leads", _mean(bootstrap, records, shared == j), str(j)) for j in range(most + 1)]
    return rows


def _range(values: np.ndarray) -> list[tuple[str, float]]:
    return [("min", float(values.min())), ("max", float(values.max()))]


def _mean(bootstrap: PatientBootstrap, records: Records, values: np.ndarray) -> Estimate:
    return bootstrap.statistic(records, values[:, None].astype(float), lambda means: means[:, 0])


def _followed_limb_leads(order: Int[np.ndarray, "n k"]) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """For each record the number of limb leads acquired with two others in hand, and the number in all."""
    is_limb = order < _LIMB_LEADS
    before: Int[np.ndarray, "n k"] = np.cumsum(is_limb, axis=1) - is_limb
    return (is_limb & (before >= 2)).sum(axis=1), is_limb.sum(axis=1)
