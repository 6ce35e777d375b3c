"""The gap that training on the evaluator that reads closes: one policy's D beside that of one trained elsewhere."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.contrasts import Contrast


def gaps_frame(found: Iterable[Contrast], pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """``gap_closed.csv``: which share of a policy's D a policy that was trained on the evaluator itself makes up for.

    Of each pair of policies whose first was trained on an evaluator and whose second on another: (D of the second − D
    of the first) / D of the second, under that evaluator, against its own references, replicate by replicate. It says
    something where D of the second is above zero.
    """
    own: dict[tuple[str, str], dict[tuple[int, str], Contrast]] = {}
    for each in found:
        if each.evaluator == each.reference_evaluator:
            cell = each.allocation.k, each.metric
            own.setdefault((each.allocation.policy, each.evaluator), {})[cell] = each
    rows = []
    for policy, other in pairs:
        for (name, evaluator), cells in own.items():
            if name == policy:
                rows += _rows(evaluator, cells, own.get((other, evaluator), {}))
    return pd.DataFrame(rows)


def _rows(
    evaluator: str, after: dict[tuple[int, str], Contrast], before: dict[tuple[int, str], Contrast]
) -> list[dict[str, Any]]:
    rows = []
    for (k, metric), one in after.items():
        other = before.get((k, metric))
        if other is None or one.allocation.trained_on != evaluator or other.allocation.trained_on in ("", evaluator):
            continue
        change = other.delta - one.delta
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = change.replicates / other.delta.replicates
            share = Estimate(float(np.divide(change.value, other.delta.value)), shares)
        facts = {"role": one.allocation.records.role, "evaluator": evaluator, "k": k, "metric": metric}
        facts |= {"policy": one.allocation.policy, "baseline_policy": other.allocation.policy}
        values = {"d_baseline": other.delta.value, "d_policy": one.delta.value, "share": share.value}
        rows.append(facts | values | dict(zip(("lo", "hi"), share.interval, strict=True)))
    return rows
