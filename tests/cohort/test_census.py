from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.cohort.census import ZERO, check_cohort, count_records, find_oddities, longest_run
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.leads import LEADS


@pytest.fixture
def cohort(pristine_tree: Path) -> Cohort:
    return read_ptbxl(pristine_tree)


def test_counts_are_right(cohort: Cohort) -> None:
    result = check_cohort(cohort)
    assert set(result) == {"cohort", "records", "patients", "roles", "oddities"}
    assert result["records"] == 120
    for role, row in result["roles"].items():
        rows = np.isin(cohort.folds, cohort.roles.folds[role])
        assert row["records"] == rows.sum()
        assert row["patients"] == len(set(cohort.patients[rows].tolist()))
        assert row["all_zero"] == sum(not any(labels) for labels in cohort._labels[rows].tolist())
        if role == "evaluation":
            assert row["prevalence"] is None, "a prevalence is a statistic, which the seal covers"
        else:
            assert row["prevalence"]["MI"] == pytest.approx(cohort._labels[rows][:, 2].mean())
    assert sum(row["records"] for row in result["roles"].values()) == 120


def test_counts_of_what_has_no_labels_or_no_records(cohort: Cohort) -> None:
    assert count_records(cohort["train"].unlabelled)["prevalence"] == {}
    nobody = count_records(cohort["train"].select(slice(0)))
    assert nobody == {"folds": [], "records": 0, "patients": 0, "all_zero": 0, "prevalence": None}


def test_sound_signals_have_no_oddities(cohort: Cohort) -> None:
    assert find_oddities(cohort) == []


def test_every_oddity_is_found_and_nothing_else(cohort: Cohort) -> None:
    signals = np.array(cohort._signals)
    missing = np.zeros_like(cohort.missing)
    signals[3, 9] = 7
    signals[4, 7, 300:352] = signals[4, 7, 300]
    signals[5, 10] = np.clip(signals[5, 10].astype(int) * 20, -1500, 1500)
    signals[6, 2, 40] += 4
    missing[7, 1] = 12
    missing[8, 11], signals[8, 11] = 1000, 0
    found = find_oddities(replace(cohort, _signals=signals, missing=missing))
    ids = cohort.ids
    assert {(oddity.kind, oddity.ecg_id, oddity.leads) for oddity in found} == {
        ("flat", ids[3], "V4"),
        ("flat", ids[4], "V2"),
        ("saturated", ids[5], "V5"),
        ("limb-algebra", ids[6], "III"),
        ("missing-samples", ids[7], "II"),
        ("missing-samples", ids[8], "V6"),
    }
    assert "constant for 10.00 s" in {oddity.detail for oddity in found}


def test_a_record_without_a_wave_is_one_oddity(cohort: Cohort) -> None:
    signals, missing = np.array(cohort._signals), np.zeros_like(cohort.missing)
    signals[3:5] = 0
    missing[4, 2:] = 1000
    odd = find_oddities(replace(cohort, _signals=signals, missing=missing))
    assert [each.leads for each in odd if each.kind == ZERO] == [" ".join(LEADS), "I II"]
    assert {each.kind for each in odd} == {ZERO, "missing-samples"}


@given(st.lists(st.booleans(), max_size=40))
def test_longest_run(flags: list[bool]) -> None:
    expected = max((len(run) for run in "".join("x" if flag else " " for flag in flags).split()), default=0)
    assert longest_run(np.array(flags, dtype=bool)) == expected
