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
    for policy, elsewhere in pairs:
        for (name, evaluator), after in own.items():
            before = own.get((elsewhere, evaluator), {}) if name == policy else {}
            for cell, one in after.items():
                other = before.get(cell)
                here = one.allocation.trained_on == evaluator
                if here and other is not None and other.allocation.trained_on not in ("", evaluator):
                    rows.append(_row(one, other))
    return pd.DataFrame(rows)


def _row(one: Contrast, other: Contrast) -> dict[str, Any]:
    change = other.delta - one.delta
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = change.replicates / other.delta.replicates
        share = Estimate(float(np.divide(change.value, other.delta.value)), shares)
    facts = {"role": one.key.role, "evaluator": one.evaluator, "k": one.allocation.k, "metric": one.metric}
    facts |= {"policy": one.allocation.policy, "baseline_policy": other.allocation.policy}
    values = {"d_baseline": other.delta.value, "d_policy": one.delta.value, "share": share.value}
    return facts | values | dict(zip(("lo", "hi"), share.interval, strict=True))
