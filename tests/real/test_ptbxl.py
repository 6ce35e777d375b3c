"""The real PTB-XL, against what the study published about it."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wfdb

from leadwise.cohort.census import check_cohort
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import CohortError
from leadwise.findings.paper import published_numbers

FOLDS = {"train": "1 2 3 4 5 6", "validation": "7", "evaluation": "8", "audit": "9", "selection": "10"}


@pytest.fixture(scope="module")
def cohort(ptbxl: Path, tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return read_ptbxl(ptbxl)


def test_counts_are_the_published_ones(cohort: Cohort) -> None:
    found = check_cohort(cohort)
    numbers = published_numbers().query("table == 'splits'")
    compared = 0
    for role, folds in FOLDS.items():
        if role in found["roles"]:
            for column in ("records", "patients", "all_zero"):
                (published,) = numbers[(numbers["folds"] == folds) & (numbers["column"] == column)]["published"]
                assert found["roles"][role][column] == published, (role, column)
            compared += 1
    assert compared >= 4
    assert found["cohort"] == "PTB-XL v1.0.3"


def test_oddities_are_the_known_ones(cohort: Cohort) -> None:
    oddities = check_cohort(cohort)["oddities"]
    assert {"flat", "limb-algebra"} <= {oddity["kind"] for oddity in oddities}
    assert any(oddity["ecg_id"] == 12722 and oddity["leads"] == "V5" for oddity in oddities)
    broken = {oddity["ecg_id"] for oddity in oddities if oddity["kind"] == "limb-algebra"}
    assert 60 <= len(broken) <= 64
    assert "missing-samples" not in {oddity["kind"] for oddity in oddities}


def test_samples_are_those_of_wfdb(cohort: Cohort, ptbxl: Path) -> None:
    with (ptbxl / "ptbxl_database.csv").open(newline="") as file:
        paths = [row["filename_lr"] for row in csv.DictReader(file)]
    records = cohort.records
    for position in np.random.default_rng(0).choice(np.flatnonzero(records.folds != 8), 40, replace=False):
        theirs = wfdb.rdrecord(str(ptbxl / paths[position]), physical=False).d_signal.T
        np.testing.assert_array_equal(records[position].signals[:][0], theirs)


def test_a_cohort_without_fold_8_says_so(cohort: Cohort) -> None:
    if "evaluation" in cohort:
        pytest.skip("this tree has fold 8")
    with pytest.raises(CohortError, match="no record for the evaluation role: no record is in fold 8"):
        cohort["evaluation"]


def test_opening_the_cache_reads_no_signals(ptbxl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a gigabyte of signals must not enter memory when a cached cohort is opened."""
    monkeypatch.setenv("LEADWISE_CACHE", str(tmp_path / "cache"))
    read_ptbxl(ptbxl)
    program = (
        "import re, sys; from leadwise import read_ptbxl; cohort = read_ptbxl(sys.argv[1]); assert len(cohort);"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(ptbxl)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 250 * 1024, "kilobytes of resident memory, interpreter and NumPy included"
