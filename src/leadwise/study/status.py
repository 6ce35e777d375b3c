"""States of a run's stages."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leadwise.cohort.roles import SCORED
from leadwise.errors import InputError
from leadwise.run.bundle import CONTENTS
from leadwise.run.directory import RunDirectory
from leadwise.run.history import History
from leadwise.run.ledger import Begin, End
from leadwise.run.plan import Plan, read_plan
from leadwise.run.stage import OUTPUTS, Finder, MissingInput, Stage, in_order, read_artifact
from leadwise.run.stage_names import CENSUS, FREEZE, scoring_stage
from leadwise.store import file_sha256
from leadwise.study.graph import scored, stages


def run_status(path: str | Path, plan: Plan | None = None) -> list[dict[str, Any]]:
    """One row a stage: stage, state, seconds, and when it was last heard of; under another plan, if one is given.

    A stage is ``done`` when it was made from what the plan asks for now, ``unfinished`` when it was begun from that,
    ``outdated`` when it was made from something else, and otherwise ``to do``. What needs an outdated stage counts as
    outdated too, though a run that does that stage again may find it unchanged.
    """
    directory = RunDirectory(path)
    if (directory.path / CONTENTS).exists():
        raise InputError(f"{directory.path} is a frozen bundle, not a run; verify tells whether it is whole.")
    if not directory.plan.exists():
        raise InputError(f"{directory.path} is no run: it has no plan.toml.")
    history, wanted = History.read(directory.ledger), plan or read_plan(directory.plan)
    finder = Finder(directory, _fingerprints(directory, wanted, history))
    return [_row(finder, stage, history) for stage in _planned(finder, wanted, history)]


def _row(finder: Finder, stage: Stage, history: History) -> dict[str, Any]:
    """State of a stage. If it is done, those that need it may be too."""
    heard = [receipt for receipt in history.staged if receipt.stage == stage.name]
    try:
        key, artifact = finder.key(stage), finder.find(stage)
    except MissingInput:
        key, artifact = "", None
    of_this = [receipt for receipt in heard if receipt.key == key]
    if artifact is not None:
        finder.done[stage.name], state = artifact, "done"
    elif of_this and isinstance(of_this[-1], Begin):
        state = "unfinished"
    elif any(isinstance(receipt, End) and receipt.key != key for receipt in heard):
        state = "outdated"
    else:
        state = "to do"
    last = next(reversed(of_this or heard), None)
    seconds = last.seconds if isinstance(last, End) else None
    return {"stage": stage.name, "state": state, "seconds": seconds, "time": last.time if last else None}


def _planned(finder: Finder, plan: Plan, history: History) -> Iterator[Stage]:
    """Every stage in the order of a run. What is scored depends on the freeze, which must have been found by then."""
    if history.taken_over:  # a bundle from elsewhere was scored, and no more
        bundle = file_sha256(finder.directory.bundle / CONTENTS)
        yield from (scored(role, bundle) for role in SCORED if role in finder.roles)
        return
    yield from in_order(stages(plan, list(finder.roles)))
    frozen, heard = finder.done.get(FREEZE), {receipt.stage for receipt in history.staged}
    for role in SCORED:
        if frozen and role in finder.roles:
            yield scored(role, file_sha256(frozen.path / CONTENTS), (FREEZE,))
        elif role in plan.roles and (role in finder.roles or scoring_stage(role) in heard or not finder.roles):
            yield scored(role, "", (FREEZE,))


def _fingerprints(directory: RunDirectory, plan: Plan, history: History) -> dict[str, str]:
    """Fingerprints of the roles, without reading the cohort: those that stages began with, by the receipts.

    The stage that counts the cohort begins with all roles. Of several such receipts that one counts which fits the
    plan best, and the last of those that fit alike.
    """
    cohorts = [_fitting(directory, plan, receipt) for receipt in reversed(history.begun) if receipt.stage == CENSUS]
    if cohorts:
        return max(cohorts, key=lambda cohort: cohort[0])[1]
    return {role: fingerprint for receipt in history.begun for role, fingerprint in receipt.roles.items()}


def _fitting(directory: RunDirectory, plan: Plan, census: Begin) -> tuple[float, dict[str, str]]:
    """The roles of a cohort that have the same folds in the plan, with their fingerprints; first their share."""
    place = directory.artifacts / CENSUS / census.key[:16]
    if read_artifact(place) is None:
        return 0.0, {}
    settings, wanted = json.loads((place / OUTPUTS).read_text())["settings"], plan.cohort.as_said()
    roles = settings.get("roles") if isinstance(settings, dict) else None
    if not isinstance(roles, dict) or settings.get("cohort", wanted) != wanted:
        return 0.0, {}
    fitting = {role: each for role, each in census.roles.items() if roles.get(role) == plan.roles.get(role)}
    return len(fitting) / max(1, len(census.roles)), fitting
