"""A study carried out: every stage that is not done yet, then the audit, the evaluation where it can be, the report."""

import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.contract import COHORTS
from leadwise.cohort.identity import Identity
from leadwise.cohort.roles import ROLES, SCORED
from leadwise.errors import CohortError, InputError, PlanError
from leadwise.findings.claims import claim_cells, claims_frame
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.findings.paper import published_frame
from leadwise.progress import stage
from leadwise.run.bundle import Bundle, write_freeze
from leadwise.run.contents import RunContents, published_cohort
from leadwise.run.directory import RunDirectory
from leadwise.run.history import History
from leadwise.run.ledger import Freeze, Ledger
from leadwise.run.manifest import close_run
from leadwise.run.plan import Plan, read_plan
from leadwise.run.results import TABLES
from leadwise.run.stage import OUTPUTS, Runner, Tell, in_order
from leadwise.run.stage_names import FREEZE, scoring_stage
from leadwise.run.verify import frozen_problems
from leadwise.store import atomic_file, file_sha256, remove_drafts, replacing
from leadwise.study.completeness import check_complete
from leadwise.study.feasibility import check_bundle, check_plan
from leadwise.study.fitting import Study
from leadwise.study.graph import scored, stages
from leadwise.study.scoring import write_frames


def find_plan(plan: str | Path) -> Path:
    """The file of a plan: as it is named, or one that ships with leadwise, by its name alone."""
    studies = Path(str(files("leadwise"))) / "studies"
    shipped = {file.stem: file for file in sorted(studies.glob("*.toml"))}
    if (Path(plan).exists() and not Path(plan).is_dir()) or Path(plan).suffix:
        return Path(plan)
    if str(plan) not in shipped:
        raise PlanError(f"There is no plan '{plan}'; name a TOML file, or {' or '.join(shipped)}, which ship by name.")
    return shipped[str(plan)]


def run_study(
    plan: str | Path, out: str | Path, cohort: str | Path | None = None, tell: Tell = lambda _line: None
) -> RunDirectory:
    """Carry out a plan in the directory ``out``, from wherever it stands; a cohort that the plan makes is not given.

    ``tell`` hears of every stage that begins or ends.
    """
    plan = find_plan(plan)
    wanted, directory = read_plan(plan), RunDirectory(out)
    given = read_cohort(wanted, cohort)
    check_plan(wanted, given)  # before anything is written
    with directory.writing():
        whole = _made_cohort(wanted, directory) if given is None else given
        _keep_plan(plan, directory)
        ledger = Ledger(directory.ledger)
        study = Study(wanted, directory.plan, whole)
        runner = Runner(directory, ledger, _fingerprints(whole), study, tell)
        _say_cohort(ledger, whole)
        fitted, present = in_order(stages(wanted, list(runner.roles))), [role for role in SCORED if role in whole]
        count = len(fitted) + len(present)
        for number, each in enumerate(fitted, start=1):
            with stage(each.name, number, count):
                runner.run(each)
        shutil.rmtree(directory.readings, ignore_errors=True)
        frozen = Bundle(runner.done[FREEZE].path)
        _copy_bundle(frozen, History(ledger.receipts).of_bundle(frozen.sha256).freeze, directory)
        for number, role in enumerate(present, start=len(fitted) + 1):
            with stage(scoring_stage(role), number, count):
                runner.run(scored(role, frozen.sha256, (FREEZE,)))
        _finish(directory, ledger, runner)
    return directory


def evaluate_bundle(
    bundle: str | Path, cohort: str | Path, out: str | Path, role: str | None = None, tell: Tell = lambda _line: None
) -> tuple[RunDirectory, str]:
    """Score one role of a cohort with a frozen bundle (or the bundle of a run), nothing refitted; says which role."""
    if role is not None and role not in ROLES:
        raise PlanError(f"There is no role '{role}' to be scored; score {' or '.join(SCORED)}.")
    if role is not None and role not in SCORED:
        raise PlanError(f"The {role} role was used before the freeze; score {' or '.join(SCORED)}.")
    frozen, directory = _frozen_at(Path(bundle)), RunDirectory(out)
    whole = _read(frozen.plan, Path(cohort))
    chosen = ("evaluation" if "evaluation" in whole else "audit") if role is None else role
    _check_place(frozen, directory)
    frozen.open(whole, chosen)  # a bundle that was changed is refused before anything is written
    check_complete(frozen)
    check_bundle(frozen.plan, list(next(iter(frozen.evaluators.values())).labels), whole, chosen)
    # what cannot be loaded, or is not what it was, is refused before a receipt says that scoring began
    _ = frozen.tables, whole.identity
    for policy in frozen.policies.values():
        if hasattr(policy, "serve"):
            policy.serve(whole.role(chosen).available, frozen.plan.budgets)
    freeze, roles = frozen.freeze, {chosen: whole.role(chosen).fingerprint()}
    with directory.writing():
        _keep_plan(frozen.path / "plan.toml", directory)
        ledger = Ledger(directory.ledger)
        study = Study(frozen.plan, directory.plan, whole)
        runner = Runner(directory, ledger, roles, study, tell)
        _say_cohort(ledger, whole)
        ledger.add("bundle", sha256=frozen.sha256, frozen=freeze.model_dump() if freeze else None)
        _copy_bundle(frozen, freeze, directory)
        with stage(scoring_stage(chosen)):
            runner.run(scored(chosen, frozen.sha256))
        _finish(directory, ledger, runner)
    return directory, chosen


def _frozen_at(path: Path) -> Bundle:
    """The bundle at a path, or that of the run there; one that lies in a run is what the run's ledger says it is."""
    place = RunDirectory(path).bundle
    bundle = Bundle(place if place.exists() else path)
    run = RunDirectory(bundle.path.parent)
    if run.bundle == bundle.path and run.ledger.exists():
        problems = frozen_problems(bundle, run, History.read(run.ledger))
        if problems:
            raise InputError(f"The bundle does not open the seal: {problems[0]}")
    return bundle


def _check_place(bundle: Bundle, directory: RunDirectory) -> None:
    """Raise where scoring would write over the bundle, the run that made one, or the results of another bundle."""
    source, target = (Path(os.path.realpath(place)) for place in (bundle.path, directory.path))
    if RunDirectory(source.parent).ledger.exists():
        source = source.parent  # the run around the bundle
    history = History.read(directory.ledger)
    made = bool(history.fitted) or set(history.bundles) - {bundle.sha256}
    if made or target == source or source in target.parents or target in source.parents:
        raise InputError(
            f"{directory.path} holds the bundle or another run; name a new directory for the results of this scoring."
        )


def report_run(run: str | Path) -> Path:
    """Make the report of a run again, from its results; returns the page."""
    from leadwise.report.page import write_report

    directory = RunDirectory(run)
    RunContents.read(run)  # what is no finished run is refused before anything is written
    with directory.writing():
        page = write_report(run)
        close_run(directory, Ledger(directory.ledger))
    return page


def _keep_plan(plan: Path, directory: RunDirectory) -> None:
    content = plan.read_bytes()
    if directory.plan.exists() and directory.plan.read_bytes() == content:
        return
    with atomic_file(directory.plan) as draft:
        draft.write_bytes(content)


def _made_cohort(plan: Plan, directory: RunDirectory) -> Cohort:
    """The cohort that a plan makes, made once."""
    place = directory.made_cohort(plan)
    new = not place.exists()
    if new:
        maker: Any = COHORTS.find(plan.cohort.kind)
        maker.write(plan.cohort.settings, place)
    whole = _read(plan, place)
    try:
        check_plan(plan, whole)  # now that its labels are known
    except PlanError:
        if new:
            shutil.rmtree(place)
        raise
    return whole


def read_cohort(plan: Plan, cohort: str | Path | None) -> Cohort | None:
    """The cohort of a plan, with the plan's roles; None where the run makes its own recordings."""
    if plan.makes_cohort:
        if cohort is not None:
            raise PlanError(
                f"The plan makes its own recordings and would not read {cohort}; leave --cohort out, or name a plan "
                "for PTB-XL, such as ptbxl."
            )
        return None
    if cohort is None:
        raise CohortError(f"The plan reads a cohort ('{plan.cohort.kind}'); say where it is with --cohort DIR.")
    return _read(plan, Path(cohort))


def _read(plan: Plan, directory: Path) -> Cohort:
    return COHORTS.find(plan.cohort.kind).read(plan.cohort.settings, directory, plan.cohort_roles())


def _fingerprints(cohort: Cohort) -> dict[str, str]:
    """Fingerprints of the roles that the cohort has."""
    return {role: cohort.role(role).fingerprint() for role in cohort.roles.folds if role in cohort}


def _say_cohort(ledger: Ledger, cohort: Cohort) -> None:
    """A receipt of what is read, unless the last one says the same."""
    facts = (cohort.identity.facts, cohort.roles.unsealed)
    said = [(each.cohort, each.unsealed) for each in History(ledger.receipts).cohorts]
    if said[-1:] != [facts]:
        ledger.add("cohort", cohort=facts[0], unsealed=facts[1])


def _copy_bundle(bundle: Bundle, freeze: Freeze | None, directory: RunDirectory) -> None:
    """Put a bundle into its place in a run, with the time when it was frozen, where that is known."""
    directory.check_ours()  # somebody may have put something there meanwhile
    with replacing(directory.bundle) as draft:
        shutil.copytree(bundle.path, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns(OUTPUTS))
        if freeze is not None:
            write_freeze(draft, bundle.sha256, freeze)


def _finish(directory: RunDirectory, ledger: Ledger, runner: Runner) -> None:
    """Gather the results of all roles, make the report, and write the manifest last: it holds the head of the chain."""
    from leadwise.report.page import write_report  # matplotlib and jinja2, which the status of a run does without

    for place in (directory.plan, directory.report, directory.manifest):
        remove_drafts(place)  # a kill may have left some
    bundle = Bundle(directory.bundle)
    cohort = runner.study.cohort.identity
    done = [runner.done[scoring_stage(role)].path for role in SCORED if scoring_stage(role) in runner.done]
    frames = _gather(bundle, cohort, done)
    directory.check_ours()  # somebody may have put something there meanwhile
    with replacing(directory.results) as draft:
        write_frames(draft, frames)
        hashes = {file.name: file_sha256(file) for file in sorted(draft.iterdir())}
        said = History(ledger.receipts).results
        if said is None or (said.bundle, said.files) != (bundle.sha256, hashes):
            # before they take their place, so that after a kill, too, it is known whose they are
            ledger.add("results", bundle=bundle.sha256, files=hashes)
    runner.tell("making the report …")
    with stage("the report"):
        write_report(directory.path)
    close_run(directory, ledger)


def _gather(bundle: Bundle, cohort: Identity, scored: list[Path]) -> dict[str, pd.DataFrame]:
    """Tables of the bundle and of the scored roles, and what follows from them for the plan and the publication."""
    parts = [{file.stem: pd.read_parquet(file) for file in place.glob("*.parquet")} for place in scored]
    parts = [*parts, bundle.tables]  # a scored role knows more of itself than what was said of it under the seal
    names = sorted({name for part in parts for name in part})
    frames = {name: pd.concat([part[name] for part in parts if name in part], ignore_index=True) for name in names}
    splits = frames["splits"].drop_duplicates("role").set_index("role", drop=False)
    frames["splits"] = splits.reindex([role for role in bundle.plan.roles if role in splits.index])
    searched = [bundle.references[name].frame for name in bundle.plan.evaluators if name in bundle.references]
    frames["references"] = pd.concat(searched, ignore_index=True) if searched else TABLES["references"].frame()
    sizes = {name: getattr(each, "parameters", None) for name, each in bundle.evaluators.items()}
    frames["evaluators"] = TABLES["evaluators"].frame(
        {"evaluator": name, "kind": entry.kind, "parameters": sizes[name]}
        for name, entry in bundle.plan.evaluators.items()
    )
    frames["hypotheses"] = hypotheses_frame(bundle.plan, frames)
    # what is of another cohort than the paper's says nothing about its numbers and claims
    answers = dict(frames) if published_cohort(cohort, bundle.cohort) else {}
    frames["published"] = published_frame(answers, bundle.plan.roles)
    frames["claims"] = claims_frame(answers, bundle.plan.roles)
    frames["claim_cells"] = claim_cells(answers, bundle.plan.roles)
    return frames
