"""Intervals that respect patients: whole patients are resampled, and everything is resampled alike.

A replicate is a vector of multiplicities, how often each patient was drawn. They are drawn once for a role and shared
by every policy, evaluator, reference and metric, so that any difference of two estimates is paired by construction.

A metric's replicate is Σ_i m(i) loss_i / Σ_i m(i) over the records i, m(i) the multiplicity of i's patient: records
weigh equally, and the denominator varies from replicate to replicate. NLL, Brier and the sums within the bins of an ECE
are sums over records, hence over patients, so all replicates of them are one product of multiplicities and per-patient
sums. AUROC is a sum over pairs of records: these are sorted once, and cumulative multiplicities do the rest. Both equal
resampling rows, to rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int16

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.metrics import Labels, Probabilities, bin_of, check_probabilities, record_brier, record_nll

REPLICATES = 1000
SEED = 20270909
LEVEL = (2.5, 97.5)
"""Percentiles that bound an interval."""

SUM_METRICS = ("nll", "brier", "ece", "ece5", "ece15", "ece20")
"""Metrics that are functions of per-patient sums."""
RESAMPLED = (*SUM_METRICS, "auroc")
"""All metrics that have intervals."""
CHUNK = 2**18
"""Multiplicities of records that an AUROC has in memory at a time: two megabytes, which stay near the processor."""


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """A number and what it is in every replicate. Subtracting two estimates pairs their replicates."""

    value: float
    replicates: Float64[np.ndarray, " r"]

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4g} [{low:.4g}, {high:.4g}]"

    @property
    def undefined(self) -> int:
        """In how many replicates the statistic is undefined; they are left out of the interval."""
        return int(np.isnan(self.replicates).sum())

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Percentile interval; missing where no replicate is defined."""
        return self.between(*LEVEL)

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Two percentiles of the replicates; missing where no replicate is defined."""
        defined = self.replicates[~np.isnan(self.replicates)]
        if not len(defined):
            return np.nan, np.nan
        lower, upper = np.percentile(defined, (low, high))
        return float(lower), float(upper)

    @property
    def sd(self) -> float:
        """Standard deviation of the replicates; missing where fewer than two are defined."""
        defined = self.replicates[~np.isnan(self.replicates)]
        return float(defined.std(ddof=1)) if len(defined) > 1 else np.nan

    def __sub__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value - other.value, self.replicates - other.replicates)


class PatientBootstrap:
    """The one source of resampled patients for a role. Estimates may be asked for a part of its records."""

    def __init__(self, records: Records, replicates: int = REPLICATES, seed: int = SEED) -> None:
        self.patients = np.unique(records.patients)
        count = len(self.patients)
        if count < 2:
            raise InputError(f"{records.name} has {count} patient; resampling patients needs at least two.")
        drawn = np.random.default_rng(seed).multinomial(count, [1 / count] * count, size=replicates)
        self.sha256 = sha256(np.ascontiguousarray(drawn, dtype="<i8").data).hexdigest()
        # a quarter of the memory; nobody is drawn 32,768 times where the expected number is one
        self.multiplicities: Int16[np.ndarray, "r p"] = drawn.astype(np.int16)
        self.multiplicities.flags.writeable = False
        self._weights = drawn.astype(np.float64)

    def __repr__(self) -> str:
        return f"<PatientBootstrap: {len(self.multiplicities)} resamples of {len(self.patients)} patients>"

    def cluster(self, patients: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Position of each record's patient among the role's; the only place where clusters get their identity."""
        positions = np.searchsorted(self.patients, patients)
        known = self.patients[np.minimum(positions, len(self.patients) - 1)] == patients
        if not known.all():
            raise InputError(f"Patient {patients[np.argmin(known)]} is not among the patients that were resampled.")
        return positions

    def totals(self, sums: Float64[np.ndarray, "p c"]) -> Float64[np.ndarray, "r c"]:
        """Resampled totals of per-patient sums, for all replicates: one matrix product."""
        return self._weights @ sums

    def patient_sums(
        self, patients: Int[np.ndarray, " n"], values: Float[np.ndarray, "n c"]
    ) -> Float64[np.ndarray, "p c"]:
        """Sum of each column over the records of each patient."""
        cluster, count = self.cluster(patients), len(self.patients)
        return np.stack([np.bincount(cluster, column, minlength=count) for column in values.T], axis=1)

    def statistic(
        self,
        records: Records,
        values: Float[np.ndarray, "n c"],
        function: Callable[[Float64[np.ndarray, "r c"]], Float64[np.ndarray, " r"]],
    ) -> Estimate:
        """A function of record means of the columns of ``values``, with replicates."""
        sums = self.patient_sums(records.patients, np.column_stack([values, np.ones(len(values))]))
        totals = np.vstack([sums.sum(axis=0), self.totals(sums)])
        with np.errstate(invalid="ignore", divide="ignore"):
            answer = function(totals[:, :-1] / totals[:, -1:])
        return Estimate(float(answer[0]), answer[1:])

    def metrics(
        self,
        records: Records,
        labels: Labels,
        arms: Mapping[Any, Probabilities],
        metrics: Mapping[Any, Sequence[str]] | Sequence[str] = ("nll", "brier", "ece"),
    ) -> dict[tuple[Any, str], Estimate]:
        """Metrics with replicates for many arms (probabilities of the same records) at once, by (arm, metric).

        ``metrics`` may name other metrics for each arm: what is not asked for is not computed.
        """
        wanted = metrics if isinstance(metrics, Mapping) else dict.fromkeys(arms, metrics)
        columns: list[Float64[np.ndarray, "p c"]] = [self.patient_sums(records.patients, np.ones((len(records), 1)))]
        cluster, at = self.cluster(records.patients), 1
        # a matrix product may round equal columns differently; arms that agree share theirs, so they differ by zero
        place: dict[tuple[bytes, str], tuple[slice, Callable[[np.ndarray], np.ndarray]]] = {}
        contents = {arm: sha256(probabilities.tobytes()).digest() for arm, probabilities in arms.items()}
        asked = [(arm, metric) for arm in arms for metric in wanted[arm]]
        areas: dict[bytes, Estimate] = {}
        for arm, metric in asked:
            if metric == "auroc":
                if contents[arm] not in areas:
                    areas[contents[arm]] = self._auroc(cluster, labels, arms[arm])
            elif (contents[arm], metric) not in place:
                sums, reduce = _sums_of(metric, labels, arms[arm], cluster, len(self.patients))
                place[contents[arm], metric] = (slice(at, at + sums.shape[1]), reduce)
                at += sums.shape[1]
                columns.append(sums)
        sums = np.concatenate(columns, axis=1)
        point, totals = sums.sum(axis=0), self.totals(sums)
        estimates = {}
        with np.errstate(invalid="ignore", divide="ignore"):
            for arm, metric in asked:
                if metric == "auroc":
                    estimates[arm, metric] = areas[contents[arm]]
                    continue
                part, reduce = place[contents[arm], metric]
                value = float(reduce(point[None, part])[0] / point[0])
                estimates[arm, metric] = Estimate(value, reduce(totals[:, part]) / totals[:, 0])
        return estimates

    def _auroc(self, cluster: Int[np.ndarray, " n"], labels: Labels, probabilities: Probabilities) -> Estimate:
        """Macro AUROC with replicates; undefined where a label has one value only."""
        check_probabilities(labels, probabilities)
        pairs = [_Pairs.of(*each) for each in zip(labels.T.astype(bool), probabilities.T, strict=True)]

        def macro(weights: Float64[np.ndarray, "n r"]) -> Float64[np.ndarray, " r"]:
            return np.mean([each.area(weights) for each in pairs], axis=0)

        step = max(1, CHUNK // len(cluster))
        drawn = (
            np.ascontiguousarray(self._weights[at : at + step].T)[cluster] for at in range(0, len(self._weights), step)
        )
        return Estimate(float(macro(np.ones((len(cluster), 1)))[0]), np.concatenate([macro(each) for each in drawn]))


@dataclass(frozen=True)
class _Pairs:
    """The records without a label and with it, in the order of their probabilities, and how they compare.

    AUROC = Σ_i w(i) [Σ w(j) over the j below i + ½ Σ w(j) over the j that tie with i] / (Σ_i w(i) Σ_j w(j)), i with the
    label and j without it.
    """

    without: Int[np.ndarray, " a"]
    having: Int[np.ndarray, " b"]
    below: Int[np.ndarray, " b"]
    """Number of records without the label whose probability is less than that of each that has it."""
    upto: Int[np.ndarray, " b"]
    """The same with those that tie."""

    @classmethod
    def of(cls, label: Bool[np.ndarray, " n"], probability: Float[np.ndarray, " n"]) -> "_Pairs":
        order = np.argsort(probability, kind="stable")
        without, having = order[~label[order]], order[label[order]]
        low, high = (np.searchsorted(probability[without], probability[having], side) for side in ("left", "right"))
        return cls(without, having, low, high)

    def area(self, weights: Float64[np.ndarray, "n r"]) -> Float64[np.ndarray, " r"]:
        """AUROC under each column of weights; NaN where the records of positive weight are all of one kind."""
        having, cumulative = weights[self.having], np.zeros((len(self.without) + 1, weights.shape[1]))
        np.cumsum(weights[self.without], axis=0, out=cumulative[1:])
        won = np.einsum("br,br->r", having, cumulative[self.below])
        if (self.upto > self.below).any():
            won = (won + np.einsum("br,br->r", having, cumulative[self.upto])) / 2
        with np.errstate(invalid="ignore"):
            return won / (having.sum(axis=0) * cumulative[-1])


def _sums_of(
    metric: str, labels: Labels, probabilities: Probabilities, cluster: Int[np.ndarray, " n"], patients: int
) -> tuple[Float64[np.ndarray, "p c"], Callable[[np.ndarray], np.ndarray]]:
    """Per-patient sums that a metric is made of, and how their totals become the metric times the number of records."""
    if metric in ("nll", "brier"):
        losses = record_nll(labels, probabilities) if metric == "nll" else record_brier(labels, probabilities)
        return np.bincount(cluster, losses, minlength=patients)[:, None], lambda totals: totals[:, 0]
    if metric not in SUM_METRICS:
        raise InputError(f"'{metric}' has no patient-cluster interval; these have: {', '.join(RESAMPLED)}.")
    bins = int(metric[3:] or 10)
    record_brier(labels, probabilities)  # refuses what are no probabilities
    n_labels = labels.shape[1]
    # Σ (y − p) of each patient in each cell (label, bin) that any record falls into; the others stay zero
    cell = bin_of(probabilities, bins) + bins * np.arange(n_labels)
    occupied = np.bincount(cell.ravel(), minlength=n_labels * bins) > 0
    column, width = np.cumsum(occupied) - 1, int(occupied.sum())
    flat = cluster[:, None] * width + column[cell]
    sums = np.bincount(flat.ravel(), (labels - probabilities).ravel(), minlength=patients * width)
    # Σ_b |Σ_{i in b} (y − p)|, label by label, then the mean over labels
    return sums.reshape(patients, width), lambda totals: np.abs(totals).sum(axis=1) / n_labels


def simultaneous_intervals(
    estimates: Sequence[Estimate], level: float = 95.0
) -> tuple[Float64[np.ndarray, " j"], Float64[np.ndarray, " j"]]:
    """Intervals that hold for all estimates of a family together: bootstrap max-t.

    With s_j the deviation of the replicates of estimate θ_j, c is the 95th percentile over replicates of
    max_j |θ*_j − θ_j| / s_j, and the intervals are θ_j ± c s_j. Replicates in which any of the family is undefined are
    left out; an estimate that never varies has an interval of no width.
    """
    theta = np.array([estimate.value for estimate in estimates])
    replicates = np.stack([estimate.replicates for estimate in estimates], axis=1)
    replicates = replicates[~np.isnan(replicates).any(axis=1)]
    if not len(replicates):
        return np.full(len(theta), np.nan), np.full(len(theta), np.nan)
    distance = replicates - theta  # about θ, not about zero, where equal replicates would seem to vary by rounding
    deviation = distance.std(axis=0, ddof=1)
    varies: Bool[np.ndarray, " j"] = deviation > 1e-15  # replicates that are equal up to rounding do not vary
    standardised = np.abs(distance)[:, varies] / deviation[varies]
    critical = np.percentile(standardised.max(axis=1), level) if varies.any() else 0.0
    margin = np.where(varies, critical * deviation, 0.0)
    return theta - margin, theta + margin
