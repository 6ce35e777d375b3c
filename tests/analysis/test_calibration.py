import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from analysis.coverage import Reader, varied_records
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.calibration import calibration_frame, reliability_frame
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation

COLUMNS = "role policy versus evaluator reference_metric k statistic label value lo hi undefined"
REPLICATES = 80
FIXED = LeadSet.parse("III aVR V2")
POLICIES = ("mga", "ccga")


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(patients=60, seed=4)


def allocation_of(records: Records, policy: str) -> Allocation:
    order = np.random.default_rng(POLICIES.index(policy)).random((len(records), 12)).argsort(axis=1)[:, :3]
    return Allocation(records, policy, "first", order)


@pytest.fixture(scope="module")
def arms(records: Records) -> dict[str, np.ndarray]:
    """Probabilities straight from the evaluator."""
    masks = {policy: allocation_of(records, policy).masks for policy in POLICIES}
    masks["reference"] = np.tile(FIXED.mask, (len(records), 1))
    answers = {}
    for name, mask in masks.items():
        signals = records.signals.millivolts(slice(None))
        signals[~mask] = 0
        answers[name] = Reader("second").probabilities(signals, mask)
    return answers


@pytest.fixture(scope="module")
def frame(records: Records) -> pd.DataFrame:
    readings = Readings(records, [Reader("second")], PatientBootstrap(records, REPLICATES))
    return calibration_frame(readings, "second", [allocation_of(records, policy) for policy in POLICIES], FIXED)


@pytest.fixture(scope="module")
def rows(records: Records) -> list[np.ndarray]:
    """The rows that each replicate has drawn, repeated."""
    everyone = np.array(sorted(set(records.patients.tolist())))
    draws = np.random.default_rng(20270909).multinomial(len(everyone), [1 / len(everyone)] * len(everyone), REPLICATES)
    times = draws[:, np.searchsorted(everyone, records.patients)]
    return [np.repeat(np.arange(len(records)), each) for each in times]


def entry(frame: pd.DataFrame, policy: str, statistic: str, label: str = "", versus: str = "") -> pd.Series:
    found = frame[
        (frame["policy"] == policy)
        & (frame["statistic"] == statistic)
        & (frame["label"] == label)
        & (frame["versus"] == versus)
    ]
    assert len(found) == 1
    return found.iloc[0]


def binned_error(y: np.ndarray, p: np.ndarray, bins: int) -> float:
    """ECE of one label from its definition: share of the bin times |frequency − mean probability|."""
    where = np.minimum(np.floor(p * bins), bins - 1)
    inside = [where == b for b in range(bins)]
    return sum(float(np.mean(m) * abs(y[m].mean() - p[m].mean())) for m in inside if m.any())


def entropy(p: np.ndarray) -> float:
    return float(np.mean(-p * np.log(p) - (1 - p) * np.log(1 - p)))


def check_interval(row: pd.Series, replicates: list[float]) -> None:
    np.testing.assert_allclose((row["lo"], row["hi"]), np.percentile(replicates, [2.5, 97.5]), rtol=0, atol=1e-12)
    assert row["undefined"] == 0


def test_what_is_in_the_frame(frame: pd.DataFrame) -> None:
    assert list(frame.columns) == COLUMNS.split()
    assert set(frame["role"]) == {"audit"}
    assert set(frame["evaluator"]) == {"second"}
    assert set(frame["reference_metric"]) == {"ece"}
    assert set(frame["k"]) == {3}
    keys = ["policy", "versus", "statistic", "label"]
    assert len(frame) == len(frame.drop_duplicates(keys)) == 3 * (6 + 2 + 2 + 2 + 4) + 2 * (6 + 2 + 1)
    assert set(frame.loc[frame["policy"] == "reference", "versus"]) == {""}


def test_losses(frame: pd.DataFrame, records: Records, arms: dict[str, np.ndarray]) -> None:
    y = records.labels
    for policy, p in arms.items():
        nll = np.mean([log_loss(y[:, i], p[:, i]) for i in range(2)])
        brier = np.mean([brier_score_loss(y[:, i], p[:, i]) for i in range(2)])
        np.testing.assert_allclose(entry(frame, policy, "nll")["value"], nll, rtol=1e-12)
        np.testing.assert_allclose(entry(frame, policy, "brier")["value"], brier, rtol=1e-12)
        for statistic, bins in (("ece5", 5), ("ece", 10), ("ece15", 15), ("ece20", 20)):
            errors = [binned_error(y[:, i], p[:, i], bins) for i in range(2)]
            np.testing.assert_allclose(entry(frame, policy, statistic)["value"], np.mean(errors), atol=1e-12)
            if bins == 10:
                for label, error in zip("AB", errors, strict=True):
                    np.testing.assert_allclose(entry(frame, policy, "ece", label)["value"], error, atol=1e-12)


def test_dispersion(frame: pd.DataFrame, arms: dict[str, np.ndarray], rows: list[np.ndarray], records: Records) -> None:
    assert len(records) == len(arms["mga"])
    for policy, p in arms.items():
        variance, uncertainty = entry(frame, policy, "variance"), entry(frame, policy, "entropy")
        np.testing.assert_allclose(variance["value"], np.var(p.ravel()), rtol=1e-12)
        np.testing.assert_allclose(uncertainty["value"], entropy(p), rtol=1e-12)
        check_interval(variance, [float(np.var(p[r].ravel())) for r in rows])
        check_interval(uncertainty, [entropy(p[r]) for r in rows])


def test_variance_retention(frame: pd.DataFrame, arms: dict[str, np.ndarray], rows: list[np.ndarray]) -> None:
    for policy in POLICIES:
        row = entry(frame, policy, "variance retention", versus="reference")
        np.testing.assert_allclose(row["value"], np.var(arms[policy]) / np.var(arms["reference"]), rtol=1e-12)
        assert abs(row["value"] - 1) > 0.001
        check_interval(row, [np.var(arms[policy][r]) / np.var(arms["reference"][r]) for r in rows])


def test_intercepts_and_slopes(frame: pd.DataFrame, records: Records, arms: dict[str, np.ndarray]) -> None:
    sm = pytest.importorskip("statsmodels.api")
    for policy, p in arms.items():
        logit = np.log(p / (1 - p))
        intercepts, slopes = [], []
        for i, label in enumerate("AB"):
            y, ones = records.labels[:, i].astype(float), np.ones(len(p))
            large = sm.GLM(y, ones, family=sm.families.Binomial(), offset=logit[:, i]).fit(tol=1e-12)
            line = sm.GLM(y, np.column_stack([ones, logit[:, i]]), family=sm.families.Binomial()).fit(tol=1e-12)
            intercepts.append(large.params[0])
            slopes.append(line.params[1])
            np.testing.assert_allclose(entry(frame, policy, "intercept", label)["value"], intercepts[-1], atol=1e-8)
            np.testing.assert_allclose(entry(frame, policy, "slope", label)["value"], slopes[-1], rtol=1e-8)
        macro = entry(frame, policy, "macro |intercept|"), entry(frame, policy, "macro |slope - 1|")
        np.testing.assert_allclose(macro[0]["value"], np.mean(np.abs(intercepts)), atol=1e-8)
        np.testing.assert_allclose(macro[1]["value"], np.mean(np.abs(np.array(slopes) - 1)), atol=1e-8)
        assert np.isnan([macro[0]["lo"], macro[1]["hi"]]).all()


def test_differences(
    frame: pd.DataFrame, records: Records, arms: dict[str, np.ndarray], rows: list[np.ndarray]
) -> None:
    y, fixed = records.labels, arms["reference"]
    for policy in POLICIES:
        for i, label in enumerate("AB"):
            row = entry(frame, policy, "ece difference", label, "reference")
            p = arms[policy]
            expected = binned_error(y[:, i], p[:, i], 10) - binned_error(y[:, i], fixed[:, i], 10)
            np.testing.assert_allclose(row["value"], expected, atol=1e-12)
            replicates = [binned_error(y[r, i], p[r, i], 10) - binned_error(y[r, i], fixed[r, i], 10) for r in rows]
            check_interval(row, replicates)
        for statistic in ("nll", "brier", "ece", "ece5", "ece15", "ece20"):
            row = entry(frame, policy, f"{statistic} difference", versus="reference")
            own, other = entry(frame, policy, statistic)["value"], entry(frame, "reference", statistic)["value"]
            np.testing.assert_allclose(row["value"], own - other, atol=1e-15)
            assert row["lo"] < row["value"] < row["hi"]


def test_what_cannot_be_compared(records: Records) -> None:
    readings = Readings(records, [Reader("second")])
    mga, part = allocation_of(records, "mga"), allocation_of(records.select(slice(0, 50)), "ccga")
    with pytest.raises(InputError, match="these allocations are for different ones"):
        calibration_frame(readings, "second", [mga, part], FIXED)
    for policy in ("mga", "reference"):
        other = Allocation(records, policy, "second", mga.order[:, ::-1])
        with pytest.raises(InputError, match="have the same name, or one is called 'reference'"):
            calibration_frame(readings, "second", [mga, other], FIXED)


def test_records_without_a_lead_of_the_fixed_set_are_left_out(records: Records) -> None:
    missing = np.zeros((len(records), 12), dtype=int)
    missing[::3, FIXED.indices[0]] = 3
    gapped = varied_records(patients=60, seed=4, missing=missing)
    allocation = Allocation(gapped, "mga", "first", np.tile([0, 8, 9], (len(gapped), 1)))
    kept = np.arange(len(gapped)) % 3 > 0
    whole = calibration_frame(Readings(gapped, [Reader("second")]), "second", [allocation], FIXED)
    part = Allocation(gapped.select(kept), "mga", "first", allocation.order[kept])
    expected = calibration_frame(Readings(gapped, [Reader("second")]), "second", [part], FIXED)
    pd.testing.assert_frame_equal(whole, expected)


def test_reliability_points(records: Records, arms: dict[str, np.ndarray]) -> None:
    y = records.labels
    frame = reliability_frame(y, arms, records.label_names)
    assert list(frame.columns) == ["policy", "label", "bin", "count", "probability", "frequency"]
    assert (frame["count"] > 0).all()
    for policy, p in arms.items():
        panels = {"pooled": (y.ravel(), p.ravel()), "A": (y[:, 0], p[:, 0]), "B": (y[:, 1], p[:, 1])}
        for label, (cases, q) in panels.items():
            mine = frame[(frame["policy"] == policy) & (frame["label"] == label)]
            frequency, probability = calibration_curve(cases, q, n_bins=10)  # non-empty bins only
            np.testing.assert_allclose(mine["frequency"], frequency, rtol=1e-12)
            np.testing.assert_allclose(mine["probability"], probability, rtol=1e-12)
            assert mine["count"].sum() == len(q)
            np.testing.assert_array_equal(mine["bin"], np.unique(np.floor(q * 10)))


def test_empty_bins_have_no_row_and_one_belongs_to_the_last() -> None:
    y = np.array([[True], [False], [True], [True]])
    frame = reliability_frame(y, {"fixed": np.array([[1.0], [0.31], [0.95], [0.39]])}, ["A"])
    pooled = frame[frame["label"] == "pooled"]
    assert pooled["bin"].tolist() == [3, 9]
    assert pooled["count"].tolist() == [2, 2]
    np.testing.assert_allclose(pooled["probability"], [0.35, 0.975])
    np.testing.assert_allclose(pooled["frequency"], [0.5, 1.0])
    five = reliability_frame(y, {"fixed": np.array([[1.0], [0.31], [0.95], [0.39]])}, ["A"], bins=5)
    assert sorted(set(five["bin"])) == [1, 4]
