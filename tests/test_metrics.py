"""Every metric against an implementation that knows nothing of ours."""

from collections.abc import Callable
from typing import Any

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binned_statistic, entropy
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from leadwise import metrics
from leadwise.errors import InputError
from leadwise.metrics import (
    CLIP,
    ECE_BINS,
    METRICS,
    auprc,
    auroc,
    bin_of,
    brier,
    calibration_in_the_large,
    calibration_line,
    ece,
    label_auprc,
    label_auroc,
    label_ece,
    nll,
    predictive_entropy,
    probability_variance,
    record_brier,
    record_entropy,
    record_nll,
    reliability,
)

Case = tuple[np.ndarray, np.ndarray, np.ndarray]

OF_LABELS: dict[str, Callable[..., Any]] = METRICS | {
    "label_ece": label_ece,
    "label_auroc": label_auroc,
    "label_auprc": label_auprc,
    "calibration_in_the_large": calibration_in_the_large,
    "calibration_line": calibration_line,
    "reliability": reliability,
}
"""Everything that takes labels, probabilities and weights."""

OF_PROBABILITIES: dict[str, Callable[..., Any]] = {
    "probability_variance": probability_variance,
    "predictive_entropy": predictive_entropy,
}
"""Everything that takes probabilities and weights."""


def make_case(seed: int, n: int = 300, n_labels: int = 4) -> Case:
    """Labels that follow the probabilities loosely, with ties among these, and weights."""
    rng = np.random.default_rng(seed)
    truth = expit(rng.normal(-0.5, 1.5, (n, n_labels)))
    p = expit(0.7 * logit(truth) + 0.4 + 0.5 * rng.normal(size=(n, n_labels)))
    p[::3] = p[::3].round(2)
    return rng.random((n, n_labels)) < truth, p, rng.gamma(1.0, 1.0, n)


@pytest.fixture(params=range(5))
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(request.param)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user meets, for whom shapes are not checked at the door."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def by_label(metric: Callable[..., float], case: Case, *, weighted: bool, **options: Any) -> np.ndarray:
    y, p, w = case
    weights = w if weighted else None
    return np.array([metric(y[:, i], p[:, i], sample_weight=weights, **options) for i in range(y.shape[1])])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (nll, lambda *args, **kwargs: log_loss(*args, labels=[0, 1], **kwargs)),
        (brier, brier_score_loss),
        (auroc, roc_auc_score),
        (auprc, average_precision_score),
    ],
    ids=["nll", "brier", "auroc", "auprc"],
)
def test_agrees_with_scikit_learn_label_by_label(
    case: Case, ours: Callable[..., float], theirs: Callable[..., float], weighted: bool
) -> None:
    y, p, w = case
    expected = by_label(theirs, case, weighted=weighted).mean()
    assert ours(y, p, w if weighted else None) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_auroc_is_the_share_of_pairs_in_the_right_order(case: Case, weighted: bool) -> None:
    y, p, w = case
    w = w if weighted else np.ones(len(w))
    for i, ours in enumerate(label_auroc(y, p, w)):
        positive, negative = np.flatnonzero(y[:, i]), np.flatnonzero(~y[:, i])
        wins = total = 0.0
        for one in positive:
            weight = w[one] * w[negative]
            wins += (weight * ((p[one, i] > p[negative, i]) + 0.5 * (p[one, i] == p[negative, i]))).sum()
            total += weight.sum()
        assert ours == pytest.approx(wins / total, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_records_add_up_to_the_metric(case: Case, weighted: bool) -> None:
    y, p, w = case
    weights = w if weighted else None
    for each, metric in ((record_nll, nll), (record_brier, brier)):
        assert np.average(each(y, p), weights=weights) == pytest.approx(metric(y, p, weights), rel=1e-12)
    for row in range(5):
        assert record_nll(y, p)[row] == pytest.approx(log_loss(y[row], p[row], labels=[0, 1]), rel=1e-12)
        assert record_brier(y, p)[row] == pytest.approx(brier_score_loss(y[row], p[row]), rel=1e-12)


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one")
def test_scikit_learn_reads_the_whole_matrix_otherwise(case: Case) -> None:
    """Why the comparison above goes label by label."""
    y, p, _ = case
    assert brier_score_loss(y, p) != pytest.approx(brier(y, p), rel=0.1)


def test_nll_is_clipped_and_nothing_else_is() -> None:
    y, p = np.array([[True, False]]), np.array([[0.0, 1.0]])
    assert nll(y, p) == pytest.approx(-np.log(CLIP), rel=1e-5)
    assert nll(y, 1 - p) == pytest.approx(0, abs=1e-11)
    assert brier(y, p) == 1
    assert ece(y, p) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_single_precision_is_clipped_too(dtype: type) -> None:
    """In float32, 1 − 1e-12 is 1, whose complement has no logarithm."""
    y, p = np.array([[True, False], [False, True]]), np.array([[0, 1], [0.25, 0.5]], dtype=dtype)
    assert nll(y, p) == nll(y, p.astype(np.float64))
    assert brier(y, p) == pytest.approx(brier(y, p.astype(np.float64)), rel=1e-3)
    assert np.isfinite(calibration_in_the_large(y, p)).all()


@pytest.mark.parametrize("bins", ECE_BINS)
@pytest.mark.parametrize("weighted", [False, True])
def test_ece_agrees_with_binned_statistic(case: Case, bins: int, weighted: bool) -> None:
    y, p, w = case
    p = p + 1e-9  # off the edges, where binned_statistic rounds otherwise
    w = w if weighted else np.ones(len(w))
    expected = []
    for i in range(y.shape[1]):
        gap = binned_statistic(p[:, i], w * (y[:, i] - p[:, i]), "sum", bins, (0, 1)).statistic
        expected.append(np.abs(gap).sum() / w.sum())
    np.testing.assert_allclose(label_ece(y, p, w, bins), expected, rtol=1e-12)
    assert ece(y, p, w, bins) == pytest.approx(np.mean(expected), rel=1e-12)


@pytest.mark.parametrize("bins", ECE_BINS)
def test_ece_agrees_with_torchmetrics(bins: int) -> None:
    torch = pytest.importorskip("torch")
    classification = pytest.importorskip("torchmetrics.functional.classification")
    rng = np.random.default_rng(bins)
    # inside the bins and below 1, which torchmetrics gives a bin of its own; it computes in single precision
    p = (rng.integers(0, bins, (2000, 3)) + rng.uniform(0.01, 0.99, (2000, 3))) / bins
    y = rng.random(p.shape) < p**1.5
    theirs = [
        classification.binary_calibration_error(
            torch.from_numpy(p[:, i].copy()), torch.from_numpy(y[:, i].astype(np.int64)), n_bins=bins, norm="l1"
        ).item()
        for i in range(3)
    ]
    np.testing.assert_allclose(label_ece(y, p, bins=bins), theirs, atol=2e-6)


def test_each_name_has_its_number_of_bins(case: Case) -> None:
    y, p, w = case
    for bins in ECE_BINS:
        assert METRICS["ece" if bins == 10 else f"ece{bins}"](y, p, w) == ece(y, p, w, bins)
    assert len({METRICS[name](y, p, w) for name in METRICS}) == len(METRICS) == 8


@pytest.mark.parametrize("bins", ECE_BINS)
def test_bins_at_their_edges(bins: int) -> None:
    edges = np.arange(bins + 1) / bins
    np.testing.assert_array_equal(bin_of(edges, bins), [*range(bins), bins - 1])
    np.testing.assert_array_equal(bin_of(np.nextafter(edges[1:], 0) - 1e-12, bins), range(bins))
    np.testing.assert_array_equal(
        bin_of(np.array([0.0, 5e-324, np.nextafter(1, 0), 1.0]), bins), [0, 0, bins - 1, bins - 1]
    )


@given(arrays(np.float64, 20, elements=st.floats(0, 1)), st.sampled_from(ECE_BINS))
def test_bins_hold_what_lies_in_them(p: np.ndarray, bins: int) -> None:
    at = bin_of(p, bins)
    assert ((at >= 0) & (at < bins)).all()
    assert (at <= p * bins).all()
    assert ((p * bins < at + 1) | (at == bins - 1)).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [3, 10])
def test_reliability_agrees_with_binned_statistic(case: Case, bins: int, weighted: bool) -> None:
    y, p, w = case
    p = 0.8 * p + 1e-9  # the last bins stay empty
    w = w if weighted else np.ones(len(w))
    weight, confidence, frequency = reliability(y, p, w, bins)
    assert weight.shape == confidence.shape == frequency.shape == (y.shape[1], bins)
    for i in range(y.shape[1]):

        def total(values: np.ndarray, at: np.ndarray = p[:, i]) -> np.ndarray:
            return binned_statistic(at, w * values, "sum", bins, (0, 1)).statistic

        filled = total(np.ones(len(w))) > 0
        np.testing.assert_allclose(weight[i], total(np.ones(len(w))), rtol=1e-12)
        np.testing.assert_allclose(confidence[i][filled], total(p[:, i])[filled] / weight[i][filled], rtol=1e-12)
        np.testing.assert_allclose(frequency[i][filled], total(y[:, i])[filled] / weight[i][filled], atol=1e-12)
        assert np.isnan(confidence[i][~filled]).all()
        assert np.isnan(frequency[i][~filled]).all()
    if bins == 10:
        assert np.isnan(confidence).any()
    # the curve holds the error: shares times distances
    gap = np.nansum(weight * np.abs(frequency - confidence), axis=1) / w.sum()
    np.testing.assert_allclose(gap, label_ece(y, p, w, bins), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_agrees_with_statsmodels(case: Case, weighted: bool) -> None:
    sm = pytest.importorskip("statsmodels.api")
    y, p, w = case
    weights = w if weighted else np.ones(len(w))
    intercepts, slopes = calibration_line(y, p, weights if weighted else None)
    in_the_large = calibration_in_the_large(y, p, weights if weighted else None)
    for i in range(y.shape[1]):
        x, target = logit(p[:, i]), y[:, i].astype(float)
        options = {"family": sm.families.Binomial(), "freq_weights": weights}
        alone = sm.GLM(target, np.ones((len(x), 1)), offset=x, **options).fit(tol=1e-14, maxiter=100)
        line = sm.GLM(target, sm.add_constant(x), **options).fit(tol=1e-14, maxiter=100)
        assert in_the_large[i] == pytest.approx(alone.params[0], abs=1e-10)
        assert intercepts[i] == pytest.approx(line.params[0], abs=1e-10)
        assert slopes[i] == pytest.approx(line.params[1], abs=1e-10)


@given(
    st.integers(0, 2**32 - 1),
    st.floats(-15, 15),
    st.floats(0.001, 5),
    st.integers(1, 59),
)
def test_the_intercept_is_found_however_far_it_lies(seed: int, centre: float, spread: float, positives: int) -> None:
    """It exists whenever both outcomes do. Its equation has one root, which bisection finds; Newton alone may not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(centre, spread, 60).clip(-25, 25)
    y, w = np.arange(60) < positives, rng.gamma(1.0, 1.0, 60) + 0.01
    p = expit(x)
    root = brentq(lambda a: w @ (y - expit(a + logit(p))), -60, 60, xtol=1e-14)
    assert calibration_in_the_large(y[:, None], p[:, None], w)[0] == pytest.approx(root, abs=1e-8)


def test_the_intercept_is_found_from_wherever_it_is_sought() -> None:
    """With one probability for all it is logit(share) − logit(p); whole steps of Newton may go round in circles."""
    positives, centre = (grid.ravel() for grid in np.meshgrid(np.arange(1, 20), np.linspace(-12, 12, 49)))
    y = np.arange(20)[:, None] < positives
    p = np.tile(expit(centre), (20, 1))
    np.testing.assert_allclose(calibration_in_the_large(y, p), logit(positives / 20) - centre, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.floats(-10, 10), st.floats(0.01, 3))
def test_a_line_solves_its_equations(seed: int, centre: float, spread: float) -> None:
    """At the maximum the residuals sum to zero, and so do their products with the logits."""
    rng = np.random.default_rng(seed)
    x = rng.normal(centre, spread, 200)
    y = (rng.random(200) < expit((x - centre) / spread))[:, None]
    p = expit(x)[:, None]
    intercept, slope = calibration_line(y, p)
    assert np.isfinite(slope).all()
    residual = y - expit(intercept + slope * logit(p))
    assert abs(residual.sum()) < 1e-7
    assert abs((residual * (x - centre)[:, None]).sum()) < 1e-7 * max(1, spread)


def test_what_is_calibrated_has_intercept_zero_and_slope_one() -> None:
    p = np.repeat([0.2, 0.5, 0.75], 20)[:, None]
    y = np.concatenate([np.arange(20) < share * 20 for share in (0.2, 0.5, 0.75)])[:, None]
    np.testing.assert_allclose(calibration_in_the_large(y, p), 0, atol=1e-12)
    np.testing.assert_allclose(np.array(calibration_line(y, p)), [[0], [1]], atol=1e-12)
    np.testing.assert_allclose(calibration_in_the_large(y, expit(logit(p) - 2)), 2, rtol=1e-10)
    np.testing.assert_allclose(np.array(calibration_line(y, expit(2 * logit(p) + 1))), [[-0.5], [0.5]], rtol=1e-10)
    assert ece(y, p) == pytest.approx(0, abs=1e-12)


def test_no_line_is_missing_and_not_a_number() -> None:
    p = np.linspace(0.05, 0.95, 20)[:, None]
    for y in (p > 0.5, p < 0.5, np.zeros_like(p, dtype=bool), np.ones_like(p, dtype=bool)):
        assert np.isnan(calibration_line(y, p)).all()
    for y in (np.zeros_like(p, dtype=bool), np.ones_like(p, dtype=bool)):
        assert np.isnan(calibration_in_the_large(y, p)).all()
    assert np.isfinite(calibration_in_the_large(p > 0.5, p)).all()
    certain = (p > 0.5).astype(float)
    assert np.isnan(calibration_line(p > 0.5, certain)).all()
    for same in (0.5, 0.3, 0.0, 1.0):  # one probability for all: any slope does
        assert np.isnan(calibration_line(p > 0.6, np.full_like(p, same))).all()
    # a label without a line does not take the others with it
    y = np.hstack([p > 0.5, np.arange(20)[:, None] % 3 == 0])
    assert list(np.isnan(calibration_line(y, np.hstack([p, p]))[1])) == [True, False]


def test_a_label_that_never_occurs_has_no_area() -> None:
    y, p, w = make_case(1)
    y[:, 1], y[:, 2] = False, True
    for of_labels, macro in ((label_auroc, auroc), (label_auprc, auprc)):
        assert list(np.isnan(of_labels(y, p, w))) == [False, True, True, False]
        assert np.isnan(macro(y, p, w))
        assert np.isfinite(of_labels(y[:, [0, 3]], p[:, [0, 3]], w)).all()
    for name in ("nll", "brier", "ece"):
        assert np.isfinite(METRICS[name](y, p, w))


def test_a_label_that_occurs_only_without_weight_has_no_area() -> None:
    y, p, w = make_case(2, n_labels=1)
    w[y[:, 0]] = 0
    assert np.isnan(auroc(y, p, w))
    assert np.isnan(auprc(y, p, w))


@pytest.mark.parametrize("weighted", [False, True])
def test_variance_and_entropy(case: Case, weighted: bool) -> None:
    _, p, w = case
    p[0] = [0, 1, 0, 1]
    if weighted:
        pooled = np.repeat(w, p.shape[1])
        mean = np.average(p.ravel(), weights=pooled)
        variance = np.average((p.ravel() - mean) ** 2, weights=pooled)
    else:
        variance = p.var()
    binary = entropy(np.stack([p, 1 - p]), axis=0)
    assert probability_variance(p, w if weighted else None) == pytest.approx(variance, rel=1e-12)
    np.testing.assert_allclose(record_entropy(p), binary.mean(axis=1), rtol=1e-12)
    expected = np.average(binary.mean(axis=1), weights=w if weighted else None)
    assert predictive_entropy(p, w if weighted else None) == pytest.approx(expected, rel=1e-12)


def test_entropy_at_its_ends() -> None:
    assert predictive_entropy(np.array([[0.0, 1.0]])) == 0
    assert predictive_entropy(np.full((3, 2), 0.5)) == pytest.approx(np.log(2), rel=1e-15)


# properties ----------------------------------------------------------------------------------------------------------

some_probability = st.one_of(st.floats(0, 1), st.integers(0, 20).map(lambda i: i / 20))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any labels, probabilities and whole weights; ties, edges and labels that never occur among them."""
    n, n_labels = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    y = draw(arrays(np.bool_, (n, n_labels)))
    p = draw(arrays(np.float64, (n, n_labels), elements=some_probability))
    w = draw(arrays(np.int64, n, elements=st.integers(0, 3)).filter(np.any))
    return y, p, w


def same(one: object, other: object) -> None:
    np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-11, atol=1e-12)


def everything(y: np.ndarray, p: np.ndarray, w: np.ndarray | None) -> list[object]:
    of_labels = [*METRICS.values(), label_ece, label_auroc, label_auprc, reliability]
    return [f(y, p, w) for f in of_labels] + [f(p, w) for f in OF_PROBABILITIES.values()]


few = settings(max_examples=25)


@few
@given(cases())
def test_weights_of_one_change_nothing(case: Case) -> None:
    y, p, _ = case
    for without, with_ones in zip(everything(y, p, None), everything(y, p, np.ones(len(y))), strict=True):
        same(without, with_ones)


@few
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_records_changes_nothing(case: Case, random: Any) -> None:
    y, p, w = case
    order = np.array(random.sample(range(len(y)), len(y)))
    for before, after in zip(everything(y, p, w), everything(y[order], p[order], w[order]), strict=True):
        same(before, after)


@few
@given(cases())
def test_a_weight_of_two_is_the_record_twice(case: Case) -> None:
    y, p, w = case
    often = np.repeat(np.arange(len(y)), w)
    for weighted, repeated in zip(everything(y, p, w), everything(y[often], p[often], None), strict=True):
        same(weighted, repeated)


@few
@given(cases(), st.floats(0.01, 100))
def test_only_the_proportions_of_weights_matter(case: Case, factor: float) -> None:
    y, p, w = case
    for name in METRICS:
        same(METRICS[name](y, p, w), METRICS[name](y, p, factor * w))


@few
@given(st.integers(0, 2**32 - 1))
def test_calibration_takes_weights_as_repetitions(seed: int) -> None:
    y, p, _ = make_case(seed, n=80, n_labels=1)
    w = np.random.default_rng(seed).integers(0, 4, 80)
    often = np.repeat(np.arange(80), w)
    for fit in (calibration_in_the_large, calibration_line):
        np.testing.assert_allclose(np.array(fit(y, p, w)), np.array(fit(y[often], p[often])), rtol=1e-7, atol=1e-8)


@few
@given(cases())
def test_bounds(case: Case) -> None:
    y, p, w = case
    assert 0 <= nll(y, p, w) <= -np.log(CLIP) + 1e-4
    assert 0 <= ece(y, p, w) <= 1 + 1e-12
    # |E(y − p)|² ≤ E(y − p)², bin by bin
    assert ece(y, p, w) ** 2 <= brier(y, p, w) + 1e-12
    assert 0 <= probability_variance(p, w) <= 0.25 + 1e-12
    assert 0 <= predictive_entropy(p, w) <= np.log(2) + 1e-12


# bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OF_LABELS, *OF_PROBABILITIES])
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.nan, r"^The probability of record 7, label 1, is nan, not a number\.$"),
        (np.inf, r"^The probability of record 7, label 1, is inf, not a number\.$"),
        (-np.inf, r"^The probability of record 7, label 1, is -inf, not a number\.$"),
        (1.5, r"^A probability is 1\.5, outside 0 to 1; are these logits\?$"),
        (-0.25, r"^A probability is -0\.25, outside 0 to 1; are these logits\?$"),
    ],
)
def test_what_is_no_probability(name: str, value: float, sentence: str) -> None:
    y, p, _ = make_case(3, n=20)
    p[7, 1] = value
    with pytest.raises(InputError, match=sentence):
        OF_LABELS[name](y, p, None) if name in OF_LABELS else OF_PROBABILITIES[name](p, None)


@pytest.mark.parametrize("of_record", [record_nll, record_brier])
def test_what_is_no_probability_of_a_record(of_record: Callable[..., Any]) -> None:
    y, p, _ = make_case(3, n=20)
    p[7, 1] = 2
    with pytest.raises(InputError, match=r"A probability is 2, outside 0 to 1"):
        of_record(y, p)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", OF_LABELS)
def test_shapes_that_disagree(name: str) -> None:
    y, p, _ = make_case(3, n=20)
    for wrong in (p[:-1], p[:, :-1]):
        with pytest.raises(
            InputError, match=r"^Labels have shape \(20, 4\), probabilities \(.*\); they must be the same"
        ):
            OF_LABELS[name](y, wrong, None)


@pytest.mark.parametrize("name", [*OF_LABELS, *OF_PROBABILITIES])
def test_no_records(name: str) -> None:
    y, p = np.empty((0, 3), dtype=bool), np.empty((0, 3))
    with pytest.raises(InputError, match=r"^There are no records to score; choose a role or a selection that has some"):
        OF_LABELS[name](y, p, None) if name in OF_LABELS else OF_PROBABILITIES[name](p, None)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", [*OF_LABELS, *OF_PROBABILITIES])
@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(19), r"^There are 20 records but weights of shape \(19,\); give one weight a record\.$"),
        (np.ones((20, 1)), r"^There are 20 records but weights of shape \(20, 1\); give one weight a record\.$"),
        (np.r_[-1.0, np.ones(19)], r"^Record weights must be finite, not negative, and not all zero\.$"),
        (np.r_[np.nan, np.ones(19)], r"^Record weights must be finite"),
        (np.r_[np.inf, np.ones(19)], r"^Record weights must be finite"),
        (np.zeros(20), r"not all zero\.$"),
    ],
    ids=["too few", "a matrix", "negative", "nan", "infinite", "zero"],
)
def test_bad_weights(name: str, weights: np.ndarray, sentence: str) -> None:
    y, p, _ = make_case(3, n=20)
    with pytest.raises(InputError, match=sentence):
        OF_LABELS[name](y, p, weights) if name in OF_LABELS else OF_PROBABILITIES[name](p, weights)


def test_nothing_handed_over_is_changed(case: Case) -> None:
    y, p, w = case
    before = [array.copy() for array in case]
    for array in case:
        array.flags.writeable = False
    everything(y, p, w)
    calibration_line(y, p, w)
    calibration_in_the_large(y, p, w)
    for array, copy in zip(case, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_no_metric_is_left_out() -> None:
    public = {
        name
        for name, thing in vars(metrics).items()
        if callable(thing) and getattr(thing, "__module__", "") == metrics.__name__ and not name.startswith("_")
    }
    helpers = {"bin_of", "check_probabilities", "record_nll", "record_brier", "record_entropy"}
    assert public == {*OF_LABELS, *OF_PROBABILITIES} - {"ece5", "ece15", "ece20"} | helpers


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.usefixtures("unchecked")
def test_swapped_arguments_are_refused(name: str) -> None:
    rng = np.random.default_rng(0)
    y, p = rng.random((50, 3)) < 0.5, rng.random((50, 3))
    metric = METRICS[name]
    assert np.isfinite(metric(y, p, None))
    assert metric(y.astype(int), p, None) == metric(y.astype(float), p, None) == metric(y, p, None)
    with pytest.raises(
        InputError, match=r"^Labels must be 0 or 1 and these are not; labels come first, probabilities s"
    ):
        metric(p, y, None)  # type: ignore[arg-type]
    for other, said in (
        (y.tolist(), r"^Labels are a list; give an array with a row a record and a column a label\.$"),
        (y[:, 0], r"^Labels are of shape \(50,\); give an array with a row a record and a column a label\.$"),
        (None, r"^Labels are a NoneType; give"),
    ):
        with pytest.raises(InputError, match=said):
            metric(other, p, None)
    with pytest.raises(InputError, match=r"^Probabilities are a list; give"):
        metric(y, p.tolist(), None)
    with pytest.raises(InputError, match=r"^Probabilities are true or false, as labels are; give numbers from 0 to 1"):
        metric(y, y, None)  # type: ignore[arg-type]
