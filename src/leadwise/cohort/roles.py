"""Roles of the folds, and the seal on the role that nobody may look at yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Int

from leadwise.errors import PlanError, right_one

ROLES = ("train", "validation", "selection", "audit", "evaluation")
AUDIT, SEALED_ROLE = "audit", "evaluation"
SCORED = (AUDIT, SEALED_ROLE)
"""Roles that are scored after the freeze, in this order."""
FOLDS = range(1, 11)


@dataclass(frozen=True)
class Token:
    """Opens the seal of one cohort. A frozen bundle issues it, when it finds itself whole and made for such a cohort.

    It guards against looking by accident, not against those who mean to: whoever holds the files can read them.
    """

    bundle: str
    """SHA-256 of the bundle."""
    plan: str
    """SHA-256 of the bundle's plan."""
    cohort: str
    """`Cohort.table_sha256` of the cohort that it opens."""


@dataclass(frozen=True)
class Roles:
    """Folds of each role. Folds that no role names are left aside."""

    folds: Mapping[str, tuple[int, ...]]
    unsealed: bool = False
    """True opens the sealed fold of PTB-XL to the role that it has here."""

    def __post_init__(self) -> None:
        # nobody may unseal a role by changing what was checked
        object.__setattr__(self, "folds", MappingProxyType({role: tuple(folds) for role, folds in self.folds.items()}))
        if not self.folds:
            raise PlanError("The plan names no role; a cohort needs at least one.")
        owner: dict[int, str] = {}
        for role, folds in self.folds.items():
            if role not in ROLES:
                raise PlanError(f"'{role}' is not a role; {right_one(role, ROLES)}")
            if not folds:
                raise PlanError(f"The {role} role names no fold; give it at least one, or leave the role out.")
            for fold in folds:
                if fold not in FOLDS:
                    raise PlanError(f"The {role} role names fold {fold}; folds are numbered 1 to 10.")
                if fold in owner:
                    raise PlanError(f"Fold {fold} is named twice, by {owner[fold]} and by {role}; give it one role.")
                owner[fold] = role

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """A copy is made of a plain dictionary, as every other is."""
        return type(self), (dict(self.folds), self.unsealed)

    @property
    def sealed_folds(self) -> tuple[int, ...]:
        """Folds that are sealed because of their role."""
        return self.folds.get(SEALED_ROLE, ())

    def check_disjoint(self, patients: Int[np.ndarray, " n"], folds: Int[np.ndarray, " n"]) -> None:
        """Raise unless every patient's records lie in one role: what is learned of a patient is not tested on it."""
        role_of_fold = {fold: role for role, folds in self.folds.items() for fold in folds}
        pairs = np.unique(np.stack([patients, folds], axis=1), axis=0)
        seen: dict[int, tuple[str, int]] = {}
        for patient, fold in pairs[np.isin(pairs[:, 1], list(role_of_fold))].tolist():
            role = role_of_fold[fold]
            first_role, first_fold = seen.setdefault(patient, (role, fold))
            if first_role != role:
                raise PlanError(
                    f"Patient {patient} has records in two roles, {first_role} (fold {first_fold}) and {role} "
                    f"(fold {fold}); give all records of a patient the same fold, or change the plan's roles."
                )


PTBXL_ROLES = Roles(
    {"train": (1, 2, 3, 4, 5, 6), "validation": (7,), "selection": (10,), "audit": (9,), "evaluation": (8,)}
)
"""The roles of the published study."""
