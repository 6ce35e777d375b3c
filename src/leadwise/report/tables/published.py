"""The publication beside ours: one merge on a result table's key."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.analysis.tidy import REFERENCE
from leadwise.cohort.roles import SCORED
from leadwise.findings.estimates import ALL_LEADS
from leadwise.findings.paper import SCORED_FOLDS
from leadwise.findings.statements import QUALITY
from leadwise.report.numbers import Estimate, Named
from leadwise.run.contents import RunContents
from leadwise.run.results import KEYS

PAPER = "paper"
_BARE = ("value", "delta", "interaction", "leads")
"""Columns whose numbers need no word before them."""
COUNTS = ("records", "patients", "all_zero", "candidates", "epoch", "parameters", "replicates")
"""Columns that count things."""
_STATISTICS = {
    "calibration": ("calibration", "ece", "{} difference", ""),
    "label ece": ("calibration", "ece", "ece difference", "{}"),
    "spearman": ("patients", "nll", "spearman", ""),
    "group mean": ("patients", "nll", "mean", "{}"),
}
"""Of quantities that are statistics: table, metric of the reference, statistic and label, the last two made from what
stands for a metric in the statement."""
_ESTIMATES = {
    "interaction": ("interactions", "interaction"),
    "contrast": ("contrasts", "delta"),
    "paired": ("paired", "delta"),
    QUALITY: ("evaluator_quality", "value"),
    **{quantity: (table, "value") for quantity, (table, *_) in _STATISTICS.items()},
}
"""Table and column of a cell's estimate, by the quantity of its statement."""


class PaperNumbers:
    """The published numbers of a run; there are none where the paper is about another cohort."""

    def __init__(self, contents: RunContents) -> None:
        self._roles = contents.plan.roles
        published = contents.results.get("published")
        self._published = published if published is not None and contents.about_paper else pd.DataFrame()

    def beside(self, table: str, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows of a result table, with what the paper says of each by fold and column in the column ``paper``.

        A number stands in the rows of the role that has its fold and no other. What the paper says of a role that it
        scored and that has no rows stands beside the role that was scored; its fold is then negative.
        """
        if self._published.empty or rows.empty:
            return rows
        lines = self._published[self._published["table"] == table]
        known = [key for key in KEYS if any(_known(value) != "" for value in lines[key])]
        keys = [key for key in known if key != "role" and key in rows]
        said: dict[tuple[Any, ...], dict[tuple[int, str, str], Estimate]] = {}
        # the paper gives some numbers in several places, and not in all of them with an interval
        for line in lines.sort_values("published_lo", key=pd.isna, kind="stable").to_dict("records"):
            fold = 0 if pd.isna(line["fold"]) else int(line["fold"])
            # a count of patients is no share of them, though both stand in one row
            column = "patients" if line["unit"] == "patients" else line["column"]
            found = said.setdefault(tuple(_known(line[key]) for key in keys), {})
            found.setdefault((fold, line["role"], column), _printable(line))
        folds = self._folds(rows)
        cells = [
            self._of_row(said.get(tuple(_known(row[key]) for key in keys), {}), row.get("role"), folds)
            for row in rows.to_dict("records")
        ]
        return rows.assign(**{PAPER: pd.Series(cells, index=rows.index, dtype=object)})

    def beside_cells(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows that each name the cell of a statement, with what the paper says of its estimate."""
        reference = rows["reference"].where(rows["reference"] != OWN, rows["evaluator"])
        facts = {"policy_a": rows["policy"], "policy_b": rows["versus"], "baseline_evaluator": rows["baseline"]}
        facts |= {"reference_evaluator": reference, "reference_metric": rows["metric"]}
        cells = rows.assign(**facts, leads=ALL_LEADS)
        said = pd.Series([{}] * len(rows), index=rows.index, dtype=object)
        for quantity, (table, column) in _ESTIMATES.items():
            of_quantity = cells[cells["quantity"] == quantity]
            if quantity in _STATISTICS:
                _, metric, *parts = _STATISTICS[quantity]
                asked = [[part.format(each.replace("-", " ")) for part in parts] for each in of_quantity["metric"]]
                named = pd.DataFrame(asked, of_quantity.index, ["statistic", "label"])
                of_quantity = of_quantity.assign(versus=REFERENCE, reference_metric=metric).join(named)
            found = self.beside(table, of_quantity).get(PAPER, pd.Series(dtype=object))
            said.update(found.map(lambda each, own=column: {(f, "value"): v for (f, c), v in each.items() if c == own}))
        return rows.assign(**{PAPER: said})

    def _folds(self, rows: pd.DataFrame) -> set[int]:
        """The folds of the roles that have rows."""
        return {fold for role in set(rows.get("role", ())) for fold in self._roles.get(role, [])}

    def _of_row(
        self, said: Mapping[tuple[int, str, str], Estimate], role: str | None, here: set[int]
    ) -> dict[tuple[int, str], Estimate]:
        found = {}
        for (fold, of, column), value in said.items():
            if not fold and of in ("", role):
                found[0, column] = value
            elif fold and role is not None and self._roles.get(role) == [fold]:
                found[fold, column] = value
            elif fold in SCORED_FOLDS and fold not in here and role in SCORED:
                found[-fold, column] = value
        return found

    def columns(self, rows: pd.DataFrame, headings: Mapping[str, str]) -> dict[str, "pd.Series[Any]"]:
        """A column for each fold that the paper says something of; numbers of other columns than the rows' main one
        have its heading before them."""
        said = [each if isinstance(each, dict) else {} for each in rows.get(PAPER, ())]
        headings = {**headings, "patients": headings.get("patients", "patients")}
        shown = [{key: value for key, value in each.items() if key[1] in headings} for each in said]
        columns = {}
        for fold in sorted({fold for each in shown for fold, _ in each}, key=abs):
            cells = []
            for each in shown:
                parts = [
                    ("" if column in _BARE else headings[column], each[fold, column])
                    for column in headings
                    if (fold, column) in each
                ]
                cells.append(Named(tuple(sorted(parts, key=lambda part: part[0] != ""))))
            name = f"{PAPER}, fold {abs(fold)}{' (another fold)' * (fold < 0)}" if fold else PAPER
            columns[name] = pd.Series(cells, index=rows.index, dtype=object)
        return columns


def _printable(line: Mapping[Any, Any]) -> Estimate:
    """The published number of a line in the unit of our table; a count stays one."""
    if isinstance(line["published_leads"], str) and line["published_leads"]:
        return Estimate(line["published_leads"])
    value, *bounds = (line[column] for column in ("published", "published_lo", "published_hi"))
    if line["column"] == "seed":
        return Estimate(str(int(value)))  # it counts nothing
    if line["unit"] == "percent":
        return Estimate(value / 100, *(bound / 100 for bound in bounds))
    return Estimate(int(value) if line["column"] in COUNTS or line["unit"] == "patients" else value, *bounds)


def _known(value: Any) -> Any:
    """A key as it is compared: what is missing is blank, a number is a number."""
    return "" if value is None or pd.isna(value) else float(value) if isinstance(value, int | float) else value
