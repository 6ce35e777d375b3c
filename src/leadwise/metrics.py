"""Metrics of probabilities: pure functions of labels, probabilities and record weights.

All are multilabel: labels y and probabilities p are (n, L), and a metric averages over the labels. Weights w are (n,),
one a record, and default to one; a weight of two is the record twice. scikit-learn's `log_loss` and `brier_score_loss`
read such a matrix as one of mutually exclusive classes, so they serve label by label only, in the tests.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from leadwise.errors import InputError

Labels = Bool[np.ndarray, "n l"]
Probabilities = Float[np.ndarray, "n l"]
PerLabel = Float[np.ndarray, " l"]
PerRecord = Float[np.ndarray, " n"]
Weights = PerRecord | Int[np.ndarray, " n"] | None

CLIP = 1e-12
"""Probabilities are clipped to [CLIP, 1 − CLIP] in the NLL, and nowhere else."""

ECE_BINS = (5, 10, 15, 20)


def record_nll(labels: Labels, probabilities: Probabilities) -> PerRecord:
    """Each record's negative log-likelihood, −(1/L) Σ_l [y log p + (1 − y) log(1 − p)]."""
    check_probabilities(labels, probabilities)
    p = np.clip(probabilities.astype(np.float64), CLIP, 1 - CLIP)  # in float32, 1 − CLIP is 1
    return -np.log(np.where(labels, p, 1 - p)).mean(axis=1)


def record_brier(labels: Labels, probabilities: Probabilities) -> PerRecord:
    """Each record's Brier score, (1/L) Σ_l (p − y)²."""
    check_probabilities(labels, probabilities)
    return ((probabilities - labels) ** 2).mean(axis=1)


def nll(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> float:
    """Mean negative log-likelihood over records and labels.

    >>> round(nll(np.array([[True, False]]), np.array([[0.8, 0.5]])), 6)
    0.458145
    """
    return _mean(record_nll(labels, probabilities), weights)


def brier(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> float:
    """Mean squared distance of probability and label.

    >>> round(brier(np.array([[True, False]]), np.array([[0.8, 0.5]])), 6)
    0.145
    """
    return _mean(record_brier(labels, probabilities), weights)


def ece(labels: Labels, probabilities: Probabilities, weights: Weights = None, bins: int = 10) -> float:
    """Expected calibration error, the mean of `label_ece` over the labels.

    >>> round(ece(np.array([[True], [False]]), np.array([[0.72], [0.78]])), 6)
    0.25
    """
    return float(label_ece(labels, probabilities, weights, bins).mean())


def label_ece(labels: Labels, probabilities: Probabilities, weights: Weights = None, bins: int = 10) -> PerLabel:
    """ECE of each label over B bins of equal width: Σ_b |Σ_{i in b} w_i (y_i − p_i)| / Σ_i w_i.

    This is Σ_b (share of b) · |frequency − mean probability|. Bin of p is min(⌊p·B⌋, B − 1).
    """
    check_probabilities(labels, probabilities)
    w = _checked_weights(weights, len(labels))
    n_labels = labels.shape[1]
    cell = bin_of(probabilities, bins) + bins * np.arange(n_labels)
    residual = (labels - probabilities) * w[:, None]
    sums = np.bincount(cell.ravel(), residual.ravel(), minlength=n_labels * bins).reshape(n_labels, bins)
    return np.abs(sums).sum(axis=1) / w.sum()


def bin_of(probabilities: Float[np.ndarray, "..."], bins: int) -> Int[np.ndarray, "..."]:
    """Number of the bin, of ``bins`` bins of equal width, that holds each probability; 1.0 belongs to the last."""
    return np.minimum((probabilities * bins).astype(np.intp), bins - 1)


def label_auroc(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> PerLabel:
    """Area under the ROC curve of each label; NaN where the label has one value only."""
    from sklearn.metrics import roc_auc_score

    return _by_label(roc_auc_score, labels, probabilities, weights)


def label_auprc(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> PerLabel:
    """Area under the precision–recall curve (average precision) of each label; NaN where it has one value only."""
    from sklearn.metrics import average_precision_score

    return _by_label(average_precision_score, labels, probabilities, weights)


def auroc(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> float:
    """Macro mean of `label_auroc`; NaN, a missing value, if it is undefined for any label."""
    return float(label_auroc(labels, probabilities, weights).mean())


def auprc(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> float:
    """Macro mean of `label_auprc`; NaN, a missing value, if it is undefined for any label."""
    return float(label_auprc(labels, probabilities, weights).mean())


def probability_variance(probabilities: Probabilities, weights: Weights = None) -> float:
    """Variance of the probabilities, pooled over records and labels."""
    _check_range(probabilities)
    w = _checked_weights(weights, len(probabilities))
    centred = probabilities - _mean(probabilities.mean(axis=1), w)
    return _mean((centred**2).mean(axis=1), w)


def record_entropy(probabilities: Probabilities) -> PerRecord:
    """Each record's mean binary entropy in nats, −(1/L) Σ_l [p log p + (1 − p) log(1 − p)]."""
    from scipy.special import entr

    _check_range(probabilities)
    return (entr(probabilities) + entr(1 - probabilities)).mean(axis=1)


def predictive_entropy(probabilities: Probabilities, weights: Weights = None) -> float:
    """Mean binary entropy in nats."""
    return _mean(record_entropy(probabilities), weights)


def calibration_in_the_large(labels: Labels, probabilities: Probabilities, weights: Weights = None) -> PerLabel:
    """Intercept a of logit P(y = 1) = a + logit p for each label, the slope fixed at one; 0 is calibrated."""
    logit = _logit(labels, probabilities)
    w = _checked_weights(weights, len(labels))
    ones = np.ones((len(labels), 1))
    return np.array([_logistic_fit(ones, labels[:, i], w, logit[:, i])[0] for i in range(labels.shape[1])])


def calibration_line(
    labels: Labels, probabilities: Probabilities, weights: Weights = None
) -> tuple[PerLabel, PerLabel]:
    """Intercepts a and slopes s of logit P(y = 1) = a + s · logit p, fitted jointly, for each label."""
    logit = _logit(labels, probabilities)
    w = _checked_weights(weights, len(labels))
    centre = w @ logit / w.sum()  # logits far from zero but close together would be all but collinear with the ones
    logit -= centre
    fits = [
        _logistic_fit(np.stack([np.ones(len(labels)), logit[:, i]], axis=1), labels[:, i], w, np.zeros(len(labels)))
        for i in range(labels.shape[1])
    ]
    intercepts, slopes = np.array(fits).T
    return intercepts - slopes * centre, slopes


def _logit(labels: Labels, probabilities: Probabilities) -> Float[np.ndarray, "n l"]:
    check_probabilities(labels, probabilities)
    p = np.clip(probabilities.astype(np.float64), CLIP, 1 - CLIP)
    return np.log(p) - np.log1p(-p)


def _logistic_fit(
    inputs: Float[np.ndarray, "n d"], y: Bool[np.ndarray, " n"], w: PerRecord, offset: PerRecord
) -> Float[np.ndarray, " d"]:
    """Maximum-likelihood logistic coefficients by Newton's method; NaN where there is no finite maximum.

    Written out because scikit-learn takes no offset, and statsmodels is too heavy to depend on for one or two unknowns.
    """
    beta = np.zeros(inputs.shape[1])
    for _ in range(50):
        eta = offset + inputs @ beta
        p = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
        curvature = (inputs * (w * p * (1 - p))[:, None]).T @ inputs
        if np.linalg.cond(curvature) > 1e14:
            break
        step = np.linalg.solve(curvature, inputs.T @ (w * (y - p)))
        # far from the maximum a whole step may leap to and fro for ever; where the curvature changes at most as fast as
        # itself, as it does here on the logit scale, a leap of r shortened to log(1 + r) always leads upwards
        leap = np.abs(inputs @ step).max()
        beta += step * (np.log1p(leap) / leap if leap else 1.0)
        if np.abs(step).max() < 1e-11 * max(1.0, np.abs(beta).max()):
            return beta
    return np.full(inputs.shape[1], np.nan)


def reliability(
    labels: Labels, probabilities: Probabilities, weights: Weights = None, bins: int = 10
) -> tuple[Float[np.ndarray, "l b"], Float[np.ndarray, "l b"], Float[np.ndarray, "l b"]]:
    """Reliability curves: weight, mean probability and observed frequency in each bin of each label; NaN if empty."""
    check_probabilities(labels, probabilities)
    w = _checked_weights(weights, len(labels))
    n_labels = labels.shape[1]
    cell = (bin_of(probabilities, bins) + bins * np.arange(n_labels)).ravel()

    def total(values: Float[np.ndarray, "n l"]) -> Float[np.ndarray, "l b"]:
        weighted = (values * w[:, None]).ravel()
        return np.bincount(cell, weighted, minlength=n_labels * bins).reshape(n_labels, bins)

    weight = total(np.ones_like(probabilities))
    with np.errstate(invalid="ignore"):
        return weight, total(probabilities) / weight, total(labels.astype(np.float64)) / weight


METRICS: dict[str, Callable[[Labels, Probabilities, Weights], float]] = {"nll": nll, "brier": brier, "ece": ece}
METRICS |= {f"ece{bins}": partial(ece, bins=bins) for bins in ECE_BINS if bins != 10}
METRICS |= {"auroc": auroc, "auprc": auprc}
"""Every metric by the name it has in results."""


def check_probabilities(labels: Labels, probabilities: Probabilities) -> None:
    """Raise unless labels and probabilities fit together and can be what they say they are."""
    for what, given in (("Labels", labels), ("Probabilities", probabilities)):
        if not isinstance(given, np.ndarray) or given.ndim != 2:
            shape = f"of shape {given.shape}" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
            raise InputError(f"{what} are {shape}; give an array with a row a record and a column a label.")
    if labels.dtype != bool and not np.isin(labels, (0, 1)).all():
        raise InputError("Labels must be 0 or 1 and these are not; labels come first, probabilities second.")
    if labels.shape != probabilities.shape:
        raise InputError(
            f"Labels have shape {labels.shape}, probabilities {probabilities.shape}; they must be the same."
        )
    if probabilities.dtype == bool:
        raise InputError("Probabilities are true or false, as labels are; give numbers from 0 to 1.")
    _check_range(probabilities)


def _check_range(probabilities: Probabilities) -> None:
    if not probabilities.size:
        raise InputError("There are no records to score; choose a role or a selection that has some.")
    low, high = probabilities.min(), probabilities.max()
    if low >= 0 and high <= 1:
        return
    finite = np.isfinite(probabilities)
    if not finite.all():
        row, label = np.argwhere(~finite)[0]
        raise InputError(
            f"The probability of record {row}, label {label}, is {probabilities[row, label]}, not a number."
        )
    worst = low if low < 0 else high
    raise InputError(f"A probability is {worst:g}, outside 0 to 1; are these logits?")


def _checked_weights(weights: Weights, n: int) -> PerRecord:
    if weights is None:
        return np.ones(n)
    if weights.shape != (n,):
        raise InputError(f"There are {n} records but weights of shape {weights.shape}; give one weight a record.")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError("Record weights must be finite, not negative, and not all zero.")
    return weights.astype(np.float64)


def _mean(values: PerRecord, weights: Weights) -> float:
    w = _checked_weights(weights, len(values))
    return float(w @ values / w.sum())


def _by_label(metric: Callable[..., float], labels: Labels, probabilities: Probabilities, weights: Weights) -> PerLabel:
    check_probabilities(labels, probabilities)
    w = _checked_weights(weights, len(labels))
    counted = labels[w > 0]
    values = np.full(labels.shape[1], np.nan)
    for i in np.flatnonzero(counted.any(axis=0) & ~counted.all(axis=0)):
        values[i] = metric(labels[:, i], probabilities[:, i], sample_weight=w)
    return values
