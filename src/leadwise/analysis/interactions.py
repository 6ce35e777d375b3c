"""The interaction I: D under one evaluator minus D under another. Above zero, adaptive choice pays less there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from leadwise.analysis.bootstrap import Estimate, simultaneous_intervals
from leadwise.analysis.contrasts import OWN, Contrast, ContrastKey, contrasts_alone, matched
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, evaluator_name
from leadwise.policies.allocation import Allocation
from leadwise.references import MATCHED_METRICS, Several


class InteractionKey(NamedTuple):
    """The key columns of ``interactions.csv``, and for which metric the references are optimal."""

    role: str
    policy: str
    trained_on: str
    evaluator: str
    baseline_evaluator: str
    reference: str
    reference_metric: str
    k: int
    metric: str


@dataclass(frozen=True, eq=False, repr=False)
class Interaction:
    """I of one allocation between two evaluators, in one metric."""

    read: Contrast
    """D under the evaluator."""
    base: Contrast
    """D under the baseline."""
    reference: str
    """``"own"``, or the evaluator whose references both are compared with."""
    estimate: Estimate
    simultaneous: tuple[float, float]
    """The interval that holds together with those of the family that it was estimated with."""

    def __repr__(self) -> str:
        key = self.key
        facts = f"{key.policy}, k = {key.k}, {key.metric} under {key.evaluator} minus {key.baseline_evaluator}"
        return f"<Interaction {facts}, {self.reference} reference: {self.estimate}>"

    @property
    def key(self) -> InteractionKey:
        """The columns that name it."""
        read = self.read.key
        between = (read.evaluator, self.base.evaluator, self.reference, read.reference_metric)
        return InteractionKey(read.role, read.policy, read.trained_on, *between, read.k, read.metric)

    @property
    def facts(self) -> dict[str, Any]:
        """The key columns of ``interactions.csv``."""
        return {name: value for name, value in self.key._asdict().items() if name != "reference_metric"}

    @property
    def row(self) -> dict[str, Any]:
        """One row of ``interactions.csv``."""
        (low, high), (low_together, high_together) = self.estimate.interval, self.simultaneous
        facts = self.facts | {"d_baseline": self.base.delta.value, "d_evaluator": self.read.delta.value}
        facts |= {"interaction": self.estimate.value, "lo": low, "hi": high}
        return facts | {"lo_simultaneous": low_together, "hi_simultaneous": high_together}


def interaction(
    allocation: Allocation,
    evaluator: Evaluator,
    baseline: Evaluator,
    references: Several,
    metric: str = "nll",
    reference: str = OWN,
) -> pd.DataFrame:
    """I of one allocation between any two evaluators, each against its own reference.

    ``reference`` may name one evaluator, whose reference both are compared with. Beside the columns of
    ``interactions.csv`` there are ``records``, how many were compared, and ``left_out``, how many lack its leads.
    """
    return interactions([allocation], evaluator, baseline, references, [metric], reference)


def interactions(
    allocations: Iterable[Allocation],
    evaluator: Evaluator,
    baseline: Evaluator,
    references: Several,
    metrics: Sequence[str] = MATCHED_METRICS,
    reference: str = OWN,
) -> pd.DataFrame:
    """I of every allocation in every metric, a row each; the columns are those of `interaction`.

    The allocations are of one role. The patients that are resampled are those of the allocation with most records, and
    simultaneous intervals are over all rows.
    """
    name, other = evaluator_name(evaluator), evaluator_name(baseline)
    if evaluator is baseline:
        _refuse_itself(name, other)
    found = contrasts_alone(allocations, [evaluator, baseline], references, metrics, reference)
    rows = [each.row | each.read.counts for each in estimate_interactions(found, name, other, reference)]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


_COLUMNS = (
    *("policy", "k", "metric", "evaluator", "baseline_evaluator", "reference", "trained_on", "role"),
    *("records", "left_out", "d_baseline", "d_evaluator", "lo_simultaneous", "hi_simultaneous"),
    *("interaction", "lo", "hi"),
)
"""In an order for reading, as those of `contrast`."""


def estimate_interactions(
    found: Iterable[Contrast], evaluator: str, baseline: str, reference: str = OWN, reference_metric: str | None = None
) -> list[Interaction]:
    """I = D under ``evaluator`` − D under ``baseline`` for every key that both have, with replicates.

    Of ``found``, only contrasts against ``reference`` count: ``"own"``, or the evaluator whose references all use; of
    those, the ones whose reference is optimal for their own metric, unless ``reference_metric`` names another.
    Simultaneous intervals are over all interactions that come back: one pair of evaluators, one kind of reference.
    """
    _refuse_itself(evaluator, baseline)
    under: dict[str, dict[ContrastKey, Contrast]] = {evaluator: {}, baseline: {}}
    for each in found:
        owner = each.evaluator if reference == OWN else reference
        fits = (each.reference_evaluator, each.reference_metric) == (owner, reference_metric or matched(each.metric))
        if fits and each.evaluator in under:
            known = under[each.evaluator].setdefault(_apart_from_evaluators(each.key), each)
            _check_paired(known, each)
    pairs = [(read, under[baseline][key]) for key, read in under[evaluator].items() if key in under[baseline]]
    if not pairs:
        return []
    for pair in pairs:
        _check_paired(*pair)
    estimates = [read.delta - base.delta for read, base in pairs]
    bounds = zip(*simultaneous_intervals(estimates), strict=True)
    return [
        Interaction(read, base, reference, estimate, (float(low), float(high)))
        for (read, base), estimate, (low, high) in zip(pairs, estimates, bounds, strict=True)
    ]


def interactions_frame(found: Iterable[Interaction]) -> pd.DataFrame:
    """``interactions.csv``: one row an interaction."""
    return pd.DataFrame([each.row for each in found])


def _apart_from_evaluators(key: ContrastKey) -> ContrastKey:
    return key._replace(evaluator="", reference_evaluator="")


def _check_paired(one: Contrast, other: Contrast) -> None:
    """Raise unless two contrasts of one key are of the same leads, records and resample."""
    if one.content != other.content:
        raise InputError(
            f"{one!r} and {other!r} differ in their records, their leads or their resample, and cannot be subtracted; "
            "give different allocations different policy names, and contrasts the same readings."
        )


def _refuse_itself(evaluator: str, baseline: str) -> None:
    if evaluator == baseline:
        raise InputError(f"'{evaluator}' cannot be its own baseline; an interaction is between two evaluators.")
