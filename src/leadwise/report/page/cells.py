"""A frame as the page shows it: words for people, and numbers to sort by."""

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leadwise.report.wording import DIGITS, cell

_PRINTED = re.compile(r"\[?([+−]?[\d,]*\.?\d+)(%| .*\]|, .*\])?")
"""A number that is already printed, an interval, or both."""
_HASH = re.compile("[0-9a-f]{16,64}")


class Cell(NamedTuple):
    """What a cell says, and what it is sorted by; None where it is no number."""

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
        by_column = [_column(list(frame[name]), digits) for name in frame]
        numeric = [any(cell.number for cell in cells) for cells in by_column]
        return cls(list(zip(map(str, frame), numeric, strict=True)), list(map(list, zip(*by_column, strict=True))))


def _column(values: list[Any], digits: int) -> list[Cell]:
    """Words count as numbers only where all words of the column do: "4.2" beside "S9" is no number."""
    numbers = {text: _PRINTED.fullmatch(text) for text in values if isinstance(text, str) and text}
    printed = {text: found[1].replace("−", "-").replace(",", "") for text, found in numbers.items() if found}
    if len(printed) < len(numbers):
        printed = {}
    return [
        Cell(cell(value, digits), printed.get(value) if isinstance(value, str) else _raw(value)) for value in values
    ]


def _raw(value: Any) -> str | None:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or value != value:
        return None
    return repr(float(value))
