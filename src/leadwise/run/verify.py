"""Problems of a run or bundle: every difference from what its receipts and lists say."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from leadwise.cohort.contract import COHORTS
from leadwise.cohort.identity import Identity
from leadwise.cohort.ptbxl import read_identity
from leadwise.errors import InputError, LeadwiseError, one_line
from leadwise.run.bundle import CONTENTS, Bundle
from leadwise.run.directory import RunDirectory
from leadwise.run.history import History
from leadwise.run.manifest import made_for_people, read_manifest
from leadwise.run.plan import read_plan
from leadwise.run.stage import OUTPUTS, read_artifact
from leadwise.run.stage_names import scored_role
from leadwise.store import changed_files, differing_files, file_sha256


def verify(path: str | Path, head: str | None = None) -> list[str]:
    """A sentence for everything that is wrong with a run, or with a bundle; none if all is well.

    Of a run: the chain of receipts up to the head that the manifest names, every artifact against its receipt, the
    bundle, the results, the report, recordings that the run made itself, files that do not belong, and that the
    evaluation role was not scored before the freeze. All this is said by the run itself: whoever holds its files can
    write them all anew. ``head``, a head of the ledger that was kept elsewhere, must be among its receipts.
    """
    place = Path(path)
    if (place / CONTENTS).exists():
        problems = Bundle(place).problems()
        return problems + ["A bundle has no ledger, so there is no head to compare with."] * (head is not None)
    directory = RunDirectory(place)
    if not directory.ledger.exists():
        raise InputError(f"{place} is neither a run nor a bundle: it has no {directory.ledger.name} and no {CONTENTS}.")
    try:
        history = History.read(directory.ledger)
    except InputError as error:
        return [str(error)]
    return [
        *_head_problems(directory, history, head),
        *_manifest_problems(directory, history),
        *_artifact_problems(directory, history),
        *_recording_problems(directory, history),
        *_strangers(directory),
        *seal_problems(directory, history),
    ]


def _head_problems(directory: RunDirectory, history: History, head: str | None) -> Iterator[str]:
    """A head that was kept elsewhere stands for the receipt whose hash it is, and for all before it."""
    if head is not None and history.place_of(head) is None:
        yield f"{directory.ledger} has no receipt of the hash {one_line(head)}; another ledger had this head."


def _manifest_problems(directory: RunDirectory, history: History) -> list[str]:
    """The manifest was written last: it knows the head of the chain, the bundle, the results and the report."""
    if not directory.manifest.exists():
        if directory.results.exists() or history.results:
            return [f"{directory.manifest} is missing, though the run has results; if it was stopped, let it go on."]
        return []  # the run has not come to its results yet
    try:
        manifest = read_manifest(directory)
    except InputError as error:
        return [str(error)]
    problems = []
    known = history.first(manifest.receipts)
    if len(known) < manifest.receipts:
        problems.append(
            f"{directory.ledger} has {len(known)} receipts, but the manifest knows {manifest.receipts}: the last "
            "were removed."
        )
    elif known.head != manifest.head:
        problems.append(
            f"{directory.manifest} names a head that is not line {manifest.receipts} of {directory.ledger}; one of the "
            "two was changed."
        )
    results, report = known.results, known.report
    if results is None or (results.files, results.bundle) != (manifest.results, manifest.bundle):
        problems.append(f"{directory.manifest} does not say what the receipt about the results says.")
    if report is None or report.files != manifest.report:
        problems.append(f"{directory.manifest} does not say what the receipt about the report says.")
    # of the two, the ledger is the one whose lines vouch for each other
    hashes, frozen = (results.files, results.bundle) if results else (manifest.results, manifest.bundle)
    shown = report.files if report else manifest.report
    problems += changed_files(directory.results, hashes) + differing_files(directory.path, shown)
    added = made_for_people(directory).keys() - shown.keys()
    problems += [f"{directory.path / name} was added later." for name in sorted(added)]
    try:
        bundle = Bundle(directory.bundle)
        if bundle.sha256 != frozen:
            problems.append(f"{directory.bundle / CONTENTS} is not the one that was frozen.")
        return [*problems, *frozen_problems(bundle, directory, history)]
    except InputError as error:
        return [*problems, str(error)]


def frozen_problems(bundle: Bundle, directory: RunDirectory, history: History) -> list[str]:
    """A sentence for everything in which the bundle of a run is not what its ledger says was frozen."""
    problems = []
    if not directory.plan.exists() or file_sha256(directory.plan) != bundle.files.get("plan.toml"):
        problems.append(f"{directory.plan} is not the plan that was frozen.")
    if bundle.sha256 not in history.bundles:
        problems.append(f"{directory.bundle / CONTENTS} is not what a receipt says was frozen.")
    problems += bundle.problems()
    if not problems and bundle.freeze != history.of_bundle(bundle.sha256).freeze:
        problems.append(f"{bundle.path} does not say what the ledger says about when it was frozen.")
    return problems


def _artifact_problems(directory: RunDirectory, history: History) -> list[str]:
    """Every finished stage has a receipt that names its place, its files and their hashes."""
    said = {directory.artifacts / each.stage / each.key[:16]: each for each in history.ended}
    problems, present = [], list(_places(directory.artifacts))
    for place in present:
        if place not in said:
            if not any(place in each.parents for each in said):
                problems.append(f"{place} has no receipt that says it was finished.")
            continue
        try:
            artifact = read_artifact(place)
        except InputError as error:
            problems.append(str(error))
            continue
        if artifact is None:
            problems.append(f"{place / OUTPUTS} is missing; run the plan again, and the stage will be done again.")
            continue
        if said[place].list_sha256 != file_sha256(place / OUTPUTS):
            problems.append(f"{place / OUTPUTS} is not what its receipt says.")
        problems += changed_files(place, artifact.outputs, OUTPUTS)
    return problems + [f"{place} is missing, though its receipt is there." for place in said if place not in present]


def _places(directory: Path) -> Iterator[Path]:
    """Places of artifacts, whatever their stages are called, and stray files; not what kills have left."""
    for place in sorted(directory.iterdir()) if directory.exists() else ():
        if place.name.startswith(".") or place.name.endswith(".unfinished"):
            continue
        is_stage = place.is_dir() and not place.is_symlink() and not re.fullmatch("[0-9a-f]{16}", place.name)
        if is_stage and any(place.iterdir()):
            yield from _places(place)
        else:
            yield place


def _recording_problems(directory: RunDirectory, history: History) -> Iterator[str]:
    """Recordings that a run made itself are those that it read, which a receipt names by their fingerprints."""
    identity_of: dict[Path, Callable[[], Identity]] = {}
    said = [each.cohort for each in history.cohorts]
    for place in directory.path.glob("cohort-*"):
        left = [each.name.startswith(".") for each in place.iterdir()] if place.is_dir() else []
        if not (left and all(left)):  # which is what a kill leaves
            identity_of[place] = partial(read_identity, place)
    if said and directory.plan.exists() and not history.taken_over:
        try:
            plan = read_plan(directory.plan)
        except LeadwiseError as error:
            yield str(error)
            return
        made = directory.made_cohort(plan)
        if plan.makes_cohort and not (made / "ptbxl_database.csv").exists():
            kind = COHORTS.find(plan.cohort.kind)  # another's recordings may lie there in another layout
            identity_of[made] = lambda: kind.read(plan.cohort.settings, made, plan.cohort_roles()).identity
    for place in sorted(identity_of):
        try:
            identity = identity_of[place]()
        except LeadwiseError as error:
            yield str(error)
            continue
        if identity.facts not in said:
            yield f"{place} does not hold the recordings that a receipt says were read; they were changed."


def _strangers(directory: RunDirectory) -> Iterator[str]:
    """Files in a run that are no part of it; hidden files are what kills leave, and nothing reads them."""
    known = {place.name for name, place in vars(directory).items() if name != "path"}
    for place in sorted(directory.path.iterdir()):
        ours = place.name in known or place.name.startswith("cohort-")
        if not ours and not place.name.startswith("."):
            yield f"{place} does not belong to the run; keep it elsewhere."


def seal_problems(directory: RunDirectory, history: History) -> list[str]:
    """Nothing scored the evaluation role before something was frozen."""
    early = history.scored_too_early
    if early is None:
        return []
    role = scored_role(early.stage)
    return [f"{directory.ledger}, line {early.number}: the {role} role was scored before the freeze."]
