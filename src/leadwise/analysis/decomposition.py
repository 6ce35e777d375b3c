"""What an interaction is made of: the part that recalibration of both evaluators removes, and the part that remains.

A line fitted to each label's logit changes how sure an evaluator is, and not whom it takes for ill before whom. What is
left of I between recalibrated evaluators is therefore no matter of such lines.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.contrasts import Contrast
from leadwise.analysis.interactions import Interaction, estimate_interactions


def decomposition_frame(
    found: Iterable[Contrast], evaluators: tuple[str, str], recalibrated: tuple[str, str]
) -> pd.DataFrame:
    """``decomposition.csv``: I between two evaluators, and between two that stand for them when recalibrated.

    Pairs are of evaluator and baseline; all four contrasts of a row are of the same leads, each against the evaluator's
    own references. ``whole`` is I, ``remaining`` that between the recalibrated, ``removed`` their difference, paired
    replicate by replicate, and ``share`` is removed / whole. Where the interval of the whole includes zero, the share
    has none: a ratio to what may be nothing has no bounds.
    """
    found = list(found)
    whole, remaining = (_by_leads(estimate_interactions(found, *pair)) for pair in (evaluators, recalibrated))
    facts = dict(zip(("recalibrated_evaluator", "recalibrated_baseline"), recalibrated, strict=True))
    rows: list[dict[str, Any]] = []
    for key, one in whole.items():
        if key in remaining:
            parts = _parts(one.estimate, remaining[key].estimate)
            rows += [
                one.facts | facts | {"statistic": name, "value": v, "lo": lo, "hi": hi} for name, v, lo, hi in parts
            ]
    return pd.DataFrame(rows)


def _by_leads(several: Iterable[Interaction]) -> dict[tuple[tuple[str, str], str], Interaction]:
    """Interactions by the leads, records and patients that they are about, and by their metric."""
    return {(each.read.content, each.read.metric): each for each in several}


def _parts(whole: Estimate, remaining: Estimate) -> list[tuple[str, float, float, float]]:
    """Name, value and interval of each part; a share of nothing at all is left out."""
    removed = whole - remaining
    parts = {"whole": whole, "remaining": remaining, "removed": removed}
    rows = [(name, each.value, *each.interval) for name, each in parts.items()]
    if whole.value:
        low, high = whole.interval
        bounds = np.nan, np.nan
        if low > 0 or high < 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = removed.replicates / whole.replicates
            bounds = Estimate(0.0, np.where(np.isfinite(shares), shares, np.nan)).interval
        rows.append(("share", removed.value / whole.value, *bounds))
    return rows
