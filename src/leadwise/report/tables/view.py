"""Results as people read them: rows picked out and named, with the paper's numbers beside. Nothing is computed."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.report.names import in_order, spoken
from leadwise.report.numbers import Estimate, listing
from leadwise.report.tables.published import PAPER, PaperNumbers
from leadwise.run.contents import RunContents
from leadwise.run.plan import Plan

INTERVAL = "95% interval"
"""A column made of ``lo`` and ``hi``."""
NEGATIVE = "negative favours adaptation"
SECONDARY, EXPLORATORY = "secondary", "exploratory"
_LEVELS = ("primary", "supporting", SECONDARY, "post hoc")
"""The levels of hypotheses, the highest first."""

_SPOKEN = (
    *("policy", "policy_a", "policy_b", "baseline_policy", "versus", "metric"),
    *("evaluator", "baseline_evaluator", "baseline", "trained_on", "reference"),
)
"""Columns whose cells are names."""
_LISTED = ("policies", "budgets", "metrics")
"""Columns whose cells are names, any number of them."""


@dataclass(frozen=True, eq=False)
class ReportTable:
    """A table as it is shown, with where its numbers come from."""

    name: str
    """Its place on the page, and the name of its LaTeX file."""
    title: str
    caption: str
    source: str
    """The files of ``results`` that have its numbers."""
    frame: pd.DataFrame
    """Headings as people read them; cells are numbers, text, or what `leadwise.report.numbers` puts in a cell."""
    status: str = ""
    """Its place in the study's hierarchy: primary, supporting, secondary, exploratory, post hoc, or none."""


class View:
    """The results of one run, to be looked at. What a run does not have is an empty table."""

    def __init__(self, contents: RunContents) -> None:
        self._results, self._scored = contents.results, contents.scored
        self._paper = PaperNumbers(contents)
        self.plan: Plan = contents.plan
        self._order = in_order(self.plan)
        self.about_paper = contents.about_paper
        self.roles = f"{listing(self._scored)} role{'s' if len(self._scored) > 1 else ''}"
        """Those that were scored."""
        self.further = SECONDARY if self.plan.hypotheses else EXPLORATORY
        """The status of analyses that explain what the hypotheses are about; without any all is exploratory."""

    def rows(self, source: str, **facts: Hashable) -> pd.DataFrame:
        """The rows of a result that have these values, or are among these where there are several."""
        rows = self._results.get(source, pd.DataFrame())
        for column, value in facts.items():
            if column not in rows:
                return rows.iloc[:0]
            rows = rows[rows[column].isin(value) if isinstance(value, tuple) else rows[column] == value]
        return self._paper.beside(source, rows)

    def cells(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows about the cells of statements, with what the paper says of them."""
        return self._paper.beside_cells(rows) if len(rows) else rows

    def table(
        self,
        name: str,
        title: str,
        caption: str,
        source: Sequence[str],
        rows: pd.DataFrame,
        columns: Mapping[str, str],
        order: Sequence[str] = (),
        status: str = "",
    ) -> ReportTable:
        """Columns under their headings, then what the paper says; the role only where there are several."""
        if INTERVAL in columns:
            rows = rows.assign(**{INTERVAL: intervals(rows)})
        rows = rows.reindex(columns=[*dict.fromkeys([*rows.columns, *columns, *order])])
        if order:
            rows = rows.sort_values(list(order), key=self._rank, kind="stable")
        paper = self._paper.columns(rows, columns)
        alone = len(self._scored) == 1 and set(rows.get("role", ())) <= set(self._scored)
        kept = [column for column in columns if not (alone and column == "role")]
        shown = rows[kept].assign(**paper)
        shown = shown.assign(**{column: shown[column].map(_named) for column in _SPOKEN if column in kept})
        shown = shown.assign(**{column: shown[column].map(_listed) for column in _LISTED if column in kept})
        files = ", ".join(f"{each}.csv" for each in (*source, *["published"] * bool(paper)))
        shown = shown.rename(columns=dict(columns)).reset_index(drop=True)
        return ReportTable(name, title, caption, files, shown, status)

    def status(self, quantity: str, evaluator: str, baseline: str | None = None, reference: str = OWN) -> str:
        """The highest level of the plan's hypotheses about a table; without one it is exploratory."""
        about = (quantity, evaluator, baseline, reference)
        levels = [
            each.level
            for each in self.plan.hypotheses
            if (each.quantity, each.evaluator, each.baseline, each.reference) == about
        ]
        return min(levels, key=_LEVELS.index, default=EXPLORATORY)

    def with_levels(self, rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
        """Rows with their level (primary, supporting, …), by the first hypothesis of the plan that has each."""
        expected = [each for each in self.plan.hypotheses if each.quantity == quantity]
        if not expected:
            return rows

        def level(row: Mapping[Hashable, Any]) -> str:
            place = row["evaluator"], row.get("baseline_evaluator"), row.get("reference", OWN)
            for each in expected:
                same = (each.evaluator, each.baseline, each.reference) == place and row["policy"] in each.policies
                if same and row["k"] in each.budgets and row["metric"] in each.metrics:
                    return each.level
            return ""

        return rows.assign(level=[level(row) for row in rows.to_dict("records")])

    def _rank(self, column: "pd.Series[Any]") -> "pd.Series[Any]":
        """Rank of each value of a column; unknown names come last, numbers keep their own order."""
        places = {name: place for place, name in enumerate(dict.fromkeys([*self._order, *column]))}
        return column.map(lambda value: places[value] if isinstance(value, str) else value)


def exploratory(status: str) -> str:
    """A sentence for the captions of tables that no hypothesis is about."""
    return {EXPLORATORY: " Exploratory.", "post hoc": " Post hoc in the paper, planned here."}.get(status, "")


def same(*columns: str) -> dict[str, str]:
    """Columns whose headings are their names."""
    return {column: column for column in columns}


def intervals(rows: pd.DataFrame, low: str = "lo", high: str = "hi") -> "pd.Series[Any]":
    """A column of intervals, None where there is none."""
    bounds = rows.reindex(columns=[low, high]).itertuples(index=False)
    cells = [None if pd.isna(lo) or pd.isna(hi) else Estimate(lo=lo, hi=hi) for lo, hi in bounds]
    return pd.Series(cells, index=rows.index, dtype=object)


def renamed(rows: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Rows with other column names, what the paper says of these columns too."""
    rows = rows.rename(columns=dict(names))
    if PAPER in rows:
        said = [{(fold, names.get(name, name)): value for (fold, name), value in each.items()} for each in rows[PAPER]]
        rows[PAPER] = pd.Series(said, index=rows.index, dtype=object)
    return rows


def joined(
    left: pd.DataFrame, right: pd.DataFrame, keys: list[str], columns: list[str], how: Literal["left", "inner"]
) -> pd.DataFrame:
    """Rows with ``columns`` of those rows beside them that have the same keys, and with what the paper says of both."""
    as_they_are = dict.fromkeys(keys, object)  # an empty side knows no types
    left = left.reindex(columns=[*dict.fromkeys([*left.columns, *keys])]).astype(as_they_are)
    right = right.reindex(columns=[*keys, *columns, *[PAPER] * (PAPER in right)]).astype(as_they_are)
    rows = left.merge(right, how=how, on=keys, suffixes=("", " right"))
    if (other := f"{PAPER} right") in rows:
        said = zip(rows[PAPER], rows.pop(other), strict=True)
        rows[PAPER] = pd.Series([_together(both) for both in said], index=rows.index, dtype=object)
    return rows.infer_objects()


def pivoted(rows: pd.DataFrame, keys: list[str], across: str, headings: Mapping[Any, str]) -> pd.DataFrame:
    """A row for each combination of keys, in order of appearance, with a column for each value of ``across``."""
    if rows.empty:
        return pd.DataFrame(columns=[*keys, *headings.values()])
    rows = rows[rows[across].isin(list(headings))]
    wide = rows.pivot(index=keys, columns=across, values="value").reindex(columns=list(headings))
    if PAPER in rows:
        both = zip(rows[across].map(headings), rows[PAPER], strict=True)
        said = [{(fold, heading): value for (fold, _), value in each.items()} for heading, each in both]
        rows = rows.assign(**{PAPER: pd.Series(said, index=rows.index, dtype=object)})
        wide[PAPER] = rows.groupby(keys, sort=False)[PAPER].agg(_together)
    wide = wide.reindex(pd.MultiIndex.from_frame(rows[keys].drop_duplicates())).rename_axis(columns=None)
    return wide.rename(columns=dict(headings)).reset_index()


def _together(said: Iterable[Any]) -> dict[Any, Any]:
    """The paper's numbers of several rows that are shown as one."""
    return {key: value for each in said if isinstance(each, dict) for key, value in each.items()}


def column_of(rows: pd.DataFrame, name: str) -> list[Any]:
    """A column as a list; empty where there is no such column."""
    return rows[name].tolist() if name in rows else []


def _named(text: Any) -> Any:
    """The words of a cell, names as people write them: "ecg-on-demand minus mga" has two."""
    return " ".join(map(spoken, text.split(" "))) if isinstance(text, str) else text


def _listed(text: str) -> str:
    return listing(map(spoken, text.split()))
