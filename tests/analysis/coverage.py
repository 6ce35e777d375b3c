"""How often intervals hold what they should: simulated patients whose true contrasts are known.

    python tests/analysis/coverage.py --simulations 1000

prints a Markdown table. A patient has a frailty u, and more records the larger it is; a record has a finding e_c for
each label c. Label c is there with logit a_c + b_c u + g_c e_c. The "recordings" carry u and e in every lead, and two
evaluators read them through their own coefficients for each lead, averaged over the leads that they are given. Both
labels and losses are thus alike within a patient. Everything else is the package itself: allocations, references,
contrasts, interactions, intervals. The truth is an integral over u and e, done on a fine grid.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from time import perf_counter

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import Estimate, PatientBootstrap, simultaneous_intervals
from leadwise.analysis.contrasts import Contrast, estimate_contrasts
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Cohort, Records
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation
from leadwise.references import References

WRITTEN = {"nll": "NLL", "brier": "Brier", "ece": "ECE"}
METRICS = tuple(WRITTEN)
BUDGETS = (1, 2, 3)
READERS = ("first", "second", "third")
EVALUATORS = READERS[:2]
POLICIES = ("steady", "choosing")

INTERCEPT, FRAILTY, FINDING = np.array([-0.8, 0.6]), np.array([4.0, 3.0]), np.array([0.6, 0.6])
FIXED = {"first": (11, 10, 9), "second": (8, 7, 6)}
"""Each evaluator's reference of budget k: the first k of these leads."""

UNIT = 4000.0
"""Microvolts that stand for one deviation of u or e, so that eight deviations fit 16 bits."""


def records_of(
    patients: np.ndarray,
    labels: np.ndarray,
    signals: np.ndarray | None = None,
    missing: np.ndarray | None = None,
    folds: np.ndarray | None = None,
) -> Records:
    """Records of a cohort that is made by hand: of the audit role, unless folds are given."""
    n = len(patients)
    cohort = Cohort(
        source="a cohort made by hand",
        ids=np.arange(1, n + 1),
        patients=np.array(patients),
        folds=np.full(n, 9) if folds is None else folds,
        age=np.full(n, 60.0),
        sex=np.zeros(n, dtype=int),
        quality=np.zeros((n, 6), dtype=bool),
        missing=np.zeros((n, 12), dtype=int) if missing is None else missing,
        label_names=tuple("ABCDEFG"[: labels.shape[1]]),
        sampling_rate=100.0,
        _signals=np.zeros((n, 12, 3), dtype=np.int16) if signals is None else signals,
        _labels=np.array(labels),
    )
    return cohort.records


def varied_records(patients: int, seed: int, missing: np.ndarray | None = None) -> Records:
    """Records in which every lead tells something else, of patients in no order; what other tests stand on."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(10_000, patients, replace=False)
    patient = rng.permutation(np.repeat(ids, rng.integers(1, 5, patients)))
    told = rng.standard_normal((len(patient), 12, 3))
    labels = rng.random((len(patient), 2)) < logistic(2 * told[:, :, :1].mean(axis=1) + 2 * told[:, :, 1:].mean(axis=1))
    signals = np.clip(np.round(told * UNIT), -32767, 32767).astype(np.int16)
    return records_of(patient, labels, signals, missing)


def coefficients(evaluator: str) -> np.ndarray:
    """(3, 12, 2): intercept, weight of u and weight of e with which an evaluator reads each lead, for each label."""
    lead, label, own = np.arange(12)[:, None], np.arange(2), READERS.index(evaluator)
    return np.stack(
        [
            0.3 * np.cos(lead + own + 0 * label),
            0.6 + 0.4 * np.cos(2 * lead + 3 * own + label),
            0.7 + 0.3 * np.sin(lead + 2 * own + label),
        ]
    )


class Reader:
    """An evaluator of the simulated recordings; nothing but the contract."""

    labels = ("A", "B")

    def __init__(self, name: str) -> None:
        self.name = name
        self.coefficients = coefficients(name)

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen = signals.astype(np.float64).sum(axis=1) / masks.sum(axis=1)[:, None] * (1000 / UNIT)
        a, b, g = np.tensordot(masks / masks.sum(axis=1, keepdims=True), self.coefficients, (1, 1)).transpose(1, 0, 2)
        return logistic(a + b * seen[:, :1] + g * seen[:, 1:])


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def chosen(policy: str, k: int, u: np.ndarray) -> np.ndarray:
    """(n, k) leads. The choosing policy takes other leads for frail patients; the steady one is there to correlate."""
    if policy == "steady":
        return np.tile(np.arange(k), (len(u), 1))
    return np.where((u > 0)[:, None], 2 + np.arange(k), 5 - np.arange(k))


def visits(u: np.ndarray) -> np.ndarray:
    """Expected number of records beyond the first."""
    return np.exp(0.9 + 0.5 * u)


def draw(patients: int, rng: np.random.Generator) -> tuple[Records, np.ndarray]:
    """A cohort, and the frailty of each of its records."""
    of_patient = rng.standard_normal(patients)
    patient = np.repeat(np.arange(patients), 1 + rng.poisson(visits(of_patient)))
    u, e = of_patient[patient], rng.standard_normal((len(patient), 2))
    labels = rng.random(e.shape) < logistic(INTERCEPT + FRAILTY * u[:, None] + FINDING * e)
    carried = np.round(np.column_stack([u, e]) * UNIT).astype(np.int16)
    return records_of(patient, labels, np.repeat(carried[:, None], 12, axis=1)), u


def contrasts_on(records: Records, u: np.ndarray, replicates: int) -> list[Contrast]:
    """Every D of the simulated study, with its replicates."""
    allocations = [Allocation(records, policy, "first", chosen(policy, k, u)) for policy in POLICIES for k in BUDGETS]
    references = [
        References(
            name,
            pd.DataFrame([(k, LeadSet.of(FIXED[name][:k]).bits, 0.0, 0.0, 0.0) for k in BUDGETS]).set_axis(
                ["k", "bits", *METRICS], axis=1
            ),
            {},
        )
        for name in EVALUATORS
    ]
    readings = Readings(records, map(Reader, EVALUATORS), PatientBootstrap(records, replicates))
    return estimate_contrasts(readings, allocations, references, metrics=METRICS)


Cell = tuple[str, int, str]
"""policy, k, metric"""


@cache
def true_contrasts(step: float = 0.01) -> dict[tuple[Cell, str], float]:
    """D of every cell under every evaluator in an infinite cohort: ∫∫ visits(u) loss(u, e) dΦ(u) dΦ(e) on a grid."""
    grid = np.arange(-7 + step / 2, 7, step)
    density = np.exp(-(grid**2) / 2)
    weight = np.outer(density * (1 + visits(grid)), density)
    weight /= weight.sum()
    truth = [logistic(a + b * grid[:, None] + g * grid) for a, b, g in zip(INTERCEPT, FRAILTY, FINDING, strict=True)]

    def metrics_of(evaluator: str, leads: np.ndarray) -> dict[str, float]:
        values: dict[str, list[float]] = {metric: [] for metric in METRICS}
        for label, pi in enumerate(truth):
            a, b, g = coefficients(evaluator)[:, :, label][:, leads].mean(axis=2)[..., None]
            p = logistic(a + b * grid[:, None] + g * grid)
            values["nll"].append(float((weight * -(pi * np.log(p) + (1 - pi) * np.log1p(-p))).sum()))
            values["brier"].append(float((weight * (pi * (1 - p) ** 2 + (1 - pi) * p**2)).sum()))
            residual = np.bincount(np.floor(p * 10).astype(int).ravel(), (weight * (pi - p)).ravel())
            values["ece"].append(float(np.abs(residual).sum()))
        return {metric: float(np.mean(each)) for metric, each in values.items()}

    result = {}
    for evaluator in EVALUATORS:
        for k in BUDGETS:
            fixed = metrics_of(evaluator, np.tile(FIXED[evaluator][:k], (len(grid), 1)))
            for policy in POLICIES:
                adaptive = metrics_of(evaluator, chosen(policy, k, grid))
                for metric in METRICS:
                    result[(policy, k, metric), evaluator] = adaptive[metric] - fixed[metric]
    return result


@dataclass(frozen=True)
class Tally:
    """What held in one simulation, of one way to resample: by kind (D or I), metric and family."""

    pointwise: dict[tuple[str, str], list[bool]]
    all_pointwise: dict[str, bool]
    all_simultaneous: dict[str, bool]


FAMILIES = {"NLL and Brier": ("nll", "brier"), "NLL, Brier and ECE": METRICS}


def tally(found: Sequence[Contrast], truth: dict[tuple[Cell, str], float]) -> Tally:
    """Compare every interval with the truth."""
    delta = {((c.allocation.policy, c.allocation.k, c.metric), c.evaluator): c.delta for c in found}
    cells = sorted({cell for cell, _ in delta})
    interactions = {cell: delta[cell, "second"] - delta[cell, "first"] for cell in cells}
    true_interactions = {cell: truth[cell, "second"] - truth[cell, "first"] for cell in cells}

    def holds(estimate: Estimate, true: float) -> bool:
        low, high = estimate.interval
        return low <= true <= high

    pointwise: dict[tuple[str, str], list[bool]] = {}
    for (cell, evaluator), estimate in delta.items():
        pointwise.setdefault(("D", cell[2]), []).append(holds(estimate, truth[cell, evaluator]))
    for cell, estimate in interactions.items():
        pointwise.setdefault(("I", cell[2]), []).append(holds(estimate, true_interactions[cell]))
    every, together = {}, {}
    for family, metrics in FAMILIES.items():
        members = [cell for cell in cells if cell[2] in metrics]
        low, high = simultaneous_intervals([interactions[cell] for cell in members])
        true = np.array([true_interactions[cell] for cell in members])
        together[family] = bool(((low <= true) & (true <= high)).all())
        every[family] = all(holds(interactions[cell], true_interactions[cell]) for cell in members)
    return Tally(pointwise, every, together)


def simulate(simulations: int, patients: int, replicates: int, seed: int) -> Iterator[tuple[Tally, Tally]]:
    """Each simulation resampled twice: by patients, and by records as if each were a patient of its own."""
    truth = true_contrasts()
    for rng in np.random.default_rng(seed).spawn(simulations):
        records, u = draw(patients, rng)
        alone = records_of(np.arange(len(records)), records.labels, records.signals[:])
        yield tuple(tally(contrasts_on(each, u, replicates), truth) for each in (records, alone))  # type: ignore[misc]


def summary(tallies: Sequence[tuple[Tally, Tally]]) -> pd.DataFrame:
    """Share of simulations in which intervals hold: interval, estimand, cells, patients, records."""
    rows = []
    for kind, metric in product("DI", METRICS):
        held = [np.mean([each[way].pointwise[kind, metric] for each in tallies]) for way in (0, 1)]
        cells = len(tallies[0][0].pointwise[kind, metric])
        rows.append(("pointwise", f"{kind} of {WRITTEN[metric]}", cells, *held))
    for interval, attribute in (("all pointwise at once", "all_pointwise"), ("simultaneous", "all_simultaneous")):
        for family, metrics in FAMILIES.items():
            held = [np.mean([getattr(each[way], attribute)[family] for each in tallies]) for way in (0, 1)]
            rows.append((interval, f"I of {family}", len(metrics) * len(BUDGETS) * len(POLICIES), *held))
    return pd.DataFrame(rows, columns=["interval", "estimand", "cells", "patients", "records"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of patient-cluster intervals in simulated cohorts.")
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--patients", type=int, default=300)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    start = perf_counter()
    table = summary(list(simulate(options.simulations, options.patients, options.replicates, options.seed)))
    print("| interval | estimand | cells | patients resampled | records resampled |")
    print("| --- | --- | ---: | ---: | ---: |")
    for row in table.itertuples():
        print(f"| {row.interval} | {row.estimand} | {row.cells} | {row.patients:.1%} | {row.records:.1%} |")
    error = 1.96 * np.sqrt(0.95 * 0.05 / options.simulations)
    print(
        f"\n{options.simulations} simulations of {options.patients} patients, {options.replicates} replicates each, "
        f"seed {options.seed}; {perf_counter() - start:.0f} s. A true 95% may show as 95% ± {error:.1%}."
    )


if __name__ == "__main__":
    main()
