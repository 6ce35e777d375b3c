"""A study carried out: every stage that is not done yet, then the audit, the evaluation where it can be, the report."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.contrasts import Readings
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.synthetic import write_synthetic
from leadwise.errors import CohortError, PlanError
from leadwise.policies.oracle import headroom_frame
from leadwise.run.bundle import Bundle
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import Ledger
from leadwise.run.plan import Plan, read_plan
from leadwise.run.stage import OUTPUTS, Runner, Stage, Work, in_order
from leadwise.store import atomic_directory, atomic_file, file_sha256
from leadwise.study.results import RoleResults, quality_frame, write_frames
from leadwise.study.stages import Study, stages

SCORED = ("audit", "evaluation")
"""Roles that are scored after the freeze, in this order."""


def run_study(plan: str | Path, out: str | Path, cohort: str | Path | None = None) -> RunDirectory:
    """Carry out a plan in the directory ``out``, from wherever it stands; a synthetic cohort need not be given."""
    wanted, directory = read_plan(plan), RunDirectory(out)
    if wanted.cohort.kind == "ptbxl":
        whole = _read_cohort(wanted, cohort)  # before anything is written
    with directory.writing():
        if wanted.cohort.kind == "synthetic":
            whole = _synthetic_cohort(wanted, directory)
        _keep_plan(Path(plan), directory)
        ledger = Ledger(directory.ledger)
        study = Study(wanted, directory.plan, whole)
        runner = Runner(directory, ledger, _fingerprints(whole), study)
        for stage in in_order(stages(wanted, list(runner.roles))):
            runner.run(stage)
        _copy_bundle(runner.done["freeze"].path, directory.bundle)
        bundle = Bundle(directory.bundle)
        runner.run(Stage("development", _development(bundle), ("role:validation", "role:selection", "freeze")))
        for role in SCORED:
            if role in whole:
                runner.run(scoring_stage(role, bundle, ("freeze",)))
        _finish(directory, ledger, runner)
    return directory


def evaluate_bundle(
    bundle: str | Path, cohort: str | Path, out: str | Path, role: str | None = None
) -> tuple[RunDirectory, str]:
    """Score one role of a cohort with a frozen bundle (or the bundle of a run), nothing refitted; says which role."""
    place = RunDirectory(bundle).bundle
    frozen = Bundle(place if place.exists() else bundle)
    directory = RunDirectory(out)
    whole = read_ptbxl(cohort, frozen.plan.cohort_roles())
    chosen = role or ("evaluation" if "evaluation" in whole else "audit")
    if chosen not in SCORED:
        raise PlanError(f"The {chosen} role was used before the freeze; score {' or '.join(SCORED)}.")
    with directory.writing():
        _keep_plan(frozen.path / "plan.toml", directory)
        ledger = Ledger(directory.ledger)
        _copy_bundle(frozen.path, directory.bundle)
        study = Study(frozen.plan, directory.plan, whole)
        roles = {chosen: whole[chosen].fingerprint()}
        runner = Runner(directory, ledger, roles, study)
        ledger.add("bundle", sha256=frozen.sha256)
        runner.run(scoring_stage(chosen, Bundle(directory.bundle), ()))
        _finish(directory, ledger, runner)
    return directory, chosen


def scoring_stage(role: str, bundle: Bundle, needs: tuple[str, ...]) -> Stage:
    """Score a role with everything that was frozen. The receipt of this stage is the receipt of having looked."""

    def make(work: Work) -> None:
        cohort = bundle.open(work.study.cohort)
        results = RoleResults(bundle, cohort[role], work.scratch)
        write_frames(work.out, results.frames())

    return Stage(role, make, (f"role:{role}", *needs), {"bundle": bundle.sha256})


def _development(bundle: Bundle) -> Callable[[Work], None]:
    """What is said about the roles that were used for fitting and choosing: quality, and what an oracle would gain."""

    def make(work: Work) -> None:
        cohort, plan = work.study.cohort, bundle.plan
        validation = cohort["validation"]
        bootstrap = PatientBootstrap(validation, plan.bootstrap.replicates, plan.bootstrap.seed)
        readings = Readings(validation, bundle.evaluators.values(), bootstrap, work.scratch)
        controlled = bundle.evaluators["controlled"], cohort["selection"], bundle.references["controlled"]
        frames = {
            "evaluator_quality": quality_frame(readings, validation),
            "headroom": headroom_frame(*controlled, plan.budgets),
        }
        write_frames(work.out, frames)

    return make


def _keep_plan(plan: Path, directory: RunDirectory) -> None:
    content = plan.read_bytes()
    if directory.plan.exists() and directory.plan.read_bytes() == content:
        return
    with atomic_file(directory.plan) as draft:
        draft.write_bytes(content)


def _synthetic_cohort(plan: Plan, directory: RunDirectory) -> Cohort:
    """The synthetic cohort of a plan, made once."""
    records, seed = plan.cohort.records, plan.cohort.seed
    assert records is not None  # the plan was checked
    made = directory.path / f"cohort-{records}-{seed}"
    if not made.exists():
        write_synthetic(made, records=records, seed=seed)
    return _read_cohort(plan, made)


def _read_cohort(plan: Plan, cohort: str | Path | None) -> Cohort:
    if cohort is None:
        raise CohortError("The plan studies PTB-XL; say where it is with --cohort DIR.")
    return read_ptbxl(cohort, plan.cohort_roles())


def _fingerprints(cohort: Cohort) -> dict[str, str]:
    """Of each role that the cohort has."""
    return {role: cohort[role].fingerprint() for role in cohort.roles.folds if role in cohort}


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A directory to fill, which then takes the place of ``target``."""
    new = target.with_name(f".{target.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # a kill may have left one, of another plan
    with atomic_directory(new) as draft:
        yield draft
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def _copy_bundle(source: Path, target: Path) -> None:
    with _replacing(target) as draft:
        shutil.copytree(source, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns(OUTPUTS))


def _finish(directory: RunDirectory, ledger: Ledger, runner: Runner) -> None:
    """Gather the results of all roles, and write the manifest last: it holds the head of the chain."""
    bundle = Bundle(directory.bundle)
    parts = [runner.done[name].path for name in ("development", *SCORED) if name in runner.done]
    with _replacing(directory.results) as draft:
        frames = {
            name: pd.concat(
                [pd.read_parquet(part / f"{name}.parquet") for part in parts if (part / f"{name}.parquet").exists()]
            )
            for name in sorted({file.stem for part in parts for file in part.glob("*.parquet")})
        }
        frames["references"] = pd.concat([found.frame for found in bundle.references.values()])
        frames |= {name: pd.read_csv(bundle.path / f"{name}.csv") for name in ("splits", "seeds", "boundary")}
        write_frames(draft, frames)
        hashes = {file.name: file_sha256(file) for file in sorted(draft.iterdir())}
    said = [receipt for receipt in ledger.receipts if receipt["event"] == "results"]
    if not said or (said[-1]["bundle"], said[-1]["files"]) != (bundle.sha256, hashes):
        ledger.add("results", bundle=bundle.sha256, files=hashes)
    with atomic_file(directory.manifest) as draft:
        facts = {"head": ledger.head, "receipts": len(ledger.receipts), "bundle": bundle.sha256, "results": hashes}
        draft.write_text(json.dumps(facts, indent=1) + "\n")
