import numpy as np
import pytest

from leadwise.cohort.roles import PTBXL_ROLES, Roles
from leadwise.errors import PlanError


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ({"train": (1,), "test": (2,)}, "'test' is not a role"),
        ({"train": (0,)}, "names fold 0; folds are numbered 1 to 10"),
        ({"train": (1, 2), "audit": (2,)}, "Fold 2 is named twice, by train and by audit"),
        ({"train": ()}, "names no fold"),
    ],
)
def test_unsound_roles(folds: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Roles(folds)


def test_patients_may_share_a_role_but_not_two() -> None:
    patients = np.array([1, 1, 2, 3])
    PTBXL_ROLES.check_disjoint(patients, np.array([1, 2, 7, 8]))
    with pytest.raises(
        PlanError, match=r"Patient 1 has records in two roles, train \(fold 1\) and validation \(fold 7\)"
    ):
        PTBXL_ROLES.check_disjoint(patients, np.array([1, 7, 7, 8]))


def test_folds_without_a_role_are_left_aside() -> None:
    Roles({"train": (1,)}).check_disjoint(np.array([1, 1]), np.array([1, 5]))


def test_only_the_evaluation_role_is_sealed() -> None:
    assert PTBXL_ROLES.sealed_folds == (8,)
    assert Roles({"train": (8,)}).sealed_folds == ()
