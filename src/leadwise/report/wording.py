"""How numbers and names are put in words: the one place where the report formats them.

What is missing is blank. A minus is as wide as a plus.
"""

import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from leadwise.report.plots.drawing import printed, signed

__all__ = ["cell", "estimate", "interval", "listing", "number", "percent", "printed", "signed", "spoken"]

DIGITS = 4
"""Decimals of metrics and their differences, unless somebody asks for others."""

_WORDS = {
    "controlled-unbalanced": "unbalanced controlled",
    "controlled-recalibrated": "recalibrated controlled",
}
"""Names of results that figures do not print."""


def number(value: Any, digits: int = DIGITS) -> str:
    """A number with so many decimals; a count as a count, with its thousands set apart.

    >>> number(-0.01112), number(13069), number(float("nan"))
    ('−0.0111', '13,069', '')
    """
    if _missing(value):
        return ""
    text = f"{int(value):,d}" if isinstance(value, Integral) else f"{float(value) + 0.0:.{digits}f}"  # no −0
    return text.replace("-", "−")


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


def spoken(name: str) -> str:
    """A policy, metric, evaluator or reference as people write it; a user's own stays as it is.

    >>> spoken("ecg-on-demand"), spoken("ece15"), spoken("controlled-unbalanced")
    ('ECG-on-Demand', 'ECE, 15 bins', 'unbalanced controlled')
    """
    if bins := re.fullmatch(r"ece(\d+)", name):
        return f"ECE, {bins[1]} bins"
    return _WORDS.get(name) or printed(name)


def listing(words: Iterable[object], last: str = "and") -> str:
    """Words as a sentence lists them.

    >>> listing([2, 3, 4]), listing(["NLL"]), listing(["a", "b"], "or")
    ('2, 3 and 4', 'NLL', 'a or b')
    """
    *most, end = [str(word) for word in words] or [""]
    return f"{', '.join(most)} {last} {end}" if most else end


def cell(value: Any, digits: int = DIGITS) -> str:
    """What a cell of a table says.

    >>> cell("aVR V1"), cell(True), cell(0.25), cell(None)
    ('aVR V1', 'yes', '0.2500', '')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return number(value, digits)


def _missing(value: Any) -> bool:
    return value is None or bool(pd.isna(value))
