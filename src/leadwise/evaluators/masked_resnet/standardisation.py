"""Standardisation of signals: the same for a training and for the evaluator that comes out of it."""

import numpy as np
from jaxtyping import Float32, Float64, Real

from leadwise.cohort.cohort import Records
from leadwise.evaluators.statistics import STATISTICS, lead_statistics


def lead_scales(records: Records) -> tuple[Float64[np.ndarray, " 12"], Float64[np.ndarray, " 12"]]:
    """Mean and deviation of each lead's samples in mV, over the records that have it."""
    statistics, weights = lead_statistics(records), records.available.astype(np.float64)
    means, deviations = (statistics[..., STATISTICS.index(name)] for name in ("mean", "deviation"))
    count = np.maximum(weights.sum(axis=0), 1)
    mean = (weights * means).sum(axis=0) / count
    square = (weights * (means**2 + deviations**2)).sum(axis=0) / count
    return mean, np.maximum(np.sqrt(square - mean**2), 1e-6)


def standardise(
    signals: Real[np.ndarray, "n 12 t"],
    mean: Float64[np.ndarray, " 12"],
    scale: Float64[np.ndarray, " 12"],
    per_millivolt: int = 1,
) -> Float32[np.ndarray, "n 12 t"]:
    """(signal − mean) / scale, lead by lead, in float32; mean and scale are in mV.

    ``per_millivolt`` is 1 for signals in mV and 1000 for stored ones in µV, which need not be converted before.
    """
    mean, scale = (each.astype(np.float32)[:, None] * per_millivolt for each in (mean, scale))
    z = signals - mean
    z /= scale
    return z
