"""Every kind of cohort is read as a plan says, and refuses what it does not know."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from leadwise.cohort.contract import COHORTS, list_cohorts
from leadwise.cohort.roles import Roles

SETTINGS = {"ptbxl": {}, "synthetic": {"records": 120, "seed": 3}}
"""Of every kind that ships."""


def test_every_kind_has_a_case() -> None:
    assert set(list_cohorts()) == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_cohort_is_read_with_its_roles(name: str, tree: Path) -> None:
    kind = COHORTS.find(name)
    cohort = kind.read(kind.Settings(**SETTINGS[name]), tree, Roles({"train": (1, 2), "audit": (9,)}))
    assert len(cohort) == 120
    assert set(cohort["train"].cohort.folds[cohort["train"].rows]) == {1, 2}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_no_setting_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="nonsense"):
        COHORTS.find(name).Settings(**SETTINGS[name], nonsense=1)


def test_a_cohort_that_is_made_is_the_one_of_its_settings(tmp_path: Path, pristine_tree: Path) -> None:
    kind = COHORTS.find("synthetic")
    kind.write(kind.Settings(**SETTINGS["synthetic"]), tmp_path / "made")  # type: ignore[attr-defined]  # it makes some
    table = "ptbxl_database.csv"
    assert (tmp_path / "made" / table).read_bytes() == (pristine_tree / table).read_bytes()
