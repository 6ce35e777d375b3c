"""A frame as the page shows it: text for people, and numbers to sort by."""

import re
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from leadwise.report.numbers import DIGITS, cell, sorted_by

_HASH = re.compile("[0-9a-f]{16,64}")


class Cell(NamedTuple):
    """The text of a cell, and what it is sorted by; None where it is no number."""

    text: str
    number: str | None

    @property
    def is_hash(self) -> bool:
        return _HASH.fullmatch(self.text) is not None


@dataclass(frozen=True)
class Shown:
    """The rows of a frame, and which of its columns hold numbers."""

    columns: list[tuple[str, bool]]
    rows: list[list[Cell]]

    @classmethod
    def of(cls, frame: pd.DataFrame, digits: int = DIGITS) -> "Shown":
        by_column = [[_cell(value, digits) for value in frame[name]] for name in frame]
        numeric = [any(cell.number for cell in cells) for cells in by_column]
        return cls(list(zip(map(str, frame), numeric, strict=True)), list(map(list, zip(*by_column, strict=True))))


def _cell(value: object, digits: int) -> Cell:
    order = sorted_by(value)
    return Cell(cell(value, digits), None if order is None else repr(order))
