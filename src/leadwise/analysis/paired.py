"""Two policies compared: the metric of one allocation minus that of another, under one evaluator."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from leadwise.analysis.readings import Readings
from leadwise.errors import InputError
from leadwise.policies.allocation import Allocation
from leadwise.references import MATCHED_METRICS


def paired_frame(
    readings: Readings,
    pairs: Iterable[tuple[Allocation, Allocation]],
    metrics: Sequence[str] = MATCHED_METRICS,
    evaluators: Sequence[str] | None = None,
) -> pd.DataFrame:
    """``paired.csv``: metric of allocation a minus that of b, under every evaluator, or under those that are named."""
    rows = []
    for a, b in pairs:
        if not np.array_equal(a.records.rows, b.records.rows) or a.k != b.k:
            both = f"{a.policy} and {b.policy}"
            raise InputError(f"{both} cannot be paired: they differ in their records or their budget.")
        for evaluator in evaluators or readings.evaluators:
            arms = dict(zip("ab", readings.probabilities(evaluator, a.records, [a.masks, b.masks]), strict=True))
            estimates = readings.bootstrap.metrics(a.records, a.records.labels, arms, metrics)
            for metric in metrics:
                delta = estimates["a", metric] - estimates["b", metric]
                facts = {"role": a.records.role, "evaluator": evaluator, "k": a.k, "metric": metric}
                facts |= {"policy_a": a.policy, "policy_b": b.policy}
                values = {arm: estimates[arm, metric].value for arm in "ab"} | {"delta": delta.value}
                rows.append(facts | values | dict(zip(("lo", "hi"), delta.interval, strict=True)))
    return pd.DataFrame(rows)
