"""What the paper says beside what we say, looked up by the names that its numbers have in ``published.csv``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from leadwise.cohort.roles import SCORED
from leadwise.findings.paper import SCORED_FOLDS
from leadwise.report.wording import DIGITS, estimate
from leadwise.run.contents import RunContents

PAPER = "paper"

Row = Mapping[Any, Any]
Names = Callable[[Row], Mapping[str, Sequence[str]]]
"""What a row's numbers may be called, without their fold, by a word that tells them apart."""


class PaperNumbers:
    """The published numbers of a run; there are none where the paper is about another cohort."""

    def __init__(self, contents: RunContents) -> None:
        self._roles = contents.plan.roles
        self._said: dict[int, dict[str, str]] = {}
        """Numbers as they are printed, by fold and name; under fold 0 what is of no fold."""
        published = contents.results.get("published")
        if published is None or not contents.about_paper:
            return
        # the paper gives some numbers in several places, and not in all of them with an interval
        for row in published.sort_values("published_lo", key=pd.isna, kind="stable").to_dict("records"):
            quantity = row["quantity"].removesuffix(f" ({row['where']})")
            name, _, fold = quantity.partition(", fold ")
            self._said.setdefault(int(fold or 0), {}).setdefault(name, _printed(row))

    def beside(self, rows: pd.DataFrame, names: Names) -> pd.DataFrame:
        """The rows with a column for each fold that the paper says something of.

        A number stands in the rows of the role that has its fold. What the paper says of a role that it scored and
        that has no rows stands beside the role that was scored, in a column that says that it is of another fold.
        """
        asked = [(row.get("role"), names(row)) for row in rows.to_dict("records")]
        here = {fold for role in {role for role, _ in asked if role} for fold in self._roles[role]}
        columns = {}
        for fold in sorted(self._said):
            other = fold in SCORED_FOLDS and fold not in here
            beside = SCORED if other else [role for role, folds in self._roles.items() if fold in folds]
            texts = [self._cell(called, fold) if not fold or role in beside else "" for role, called in asked]
            if any(texts):
                columns[f"{PAPER}, fold {fold}{' (another fold)' if other else ''}" if fold else PAPER] = texts
        return rows.assign(**columns)

    def _cell(self, called: Mapping[str, Sequence[str]], fold: int) -> str:
        said = self._said[fold]
        found = {word: next((said[name] for name in names if name in said), "") for word, names in called.items()}
        return "; ".join(f"{word} {text}".strip() for word, text in found.items() if text)


_COUNTS = ("records", "patients", "all_zero", "candidates", "parameters", "epoch")


def as_number(row: Row, arm: str) -> Any:
    """What a row of ``published.csv`` holds, a count as a count; a seed counts nothing."""
    leads, value = row[f"{arm}_leads"], row[arm]
    if isinstance(leads, str) or pd.isna(value):
        return leads
    if row["column"] == "seed":
        return str(int(value))
    return int(value) if row["column"] in _COUNTS or row["unit"] == "patients" else value


def _printed(row: Row) -> str:
    value = as_number(row, "published")
    if isinstance(value, str):
        return value
    digits = 2 if row["unit"] == "percent" else DIGITS
    return estimate(value, row["published_lo"], row["published_hi"], digits)
