"""Complaints about a plan or bundle that cannot be carried out with a cohort, before anything is written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from leadwise.cohort.cohort import Cohort, Records
from leadwise.cohort.dipole import SAMPLES
from leadwise.cohort.roles import FOLDS, SCORED, SEALED_ROLE
from leadwise.errors import PlanError
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.leads import LEADS
from leadwise.memory import too_large
from leadwise.run.plan import Entry, Plan

FITTED = ("train", "validation", "selection")
"""Roles that no study can do without."""
SHORTEST = 32
"""Samples of which the network's last stage sees a single one."""


def check_plan(plan: Plan, cohort: Cohort | None) -> None:
    """Raise `PlanError` with all complaints, one a line; a synthetic cohort that is yet to be made is None."""
    complaints = plan_complaints(plan, cohort)
    if complaints:
        raise PlanError("\n".join(complaints))


def check_bundle(plan: Plan, labels: Sequence[str], cohort: Cohort, role: str) -> None:
    """Raise `PlanError` unless a role can be scored with what was frozen: the bundle's plan, its evaluators' labels."""
    records = cohort.role(role)
    complaints = [*_label_complaints(labels, cohort), *_role_complaints(records, plan.budgets)]
    complaints += _bootstrap_complaints(plan, len(records))
    for name, entry in plan.policies.items():
        complaints += _too_large(f"policies.{name}", entry, {role: len(records)}, len(labels), cohort.records.length)
    if complaints:
        raise PlanError("\n".join(complaints))


def plan_complaints(plan: Plan, cohort: Cohort | None) -> list[str]:
    """A sentence for everything that would stop the study; a cohort that is yet to be made is None."""
    sizes = role_sizes(plan, cohort)
    shape = (5, SAMPLES) if cohort is None else (len(cohort.label_names), cohort.records.length)
    complaints = [
        *_missing_roles(plan, cohort),
        *_batch_complaints(plan, sizes.get("train"), shape[1]),
        *_memory_complaints(plan, sizes, *shape),
    ]
    if cohort is None:
        return complaints
    present = [role for role in plan.roles if role in cohort]
    for role in present:
        chosen_for = plan.budgets if role in ("selection", *SCORED) else [2]  # to learn, a policy needs a choice
        complaints += _role_complaints(cohort.role(role), chosen_for)
    complaints += _sealed_complaints(cohort, [role for role in present if role != SEALED_ROLE])
    if "selection" in present:
        complaints += _candidate_complaints(plan, cohort["selection"])
    for role in ("train", "validation"):
        if role in present:
            complaints += [*_constant_labels(cohort[role]), *_without_waves(cohort[role])]
    lead = plan.first_lead
    if lead in LEADS and not any(cohort.role(role).available[:, LEADS.index(lead)].any() for role in present):
        complaints.append(f"'first_lead' is {lead}, which no record of {cohort.source} has; name another lead.")
    return complaints


def _sealed_complaints(cohort: Cohort, roles: Sequence[str]) -> Iterator[str]:
    """Roles that are looked at before the freeze, and have sealed records."""
    for role in roles:
        if cohort.role(role).sealed:
            folds = ", ".join(str(fold) for fold in cohort.sealed_folds if fold in cohort.roles.folds[role])
            yield (
                f"The plan gives fold {folds} to the {role} role, but of PTB-XL that fold is sealed whatever its role; "
                "give it the evaluation role, or say 'unsealed = true', which the ledger and the report then tell."
            )


def role_sizes(plan: Plan, cohort: Cohort | None) -> dict[str, int]:
    """Records of each role: as they are, or as a cohort that is yet to be made will have them, fold by fold alike."""
    if cohort is not None:
        return {role: len(cohort.role(role)) for role in plan.roles if role in cohort}
    records = getattr(plan.cohort.settings, "records", 0)
    return {role: records * len(folds) // len(FOLDS) for role, folds in plan.roles.items()}


def _missing_roles(plan: Plan, cohort: Cohort | None) -> Iterator[str]:
    """Roles without folds in the plan, or without records in the cohort; of those that are scored one is enough."""

    def present(role: str) -> bool:
        return role in plan.roles and (cohort is None or role in cohort)

    needed = [*FITTED] if any(present(role) for role in SCORED) else [*FITTED, SCORED[0]]
    for role in needed:
        if role not in plan.roles:
            yield f"The plan gives no fold to the {role} role, which a study needs; name some in 'roles.{role}'."
        elif not present(role):
            assert cohort is not None
            folds = ", ".join(map(str, plan.roles[role]))
            yield (
                f"{cohort.source} has no record for the {role} role, which a study needs: none is in fold {folds}; "
                "give the role other folds."
            )


def _role_complaints(records: Records, budgets: Sequence[int]) -> Iterator[str]:
    """Reasons why a role cannot be read at these budgets, or not resampled."""
    leads, patients = records.lead_counts, len(np.unique(records.patients))
    if patients < 2:
        yield f"{_named(records)} has {patients} patient; a role needs at least two, so that they can be resampled."
    if not leads.all():
        without = records.ids[leads == 0]
        ids = ", ".join(map(str, without[:3])) + (", …" if len(without) > 3 else "")
        has = "record has no lead" if len(without) == 1 else "records have no lead"
        yield f"{len(without):,} {has} at all in {records.name} ({ids}); take such records out of the table."
    beyond = [k for k in budgets if k > leads.max()]
    if beyond and leads.any():
        yield (
            f"No record of {records.name} has {beyond[0]} leads; the most that one has is {leads.max()}, so leave out "
            "larger budgets."
        )


def _candidate_complaints(plan: Plan, selection: Records) -> Iterator[str]:
    """Budgets for which no fixed set of leads can be chosen: the records that have enough share too few."""
    available = selection.available
    leads = available.sum(axis=1)
    searched = {k for entry in plan.evaluators.values() for k in entry.references}
    sharing = [k for k in sorted(searched) if (leads >= k).any() and available[leads >= k].all(axis=0).sum() < k]
    if sharing:
        yield (
            f"There is no fixed set of {', '.join(map(str, sharing))} leads: the records of {selection.name} that have "
            "as many leads have fewer in common; take records that lack other leads than the rest out of the table."
        )
    for name, entry in plan.evaluators.items():
        beyond = [k for k in entry.references if k > leads.max() and k not in plan.budgets]
        if beyond and leads.any():
            yield (
                f"No record of {selection.name} has {beyond[0]} leads, which 'evaluators.{name}.references' asks for; "
                "leave that out."
            )


def _constant_labels(records: Records) -> Iterator[str]:
    for column, label in enumerate(records.label_names):
        with_it = int(records.labels[:, column].sum())
        if with_it in (0, len(records)):
            how = "no" if not with_it else "every"
            yield (
                f"In {records.name} {how} record has the label {label}, so nothing can be fitted for it; a role needs "
                "records with and without."
            )


def _without_waves(records: Records) -> Iterator[str]:
    """Records that are zero throughout, and so all alike; the first wave ends the search for one."""
    if not records.sealed and not any(microvolts.any() for _, microvolts in records.signals.chunks(512)):
        yield (
            f"Every signal of {records.name} is 0 throughout, so nothing can be learned from it; see what leadwise "
            "data check says."
        )


def _label_complaints(labels: Sequence[str], cohort: Cohort) -> Iterator[str]:
    if sorted(labels) != sorted(cohort.label_names):
        yield (
            f"The frozen evaluators answer for {', '.join(labels)}, but the labels of {cohort.source} are "
            f"{', '.join(cohort.label_names)}; score a cohort with the same labels."
        )


def _batch_complaints(plan: Plan, train: int | None, length: int) -> Iterator[str]:
    """Trainings that take more records at a time than there are, or too little to learn batch statistics from."""
    for name, entry in plan.evaluators.items():
        recipe = getattr(entry.settings, "recipe", None)
        if not isinstance(recipe, Recipe):
            continue
        where = f"evaluators.{name}.recipe"
        if train is not None and recipe.batch > train:
            yield (
                f"'{where}.batch' is {recipe.batch:,}, but the train role has {train:,} records; take a smaller batch."
            )
        if recipe.batch == 1 and min(recipe.crop, length) <= SHORTEST:
            yield (
                f"'{where}' reads one record of {min(recipe.crop, length)} samples at a time, from which batch "
                "normalisation learns nothing; take a larger 'batch' or 'crop'."
            )


def _memory_complaints(plan: Plan, sizes: Mapping[str, int], labels: int, length: int) -> list[str]:
    """Numbers of the plan that ask for more memory than there is; rough, from what was measured, and rather too low."""
    complaints = _too_large("cohort", plan.cohort, sizes, labels, length)
    if complaints:
        return complaints  # with fewer records, the rest may fit
    for table, entries in (("evaluators", plan.evaluators), ("policies", plan.policies)):
        for name, entry in entries.items():
            complaints += _too_large(f"{table}.{name}", entry, sizes, labels, length)
    scored = max((sizes[role] for role in SCORED if role in sizes), default=0)
    return complaints + _bootstrap_complaints(plan, scored)


def _too_large(where: str, entry: Entry, sizes: Mapping[str, int], labels: int, length: int) -> list[str]:
    """Settings of one entry that ask for too much memory."""
    complaints = []
    for setting, needed in entry.settings.memory(sizes, labels, length).items():
        number: Any = entry.settings
        for step in setting.split("."):
            number = getattr(number, step)
        shown = f"{number:,}" if isinstance(number, int) else str(number)
        complaints += too_large(f"'{where}.{setting}' of {shown}", needed)
    return complaints


def _bootstrap_complaints(plan: Plan, scored: int) -> list[str]:
    replicates, own = plan.bootstrap.replicates, plan.bootstrap.own_replicates
    # multiplicities as whole numbers and as weights, then the table of replicates while it is put together
    needed = replicates * (16 * scored + 50_000 * len(plan.budgets))
    # the same multiplicities, and sums that an evaluator's ECE of the studied policies and of the references is made of
    needed_own = own * (16 * scored + 8 * 50 * len(plan.budgets) * (len(plan.studied) + 3))
    complaints = too_large(f"'bootstrap.replicates' of {replicates:,}", needed)
    return complaints + too_large(f"'bootstrap.own_replicates' of {own:,}", needed_own)


def _named(records: Records) -> str:
    return records.name[0].upper() + records.name[1:]
