from math import ceil

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.coverage import Reader, records_of, varied_records
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.patients import (
    PatientEffects,
    cumulative_benefit,
    overlap_frame,
    patient_effects,
    patients_frame,
)
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation

REPLICATES = 60
FIXED, FIRST = LeadSet.parse("aVL V3 V5"), LeadSet.parse("aVR")


def allocation_of(records: Records, policy: str, seed: int) -> Allocation:
    return Allocation(
        records, policy, "first", np.random.default_rng(seed).random((len(records), 12)).argsort(1)[:, :3]
    )


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(patients=129, seed=8)  # so that quartile edges are patients


@pytest.fixture(scope="module")
def readings(records: Records) -> Readings:
    return Readings(records, [Reader("first")], PatientBootstrap(records, REPLICATES))


@pytest.fixture(scope="module")
def both(records: Records, readings: Readings) -> tuple[PatientEffects, PatientEffects]:
    """Effects of two policies. To some patients' records the first gives the fixed set: they are unchanged."""
    order = allocation_of(records, "mga", 1).order.copy()
    order[np.isin(records.patients, np.unique(records.patients)[:9])] = FIXED.indices
    mga = Allocation(records, "mga", "first", order)
    several = (mga, allocation_of(records, "ccga", 2))
    return tuple(patient_effects(readings, "first", each, FIXED, FIRST) for each in several)


@pytest.fixture(scope="module")
def effects(both: tuple[PatientEffects, PatientEffects]) -> PatientEffects:
    return both[0]


@pytest.fixture(scope="module")
def frame(effects: PatientEffects) -> pd.DataFrame:
    return patients_frame(effects)


@pytest.fixture(scope="module")
def draws(records: Records) -> np.ndarray:
    count = len(set(records.patients.tolist()))
    return np.random.default_rng(20270909).multinomial(count, [1 / count] * count, size=REPLICATES)


def entry(frame: pd.DataFrame, statistic: str, label: str = "") -> pd.Series:
    found = frame[(frame["statistic"] == statistic) & (frame["label"] == label)]
    assert len(found) == 1
    return found.iloc[0]


def check(row: pd.Series, point: float, replicates: list[float]) -> None:
    np.testing.assert_allclose(row["value"], point, rtol=0, atol=1e-12)
    defined = [value for value in replicates if not np.isnan(value)]
    assert row["undefined"] == len(replicates) - len(defined)
    np.testing.assert_allclose((row["lo"], row["hi"]), np.percentile(defined, [2.5, 97.5]), rtol=0, atol=1e-12)


def read(records: Records, masks: np.ndarray) -> np.ndarray:
    signals = records.signals.millivolts(slice(None))
    signals[~masks] = 0
    return Reader("first").probabilities(signals, masks)


def test_effects_by_hand(records: Records, effects: PatientEffects) -> None:
    y, n = records.labels, len(records)

    def losses(masks: np.ndarray) -> np.ndarray:
        p = read(records, masks)
        return -(y * np.log(p) + ~y * np.log(1 - p)).mean(axis=1)

    adaptive = losses(effects.allocation.masks)
    fixed = losses(np.tile(FIXED.mask, (n, 1)))
    first = read(records, np.tile(FIRST.mask, (n, 1)))
    entropy = np.array([[stats.entropy([p, 1 - p]) for p in row] for row in first]).mean(axis=1)
    table = pd.DataFrame(
        {"patient": records.patients, "delta": adaptive - fixed, "u": entropy, "A": y[:, 0], "B": y[:, 1]}
    )
    grouped = table.groupby("patient")  # sorts by patient
    np.testing.assert_allclose(effects.delta, grouped["delta"].mean(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(effects.uncertainty, grouped["u"].mean(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(effects.labels, grouped[["A", "B"]].any().to_numpy())
    assert (np.abs(effects.delta) < 1e-12).sum() == 9


SUMMARIES = {
    "mean": np.mean,
    "median": np.median,
    "mean trimmed 5%": lambda d: stats.trim_mean(d, 0.05),
    "mean trimmed 10%": lambda d: stats.trim_mean(d, 0.10),
    "mean winsorised 5%": lambda d: stats.mstats.winsorize(d, (0.05, 0.05)).mean(),
    "mean without largest 1%": lambda d: np.mean(sorted(d, key=abs)[: len(d) - ceil(len(d) / 100)]),
    "improved": lambda d: np.mean([x < 0 and abs(x) >= 1e-12 for x in d]),
    "worsened": lambda d: np.mean([x > 0 and abs(x) >= 1e-12 for x in d]),
    "unchanged": lambda d: np.mean([abs(x) < 1e-12 for x in d]),
}


@pytest.mark.parametrize("statistic", SUMMARIES)
def test_summaries(frame: pd.DataFrame, effects: PatientEffects, draws: np.ndarray, statistic: str) -> None:
    function = SUMMARIES[statistic]
    replicates = [float(function(np.repeat(effects.delta, draw))) for draw in draws]
    check(entry(frame, statistic), float(function(effects.delta)), replicates)


def test_patients_count_once_however_many_records_they_have(frame: pd.DataFrame, records: Records) -> None:
    shares = [entry(frame, name)["value"] for name in ("improved", "worsened", "unchanged")]
    count = len(set(records.patients.tolist()))
    np.testing.assert_allclose(sum(shares), 1, atol=1e-12)
    assert shares[2] == pytest.approx(9 / count)


def test_quartiles(frame: pd.DataFrame, effects: PatientEffects, draws: np.ndarray) -> None:
    u, delta = effects.uncertainty, effects.delta
    quartile = pd.qcut(u, 4, labels=False)  # of the point estimate, whoever is drawn
    assert np.bincount(quartile).min() >= len(u) // 4
    for q in range(4):
        inside = np.flatnonzero(quartile == q)
        drawn = [np.repeat(inside, draw[inside]) for draw in draws]
        check(entry(frame, f"Q{q + 1} mean"), delta[inside].mean(), [delta[rows].mean() for rows in drawn])
        benefit = delta < -1e-12
        check(
            entry(frame, f"Q{q + 1} benefit rate"),
            benefit[inside].mean(),
            [float(benefit[rows].mean()) for rows in drawn],
        )
    rates = [
        [float(benefit[np.repeat(np.flatnonzero(quartile == q), draw[quartile == q])].mean()) for draw in draws]
        for q in range(4)
    ]
    for q in range(3):
        last, other = (benefit[quartile == each].mean() for each in (3, q))
        differences = np.subtract(rates[3], rates[q]).tolist()
        check(entry(frame, f"Q4 minus Q{q + 1} benefit rate"), last - other, differences)


def test_spearman(frame: pd.DataFrame, effects: PatientEffects, draws: np.ndarray) -> None:
    def rho(rows: np.ndarray) -> float:
        return float(stats.spearmanr(effects.uncertainty[rows], -effects.delta[rows]).statistic)

    everyone = np.arange(len(effects.delta))
    check(entry(frame, "spearman"), rho(everyone), [rho(np.repeat(everyone, draw)) for draw in draws])


def test_subgroups(frame: pd.DataFrame, records: Records, effects: PatientEffects, draws: np.ndarray) -> None:
    has: dict[int, set[str]] = {int(patient): set() for patient in records.patients}
    for patient, row in zip(records.patients.tolist(), records.labels.tolist(), strict=True):
        has[patient] |= {name for name, positive in zip("AB", row, strict=True) if positive}
    everyone = sorted(has)
    groups = {
        "no label": [not has[p] for p in everyone],
        "one label": [len(has[p]) == 1 for p in everyone],
        "several labels": [len(has[p]) == 2 for p in everyone],
        "A positive": ["A" in has[p] for p in everyone],
        "A negative": ["A" not in has[p] for p in everyone],
        "B positive": ["B" in has[p] for p in everyone],
        "B negative": ["B" not in has[p] for p in everyone],
    }
    assert set(frame.loc[frame["statistic"] == "patients", "label"]) == set(groups)
    for name, members in groups.items():
        inside = np.flatnonzero(members)
        row = entry(frame, "patients", name)
        assert row["value"] == len(inside)
        assert np.isnan(row["lo"])
        drawn = [effects.delta[np.repeat(inside, draw[inside])] for draw in draws]
        check(entry(frame, "mean", name), effects.delta[inside].mean(), [float(each.mean()) for each in drawn])


def test_facts_of_the_frame(frame: pd.DataFrame) -> None:
    assert ",".join(frame.columns) == (
        "role,policy,versus,evaluator,reference_metric,k,statistic,label,value,lo,hi,undefined"
    )
    facts = frame[["role", "policy", "versus", "evaluator", "reference_metric", "k"]].drop_duplicates()
    assert facts.to_numpy().tolist() == [["audit", "mga", "reference", "first", "nll", 3]]


def test_overlap(both: tuple[PatientEffects, PatientEffects], draws: np.ndarray) -> None:
    frame = overlap_frame(*both)
    assert set(frame["versus"]) == {"ccga"}
    mine, theirs = ({i for i, d in enumerate(each.delta) if d < -1e-12} for each in both)
    everyone = set(range(len(both[0].delta)))
    shares = {
        "benefit under both": mine & theirs,
        "benefit under the first only": mine - theirs,
        "benefit under the second only": theirs - mine,
        "benefit under neither": everyone - mine - theirs,
    }

    def weight(draw: np.ndarray, members: set[int]) -> int:
        return sum(int(draw[i]) for i in members)

    for name, members in shares.items():
        replicates = [weight(draw, members) / weight(draw, everyone) for draw in draws]
        check(entry(frame, name), len(members) / len(everyone), replicates)
    np.testing.assert_allclose(sum(entry(frame, name)["value"] for name in shares), 1, atol=1e-12)
    jaccard = [weight(draw, mine & theirs) / weight(draw, mine | theirs) for draw in draws]
    check(entry(frame, "benefit jaccard"), len(mine & theirs) / len(mine | theirs), jaccard)


def test_overlap_of_different_patients_is_refused(records: Records, readings: Readings) -> None:
    ids = np.unique(records.patients)
    several = [
        patient_effects(
            readings, "first", allocation_of(records.select(records.patients != left), "mga", 0), FIXED, FIRST
        )
        for left in ids[:2]
    ]
    assert len(several[0].delta) == len(several[1].delta)
    with pytest.raises(InputError, match="tried on different patients"):
        overlap_frame(*several)


def test_records_that_lack_leads(records: Records, readings: Readings) -> None:
    """One without a lead of the fixed set is left out; the uncertainty is that under the first lead that is there."""
    missing = np.zeros((len(records), 12), dtype=int)
    missing[:10, FIXED.indices[1]] = missing[10:90, FIRST.indices[0]] = missing[50:70, 0] = 3
    gapped = varied_records(patients=129, seed=8, missing=missing)
    order = np.tile([1, 2, 11], (len(gapped), 1))
    allocation = Allocation(gapped, "mga", "first", order)
    effects = patient_effects(readings, "first", allocation, FIXED, ["aVR", "I", "V6"])
    assert effects.allocation.records.ids.tolist() == gapped.ids[10:].tolist()
    first = np.repeat([3, 0, 11, 0, 3], [10, 40, 20, 20, len(gapped) - 90])
    y, p = gapped.labels, [read(gapped, each) for each in (allocation.masks, np.tile(FIXED.mask, (len(gapped), 1)))]
    adaptive, fixed = (-(y * np.log(each) + ~y * np.log(1 - each)).mean(axis=1) for each in p)
    alone = read(gapped, np.eye(12, dtype=bool)[first])
    u = -(alone * np.log(alone) + (1 - alone) * np.log(1 - alone)).mean(axis=1)
    table = pd.DataFrame({"patient": gapped.patients, "delta": adaptive - fixed, "u": u})[10:].groupby("patient").mean()
    np.testing.assert_allclose(effects.delta, table["delta"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(effects.uncertainty, table["u"], rtol=0, atol=1e-12)
    assert len(patients_frame(effects))


def test_cumulative_benefit(effects: PatientEffects) -> None:
    frame = cumulative_benefit(effects)
    assert list(frame.columns) == ["policy", "share", "benefit"]
    assert frame["share"].iloc[-1] == 1
    np.testing.assert_allclose(frame["benefit"].iloc[-1], -effects.delta.mean(), rtol=0, atol=1e-12)
    steps = np.diff(frame["benefit"], prepend=0)
    np.testing.assert_allclose(np.sort(-steps * len(frame)), np.sort(effects.delta), atol=1e-12)
    assert (np.diff(steps) <= 1e-12).all()  # who most benefits comes first
    assert frame["benefit"].max() == pytest.approx(-effects.delta[effects.delta < 0].sum() / len(frame))


def test_patients_without_a_record_in_the_allocation_are_left_out(records: Records, readings: Readings) -> None:
    ids = np.unique(records.patients)
    part = records.select(~np.isin(records.patients, ids[::4]))
    effects = patient_effects(readings, "first", allocation_of(part, "mga", 3), FIXED, FIRST)
    stay = np.ones(len(ids), dtype=bool)
    stay[::4] = False
    assert len(effects.delta) == stay.sum()
    np.testing.assert_array_equal(effects.multiplicities, readings.bootstrap.multiplicities[:, stay])
    row = entry(patients_frame(effects), "median")
    check(row, np.median(effects.delta), [np.median(np.repeat(effects.delta, d)) for d in effects.multiplicities])


def test_replicates_that_draw_none_of_few_patients_are_counted() -> None:
    role = varied_records(patients=8, seed=1)
    part = role.select(np.isin(role.patients, np.unique(role.patients)[:2]))
    readings = Readings(role, [Reader("first")])
    effects = patient_effects(readings, "first", allocation_of(part, "mga", 0), FIXED, FIRST)
    frame = patients_frame(effects)
    undrawn = (readings.bootstrap.multiplicities[:, :2].sum(axis=1) == 0).sum()
    assert undrawn > 50  # (3/4)⁸ of a thousand
    for statistic in ("mean", "median", "mean trimmed 5%", "improved"):
        row = entry(frame, statistic)
        assert row["undefined"] == undrawn
        assert np.isfinite([row["lo"], row["hi"]]).all()
    assert entry(frame, "spearman")["undefined"] > undrawn  # one patient alone has no correlation


def test_a_group_that_nobody_is_in_has_no_row() -> None:
    labels = np.array([[True, False], [False, True], [True, False]])
    records = records_of(np.array([1, 1, 2]), labels, varied_records(9, 0).signals[:3])
    effects = patient_effects(
        Readings(records, [Reader("first")]), "first", allocation_of(records, "mga", 0), FIXED, FIRST
    )
    groups = patients_frame(effects).query("statistic == 'patients'").set_index("label")["value"].to_dict()
    assert groups == {
        "one label": 1,
        "several labels": 1,
        "A positive": 2,
        "B positive": 1,
        "B negative": 1,
    }
