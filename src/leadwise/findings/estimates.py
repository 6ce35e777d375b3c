"""Where a number stands among the results of a run. What is not there is missing, never an error."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.analysis.tidy import REFERENCE
from leadwise.leads import LEADS

ALL_LEADS = " ".join(LEADS)
RANDOM_MASKS = "random masks"
"""What stands for a lead set where every record of a role has the mask of the frozen draw."""

_SCORED = ("contrasts", "interactions", "paired", "evaluator_quality", "calibration", "patients", "alignment")
"""Frames that show that a role was scored; a sealed role is in others, because its records may be counted."""


class Found(NamedTuple):
    """A number of ours (or lead names) and its interval, as far as there is one."""

    value: Any
    lo: float = np.nan
    hi: float = np.nan

    @property
    def missing(self) -> bool:
        return bool(pd.isna(self.value))

    @property
    def negated(self) -> "Found":
        return Found(-self.value, -self.hi, -self.lo)

    def minus(self, other: "Found") -> "Found":
        """The difference; its interval is at least as wide as one of paired resamples would be."""
        return Found(self.value - other.value, self.lo - other.hi, self.hi - other.lo)

    def without_interval(self) -> "Found":
        return Found(self.value)


MISSING = Found(np.nan)

ABOVE, BELOW, INCLUDES, NO_INTERVAL = "lies above zero", "lies below zero", "includes zero", "has no interval"


def side(found: Found) -> str:
    """Where an interval lies; one that touches zero includes it.

    >>> side(Found(0.2, 0.1, 0.3)), side(Found(0.2, 0.0, 0.3))
    ('lies above zero', 'includes zero')
    """
    if pd.isna(found.lo) or pd.isna(found.hi):
        return NO_INTERVAL
    return ABOVE if found.lo > 0 else BELOW if found.hi < 0 else INCLUDES


class Findings:
    """The results of a run, asked in the words of the study.

    Parameters
    ----------
    results
        Frames by the stem of their file: ``contrasts``, ``interactions``, … Any may be missing or lack rows.
    roles
        The folds of each role.
    """

    def __init__(self, results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> None:
        self.results = results
        self.roles = {role: frozenset(folds) for role, folds in roles.items()}
        self._indices: dict[tuple[str, tuple[str, ...]], dict[tuple[object, ...], int]] = {}

    def role(self, fold: int | None) -> str | None:
        """The role that has a fold."""
        return next((role for role, folds in self.roles.items() if fold in folds), None)

    def scored(self, role: str | None) -> bool:
        """Whether any result is of this role."""
        frames = {name: self.results[name] for name in _SCORED if name in self.results}
        return any(
            "role" in frame.columns and (role,) in self._index(name, ("role",)) for name, frame in frames.items()
        )

    def find(self, name: str, column: str = "value", **facts: object) -> Found:
        """``column`` of the first row of a frame that agrees with ``facts``, with ``lo`` and ``hi`` beside it."""
        frame = self.results.get(name)
        if frame is None or not {column, *facts} <= set(frame.columns):
            return MISSING
        at = self._index(name, tuple(facts)).get(tuple(facts.values()))
        if at is None:
            return MISSING
        row = frame.iloc[at]
        if isinstance(row[column], str):
            return Found(row[column])
        return Found(*(_number(row.get(each)) for each in (column, "lo", "hi")))

    def _index(self, name: str, columns: tuple[str, ...]) -> dict[tuple[object, ...], int]:
        """The first row of a frame for each combination of values: hundreds of numbers are looked up in few frames."""
        if (name, columns) not in self._indices:
            frame = self.results[name]
            keys = zip(*(_blank_where_missing(frame[column]) for column in columns), strict=True)
            index: dict[tuple[object, ...], int] = {}
            for at, key in enumerate(keys):
                index.setdefault(key, at)
            self._indices[name, columns] = index
        return self._indices[name, columns]

    def contrast(
        self,
        role: str | None,
        policy: str,
        evaluator: str,
        k: int | None,
        metric: str,
        reference: str = OWN,
        column: str = "delta",
    ) -> Found:
        """D, or with ``column`` one of its two arms; ``reference`` is "own" or whose references are meant."""
        owner = evaluator if reference == OWN else reference
        found = self.find(
            "contrasts",
            column,
            role=role,
            policy=policy,
            evaluator=evaluator,
            reference_evaluator=owner,
            reference_metric="ece" if metric.startswith("ece") else metric,
            k=k,
            metric=metric,
        )
        if column != "delta":
            return found.without_interval()
        if found.missing and owner == evaluator and metric.startswith("ece"):
            # other binnings may have been computed for the calibration section only; it has the same ECE-matched set
            return self.calibration(role, policy, evaluator, k, f"{metric} difference", versus=REFERENCE)
        return found

    def interaction(
        self, role: str | None, policy: str, evaluator: str, baseline: str, reference: str, k: int | None, metric: str
    ) -> Found:
        """I of a policy between two evaluators."""
        return self.find(
            "interactions",
            "interaction",
            role=role,
            policy=policy,
            evaluator=evaluator,
            baseline_evaluator=baseline,
            reference=reference,
            k=k,
            metric=metric,
        )

    def paired(
        self,
        role: str | None,
        first: str,
        second: str,
        evaluator: str,
        k: int | None,
        metric: str,
        column: str = "delta",
    ) -> Found:
        """Metric of the first policy minus that of the second; with ``column`` "a" or "b" that of one of them."""
        facts = {"role": role, "evaluator": evaluator, "k": k, "metric": metric}
        found = self.find("paired", column, **facts, policy_a=first, policy_b=second)
        if found.missing:  # a run may have paired them the other way round
            other = {"a": "b", "b": "a", "delta": "delta"}[column]
            found = self.find("paired", other, **facts, policy_a=second, policy_b=first)
            found = found.negated if column == "delta" else found
        return found if column == "delta" else found.without_interval()

    def calibration(
        self,
        role: str | None,
        policy: str,
        evaluator: str,
        k: int | None,
        statistic: str,
        label: str = "",
        versus: str = "",
    ) -> Found:
        """A statistic of a policy, of the ECE-matched set ("reference"), or of the one versus the other."""
        facts = {"policy": policy, "versus": versus, "evaluator": evaluator, "reference_metric": "ece"}
        return self.find("calibration", role=role, k=k, statistic=statistic, label=label, **facts)

    def patients(
        self,
        role: str | None,
        policy: str,
        evaluator: str,
        k: int | None,
        statistic: str,
        label: str = "",
        versus: str = REFERENCE,
        reference_metric: str = "nll",
    ) -> Found:
        """A statistic of the patients' effects."""
        facts = {"policy": policy, "versus": versus, "evaluator": evaluator, "reference_metric": reference_metric}
        return self.find("patients", role=role, k=k, statistic=statistic, label=label, **facts)

    def patient_count(self, role: str | None, policy: str, evaluator: str, k: int | None, statistic: str) -> Found:
        """Of how many patients a share is: the share times all patients, who have no label, one, or several."""
        groups = [
            self.patients(role, policy, evaluator, k, "patients", group)
            for group in ("no label", "one label", "several labels")
        ]
        everyone = sum(group.value for group in groups if not group.missing)
        share = self.patients(role, policy, evaluator, k, statistic)
        if share.missing or not everyone:
            return MISSING
        return Found(*(float(np.round(bound * everyone)) for bound in share))

    def overlap(
        self, role: str | None, first: str, second: str, evaluator: str, k: int | None, statistic: str
    ) -> Found:
        """A statistic of who benefits under two policies; a run may have compared them the other way round."""
        found = self.patients(role, first, evaluator, k, statistic, versus=second)
        if not found.missing:
            return found
        swapped = {
            "benefit under the first only": "benefit under the second only",
            "benefit under the second only": "benefit under the first only",
        }
        return self.patients(role, second, evaluator, k, swapped.get(statistic, statistic), versus=first)

    def reference_alignment(
        self,
        role: str | None,
        policy: str,
        owner: str,
        k: int | None,
        statistic: str,
        label: str = "",
        metric: str = "nll",
    ) -> Found:
        """How near a policy's sets are to the reference of an evaluator."""
        facts = {"policy": policy, "versus": REFERENCE, "evaluator": owner, "reference_metric": metric}
        return self.find("alignment", role=role, k=k, statistic=statistic, label=label, **facts)

    def policies_alignment(self, role: str | None, first: str, second: str, k: int | None, statistic: str) -> Found:
        """How near two policies' sets are to each other, whichever of them is named first."""
        facts: dict[str, Any] = {"role": role, "k": k, "statistic": statistic, "label": ""}
        found = self.find("alignment", policy=first, versus=second, **facts)
        return self.find("alignment", policy=second, versus=first, **facts) if found.missing else found

    def lead_frequency(self, role: str | None, policy: str, k: int | None, lead: str) -> Found:
        """In what share of the records a policy acquires a lead."""
        facts = {"policy": policy, "versus": "", "statistic": "lead frequency", "label": lead}
        return self.find("alignment", role=role, k=k, **facts)

    def first_leads(self, policy: str) -> set[str]:
        """The leads that a policy begins with, in any role."""
        frame = self.results.get("allocations")
        if frame is None or not {"policy", "leads"} <= set(frame.columns):
            return set()
        return set(frame["leads"][frame["policy"] == policy].str.split().str[0])

    def reference_leads(self, owner: str, metric: str, k: int) -> set[str]:
        """The leads of an evaluator's best fixed set; none where it is not among the results."""
        leads = self.find("references", "leads", evaluator=owner, metric=metric, k=k)
        return set() if leads.missing else set(leads.value.split())

    def quality(self, role: str | None, evaluator: str, metric: str, leads: str = ALL_LEADS) -> Found:
        """A metric of an evaluator that reads the same leads, or the frozen draw of masks."""
        return self.find("evaluator_quality", role=role, evaluator=evaluator, leads=leads, metric=metric)

    def random_mask_quality(self, role: str | None, evaluator: str, metric: str) -> Found:
        """A metric under the frozen draw of masks; of the selection role it is known from choosing the seed."""
        found = self.quality(role, evaluator, metric, RANDOM_MASKS)
        return (
            self.find("seeds", evaluator=evaluator, role=role, metric=metric, chosen=True) if found.missing else found
        )

    def count(self, column: str, folds: Iterable[int]) -> Found:
        """Records, patients or all-zero records of some folds: no patient is in two roles, so roles add up."""
        wanted = frozenset(folds)
        inside = {role: folds for role, folds in self.roles.items() if folds <= wanted}
        if frozenset().union(*inside.values()) != wanted:
            return MISSING
        return Found(sum(self.find("splits", column, role=role).value for role in inside))


def _blank_where_missing(column: "pd.Series[Any]") -> list[object]:
    """A column's values; what is blank in a frame is missing once it was written as CSV and read again."""
    missing = column.isna().tolist()
    return ["" if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]


def _number(cell: Any) -> float:
    return np.nan if pd.isna(cell) else float(cell)
