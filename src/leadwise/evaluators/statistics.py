"""Ten simple statistics of each lead: all that the controlled evaluator, and the policies, know of a waveform.

With samples x_1 … x_T of one lead in mV, mean m, deviations d_t = x_t − m, σ² = (1/T) Σ d_t², and sampling rate f:

| statistic | is | measures, and why it may matter |
| --- | --- | --- |
| mean | m | where the trace lies on average: the balance of positive and negative deflections, ST shift and wander |
| deviation | σ | overall voltage: high in hypertrophy, low in obesity, effusion, or behind a scar |
| minimum | min x | depth of the deepest Q or S wave: infarct scars, bundle branch blocks, hypertrophy from behind |
| maximum | max x | height of the tallest R (or T) wave: hypertrophy where it is high, lost R waves where it is low |
| median | median x | the level between beats; its distance from the mean is what the waves contribute |
| skewness | (1/T) Σ d³ / σ³ | which way the complexes point in this lead: the axis, R against S |
| kurtosis | (1/T) Σ d⁴ / σ⁴ − 3 | how peaked: narrow QRS on a quiet line is high; wide QRS, tall T or noise is low |
| mean step | f · mean of the absolute x_t − x_(t−1) | average slope: total wave activity, muscle noise, fibrillation |
| largest step | f · max of the absolute x_t − x_(t−1) | the steepest slope of the QRS: slow in bundle branch block |
| crossing rate | f · share of steps that cross m | how often the trace changes sides: heart rate, flutter, noise |

A lead without variation has skewness and kurtosis 0. Two more follow from these, for evaluators that want them: peak to
peak, max x − min x, and root mean square, √(m² + σ²).
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Bool, Float64, Int16

from leadwise.cohort.cohort import Cohort, Records
from leadwise.progress import progress
from leadwise.store import atomic_file, file_sha256

STATISTICS = (
    *("mean", "deviation", "minimum", "maximum", "median"),
    *("skewness", "kurtosis", "mean step", "largest step", "crossing rate"),
)

FURTHER = {
    "peak to peak": lambda x: x["maximum"] - x["minimum"],
    "root mean square": lambda x: np.hypot(x["mean"], x["deviation"]),
}
"""Statistics that follow from the ten."""

VERSION = 1
"""Bump it whenever the same signals would give other statistics."""

_CHUNK = 64
"""Records at a time: about 6 MB for each of a handful of arrays, so that they stay in the processor's cache."""


def lead_statistics(records: Records) -> Float64[np.ndarray, "n 12 10"]:
    """Statistics of every lead of every record, from the cohort's cache where they are.

    The first call on a cached cohort computes all records that are not sealed, and keeps them beside the signals.
    """
    records.signals  # noqa: B018  raises for a sealed role, whatever the cache has
    kept = _kept(records.cohort)
    if kept is None:
        return compute_statistics(records)
    statistics = kept[records.rows]
    absent = np.isnan(statistics[:, 0, 0])
    if absent.any():
        statistics[absent] = compute_statistics(records.select(absent))
    return statistics


def select_statistics(
    statistics: Float64[np.ndarray, "n 12 10"], names: Sequence[str]
) -> Float64[np.ndarray, "n 12 s"]:
    """The statistics of these names, from the ten."""
    ten = {name: statistics[..., column] for column, name in enumerate(STATISTICS)}
    return np.stack([ten[name] if name in ten else FURTHER[name](ten) for name in names], axis=2)


def lead_moments(
    statistics: Float64[np.ndarray, "n 12 s"], available: Bool[np.ndarray, "n 12"]
) -> tuple[Float64[np.ndarray, "12 s"], Float64[np.ndarray, "12 s"]]:
    """Mean and deviation of each lead's statistics over the records that have the lead; 0 where none has it."""
    has = available[..., None]
    count = np.maximum(has.sum(axis=0), 1)
    mean = np.where(has, statistics, 0).sum(axis=0) / count
    squares = np.where(has, statistics - mean, 0) ** 2
    return mean, np.sqrt(squares.sum(axis=0) / count)


def waveform_statistics(microvolts: Int16[np.ndarray, "n 12 t"], rate: float) -> Float64[np.ndarray, "n 12 10"]:
    """The ten statistics, in the order of `STATISTICS`."""
    length = microvolts.shape[2]
    mean = microvolts.mean(axis=2, dtype=np.float64)
    d = microvolts - mean[..., None]
    squared = d * d
    variance = squared.mean(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = np.einsum("nlt,nlt->nl", squared, d) / length / variance**1.5
        kurtosis = np.einsum("nlt,nlt->nl", squared, squared) / length / variance**2 - 3
    steps = np.abs(np.diff(microvolts.astype(np.int32), axis=2))
    above = d > 0
    flat = variance == 0
    levels = mean, np.sqrt(variance), microvolts.min(axis=2), microvolts.max(axis=2), np.median(microvolts, axis=2)
    shape = np.where(flat, 0.0, skewness), np.where(flat, 0.0, kurtosis)
    slopes = steps.mean(axis=2) * rate / 1000, steps.max(axis=2) * rate / 1000
    crossings = (above[..., 1:] != above[..., :-1]).mean(axis=2) * rate
    return np.stack([*(level / 1000 for level in levels), *shape, *slopes, crossings], axis=2)


def compute_statistics(records: Records) -> Float64[np.ndarray, "n 12 10"]:
    """The statistics of these records, computed anew, one thread a core: NumPy lets go of the interpreter meanwhile."""
    result = np.empty((len(records), 12, len(STATISTICS)))
    signals = records.signals

    def fill(start: int) -> int:
        part = slice(start, min(start + _CHUNK, len(records)))
        result[part] = waveform_statistics(signals[part], records.sampling_rate)
        return part.stop - part.start

    with progress("Computing statistics", len(records)) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(fill, range(0, len(records), _CHUNK)):
            advance(done)
    return result


def _kept(cohort: Cohort) -> Float64[np.ndarray, "all 12 10"] | None:
    """The cohort's statistics on disk, NaN for records that were sealed; None for a cohort without a cache.

    Beside them stands their hash: statistics that were changed since are computed again.
    """
    if cohort.cache is None:
        return None
    path = cohort.cache / f"statistics-{VERSION}.npy"
    digest = path.with_suffix(".sha256")
    statistics = np.full((len(cohort), 12, len(STATISTICS)), np.nan)
    try:
        kept = np.lib.format.open_memmap(path, mode="r")  # unlike np.load, it takes nothing but an array
        fitting = (kept.shape, kept.dtype) == (statistics.shape, statistics.dtype)
        if fitting and digest.read_text() == file_sha256(path):
            return kept
    except (OSError, ValueError):
        pass
    unsealed = cohort.records.select(~cohort.sealed)
    statistics[unsealed.rows] = compute_statistics(unsealed)
    try:
        with atomic_file(path) as draft, draft.open("wb") as file:
            np.save(file, statistics, allow_pickle=False)
        with atomic_file(digest) as draft:
            draft.write_text(file_sha256(path))
    except OSError:
        pass  # a cache that cannot be written was warned about when the cohort was read
    return statistics
