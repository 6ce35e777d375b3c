"""Estimates among the results of a run, by their key. What is not there is missing, never an error."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.cohort.roles import AUDIT
from leadwise.leads import LEADS

ALL_LEADS = " ".join(LEADS)
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


MISSING = Found(np.nan)

ABOVE, BELOW, INCLUDES, NO_INTERVAL = "lies above zero", "lies below zero", "includes zero", "has no interval"


def side(found: Found) -> str:
    """Side of zero on which an interval lies; one that touches zero includes it.

    >>> side(Found(0.2, 0.1, 0.3)), side(Found(0.2, 0.0, 0.3))
    ('lies above zero', 'includes zero')
    """
    if pd.isna(found.lo) or pd.isna(found.hi):
        return NO_INTERVAL
    return ABOVE if found.lo > 0 else BELOW if found.hi < 0 else INCLUDES


class Findings:
    """The results of a run (frames by the stem of their file, any of which may be missing or lack rows), asked in the
    words of the study."""

    def __init__(self, results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> None:
        self.results = results
        self.roles = {role: frozenset(folds) for role, folds in roles.items()}
        self._indices: dict[tuple[str, tuple[str, ...]], dict[tuple[object, ...], int]] = {}

    def role(self, fold: int | None) -> str | None:
        """The role that has a fold and no other: a statement about a fold is put to just its patients."""
        return next((role for role, folds in self.roles.items() if folds == {fold}), None)

    def scored(self, role: str | None) -> bool:
        """True if any result is of this role."""
        frames = [name for name in _SCORED if "role" in self.results.get(name, ())]
        return any((role,) in self._index(name, ("role",)) for name in frames)

    def orientation(self, fold: int) -> str | None:
        """The audit role where the fold was not scored, and the audit's patients are others."""
        beside = not self.scored(self.role(fold)) and fold not in self.roles.get(AUDIT, ())
        return AUDIT if beside and self.scored(AUDIT) else None

    def rows(self, name: str, **facts: Hashable) -> pd.DataFrame:
        """The rows of a frame that have these values; none where it does not even have the column."""
        frame = self.results.get(name, pd.DataFrame())
        for column, value in facts.items():
            frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
        return frame

    def find(self, name: str, column: str = "value", /, **facts: object) -> Found:
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
        return Found(*(np.nan if pd.isna(cell := row.get(each)) else float(cell) for each in (column, "lo", "hi")))

    def _index(self, name: str, columns: tuple[str, ...]) -> dict[tuple[object, ...], int]:
        """The first row of a frame for each combination of values: hundreds of numbers are looked up in few frames."""
        if (name, columns) not in self._indices:
            frame = self.results[name]
            keys = zip(*(_blank_where_missing(frame[column]) for column in columns), strict=True)
            index = self._indices[name, columns] = {}
            for at, key in enumerate(keys):
                index.setdefault(key, at)
        return self._indices[name, columns]

    def contrast(
        self, role: str | None, policy: str, evaluator: str, k: int | None, metric: str, reference: str = OWN
    ) -> Found:
        """D; ``reference`` is "own" or whose references are meant."""
        owner = evaluator if reference == OWN else reference
        facts = {"evaluator": evaluator, "reference_evaluator": owner, "reference_metric": metric, "metric": metric}
        return self.find("contrasts", "delta", role=role, policy=policy, k=k, **facts)

    def interaction(
        self, role: str | None, policy: str, evaluator: str, baseline: str, reference: str, k: int | None, metric: str
    ) -> Found:
        """I of a policy between two evaluators."""
        facts = {"evaluator": evaluator, "baseline_evaluator": baseline, "reference": reference, "metric": metric}
        return self.find("interactions", "interaction", role=role, policy=policy, k=k, **facts)

    def paired(self, role: str | None, first: str, second: str, evaluator: str, k: int | None, metric: str) -> Found:
        """Metric of the first policy minus that of the second."""
        facts = {"role": role, "evaluator": evaluator, "k": k, "metric": metric}
        found = self.find("paired", "delta", **facts, policy_a=first, policy_b=second)
        if not found.missing:
            return found
        # a run may have paired them the other way round
        return self.find("paired", "delta", **facts, policy_a=second, policy_b=first).negated

    def equivalence(
        self, role: str | None, policy: str, evaluator: str, k: int | None, metric: str
    ) -> tuple[Found, float, str]:
        """D against the evaluator's own references with its 90% interval, the margin, and what was found of the two."""
        facts = {"role": role, "policy": policy, "evaluator": evaluator, "reference_evaluator": evaluator}
        found, margin, verdict = (
            self.find("equivalence", column, **facts, k=k, metric=metric) for column in ("delta", "margin", "verdict")
        )
        return found, margin.value, str(verdict.value)

    def quality(self, role: str | None, evaluator: str, metric: str) -> Found:
        """A metric of an evaluator that reads all leads."""
        return self.find("evaluator_quality", role=role, evaluator=evaluator, leads=ALL_LEADS, metric=metric)


def _blank_where_missing(column: "pd.Series[Any]") -> list[object]:
    """A column's values; what is blank in a frame is missing once it was written as CSV and read again."""
    missing = column.isna().tolist()
    return ["" if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]
