"""The contrast D: the metric of an allocation minus that of a reference. Below zero, adaptive choice pays.

Both arms are read by one evaluator, for any number of policies and evaluators; everything is paired. At each k, records
with fewer than k leads, and those that lack a lead of a reference, are left out of all arms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.readings import Readings
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation
from leadwise.references import MATCHED_METRICS, References, Several, by_evaluator

OWN = "own"
"""The reference that belongs to the evaluator of the contrast."""


class ContrastKey(NamedTuple):
    """The key columns of ``contrasts.csv``."""

    role: str
    policy: str
    trained_on: str
    evaluator: str
    reference_evaluator: str
    reference_metric: str
    k: int
    metric: str


@dataclass(frozen=True, eq=False, repr=False)
class Contrast:
    """D of one allocation under one evaluator, against one reference, in one metric."""

    allocation: Allocation
    """For the records that were compared."""
    left_out: int
    """Number of records that were not compared, because they lack a lead of a reference."""
    evaluator: str
    reference_evaluator: str
    reference_metric: str
    metric: str
    adaptive: Estimate
    fixed: Estimate
    resample: str
    """Hash of the draw of patients that the replicates share with others."""

    def __repr__(self) -> str:
        facts = f"{self.allocation.policy}, k = {self.allocation.k}, {self.metric} under {self.evaluator}"
        return f"<Contrast {facts}, reference of {self.reference_evaluator}: {self.delta}>"

    @cached_property
    def delta(self) -> Estimate:
        return self.adaptive - self.fixed

    @property
    def key(self) -> ContrastKey:
        """The columns that name it."""
        chosen = self.allocation
        about = (self.evaluator, self.reference_evaluator, self.reference_metric)
        return ContrastKey(chosen.records.role, chosen.policy, chosen.trained_on, *about, chosen.k, self.metric)

    @property
    def content(self) -> tuple[str, str]:
        """Hashes of the allocation and of the resample: contrasts in which they are equal are paired."""
        return self.allocation.sha256, self.resample

    @property
    def counts(self) -> dict[str, int]:
        return {"records": len(self.allocation.records), "left_out": self.left_out}

    @property
    def row(self) -> dict[str, Any]:
        """One row of ``contrasts.csv``."""
        low, high = self.delta.interval
        values = {"adaptive": self.adaptive.value, "fixed": self.fixed.value, "delta": self.delta.value}
        return self.key._asdict() | values | {"lo": low, "hi": high}


def contrast(
    allocation: Allocation, evaluator: Evaluator, references: Several, metric: str = "nll", reference: str = OWN
) -> pd.DataFrame:
    """D of one allocation with its patient-cluster interval, against the evaluator's own reference.

    ``reference`` may name another evaluator, whose reference is taken instead. Beside the columns of ``contrasts.csv``
    there are ``records``, how many were compared, and ``left_out``, how many lack a lead of the reference.
    """
    return contrasts([allocation], [evaluator], references, [metric], reference)


def contrasts(
    allocations: Iterable[Allocation],
    evaluators: Iterable[Evaluator],
    references: Several,
    metrics: Sequence[str] = MATCHED_METRICS,
    reference: str = OWN,
) -> pd.DataFrame:
    """D of every allocation under every evaluator in every metric, a row each; the columns are those of `contrast`.

    The allocations are of one role. The patients that are resampled are those of the allocation with most records.
    """
    found = contrasts_alone(allocations, evaluators, references, metrics, reference)
    return pd.DataFrame([each.row | each.counts for each in found], columns=list(_COLUMNS))


_COLUMNS = (
    *("policy", "k", "metric", "evaluator", "reference_evaluator", "reference_metric", "trained_on", "role"),
    *("records", "left_out", "adaptive", "fixed", "delta", "lo", "hi"),
)
"""Columns; where there is no room for all, pandas prints the first and the last, so estimates come last."""


def contrasts_alone(
    allocations: Iterable[Allocation],
    evaluators: Iterable[Evaluator],
    references: Several,
    metrics: Sequence[str],
    reference: str = OWN,
) -> list[Contrast]:
    """Contrasts on readings of their own; only the references that they use decide which records are compared."""
    allocations = list(allocations)
    for each in allocations:
        if not isinstance(each, Allocation):
            raise InputError(f"An allocation is what allocate gives; this is {each!r}.")
    if not allocations:
        raise InputError("There are no allocations to compare with a reference; give one or more.")
    role = max((each.records for each in allocations), key=len)
    readings, searched = Readings(role, evaluators), by_evaluator(references)
    used = [_owned(searched, name if reference == OWN else reference) for name in readings.evaluators]
    return estimate_contrasts(readings, allocations, used, reference, metrics)


def estimate_contrasts(
    readings: Readings,
    allocations: Iterable[Allocation],
    references: Several,
    reference: str = OWN,
    metrics: Sequence[str] = MATCHED_METRICS,
    reference_metric: str | None = None,
    evaluators: Sequence[str] | None = None,
) -> list[Contrast]:
    """Contrasts of the allocations under every evaluator, or under those that are named, with their replicates.

    ``reference`` is ``"own"`` (each evaluator's own references) or the name of the evaluator whose references all use.
    Each metric is compared with the set that is optimal for it, unless ``reference_metric`` names one for all.
    Records that lack a lead of any of the ``references`` at a budget are left out there, so that all contrasts of a
    budget are over the same records.
    """
    searched = by_evaluator(references)
    groups: dict[bytes, list[tuple[Allocation, Allocation]]] = {}
    for whole in allocations:
        part = comparable(whole, searched.values())
        groups.setdefault(part.records.rows.tobytes(), []).append((whole, part))
    result = []
    for group, evaluator in product(groups.values(), evaluators or readings.evaluators):
        owned = _owned(searched, evaluator if reference == OWN else reference)
        result += _contrasts_of(readings, group, evaluator, owned, metrics, reference_metric)
    return result


def contrasts_frame(found: Iterable[Contrast]) -> pd.DataFrame:
    """``contrasts.csv``: one row a contrast."""
    return pd.DataFrame([each.row for each in found])


def comparable(allocation: Allocation, references: Iterable[References]) -> Allocation:
    """The part of an allocation for the records that have every lead of these references at its budget.

    A reference was chosen elsewhere, and some of these records may lack one of its leads. Read with what they have of
    it, they would have fewer than k leads in the fixed arm and k in the adaptive one.
    """
    if allocation.records.available.all():
        return allocation
    needed, k = LeadSet(), allocation.k
    for each, metric in product(references, MATCHED_METRICS):
        needed |= each.best(metric, k) if k in each.budgets else LeadSet()
    return allocation.having(needed)


def matched(metric: str) -> str:
    """The metric of the reference that a metric is compared with: ten bins, also where others are counted."""
    return "ece" if metric.startswith("ece") else metric


def _owned(searched: Mapping[str, References], owner: str) -> References:
    if owner not in searched:
        others = f", or ask with reference= for those of {', '.join(searched)}" if searched else ""
        raise InputError(f"There are no references of evaluator '{owner}'; search them first{others}.")
    return searched[owner]


Parts = Sequence[tuple[Allocation, Allocation]]
"""Allocations, and the parts of them that are compared."""


def _contrasts_of(
    readings: Readings,
    parts: Parts,
    evaluator: str,
    references: References,
    metrics: Sequence[str],
    reference_metric: str | None,
) -> list[Contrast]:
    """All contrasts of allocations of the same records under one evaluator, with one product for all replicates."""
    allocations = [part for _, part in parts]
    records = allocations[0].records
    cells = product({allocation.k for allocation in allocations}, metrics)
    fixed = {(k, metric): references.best(reference_metric or matched(metric), k) for k, metric in cells}
    sets: list[LeadSet] = sorted(set(fixed.values()), key=lambda leads: leads.bits)
    masks = [allocation.masks for allocation in allocations]
    masks += [np.tile(leads.mask, (len(records), 1)) for leads in sets]
    arms = dict(enumerate(readings.probabilities(evaluator, records, masks)))
    place = {leads: index for index, leads in enumerate(sets, len(allocations))}
    wanted: dict[int, Sequence[str]] = dict.fromkeys(range(len(allocations)), tuple(metrics))
    for leads, index in place.items():
        wanted[index] = sorted({metric for (_, metric), chosen in fixed.items() if chosen == leads})
    estimates = readings.bootstrap.metrics(records, records.labels, arms, wanted)
    return [
        Contrast(
            allocation=part,
            left_out=len(whole.records) - len(part.records),
            evaluator=evaluator,
            reference_evaluator=references.evaluator,
            reference_metric=reference_metric or matched(metric),
            metric=metric,
            adaptive=estimates[index, metric],
            fixed=estimates[place[fixed[part.k, metric]], metric],
            resample=readings.bootstrap.sha256,
        )
        for index, (whole, part) in enumerate(parts)
        for metric in metrics
    ]
