"""Statements about estimates, the plan's hypotheses and the paper's claims alike: their cells, and what those say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from leadwise.analysis.tidy import REFERENCE
from leadwise.findings.estimates import Findings, Found
from leadwise.findings.verdicts import EQUIVALENT, cell_verdict, equivalence_verdict


class Place(NamedTuple):
    """Key of an estimate. Columns that a statement does not name are blank."""

    quantity: str
    policy: str
    versus: str
    """The policy that it is compared with."""
    evaluator: str
    baseline: str
    """The evaluator that it is compared with."""
    reference: str
    k: int
    metric: str


class Decided(NamedTuple):
    """The estimates that decide a cell, and the verdict on it."""

    estimates: list[tuple[Place, Found]]
    verdict: str


@dataclass(frozen=True)
class Statement:
    """A side of zero on which the estimates of all cells (policy, budget and metric) are said to lie."""

    quantity: str
    """One of `QUANTITIES`."""
    policies: Sequence[str]
    """The two of a pair, else each is a cell of its own."""
    evaluator: str
    baseline: str | None
    reference: str
    budgets: Sequence[int]
    metrics: Sequence[str]
    expected: str
    """See `leadwise.findings.verdicts.cell_verdict`; of contrasts also "equivalent"."""

    @property
    def places(self) -> list[Place]:
        pairs = [tuple(self.policies)] if self.quantity == "paired" else [(policy, "") for policy in self.policies]
        facts = self.evaluator, self.baseline or "", self.reference
        return [
            Place(self.quantity, policy, versus, *facts, k, metric)
            for (policy, versus), k, metric in product(pairs, self.budgets, self.metrics)
        ]

    def decide(self, findings: Findings, role: str | None, place: Place) -> Decided:
        """Estimate and verdict of a cell; for two evaluators' quality, which no table compares, of their difference."""
        if self.expected == EQUIVALENT:
            found, margin, verdict = findings.equivalence(role, place.policy, place.evaluator, place.k, place.metric)
            return Decided([(place, found)], equivalence_verdict(found, margin, verdict))
        estimate = QUANTITIES[self.quantity]
        found = estimate(findings, role, place)
        if self.quantity != QUALITY:
            return Decided([(place, found)], cell_verdict(found, self.expected))
        alone, other = place._replace(baseline=""), place._replace(evaluator=place.baseline, baseline="")
        compared = estimate(findings, role, other)
        return Decided([(alone, found), (other, compared)], cell_verdict(found.minus(compared), self.expected))


QUALITY, IDENTICAL, LEAD = "evaluator quality", "identical sets", "lead missing"


def _calibration(findings: Findings, role: str | None, at: Place) -> Found:
    """A statistic of the policy minus that of the ECE-matched set."""
    found = _calibrated(findings, role, at, f"{at.metric} difference", versus=REFERENCE)
    if not found.missing:
        return found
    policy, fixed = (_calibrated(findings, role, at._replace(policy=arm), at.metric) for arm in (at.policy, REFERENCE))
    return policy.minus(fixed)


def _variance(findings: Findings, role: str | None, at: Place) -> Found:
    """The policy's variance over that of the ECE-matched set, minus one."""
    return _calibrated(findings, role, at, "variance retention", versus=REFERENCE).minus(Found(1.0, 1.0, 1.0))


def _label_ece(findings: Findings, role: str | None, at: Place) -> Found:
    return _calibrated(findings, role, at, "ece difference", label=at.metric, versus=REFERENCE)


def _calibrated(
    findings: Findings, role: str | None, at: Place, statistic: str, label: str = "", versus: str = ""
) -> Found:
    facts = {"policy": at.policy, "versus": versus, "evaluator": at.evaluator, "reference_metric": "ece"}
    return findings.find("calibration", role=role, k=at.k, statistic=statistic, label=label, **facts)


def _decomposed(findings: Findings, role: str | None, at: Place) -> Found:
    """The part of an interaction that recalibration removes, or what remains."""
    facts = {"policy": at.policy, "evaluator": at.evaluator, "baseline_evaluator": at.baseline, "metric": at.metric}
    return findings.find("decomposition", role=role, k=at.k, statistic=at.quantity, **facts)


def _patients(findings: Findings, role: str | None, at: Place, statistic: str, label: str = "") -> Found:
    """A statistic of the patients' effects on NLL."""
    facts = {"policy": at.policy, "versus": REFERENCE, "evaluator": at.evaluator, "reference_metric": "nll"}
    return findings.find("patients", role=role, k=at.k, statistic=statistic, label=label, **facts)


def _identical(findings: Findings, role: str | None, at: Place) -> Found:
    facts = {"policy": at.policy, "versus": REFERENCE, "evaluator": at.reference, "reference_metric": at.metric}
    return findings.find("alignment", role=role, k=at.k, statistic="identical", label="", **facts)


def _lead_frequency(findings: Findings, role: str | None, at: Place, lead: str) -> Found:
    facts = {"policy": at.policy, "statistic": "lead frequency", "label": lead}
    return findings.find("alignment", role=role, k=at.k, **facts)


def _more_often(findings: Findings, role: str | None, at: Place) -> Found:
    """Share of records with the first of two leads, named as in V1-V2, minus that with the second."""
    first, second = (_lead_frequency(findings, role, at, lead) for lead in at.metric.split("-"))
    return first.minus(second)


QUANTITIES: dict[str, Callable[[Findings, str | None, Place], Found]] = {
    "contrast": lambda ours, role, at: ours.contrast(role, at.policy, at.evaluator, at.k, at.metric, at.reference),
    "interaction": lambda ours, role, at: ours.interaction(
        role, at.policy, at.evaluator, at.baseline, at.reference, at.k, at.metric
    ),
    "paired": lambda ours, role, at: ours.paired(role, at.policy, at.versus, at.evaluator, at.k, at.metric),
    "calibration": _calibration,
    "variance retained": _variance,
    "label ece": _label_ece,
    "removed": _decomposed,
    "remaining": _decomposed,
    "spearman": lambda ours, role, at: _patients(ours, role, at, "spearman"),
    "group mean": lambda ours, role, at: _patients(ours, role, at, "mean", at.metric.replace("-", " ")),
    "benefit rate": lambda ours, role, at: _patients(ours, role, at, f"Q4 minus {at.metric} benefit rate"),
    IDENTICAL: _identical,
    LEAD: lambda ours, role, at: Found(1.0).minus(_lead_frequency(ours, role, at, at.metric)),
    "lead frequency": _more_often,
    QUALITY: lambda ours, role, at: ours.quality(role, at.evaluator, at.metric),
}
"""The estimate that each kind of statement is about."""
