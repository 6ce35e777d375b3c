"""Thirty interactions with a thousand replicates each: matrix products beside resampling rows."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from leadwise.analysis.bootstrap import LEVEL, PatientBootstrap
from leadwise.bench import row, timed
from leadwise.cohort.cohort import Records
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.scoring import Scorer
from leadwise.metrics import CLIP, Labels, Probabilities, bin_of, record_brier, record_nll
from leadwise.references import MATCHED_METRICS, search_references

BUDGETS = (2, 3, 4, 6, 8)
POLICIES = ("first", "second")
BINS = 10

Arms = dict[Any, Float64[np.ndarray, "n l"]]
Intervals = Float64[np.ndarray, "30 2"]
Resampled = Callable[[Int[np.ndarray, " m"]], dict[Any, float]]
"""Values by (arm, metric) of the records at these positions."""


def measure(cohort: Path) -> list[dict[str, Any]]:
    whole = read_ptbxl(cohort)
    records, labels = whole["validation"], whole["validation"].labels
    arms = _arms(whole["train"], whole["selection"], records)

    bootstrap = PatientBootstrap(records)  # drawn once for a role, and the same for all

    # the best of a few, since it is over in the blink of an eye; the others average out by themselves
    ours, our_seconds = timed(lambda: _ours(bootstrap, records, labels, arms), 4)
    rows = []
    for name, other, against in (
        ("bootstrap", _resampling_rows, "resampling rows and computing the metrics on them"),
        ("bootstrap-prepared", _adding_up_rows, "resampling rows of losses and bins that were computed beforehand"),
    ):
        theirs, their_seconds = timed(partial(other, bootstrap, records, labels, arms))
        difference = float(np.abs(ours - theirs).max())
        if difference > 1e-12:
            raise LeadwiseError(f"The two bootstraps differ by {difference:.2g}; this is a bug, please report it.")
        what = f"{len(ours)} interactions × {len(bootstrap.multiplicities):,} replicates, against {against}"
        rows.append(row(name, "s", our_seconds, their_seconds, what, largest_difference=difference))
    return rows


def _arms(train: Records, selection: Records, records: Records) -> Arms:
    """Probabilities of two policies (random sets will do) and of the references, under two evaluators."""
    rng = np.random.default_rng(0)
    masks = {
        (policy, k): rng.random((len(records), 12)).argsort(1).argsort(1) < k for policy in POLICIES for k in BUDGETS
    }
    arms: Arms = {}
    for weight in ("balanced", None):
        evaluator = LogisticEvaluator(str(weight), class_weight=weight).fit(train)
        references, scorer = search_references(evaluator, selection, BUDGETS), Scorer(evaluator, records)
        for (policy, k), mask in masks.items():
            arms[weight, policy, k] = scorer.masks(mask)
        for metric, k in product(MATCHED_METRICS, BUDGETS):
            arms[weight, metric, k] = scorer.subsets(references.best(metric, k).mask[None])[0]
    return arms


def _interactions(value: Any) -> np.ndarray:
    """All I from values by (arm, metric)."""
    return np.array(
        [
            (value[("balanced", policy, k), m] - value[("balanced", m, k), m])
            - (value[(None, policy, k), m] - value[(None, m, k), m])
            for policy, k, m in product(POLICIES, BUDGETS, MATCHED_METRICS)
        ]
    )


def _wanted(arm: Any) -> Sequence[str]:
    """Policies are measured by every metric, a reference by the one it was chosen for."""
    return MATCHED_METRICS if arm[1] in POLICIES else (arm[1],)


def _ours(bootstrap: PatientBootstrap, records: Records, labels: Labels, arms: Arms) -> Intervals:
    estimates = bootstrap.metrics(records, labels, arms, {arm: _wanted(arm) for arm in arms})
    replicates = _interactions({key: estimate.replicates for key, estimate in estimates.items()})
    return np.percentile(replicates, LEVEL, axis=1).T


def _resampling_rows(bootstrap: PatientBootstrap, records: Records, labels: Labels, arms: Arms) -> Intervals:
    """The plain way: in each replicate the metrics of the resampled rows, in NumPy, each arm gathered once."""
    columns = np.arange(labels.shape[1]) * BINS

    def ece(y: Labels, p: Probabilities) -> float:
        sums = np.bincount((bin_of(p, BINS) + columns).ravel(), (y - p).ravel(), minlength=BINS * len(columns))
        return float(np.abs(sums).sum() / y.size)

    metrics: dict[str, Callable[[Labels, Probabilities], float]] = {
        "nll": lambda y, p: -float(np.log(np.clip(np.where(y, p, 1 - p), CLIP, 1 - CLIP)).mean()),
        "brier": lambda y, p: float(((p - y) ** 2).mean()),
        "ece": ece,
    }

    def values(rows: Int[np.ndarray, " m"]) -> dict[Any, float]:
        y = labels[rows]
        resampled = ((arm, p[rows]) for arm, p in arms.items())
        return {(arm, metric): metrics[metric](y, p) for arm, p in resampled for metric in _wanted(arm)}

    return _each_replicate(bootstrap, records, values)


def _adding_up_rows(bootstrap: PatientBootstrap, records: Records, labels: Labels, arms: Arms) -> Intervals:
    """The plain way with care: losses and bins are computed once, each replicate only gathers and adds up."""
    losses, cells = {}, {}
    for arm, p in arms.items():
        for metric in _wanted(arm):
            if metric == "ece":
                cells[arm, metric] = (bin_of(p, BINS) + BINS * np.arange(labels.shape[1]), labels - p)
            else:
                losses[arm, metric] = record_nll(labels, p) if metric == "nll" else record_brier(labels, p)

    def values(rows: Int[np.ndarray, " m"]) -> dict[Any, float]:
        found = {key: float(loss[rows].mean()) for key, loss in losses.items()}
        for key, (cell, residual) in cells.items():
            sums = np.bincount(cell[rows].ravel(), residual[rows].ravel())
            found[key] = float(np.abs(sums).sum() / (len(rows) * labels.shape[1]))
        return found

    return _each_replicate(bootstrap, records, values)


def _each_replicate(bootstrap: PatientBootstrap, records: Records, values: Resampled) -> Intervals:
    cluster, everyone = bootstrap.cluster(records.patients), np.arange(len(records))
    replicates = [_interactions(values(np.repeat(everyone, drawn[cluster]))) for drawn in bootstrap.multiplicities]
    return np.percentile(np.array(replicates), LEVEL, axis=0).T
