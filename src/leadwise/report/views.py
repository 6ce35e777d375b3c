"""Results as people read them: rows picked out and named, with the paper's numbers beside. Nothing is computed."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from leadwise.report.paper_numbers import Names, PaperNumbers
from leadwise.report.plots.drawing import rows_of
from leadwise.report.wording import interval, listing, spoken
from leadwise.run.contents import RunContents
from leadwise.run.plan import Plan

INTERVAL = "95% interval"
"""A column made of ``lo`` and ``hi``."""

_ORDER = (
    *("train", "validation", "selection", "audit", "evaluation"),
    *("controlled", "controlled-unbalanced", "controlled-recalibrated", "strong", "mask-robust"),
    *("ecg-on-demand", "mga", "ccga", "strong-mga", "strong-mga-controlled-state", "cohort-state", "random-subset"),
    *("nll", "brier", "ece", "ece5", "ece15", "ece20", "auroc", "auprc"),
    *("macro |intercept|", "macro |slope - 1|", "variance", "entropy"),
)
"""In which order names stand in a table; others come after them, as they appear."""
_SPOKEN = (
    *("policy", "policy_a", "policy_b", "baseline_policy", "metric"),
    *("evaluator", "baseline_evaluator", "baseline", "trained_on", "reference"),
)
"""Columns whose cells are names."""
_LISTED = ("policies", "budgets", "metrics")
"""Columns whose cells are names, any number of them."""


class Views:
    """The results of one run, to be looked at. What a run does not have is an empty table."""

    def __init__(self, contents: RunContents) -> None:
        self._results, self._scored = contents.results, contents.scored
        self._paper = PaperNumbers(contents)
        self.plan: Plan = contents.plan
        self.about_paper = contents.about_paper

    def rows(self, source: str, **facts: Any) -> pd.DataFrame:
        """The rows of a result that have these values, or are among these where there are several."""
        rows = self._results.get(source, pd.DataFrame())
        several = {column: value for column, value in facts.items() if isinstance(value, tuple)}
        rows = rows_of(rows, **{column: value for column, value in facts.items() if column not in several})
        for column, values in several.items():
            rows = rows[rows[column].isin(values)] if column in rows else rows.iloc[:0]
        return rows

    def show(
        self, rows: pd.DataFrame, columns: Mapping[str, str], names: Names | None = None, order: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Columns under their headings, then what the paper says; the role only where there are several."""
        if INTERVAL in columns:
            rows = rows.assign(**{INTERVAL: intervals(rows, "lo", "hi")})
        rows = rows.reindex(columns=[*dict.fromkeys([*rows.columns, *columns, *order])])
        if order:
            rows = rows.sort_values(list(order), key=_rank, kind="stable")
        said = self._paper.beside(rows, names) if names else rows
        paper = [column for column in said if column not in rows]
        alone = len(self._scored) == 1 and set(rows.get("role", ())) <= set(self._scored)
        kept = [column for column in columns if not (alone and column == "role")]
        shown = said[[*kept, *paper]]
        shown = shown.assign(**{column: shown[column].map(_named) for column in _SPOKEN if column in kept})
        shown = shown.assign(**{column: shown[column].map(_listed) for column in _LISTED if column in kept})
        return shown.rename(columns=dict(columns)).reset_index(drop=True)


def same(*columns: str) -> dict[str, str]:
    """Columns whose headings are their names."""
    return {column: column for column in columns}


def intervals(rows: pd.DataFrame, low: str, high: str) -> list[str]:
    """Intervals as they are printed."""
    return [interval(*bounds) for bounds in rows.reindex(columns=[low, high]).itertuples(index=False)]


def joined(
    left: pd.DataFrame, right: pd.DataFrame, keys: list[str], how: Literal["left", "inner", "outer"]
) -> pd.DataFrame:
    """Rows put beside rows with the same keys; either side may be empty, and then knows no types."""
    as_they_are = dict.fromkeys(keys, object)
    return left.astype(as_they_are).merge(right.astype(as_they_are), how=how, on=keys).infer_objects()


def _named(text: Any) -> Any:
    """The words of a cell, names as people write them: "ecg-on-demand minus mga" has two."""
    return " ".join(map(spoken, text.split(" "))) if isinstance(text, str) else text


def _listed(text: str) -> str:
    return listing(map(spoken, text.split()))


def _rank(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Where each value of a column stands in the order; numbers have their own."""
    places = {name: place for place, name in enumerate(dict.fromkeys([*_ORDER, *column]))}
    return column.map(lambda value: places[value] if isinstance(value, str) else value)
