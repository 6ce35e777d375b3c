"""Selection of the rows that a panel shows."""

from collections.abc import Hashable, Sequence

import pandas as pd

ROLES = ("evaluation", "audit")
"""The roles that results are shown for, the better first."""


def rows_of(frame: pd.DataFrame, **facts: Hashable) -> pd.DataFrame:
    """The rows that have these values; none where the frame does not even have the column."""
    for column, value in facts.items():
        frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
    return frame


def reader_of(frame: pd.DataFrame, evaluator: str | None) -> str:
    """The evaluator that is asked for, else the frame's first."""
    return evaluator or str(first_of(frame, "evaluator") or "")


def budget_of(frame: pd.DataFrame, k: int | None) -> int:
    """The budget that is asked for, else the one in the middle of the frame's; zero where it has none."""
    budgets = budgets_in(frame)
    return k or (budgets[len(budgets) // 2] if budgets else 0)


def shown_role(frame: pd.DataFrame, preferred: Sequence[str] = ROLES) -> str:
    """The first preferred role that the frame has, else whichever it has."""
    return str(first_of(frame, "role", preferred) or preferred[-1])


def first_of(frame: pd.DataFrame, column: str, preferred: Sequence[Hashable] = ()) -> Hashable:
    """The first preferred value that the column has, else the column's first, else None."""
    present = present_in(frame, column)
    return next((value for value in preferred if value in present), present[0] if present else None)


def present_in(frame: pd.DataFrame, column: str) -> list[Hashable]:
    """The distinct values of a column in order of appearance; none where there is no such column."""
    return list(frame[column].dropna().unique()) if column in frame else []


def budgets_in(frame: pd.DataFrame) -> list[int]:
    """The budgets of a frame, ascending."""
    return sorted(int(k) for k in frame["k"].dropna().unique()) if "k" in frame else []


def policies_in(frame: pd.DataFrame, preferred: Sequence[str] | None = None) -> list[str]:
    """The preferred policies that the frame has, in their order; all of the frame's where none is preferred."""
    present = [str(name) for name in present_in(frame, "policy")]
    return present if preferred is None else [name for name in preferred if name in present]
