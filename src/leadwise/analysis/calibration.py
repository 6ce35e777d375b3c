"""Calibration and dispersion of policies and of a fixed set."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import SUM_METRICS, Estimate, PatientBootstrap
from leadwise.analysis.readings import Readings
from leadwise.analysis.tidy import REFERENCE, frame, row
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LeadSet
from leadwise.metrics import (
    Labels,
    Probabilities,
    calibration_in_the_large,
    calibration_line,
    record_entropy,
    reliability,
)
from leadwise.policies.allocation import Allocation


def calibration_frame(
    readings: Readings,
    evaluator: str,
    allocations: Sequence[Allocation],
    reference: LeadSet,
    reference_metric: str = "ece",
) -> pd.DataFrame:
    """``calibration.csv``: every statistic of every policy and of the fixed set, and their differences.

    Of each arm: NLL, Brier, ECE in four binnings, ECE of each label, macro |intercept| with the slope fixed at one and
    macro |slope − 1| (and both by label), probability variance, predictive entropy. Of each policy against the fixed
    set: differences of the metrics, by label for the ECE, and the share of the fixed set's variance that it keeps.
    Records that lack a lead of the fixed set are left out.
    """
    allocations = [allocation.having(reference) for allocation in allocations]
    records = allocations[0].records
    if any(not np.array_equal(allocation.records.rows, records.rows) for allocation in allocations):
        raise InputError("Calibration compares policies on the same records; these allocations are for different ones.")
    masks = [allocation.masks for allocation in allocations] + [np.tile(reference.mask, (len(records), 1))]
    names = [allocation.policy for allocation in allocations] + [REFERENCE]
    if len(set(names)) < len(names):
        raise InputError("Two of the policies have the same name, or one is called 'reference'; rename it.")
    arms = dict(zip(names, readings.probabilities(evaluator, records, masks), strict=True))
    labels, bootstrap = records.labels, readings.bootstrap
    metrics = bootstrap.metrics(records, labels, arms, SUM_METRICS)
    by_label = {
        label: bootstrap.metrics(records, labels[:, [i]], {name: p[:, [i]] for name, p in arms.items()}, ["ece"])
        for i, label in enumerate(records.label_names)
    }
    variance = {name: _variance(bootstrap, records, p) for name, p in arms.items()}
    facts = {"role": records.role, "evaluator": evaluator, "reference_metric": reference_metric, "k": len(reference)}
    rows = []
    for name, p in arms.items():
        own = facts | {"policy": name}
        rows += [row(own, metric, metrics[name, metric]) for metric in SUM_METRICS]
        rows += [row(own, "ece", ece[name, "ece"], label) for label, ece in by_label.items()]
        entropy = bootstrap.statistic(records, record_entropy(p)[:, None], lambda means: means[:, 0])
        rows += [row(own, "variance", variance[name]), row(own, "entropy", entropy)]
        rows += [row(own, *line) for line in _lines(labels, p, records.label_names)]
    for name in names[:-1]:
        own = facts | {"policy": name, "versus": REFERENCE}
        rows += [row(own, f"{m} difference", metrics[name, m] - metrics[REFERENCE, m]) for m in SUM_METRICS]
        for label, ece in by_label.items():
            rows.append(row(own, "ece difference", ece[name, "ece"] - ece[REFERENCE, "ece"], label))
        mine, fixed = variance[name], variance[REFERENCE]
        kept = Estimate(mine.value / fixed.value, mine.replicates / fixed.replicates)
        rows.append(row(own, "variance retention", kept))
    return frame(rows)


def reliability_frame(
    labels: Labels, arms: dict[str, Probabilities], names: Sequence[str], bins: int = 10
) -> pd.DataFrame:
    """Points of reliability curves, pooled and by label: policy, label, bin, count, probability, frequency.

    Empty bins have no row. Pooling treats every pair of record and label as one case.
    """
    rows = []
    for policy, p in arms.items():
        panels = {"pooled": (labels.reshape(-1, 1), p.reshape(-1, 1))}
        panels |= {name: (labels[:, [i]], p[:, [i]]) for i, name in enumerate(names)}
        for label, (y, q) in panels.items():
            count, probability, frequency = (values[0] for values in reliability(y, q, bins=bins))
            for b in np.flatnonzero(count):
                rows.append((policy, label, b, int(count[b]), probability[b], frequency[b]))
    return pd.DataFrame(rows, columns=["policy", "label", "bin", "count", "probability", "frequency"])


def _lines(labels: Labels, p: Probabilities, names: Sequence[str]) -> list[tuple[str, float, str]]:
    """Intercepts and slopes, macro and by label, as (statistic, value, label)."""
    intercepts, (_, slopes) = calibration_in_the_large(labels, p), calibration_line(labels, p)
    return [
        ("macro |intercept|", float(np.abs(intercepts).mean()), ""),
        ("macro |slope - 1|", float(np.abs(slopes - 1).mean()), ""),
        *(("intercept", float(value), name) for name, value in zip(names, intercepts, strict=True)),
        *(("slope", float(value), name) for name, value in zip(names, slopes, strict=True)),
    ]


def _variance(bootstrap: PatientBootstrap, records: Records, p: Probabilities) -> Estimate:
    """Pooled variance, E p² − (E p)², about a fixed centre so that nothing cancels."""
    centred = p - p.mean()
    moments = np.stack([centred.mean(axis=1), (centred**2).mean(axis=1)], axis=1)
    return bootstrap.statistic(records, moments, lambda means: means[:, 1] - means[:, 0] ** 2)
