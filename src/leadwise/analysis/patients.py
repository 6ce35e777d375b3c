"""Effects patient by patient, each patient counting once.

A patient's delta is the mean over their records of NLL(adaptive) − NLL(fixed); below zero, choosing helped them. Their
uncertainty U is the mean binary entropy of the evaluator's probabilities with the first lead only, averaged over their
records. Their labels are the union over their records.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.readings import Readings
from leadwise.analysis.tidy import REFERENCE, frame, row
from leadwise.errors import InputError
from leadwise.leads import LEADS, LeadSet, lead_index
from leadwise.metrics import record_entropy, record_nll
from leadwise.policies.allocation import Allocation
from leadwise.policies.learned import ranking_of_all
from leadwise.policies.rollout import first_available

UNCHANGED = 1e-12


@dataclass(frozen=True, eq=False)
class PatientEffects:
    """Effects of one policy against a fixed set on p patients."""

    allocation: Allocation
    """For the records that were compared."""
    evaluator: str
    delta: Float64[np.ndarray, " p"]
    uncertainty: Float64[np.ndarray, " p"] | None
    """None where no policy of the study says which lead comes first."""
    labels: Bool[np.ndarray, "p l"]
    multiplicities: np.ndarray
    """(r, p): the role's resample, for the patients who have an effect."""

    @property
    def facts(self) -> dict[str, Any]:
        chosen = self.allocation
        facts = {"role": chosen.records.role, "policy": chosen.policy, "versus": REFERENCE, "evaluator": self.evaluator}
        return facts | {"reference_metric": "nll", "k": chosen.k}


def patient_effects(
    readings: Readings, evaluator: str, allocation: Allocation, reference: LeadSet, first_lead: Iterable[str] | None
) -> PatientEffects:
    """Effects of an allocation against a fixed set, under one evaluator.

    Records that lack a lead of the set are left out. ``first_lead`` is a ranking, as a policy has one: each record's
    uncertainty is that under the first lead that it has. Without one there is no uncertainty.
    """
    allocation = allocation.having(reference)
    records, labels = allocation.records, allocation.records.labels
    masks = [allocation.masks, np.tile(reference.mask, (len(records), 1))]
    if first_lead is not None:
        ranking = [lead_index(lead) for lead in ranking_of_all(tuple(first_lead))]
        masks.append(np.eye(len(LEADS), dtype=bool)[first_available(ranking, records.available)])
    p_adaptive, p_fixed, *p_first = readings.probabilities(evaluator, records, masks)
    delta = record_nll(labels, p_adaptive) - record_nll(labels, p_fixed)
    entropy = record_entropy(p_first[0]) if p_first else np.zeros(len(records))
    per_record = np.column_stack([delta, entropy, labels, np.ones(len(records))])
    sums = readings.bootstrap.patient_sums(records.patients, per_record)
    present = sums[:, -1] > 0
    sums, drawn = sums[present], readings.bootstrap.multiplicities[:, present]
    delta, uncertainty = sums[:, 0] / sums[:, -1], sums[:, 1] / sums[:, -1] if p_first else None
    return PatientEffects(allocation, evaluator, delta, uncertainty, sums[:, 2:-1] > 0, drawn)


def patients_frame(effects: PatientEffects) -> pd.DataFrame:
    """``patients.csv``: robust summaries, uncertainty quartiles, rank correlation and subgroups, with intervals."""
    rows = [row(effects.facts, name, estimate) for name, estimate in _summaries(effects).items()]
    if effects.uncertainty is not None:
        quartiles = _quartiles(effects, effects.uncertainty)
        rows += [row(effects.facts, name, estimate) for name, estimate in quartiles.items()]
        rows.append(row(effects.facts, "spearman", _spearman(effects, effects.uncertainty)))
    rows += [row(effects.facts, "range", getattr(effects.delta, end)(), end) for end in ("min", "max")]
    for (name, label), members in _subgroups(effects).items():
        rows.append(row(effects.facts, "patients", float(members.sum()), label or name))
        rows.append(row(effects.facts, "mean", _group_mean(effects, effects.delta, members), label or name))
    return frame(rows)


def effects_frame(effects: PatientEffects) -> pd.DataFrame:
    """``patient_effects.parquet``: delta and uncertainty of each patient."""
    facts = {name: effects.facts[name] for name in ("role", "policy", "evaluator", "k")}
    uncertainty = np.nan if effects.uncertainty is None else effects.uncertainty
    patients = np.unique(effects.allocation.records.patients)
    return pd.DataFrame({"patient": patients, "delta": effects.delta, "uncertainty": uncertainty}).assign(**facts)


def overlap_frame(a: PatientEffects, b: PatientEffects) -> pd.DataFrame:
    """Shares of patients who benefit under both, one or none of two policies; Jaccard similarity of both groups."""
    if not np.array_equal(np.unique(a.allocation.records.patients), np.unique(b.allocation.records.patients)):
        raise InputError("The two policies were tried on different patients, so their benefits cannot be compared.")
    mine, theirs = a.delta < -UNCHANGED, b.delta < -UNCHANGED
    shares = {
        "benefit under both": mine & theirs,
        "benefit under the first only": mine & ~theirs,
        "benefit under the second only": ~mine & theirs,
        "benefit under neither": ~mine & ~theirs,
    }
    facts = a.facts | {"versus": b.allocation.policy}
    rows = [row(facts, name, _group_mean(a, members.astype(float))) for name, members in shares.items()]
    rows.append(row(facts, "benefit jaccard", _group_mean(a, (mine & theirs).astype(float), mine | theirs)))
    return frame(rows)


def cumulative_benefit(effects: PatientEffects) -> pd.DataFrame:
    """Benefit summed over patients, who most benefits first: policy, share of patients, cumulative mean benefit."""
    ordered, count = np.sort(effects.delta), len(effects.delta)
    share, benefit = np.arange(1, count + 1) / count, -np.cumsum(ordered) / count
    return pd.DataFrame({"policy": effects.allocation.policy, "share": share, "benefit": benefit})


def _summaries(effects: PatientEffects) -> dict[str, Estimate]:
    """Mean, median, trimmed and winsorised means, the mean without the largest effects, and who gains or loses."""

    def summarise(d: Float64[np.ndarray, " m"]) -> list[float]:
        d, m = np.sort(d), len(d)
        five, ten = int(0.05 * m), int(0.10 * m)
        winsorised = np.clip(d, d[five], d[m - 1 - five])
        without = d[np.argsort(np.abs(d), kind="stable")[: m - int(np.ceil(0.01 * m))]]
        middles = [d.mean(), np.median(d), d[five : m - five].mean(), d[ten : m - ten].mean(), winsorised.mean()]
        groups = d < -UNCHANGED, d > UNCHANGED, np.abs(d) <= UNCHANGED
        return [*middles, without.mean() if len(without) else np.nan, *(members.mean() for members in groups)]

    means = ("mean", "median", "mean trimmed 5%", "mean trimmed 10%", "mean winsorised 5%", "mean without largest 1%")
    names = (*means, "improved", "worsened", "unchanged")
    return dict(zip(names, _resampled(effects, effects.delta, summarise), strict=True))


def _quartiles(effects: PatientEffects, uncertainty: Float64[np.ndarray, " p"]) -> dict[str, Estimate]:
    """Mean effect and benefit rate in each quartile of uncertainty, and the last one's rate minus that of each other.

    Edges of the quartiles are those of the point estimate.
    """
    edges = np.quantile(uncertainty, [0.25, 0.5, 0.75])
    quartile = np.searchsorted(edges, uncertainty, side="left")
    benefit = (effects.delta < -UNCHANGED).astype(float)
    result = {}
    for q in range(4):
        result[f"Q{q + 1} mean"] = _group_mean(effects, effects.delta, quartile == q)
        result[f"Q{q + 1} benefit rate"] = _group_mean(effects, benefit, quartile == q)
    last = result["Q4 benefit rate"]
    for q in range(1, 4):
        result[f"Q4 minus Q{q} benefit rate"] = last - result[f"Q{q} benefit rate"]
    return result


def _spearman(effects: PatientEffects, uncertainty: Float64[np.ndarray, " p"]) -> Estimate:
    """Rank correlation of uncertainty and benefit, ρ(U, −delta)."""
    from scipy.stats import rankdata

    def correlate(pairs: Float64[np.ndarray, "m 2"]) -> list[float]:
        ranks = rankdata(pairs, axis=0)
        ranks -= ranks.mean(axis=0)
        scale = np.sqrt((ranks**2).sum(axis=0).prod())
        return [float(ranks[:, 0] @ ranks[:, 1] / scale) if scale > 0 else np.nan]

    return _resampled(effects, np.column_stack([uncertainty, -effects.delta]), correlate)[0]


def _subgroups(effects: PatientEffects) -> dict[tuple[str, str], Bool[np.ndarray, " p"]]:
    """Patients by number of superclasses, and with or without each label. Descriptions, not rules."""
    labels = effects.allocation.records.label_names
    number = effects.labels.sum(axis=1)
    groups = {("no label", ""): number == 0, ("one label", ""): number == 1, ("several labels", ""): number >= 2}
    for index, label in enumerate(labels):
        groups[label, f"{label} positive"] = effects.labels[:, index]
        groups[label, f"{label} negative"] = ~effects.labels[:, index]
    return {key: members for key, members in groups.items() if members.any()}


def _group_mean(
    effects: PatientEffects, values: Float64[np.ndarray, " p"], members: Bool[np.ndarray, " p"] | None = None
) -> Estimate:
    """Mean over the members, with replicates; undefined in a replicate that has drawn none of them."""
    inside = np.ones(len(values)) if members is None else members.astype(float)
    weights = effects.multiplicities * inside
    with np.errstate(invalid="ignore", divide="ignore"):
        return Estimate(float(np.divide(values @ inside, inside.sum())), (weights @ values) / weights.sum(axis=1))


def _resampled(
    effects: PatientEffects, values: Float64[np.ndarray, "p ..."], statistic: Callable[[np.ndarray], Sequence[float]]
) -> list[Estimate]:
    """Statistics that are no sums: computed anew on the patients that each replicate has drawn."""
    everyone = np.arange(len(values))
    point = statistic(values)
    nobody = np.full(len(point), np.nan)  # with few patients, a replicate may have drawn none who has an effect
    replicates = np.array(
        [statistic(values[np.repeat(everyone, drawn)]) if drawn.any() else nobody for drawn in effects.multiplicities]
    )
    return [Estimate(float(value), replicates[:, index]) for index, value in enumerate(point)]
