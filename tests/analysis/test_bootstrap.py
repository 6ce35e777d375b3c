from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from analysis.coverage import records_of
from leadwise import metrics
from leadwise.analysis import bootstrap as bootstrap_module
from leadwise.analysis.bootstrap import RESAMPLED, SUM_METRICS, Estimate, PatientBootstrap, simultaneous_intervals
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError

BRUTE = {name: metrics.METRICS[name] for name in SUM_METRICS}


def clustered(seed: int = 5, patients: int = 23) -> tuple[Records, np.ndarray]:
    """Records of patients in no order, and probabilities among which are 0, 1 and edges of bins."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(10_000, patients, replace=False)
    patient = rng.permutation(np.repeat(ids, rng.integers(1, 6, patients)))
    labels = rng.random((len(patient), 3)) < [0.2, 0.5, 0.7]
    p = rng.beta(0.6, 0.8, labels.shape)
    edges = np.array([[0.0, 1.0, 0.3], [0.7, 0.1, 0.6], [1.0, 0.0, 0.2], [0.9, 0.4, 0.8], [0.5, 0.05, 0.75]])
    p[:5] = edges[: len(p)]
    return records_of(patient, labels), p


def drawn_rows(records: Records, role: Records, replicates: int = 1000) -> list[np.ndarray]:
    """The rows of each replicate, as often as their patient was drawn, by dictionaries and a plain loop."""
    everyone = sorted(set(role.patients.tolist()))
    count = len(everyone)
    draws = np.random.default_rng(20270909).multinomial(count, [1 / count] * count, size=replicates)
    result = []
    for draw in draws:
        times = dict(zip(everyone, draw.tolist(), strict=True))
        result.append(np.array([i for i, p in enumerate(records.patients) for _ in range(times[int(p)])], dtype=int))
    return result


def test_multiplicities_are_those_of_the_protocol() -> None:
    records, _ = clustered()
    bootstrap = PatientBootstrap(records)
    assert repr(bootstrap) == f"<PatientBootstrap: 1000 resamples of {len(np.unique(records.patients))} patients>"
    assert bootstrap.patients.tolist() == sorted(set(records.patients.tolist()))
    expected = np.random.default_rng(20270909).multinomial(23, [1 / 23] * 23, size=1000)
    np.testing.assert_array_equal(bootstrap.multiplicities, expected)
    assert bootstrap.sha256 == sha256(expected.astype("<i8").tobytes()).hexdigest()
    with pytest.raises(ValueError, match="read-only"):
        bootstrap.multiplicities[0, 0] = 7


def test_every_replicate_equals_resampling_rows() -> None:
    records, p = clustered()
    estimates = PatientBootstrap(records).metrics(records, records.labels, {"arm": p}, SUM_METRICS)
    rows = drawn_rows(records, records)
    for name, metric in BRUTE.items():
        brute = np.array([metric(records.labels[r], p[r], None) for r in rows])
        estimate = estimates["arm", name]
        np.testing.assert_allclose(estimate.value, metric(records.labels, p, None), rtol=0, atol=1e-12)
        np.testing.assert_allclose(estimate.replicates, brute, rtol=0, atol=1e-12)
        np.testing.assert_allclose(estimate.interval, np.percentile(brute, [2.5, 97.5]), rtol=0, atol=1e-12)
        assert estimate.undefined == 0


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_every_replicate_of_auroc_is_that_of_resampled_rows(decimals: int) -> None:
    """Probabilities tie within and between the two kinds of records; replicates may lack either kind."""
    records, p = clustered(patients=13)
    y, p = records.labels & (np.arange(len(records)) < 9)[:, None], p.round(decimals)
    ties = [np.intersect1d(p[y[:, label], label], p[~y[:, label], label]).size for label in range(3)]
    assert any(ties) == (decimals < 16)
    estimate = PatientBootstrap(records).metrics(records, y, {"arm": p}, ["auroc"])["arm", "auroc"]
    brute = []
    for r in drawn_rows(records, records):
        both = (y[r].any(axis=0) & ~y[r].all(axis=0)).all()
        brute.append(roc_auc_score(y[r], p[r], average="macro") if both else np.nan)
    assert 20 < np.isnan(brute).sum() < 980
    np.testing.assert_allclose(estimate.value, roc_auc_score(y, p, average="macro"), rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.replicates, brute, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.interval, np.nanpercentile(brute, [2.5, 97.5]), rtol=0, atol=1e-12)
    assert estimate.undefined == np.isnan(brute).sum()


def test_auroc_is_the_same_in_whatever_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    records, p = clustered()
    bootstrap = PatientBootstrap(records)
    whole = bootstrap.metrics(records, records.labels, {0: p}, ["auroc"])[0, "auroc"]
    for chunk in (1, 7 * len(records)):
        monkeypatch.setattr(bootstrap_module, "CHUNK", chunk)
        portions = bootstrap.metrics(records, records.labels, {0: p}, ["auroc"])[0, "auroc"]
        np.testing.assert_array_equal(portions.replicates, whole.replicates)


def test_a_label_that_nobody_has_leaves_no_auroc() -> None:
    records, p = clustered()
    y = records.labels & [True, True, False]
    estimate = PatientBootstrap(records).metrics(records, y, {0: p}, ["auroc"])[0, "auroc"]
    assert np.isnan(estimate.value)
    assert estimate.undefined == 1000


def test_bins_matter() -> None:
    records, p = clustered()
    estimates = PatientBootstrap(records).metrics(records, records.labels, {0: p}, SUM_METRICS)
    values = [estimates[0, name].value for name in ("ece5", "ece", "ece15", "ece20")]
    assert len(set(np.round(values, 6))) == 4


def test_each_arm_may_have_its_own_metrics() -> None:
    records, p = clustered()
    bootstrap = PatientBootstrap(records)
    wanted = {"a": ["nll"], "b": ["brier", "ece5"]}
    some = bootstrap.metrics(records, records.labels, {"a": p, "b": 1 - p}, wanted)
    assert set(some) == {("a", "nll"), ("b", "brier"), ("b", "ece5")}
    for key, estimate in some.items():
        alone = bootstrap.metrics(records, records.labels, {0: p if key[0] == "a" else 1 - p}, [key[1]])[0, key[1]]
        np.testing.assert_allclose(estimate.replicates, alone.replicates, rtol=0, atol=1e-12)


def test_statistic_equals_resampling_rows() -> None:
    records, p = clustered()

    def ratio(means: np.ndarray) -> np.ndarray:
        return means[:, 0] / means[:, 1] ** 2

    estimate = PatientBootstrap(records).statistic(records, p[:, :2], ratio)
    brute = [p[r, 0].mean() / p[r, 1].mean() ** 2 for r in drawn_rows(records, records)]
    np.testing.assert_allclose(estimate.value, p[:, 0].mean() / p[:, 1].mean() ** 2, rtol=1e-12)
    np.testing.assert_allclose(estimate.replicates, brute, rtol=1e-11)


def test_patient_sums_by_hand() -> None:
    records, p = clustered()
    sums = PatientBootstrap(records).patient_sums(records.patients, p)
    for patient, row in zip(sorted(set(records.patients.tolist())), sums, strict=True):
        np.testing.assert_allclose(row, p[records.patients == patient].sum(axis=0), rtol=0, atol=1e-12)


def test_a_part_of_the_role_keeps_the_clusters_of_the_role() -> None:
    role, p = clustered()
    bootstrap = PatientBootstrap(role)
    keep = np.flatnonzero(role.patients != role.patients.min())[::2]
    part = role.select(keep)
    estimate = bootstrap.metrics(part, part.labels, {"arm": p[keep]}, ["nll"])["arm", "nll"]
    brute = [metrics.nll(part.labels[r], p[keep][r]) for r in drawn_rows(part, role)]
    np.testing.assert_allclose(estimate.replicates, brute, rtol=0, atol=1e-12)
    mean = bootstrap.statistic(part, p[keep][:, :1], lambda means: means[:, 0])
    np.testing.assert_allclose(mean.replicates, [p[keep][r, 0].mean() for r in drawn_rows(part, role)], rtol=1e-11)
    own = PatientBootstrap(part).metrics(part, part.labels, {"arm": p[keep]}, ["nll"])["arm", "nll"]
    assert np.abs(estimate.replicates - own.replicates).max() > 1e-3


@pytest.mark.parametrize("stranger", [-1, 5, 10_001])
def test_a_stranger_is_refused(stranger: int) -> None:
    bootstrap = PatientBootstrap(records_of(np.array([2, 7, 10_000]), np.ones((3, 1), dtype=bool)))
    with pytest.raises(InputError, match=f"Patient {stranger} is not among the patients that were resampled"):
        bootstrap.cluster(np.array([7, stranger, 2]))


def test_one_patient_is_refused() -> None:
    records = records_of(np.array([4, 4, 4]), np.ones((3, 2), dtype=bool))
    with pytest.raises(InputError, match="has 1 patient; resampling patients needs at least two"):
        PatientBootstrap(records)


@pytest.mark.parametrize("metric", ["auprc", "accuracy"])
def test_metrics_without_an_interval_are_refused(metric: str) -> None:
    records, p = clustered()
    with pytest.raises(InputError, match=f"'{metric}' has no patient-cluster interval; these have: nll, brier"):
        PatientBootstrap(records).metrics(records, records.labels, {"arm": p}, [metric])


def test_what_are_no_probabilities_is_refused() -> None:
    records, p = clustered()
    for metric in RESAMPLED:
        with pytest.raises(InputError, match="outside 0 to 1; are these logits"):
            PatientBootstrap(records).metrics(records, records.labels, {"arm": 3 * p}, [metric])


def test_undefined_replicates_are_counted_and_left_out() -> None:
    role = records_of(np.arange(4), np.array([[True], [False], [True], [False]]))
    bootstrap = PatientBootstrap(role)
    part = role.select(np.array([0, 2]))
    p = np.array([[0.9], [0.4]])
    undrawn = (bootstrap.multiplicities[:, [0, 2]] == 0).all(axis=1)
    assert 20 < undrawn.sum() < 120  # (1/2)⁴ of a thousand
    for name in SUM_METRICS:
        estimate = bootstrap.metrics(part, part.labels, {"arm": p}, [name])["arm", name]
        np.testing.assert_array_equal(np.isnan(estimate.replicates), undrawn)
        assert estimate.undefined == undrawn.sum()
        np.testing.assert_array_equal(estimate.interval, np.percentile(estimate.replicates[~undrawn], [2.5, 97.5]))
    mean = bootstrap.statistic(part, p, lambda means: means[:, 0])
    assert mean.undefined == undrawn.sum()


def test_no_defined_replicate_gives_no_interval() -> None:
    nothing = Estimate(1.0, np.full(10, np.nan))
    assert np.isnan(nothing.interval).all()
    assert nothing.undefined == 10
    low, high = simultaneous_intervals([nothing, Estimate(0.0, np.arange(10.0))])
    assert np.isnan([low, high]).all()


def test_differences_are_paired() -> None:
    records, p = clustered()
    q = np.clip(p + 0.03 * np.sin(np.arange(p.size)).reshape(p.shape), 0.01, 0.99)
    estimates = PatientBootstrap(records).metrics(records, records.labels, {"a": p, "b": q}, ["brier"])
    difference = estimates["a", "brier"] - estimates["b", "brier"]
    rows = drawn_rows(records, records)
    y = records.labels
    brute = [metrics.brier(y[r], p[r]) - metrics.brier(y[r], q[r]) for r in rows]
    np.testing.assert_allclose(difference.replicates, brute, rtol=0, atol=1e-12)
    np.testing.assert_allclose(difference.interval, np.percentile(brute, [2.5, 97.5]), rtol=0, atol=1e-12)
    width = np.subtract(*difference.interval[::-1])
    assert width < 0.5 * np.subtract(*estimates["a", "brier"].interval[::-1])


def test_arms_that_agree_differ_by_exactly_zero_wherever_they_stand() -> None:
    records, p = clustered(patients=301)
    bootstrap = PatientBootstrap(records)
    for between in range(6):  # the kernels of a matrix product treat its last columns apart
        others = {i: np.clip(p + i / 100, 0, 1) for i in range(1, between + 1)}
        for name in RESAMPLED:
            arms = {0: p, **others, "again": p.copy()}
            estimates = bootstrap.metrics(records, records.labels, arms, [name])
            difference = estimates["again", name] - estimates[0, name]
            assert difference.value == 0
            assert not difference.replicates.any()
            assert all(estimates[i, name].value != estimates[0, name].value for i in others)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_neither_order_nor_duplication_matters(seed: int, patients: int) -> None:
    records, p = clustered(seed, patients)
    y, n = records.labels, len(records)
    order = np.random.default_rng(seed).permutation(n)
    twice = np.repeat(np.arange(n), 2)
    before = PatientBootstrap(records, 200).metrics(records, y, {"arm": p}, RESAMPLED)
    for rows in (order, twice, twice[::-1]):
        other = records_of(records.patients[rows], y[rows])
        after = PatientBootstrap(other, 200).metrics(other, y[rows], {"arm": p[rows]}, RESAMPLED)
        for key, estimate in before.items():
            np.testing.assert_allclose(after[key].value, estimate.value, rtol=0, atol=1e-12)
            np.testing.assert_allclose(after[key].replicates, estimate.replicates, rtol=0, atol=1e-12)


def test_duplicating_the_records_of_one_patient_does_matter() -> None:
    records, p = clustered()
    rows = np.concatenate([np.arange(len(records)), np.flatnonzero(records.patients == records.patients[0])])
    other = records_of(records.patients[rows], records.labels[rows])
    before = PatientBootstrap(records).metrics(records, records.labels, {"arm": p}, ["nll"])["arm", "nll"]
    after = PatientBootstrap(other).metrics(other, other.labels, {"arm": p[rows]}, ["nll"])["arm", "nll"]
    assert abs(before.value - after.value) > 1e-4


def family(cells: int, correlation: float, seed: int = 0) -> list[Estimate]:
    rng = np.random.default_rng(seed)
    common, scale = rng.standard_normal((1000, 1)), np.linspace(0.5, 3, cells)
    noise = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.standard_normal((1000, cells))
    values = np.arange(cells) / 7
    return [Estimate(float(v), v + s * z) for v, s, z in zip(values, scale, noise.T, strict=True)]


def max_t(estimates: list[Estimate]) -> tuple[float, list[float]]:
    """The critical value and the deviations, replicate by replicate."""
    deviations = [float(np.std(e.replicates, ddof=1)) for e in estimates]
    largest = [
        max(abs(e.replicates[r] - e.value) / s for e, s in zip(estimates, deviations, strict=True))
        for r in range(len(estimates[0].replicates))
    ]
    return float(np.percentile(largest, 95)), deviations


@pytest.mark.parametrize("cells", [1, 2, 30])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_simultaneous_intervals_are_max_t(cells: int, correlation: float) -> None:
    estimates = family(cells, correlation)
    low, high = simultaneous_intervals(estimates)
    critical, deviations = max_t(estimates)
    for j, estimate in enumerate(estimates):
        np.testing.assert_allclose(
            (low[j], high[j]), (estimate.value - critical * deviations[j], estimate.value + critical * deviations[j])
        )
        assert low[j] < estimate.value < high[j]
        if cells > 1:
            assert high[j] - estimate.value > 1.96 * deviations[j]
    assert critical < 3.4  # Bonferroni over 30 cells is 3.14
    if cells == 30:
        independent, _ = max_t(family(30, 0.0))
        assert critical == independent if correlation == 0 else critical < independent - 0.2


def test_simultaneous_intervals_hold_all_cells_in_95_percent_of_replicates() -> None:
    estimates = family(12, 0.5)
    low, high = simultaneous_intervals(estimates)
    replicates = np.stack([e.replicates for e in estimates], axis=1)
    assert ((replicates >= low) & (replicates <= high)).all(axis=1).mean() == 0.95


def test_estimates_that_never_vary_have_no_width_and_change_nothing() -> None:
    estimates = family(3, 0.3)
    constant = Estimate(0.3, np.full(1000, 0.3))
    low, high = simultaneous_intervals([*estimates, constant])
    assert low[-1] == high[-1] == 0.3
    np.testing.assert_array_equal((low[:-1], high[:-1]), simultaneous_intervals(estimates))
    assert simultaneous_intervals([Estimate(0.0, np.zeros(1000))]) == (np.array([0.0]), np.array([0.0]))


def test_a_replicate_that_is_undefined_in_one_cell_is_left_out_of_all() -> None:
    a, b = family(2, 0.2)
    holes = b.replicates.copy()
    holes[::9] = np.nan
    keep = ~np.isnan(holes)
    expected = simultaneous_intervals([Estimate(e.value, e.replicates[keep]) for e in (a, b)])
    np.testing.assert_array_equal(simultaneous_intervals([a, Estimate(b.value, holes)]), expected)
