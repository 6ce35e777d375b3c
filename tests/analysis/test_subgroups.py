from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.arms import READERS, REPLICATES, by_hand, fixed_masks, read, some_allocation, some_references
from analysis.coverage import varied_records
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.contrasts import estimate_contrasts
from leadwise.analysis.interactions import estimate_interactions
from leadwise.analysis.readings import Readings
from leadwise.analysis.subgroups import FEW, levels_of, subgroups_frame
from leadwise.cohort.cohort import QUALITY_FLAGS, Records
from leadwise.policies.allocation import Allocation
from leadwise.references import References

REFERENCES = {name: some_references(name, seed) for seed, name in enumerate(READERS)}
GROUPS = ("sex", "age", "diagnoses", "quality", "fold")


@pytest.fixture(scope="module")
def records() -> Records:
    """Men and women of all ages, two folds of one role, some noisy recordings."""
    plain, rng = varied_records(patients=60, seed=4), np.random.default_rng(0)
    n = len(plain)
    age = rng.choice([3.0, 39.0, 39.5, 40.0, 59.9, 60.0, 79.0, 80.0, 89.0, np.nan], n)
    cohort = replace(
        plain.cohort,
        age=age,
        sex=rng.choice([0, 1, 1, -1], n),
        quality=rng.random((n, len(QUALITY_FLAGS))) < 0.15,
        folds=np.where(plain.patients % 2 == 0, 1, 2),
    )
    return cohort["train"]


@pytest.fixture(scope="module")
def allocations(records: Records) -> list[Allocation]:
    return [some_allocation(records, policy, k, k) for policy in ("mga", "ccga") for k in (2, 3)]


@pytest.fixture(scope="module")
def readings(records: Records) -> Readings:
    return Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES))


@pytest.fixture(scope="module")
def frame(readings: Readings, allocations: list[Allocation]) -> pd.DataFrame:
    return subgroups_frame(readings, allocations, REFERENCES, ["first", "second"], ("second", "first", "third"))


def expected_level(records: Records, position: int, group: str) -> str:
    """The level of one record, by plain rules."""
    age, sex = records.age[position], records.sex[position]
    flags = dict(zip(QUALITY_FLAGS, records.quality[position].tolist(), strict=True))
    signal = ("baseline_drift", "static_noise", "burst_noise", "electrodes_problems")
    band = "under 40" if age < 40 else "40–59" if age < 60 else "60–79" if age < 80 else "80 and over"
    return {
        "sex": "male" if sex == 0 else "female" if sex == 1 else "unknown",
        "age": "unknown or over 89" if np.isnan(age) else band,
        "diagnoses": ("none", "one", "several")[min(int(records.labels[position].sum()), 2)],
        "quality": "flagged" if any(flags[name] for name in signal) else "not flagged",
        "fold": f"fold {records.folds[position]}",
    }[group]


def test_every_record_has_one_level_of_each_group(records: Records) -> None:
    levels = levels_of(records)
    assert {group for group, _ in levels} == set(GROUPS)
    for (group, level), members in levels.items():
        expected = [expected_level(records, position, group) == level for position in range(len(records))]
        np.testing.assert_array_equal(members, expected)
        assert members.any()
    for group in GROUPS:
        assert (np.sum([members for (name, _), members in levels.items() if name == group], axis=0) == 1).all()


def test_one_fold_is_no_group(records: Records) -> None:
    assert {group for group, _ in levels_of(records.select(records.folds == 1))} == set(GROUPS) - {"fold"}


def test_every_value_by_hand(frame: pd.DataFrame, records: Records, allocations: list[Allocation]) -> None:
    key = ["role", "quantity", "policy", "evaluator", "baseline_evaluator", "k", "metric", "group", "level"]
    assert not frame.duplicated(key).any()
    levels = levels_of(records)
    # two readers and one family, two metrics, four allocations
    assert len(frame) == len(levels) * 3 * 2 * 4
    chosen = {(each.policy, each.k): each.masks for each in allocations}
    assert (frame["patients"] < FEW).any()
    for row in frame[frame["policy"] == "mga"].itertuples():
        members = levels[row.group, row.level]
        part = records.select(members)
        assert (row.records, row.patients) == (len(part), len(set(part.patients.tolist())))

        def contrast(evaluator: str, owner: str, row=row, part=part, members=members):  # type: ignore[no-untyped-def]
            leads = REFERENCES[owner].best(row.metric, row.k)
            masks = chosen["mga", row.k][members], fixed_masks(part, leads)
            with np.errstate(invalid="ignore", divide="ignore"):
                a, b = (read(evaluator, part, each) for each in masks)
            return a, b

        if row.patients < FEW:
            assert np.isnan([row.lo, row.hi]).all()
            continue
        if row.quantity == "contrast":
            arms = contrast(row.evaluator, row.evaluator)
            value, replicates = by_hand(row.metric, records, part, *arms, REPLICATES)
        else:
            assert (row.evaluator, row.baseline_evaluator) == ("second", "first")
            one, other = (
                by_hand(row.metric, records, part, *contrast(name, "third"), REPLICATES) for name in ("second", "first")
            )
            value, replicates = one[0] - other[0], one[1] - other[1]
        np.testing.assert_allclose(row.value, value, rtol=0, atol=1e-12)
        np.testing.assert_allclose([row.lo, row.hi], np.percentile(replicates, [2.5, 97.5]), rtol=0, atol=1e-12)


def test_levels_add_up_to_the_whole_role(
    frame: pd.DataFrame, readings: Readings, allocations: list[Allocation]
) -> None:
    """The mean over the levels of a group, each weighed with its records, is D, and I, of everybody."""
    found = estimate_contrasts(readings, allocations, REFERENCES)
    common = estimate_contrasts(readings, allocations, REFERENCES, "third")
    whole = {("contrast", *_place(each.key)): each.delta.value for each in found}
    family = estimate_interactions(common, "second", "first", "third")
    whole |= {("interaction", *_place(each.key)): each.estimate.value for each in family}
    for key, rows in frame.groupby(["quantity", "policy", "evaluator", "k", "metric", "group"]):
        assert rows["records"].sum() == len(readings.records)
        assert np.average(rows["value"], weights=rows["records"]) == pytest.approx(whole[key[:5]], abs=1e-12)


def _place(key) -> tuple[str, str, int, str]:  # type: ignore[no-untyped-def]
    return key.policy, key.evaluator, key.k, key.metric


def test_a_reader_is_left_out_where_nothing_was_searched(readings: Readings, allocations: list[Allocation]) -> None:
    short = References("second", REFERENCES["second"].candidates.query("k == 2").reset_index(drop=True), {})
    family = ("second", "first", "own")
    frame = subgroups_frame(readings, allocations, REFERENCES | {"second": short}, ["first", "second"], family)
    budgets = frame.groupby(["quantity", "evaluator"])["k"].agg(set)
    assert budgets.to_dict() == {
        ("contrast", "first"): {2, 3},
        ("contrast", "second"): {2},
        ("interaction", "second"): {2},
    }


def test_without_a_family_there_are_contrasts_only(readings: Readings, allocations: list[Allocation]) -> None:
    frame = subgroups_frame(readings, allocations[:1], REFERENCES, ["third"])
    assert set(frame["quantity"]) == {"contrast"}
    assert set(frame["evaluator"]) == {"third"}
    assert subgroups_frame(readings, [], REFERENCES, ["third"]).empty
    assert subgroups_frame(readings, allocations, REFERENCES, []).empty
