"""Does choosing pay, and does it still pay under another evaluator?

The contrast D is the metric of an allocation minus that of a reference, under one evaluator; the interaction I is D
under one evaluator minus D under another. Any number of policies and evaluators; everything is paired.

At each k, records with fewer than k leads, and those that lack a lead of a reference, are left out of all arms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int

from leadwise.analysis.bootstrap import Estimate, PatientBootstrap, simultaneous_intervals
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import evaluator_name
from leadwise.evaluators.scoring import Scorer
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation
from leadwise.references import MATCHED_METRICS, References, Several, by_evaluator

OWN = "own"
"""The reference that belongs to the evaluator of the contrast."""


@dataclass(frozen=True, eq=False, repr=False)
class Contrast:
    """D of one allocation under one evaluator, against one reference, in one metric."""

    allocation: Allocation
    """For the records that were compared."""
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

    @property
    def delta(self) -> Estimate:
        return self.adaptive - self.fixed

    @property
    def row(self) -> dict[str, Any]:
        """One row of ``contrasts.csv``."""
        low, high = self.delta.interval
        return {
            "role": self.allocation.records.role,
            "policy": self.allocation.policy,
            "trained_on": self.allocation.trained_on,
            "evaluator": self.evaluator,
            "reference_evaluator": self.reference_evaluator,
            "reference_metric": self.reference_metric,
            "k": self.allocation.k,
            "metric": self.metric,
            "adaptive": self.adaptive.value,
            "fixed": self.fixed.value,
            "delta": self.delta.value,
            "lo": low,
            "hi": high,
        }


class Readings:
    """What evaluators make of leads on the records of a role: each distinct reading is computed once.

    Parameters
    ----------
    records
        Everyone in the role; allocations may leave some out.
    evaluators
        The evaluators that read.
    bootstrap
        The role's resample.
    memory
        Directory where readings are kept as they are made, for evaluators that take their time.
    """

    def __init__(
        self,
        records: Records,
        evaluators: Iterable[Any],
        bootstrap: PatientBootstrap | None = None,
        memory: Path | None = None,
    ) -> None:
        self.records, self.memory = records, memory
        self.bootstrap = bootstrap or PatientBootstrap(records)
        self.evaluators: dict[str, Any] = {}
        for evaluator in evaluators:
            name = evaluator_name(evaluator)
            if self.evaluators.setdefault(name, evaluator) is not evaluator:
                raise InputError(f"Two evaluators are called '{name}'; give each a name of its own.")
        self.scorers: dict[str, Scorer] = {}

    def __repr__(self) -> str:
        return f"<Readings of {len(self.records)} records by {', '.join(self.evaluators)}>"

    def probabilities(
        self, evaluator: str, records: Records, masks: Sequence[Bool[np.ndarray, "n 12"]]
    ) -> list[Float64[np.ndarray, "n l"]]:
        """The evaluator's probabilities on ``records`` (a part of the role) for each of the mask matrices."""
        if evaluator not in self.evaluators:
            raise InputError(f"There is no evaluator '{evaluator}' here; there are {', '.join(self.evaluators)}.")
        if evaluator not in self.scorers:
            rows = sha256(self.records.rows.tobytes()).hexdigest()[:16]
            place = self.memory and self.memory / f"{evaluator}-{rows}.readings"
            self.scorers[evaluator] = Scorer(self.evaluators[evaluator], self.records, remember=True, memory=place)
        positions = np.tile(self._positions(records), len(masks))
        answer = self.scorers[evaluator].pairs(positions, np.concatenate(masks))
        return list(answer.reshape(len(masks), len(records), -1))

    def _positions(self, records: Records) -> Int[np.ndarray, " n"]:
        """Where these records stand among the role's."""
        order = np.argsort(self.records.ids, kind="stable")
        place = np.searchsorted(self.records.ids, records.ids, sorter=order)
        positions = order[np.minimum(place, len(order) - 1)]
        strange = self.records.ids[positions] != records.ids
        strange |= self.records.patients[positions] != records.patients  # another cohort may have the same ids
        if strange.any():
            raise InputError(
                f"Record {records.ids[np.argmax(strange)]} of {records.name} is not among those of {self.records.name}."
            )
        return positions


def comparable(allocation: Allocation, references: Iterable[References]) -> Allocation:
    """The part of an allocation for the records that have every lead of these references at its budget.

    A reference was chosen elsewhere, and some of these records may lack one of its leads. Read with what they have of
    it, they would have fewer than k leads in the fixed arm and k in the adaptive one.
    """
    if allocation.records.available.all():
        return allocation
    needed = LeadSet()
    for each in references:
        if allocation.k in each.budgets:
            for metric in MATCHED_METRICS:
                needed |= each.best(metric, allocation.k)
    return allocation.having(needed)


def contrasts(
    readings: Readings,
    allocations: Iterable[Allocation],
    references: Several,
    reference: str = OWN,
    metrics: Sequence[str] = MATCHED_METRICS,
    reference_metric: str | None = None,
    evaluators: Sequence[str] | None = None,
) -> list[Contrast]:
    """Every contrast of the allocations under every evaluator, or under those that are named.

    ``reference`` is ``"own"`` (each evaluator's own references) or the name of the evaluator whose references all use.
    Each metric is compared with the set that is optimal for it, unless ``reference_metric`` names one for all.
    Records that lack a lead of any of the ``references`` at a budget are left out there, so that all contrasts of a
    budget are over the same records.
    """
    searched = by_evaluator(references)
    result = []
    for records, group in _by_records(comparable(each, searched.values()) for each in allocations):
        for evaluator in evaluators or readings.evaluators:
            owned = _owned(searched, evaluator if reference == OWN else reference)
            result += _contrasts_of(readings, records, group, evaluator, owned, metrics, reference_metric)
    return result


def _owned(searched: Mapping[str, References], owner: str) -> References:
    if owner not in searched:
        others = f", or ask with reference= for those of {', '.join(searched)}" if searched else ""
        raise InputError(f"There are no references of evaluator '{owner}'; search them first{others}.")
    return searched[owner]


def _contrasts_of(
    readings: Readings,
    records: Records,
    allocations: Sequence[Allocation],
    evaluator: str,
    references: References,
    metrics: Sequence[str],
    reference_metric: str | None,
) -> list[Contrast]:
    """All contrasts of allocations of the same records under one evaluator, with one product for all replicates."""
    matched = {
        (k, metric): references.best(reference_metric or _matched(metric), k)
        for k in {allocation.k for allocation in allocations}
        for metric in metrics
    }
    sets: list[LeadSet] = sorted(set(matched.values()), key=lambda leads: leads.bits)
    masks = [allocation.masks for allocation in allocations]
    masks += [np.tile(leads.mask, (len(records), 1)) for leads in sets]
    arms = dict(enumerate(readings.probabilities(evaluator, records, masks)))
    place = {leads: len(allocations) + index for index, leads in enumerate(sets)}
    wanted: dict[int, Sequence[str]] = {index: tuple(metrics) for index in range(len(allocations))}
    for leads, index in place.items():
        wanted[index] = sorted({metric for (_, metric), chosen in matched.items() if chosen == leads})
    estimates = readings.bootstrap.metrics(records, records.labels, arms, wanted)
    return [
        Contrast(
            allocation=allocation,
            evaluator=evaluator,
            reference_evaluator=references.evaluator,
            reference_metric=reference_metric or _matched(metric),
            metric=metric,
            adaptive=estimates[index, metric],
            fixed=estimates[place[matched[allocation.k, metric]], metric],
            resample=readings.bootstrap.sha256,
        )
        for index, allocation in enumerate(allocations)
        for metric in metrics
    ]


def contrasts_frame(found: Iterable[Contrast]) -> pd.DataFrame:
    """``contrasts.csv``: one row a contrast."""
    return pd.DataFrame([each.row for each in found])


def interactions_frame(
    found: Iterable[Contrast],
    evaluator: str,
    baseline: str,
    reference: str = OWN,
    reference_metric: str | None = None,
) -> pd.DataFrame:
    """``interactions.csv``: I = D under ``evaluator`` − D under ``baseline``, for all that both have.

    Of ``found``, only contrasts against ``reference`` count: ``"own"``, or the evaluator whose references all use; of
    those, the ones whose reference is optimal for their own metric, unless ``reference_metric`` names another.
    Simultaneous intervals are over all rows of the frame: one pair of evaluators, one kind of reference.
    """
    _refuse_itself(evaluator, baseline)
    by_key: dict[tuple[str, ...], dict[str, Contrast]] = {}
    for each in found:
        owner = each.evaluator if reference == OWN else reference
        if (each.reference_evaluator, each.reference_metric) == (owner, reference_metric or _matched(each.metric)):
            by_key.setdefault((each.allocation.sha256, each.metric, each.resample), {})[each.evaluator] = each
    pairs = [(pair[evaluator], pair[baseline]) for pair in by_key.values() if {evaluator, baseline} <= set(pair)]
    if not pairs:
        raise InputError(
            f"No contrast was made under both '{evaluator}' and '{baseline}' with the reference '{reference}'"
            f"{f' for {reference_metric}' if reference_metric else ''} on the same records; make both first."
        )
    estimates = [read.delta - base.delta for read, base in pairs]
    low, high = simultaneous_intervals(estimates)
    rows = [
        {
            "role": read.allocation.records.role,
            "policy": read.allocation.policy,
            "trained_on": read.allocation.trained_on,
            "evaluator": evaluator,
            "baseline_evaluator": baseline,
            "reference": reference,
            "k": read.allocation.k,
            "metric": read.metric,
            "d_baseline": base.delta.value,
            "d_evaluator": read.delta.value,
            "interaction": estimate.value,
            "lo": estimate.interval[0],
            "hi": estimate.interval[1],
            "lo_simultaneous": low[index],
            "hi_simultaneous": high[index],
        }
        for index, ((read, base), estimate) in enumerate(zip(pairs, estimates, strict=True))
    ]
    return pd.DataFrame(rows)


def paired_frame(
    readings: Readings,
    pairs: Iterable[tuple[Allocation, Allocation]],
    metrics: Sequence[str] = MATCHED_METRICS,
    evaluators: Sequence[str] | None = None,
) -> pd.DataFrame:
    """``paired.csv``: metric of allocation a minus that of b, under every evaluator, or under those that are named."""
    rows = []
    for a, b in pairs:
        if not np.array_equal(a.records.rows, b.records.rows) or a.k != b.k:
            raise InputError(
                f"{a.policy} and {b.policy} cannot be paired: they differ in their records or their budget."
            )
        for evaluator in evaluators or readings.evaluators:
            arms = dict(zip("ab", readings.probabilities(evaluator, a.records, [a.masks, b.masks]), strict=True))
            estimates = readings.bootstrap.metrics(a.records, a.records.labels, arms, metrics)
            for metric in metrics:
                delta = estimates["a", metric] - estimates["b", metric]
                rows.append(
                    {
                        "role": a.records.role,
                        "evaluator": evaluator,
                        "k": a.k,
                        "metric": metric,
                        "policy_a": a.policy,
                        "policy_b": b.policy,
                        "a": estimates["a", metric].value,
                        "b": estimates["b", metric].value,
                        "delta": delta.value,
                        "lo": delta.interval[0],
                        "hi": delta.interval[1],
                    }
                )
    return pd.DataFrame(rows)


def contrast(
    allocation: Allocation, evaluator: Any, references: Several, metric: str = "nll", reference: str = OWN
) -> pd.DataFrame:
    """D of one allocation with its patient-cluster interval, against the evaluator's own reference.

    ``reference`` may name another evaluator, whose reference is taken instead. Beside the columns of ``contrasts.csv``
    there are ``records``, how many were compared, and ``left_out``, how many lack a lead of the reference.
    """
    found = _contrasts_alone(allocation, [evaluator], references, metric, reference)
    return contrasts_frame(found).assign(**_counts(allocation, found))[list(_CONTRAST)]


def interaction(
    allocation: Allocation,
    evaluator: Any,
    baseline: Any,
    references: Several,
    metric: str = "nll",
    reference: str = OWN,
) -> pd.DataFrame:
    """I of one allocation between any two evaluators, each against its own reference.

    ``reference`` may name one evaluator, whose reference both are compared with. Beside the columns of
    ``interactions.csv`` there are ``records``, how many were compared, and ``left_out``, how many lack a lead of a
    reference.
    """
    name, other = evaluator_name(evaluator), evaluator_name(baseline)
    if evaluator is baseline:
        _refuse_itself(name, other)
    found = _contrasts_alone(allocation, [evaluator, baseline], references, metric, reference)
    frame = interactions_frame(found, name, other, reference)
    return frame.assign(**_counts(allocation, found))[list(_INTERACTION)]


_KEY = ("policy", "k", "metric", "evaluator")
_CONTRAST = (
    *(*_KEY, "reference_evaluator", "reference_metric", "trained_on", "role", "records", "left_out"),
    *("adaptive", "fixed", "delta", "lo", "hi"),
)
_INTERACTION = (
    *(*_KEY, "baseline_evaluator", "reference", "trained_on", "role", "records", "left_out"),
    *("d_baseline", "d_evaluator", "lo_simultaneous", "hi_simultaneous", "interaction", "lo", "hi"),
)
"""Where there is no room for all columns, pandas prints the first and the last: what it is about, what came out."""


def _contrasts_alone(
    allocation: Allocation, evaluators: Sequence[Any], references: Several, metric: str, reference: str
) -> list[Contrast]:
    """Contrasts of one allocation; only the references that they use decide which records are compared."""
    if not isinstance(allocation, Allocation):
        raise InputError(f"An allocation is what allocate gives; this is {allocation!r}.")
    readings, searched = Readings(allocation.records, evaluators), by_evaluator(references)
    used = [_owned(searched, name if reference == OWN else reference) for name in readings.evaluators]
    return contrasts(readings, [allocation], used, reference, [metric])


def _counts(allocation: Allocation, found: Sequence[Contrast]) -> dict[str, int]:
    compared = len(found[0].allocation.records)
    return {"records": compared, "left_out": len(allocation.records) - compared}


def _refuse_itself(evaluator: str, baseline: str) -> None:
    if evaluator == baseline:
        raise InputError(f"'{evaluator}' cannot be its own baseline; an interaction is between two evaluators.")


def _matched(metric: str) -> str:
    """References are matched to ten bins, also where others are counted."""
    return "ece" if metric.startswith("ece") else metric


def _by_records(allocations: Iterable[Allocation]) -> list[tuple[Records, list[Allocation]]]:
    """Allocations grouped by the records that they are for."""
    groups: dict[bytes, tuple[Records, list[Allocation]]] = {}
    for allocation in allocations:
        groups.setdefault(allocation.records.rows.tobytes(), (allocation.records, []))[1].append(allocation)
    return list(groups.values())
