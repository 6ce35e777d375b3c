"""Readers of cohorts, as a plan sees them."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from leadwise.cohort.contract import CohortReader
from leadwise.cohort.ptbxl import PTBXL
from leadwise.cohort.roles import Roles
from leadwise.cohort.synthetic import Synthetic

SETTINGS = {PTBXL: {}, Synthetic: {"records": 20, "seed": 4}}
ROLES = Roles({"train": (1, 2), "audit": (9,)})


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_cohort_is_read_with_its_settings_and_roles(kind: type[CohortReader], tree: Path, tmp_path: Path) -> None:
    settings = kind.Settings(**SETTINGS[kind])
    directory = tmp_path / "made" if kind.makes else tree
    cohort = kind.read(directory, ROLES, **settings.model_dump())
    assert cohort.roles == ROLES
    assert len(cohort) == (20 if kind.makes else 120)
    again = kind.read(directory, ROLES, **settings.model_dump())
    np.testing.assert_array_equal(again.ids, cohort.ids)
    assert again.cache == cohort.cache, "nothing is made or read a second time"


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_are_refused_that_it_does_not_have(kind: type[CohortReader]) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        kind.Settings(**SETTINGS[kind], folds=3)


@pytest.mark.parametrize("wrong", [{"records": 0}, {"records": "20"}, {"records": 20, "seed": -1}, {}])
def test_settings_of_a_synthetic_cohort_are_numbers(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Synthetic.Settings(**wrong)
