"""Printed numbers: alone, with an interval, in a cell or in a sentence.

What is missing is blank. A minus is as wide as a plus.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

DIGITS = 4
"""Decimals of metrics and their differences, unless somebody asks for others."""


def number(value: Any, digits: int = DIGITS) -> str:
    """A number with so many decimals; a count as a count, with its thousands set apart.

    >>> number(-0.01112), number(13069), number(float("nan"))
    ('−0.0111', '13,069', '')
    """
    if _missing(value):
        return ""
    text = f"{int(value):,d}" if isinstance(value, Integral) else f"{float(value) + 0.0:.{digits}f}"  # no −0
    return text.replace("-", "−")


def signed(value: float, digits: int) -> str:
    """A number with its sign.

    >>> signed(0.25, 1), signed(-0.5, 2)
    ('+0.2', '−0.50')
    """
    return f"{value:+.{digits}f}".replace("-", "−")


def interval(low: Any, high: Any, digits: int = DIGITS) -> str:
    """An interval in brackets.

    >>> interval(-0.018652, -0.002885)
    '[−0.0187, −0.0029]'
    """
    return "" if _missing(low) or _missing(high) else f"[{number(low, digits)}, {number(high, digits)}]"


def estimate(value: Any, low: Any = np.nan, high: Any = np.nan, digits: int = DIGITS) -> str:
    """A number and, where there is one, its interval.

    >>> estimate(0.04058, 0.0303, 0.0499, digits=3)
    '0.041 [0.030, 0.050]'
    """
    return f"{number(value, digits)} {interval(low, high, digits)}".strip()


def percent(share: Any, digits: int = 1) -> str:
    """A share of one as a percentage.

    >>> percent(0.5834)
    '58.3%'
    """
    return "" if _missing(share) else f"{number(100 * float(share), digits)}%"


def listing(words: Iterable[object], last: str = "and") -> str:
    """Words as a sentence lists them.

    >>> listing([2, 3, 4]), listing(["NLL"]), listing(["a", "b"], "or")
    ('2, 3 and 4', 'NLL', 'a or b')
    """
    *most, end = [str(word) for word in words] or [""]
    return f"{', '.join(most)} {last} {end}" if most else end


def several(count: int, thing: str) -> str:
    """A count with its noun, in the plural where it is due.

    >>> several(1, "seed"), several(2000, "record"), several(0, "hypothesis")
    ('1 seed', '2,000 records', '0 hypotheses')
    """
    plural = {"hypothesis": "hypotheses"}.get(thing, f"{thing}s")
    return f"{number(count)} {thing if count == 1 else plural}"


@dataclass(frozen=True)
class Estimate:
    """A number with its interval in one cell of a table; either may be missing. Lead names may stand for the number."""

    value: Any = np.nan
    lo: Any = np.nan
    hi: Any = np.nan

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return self.value
        return estimate(self.value, self.lo, self.hi)


@dataclass(frozen=True)
class Named:
    """Several numbers in one cell, each after a word; the first may stand alone."""

    parts: tuple[tuple[str, Estimate], ...] = ()

    def __str__(self) -> str:
        return "; ".join(f"{word} {part}".strip() for word, part in self.parts)


def cell(value: Any, digits: int = DIGITS) -> str:
    """The text of a table's cell.

    >>> cell("aVR V1"), cell(True), cell(0.25), cell(None), cell(Estimate(lo=0.1, hi=0.2))
    ('aVR V1', 'yes', '0.2500', '', '[0.1000, 0.2000]')
    """
    if isinstance(value, str | Estimate | Named):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return number(value, digits)


def sorted_by(value: Any) -> float | None:
    """The number that a cell is sorted by; None where it holds none.

    >>> sorted_by(0.25), sorted_by(Estimate(lo=0.1, hi=0.2)), sorted_by("aVR")
    (0.25, 0.1, None)
    """
    if isinstance(value, Named):
        return sorted_by(value.parts[0][1]) if value.parts and not value.parts[0][0] else None
    if isinstance(value, Estimate):
        return sorted_by(value.lo if _missing(value.value) else value.value)
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or _missing(value):
        return None
    return float(value)


def _missing(value: Any) -> bool:
    return value is None or bool(pd.isna(value))
