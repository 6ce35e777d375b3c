"""The tidy rows that calibration, patients and alignment share."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import Estimate

COLUMNS = (
    *("role", "policy", "versus", "evaluator", "reference_metric", "k", "statistic", "label"),
    *("value", "lo", "hi", "undefined"),
)

REFERENCE = "reference"
"""Name of the fixed set in a column of policies."""


def row(facts: dict[str, Any], statistic: str, estimate: Estimate | float, label: str = "") -> dict[str, Any]:
    """One row; a bare number has no interval. ``undefined`` counts the replicates that the interval leaves out."""
    facts = facts | {"statistic": statistic, "label": label}
    if not isinstance(estimate, Estimate):
        return facts | {"value": float(estimate), "lo": np.nan, "hi": np.nan, "undefined": 0}
    low, high = estimate.interval
    return facts | {"value": estimate.value, "lo": low, "hi": high, "undefined": estimate.undefined}


def frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a data frame with all columns, in their order."""
    blank = dict.fromkeys(COLUMNS, "")
    return pd.DataFrame([blank | each for each in rows], columns=list(COLUMNS))
