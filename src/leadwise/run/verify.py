"""Whether a run or a bundle is still what it says it is."""

import json
from pathlib import Path
from typing import Any

from leadwise.cohort.roles import SCORED
from leadwise.errors import InputError
from leadwise.run.bundle import CONTENTS, Bundle
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import read_receipts, receipt_sha256
from leadwise.run.stage import OUTPUTS, read_artifact
from leadwise.store import changed_files, differing_files, file_sha256


def verify(path: str | Path) -> list[str]:
    """A sentence for everything that is wrong with a run, or with a bundle; none if all is well.

    Of a run: the chain of receipts up to the head that the manifest names, every artifact against its receipt, the
    bundle, the results, and that the evaluation role was not scored before the freeze.
    """
    place = Path(path)
    if (place / CONTENTS).exists():
        return Bundle(place).problems()
    directory = RunDirectory(place)
    if not directory.ledger.exists():
        raise InputError(f"{place} is neither a run nor a bundle: it has no {directory.ledger.name} and no {CONTENTS}.")
    try:
        receipts = read_receipts(directory.ledger)
    except InputError as error:
        return [str(error)]
    return [
        *_manifest_problems(directory, receipts),
        *_artifact_problems(directory, receipts),
        *seal_problems(directory, receipts),
    ]


def _manifest_problems(directory: RunDirectory, receipts: list[dict[str, Any]]) -> list[str]:
    """The manifest was written last: it knows the head of the chain, the bundle and the results."""
    if not directory.manifest.exists():
        if directory.results.exists() or any(each["event"] == "results" for each in receipts):
            return [f"{directory.manifest} is missing, though the run has results; if it was stopped, let it go on."]
        return []  # the run has not come to its results yet
    try:
        facts = json.loads(directory.manifest.read_text())
        count, head, frozen = (facts[name] for name in ("receipts", "head", "bundle"))
        hashes, report = dict(facts["results"]), dict(facts["report"])
    except (ValueError, KeyError, TypeError):
        return [f"{directory.manifest} is damaged."]
    problems = []
    if len(receipts) < count:
        problems.append(
            f"{directory.ledger} has {len(receipts)} receipts, but the manifest knows {count}: the last were removed."
        )
    elif receipt_sha256(receipts[count - 1]) != head:
        problems.append(
            f"{directory.manifest} names a head that is not line {count} of {directory.ledger}; one of the two was "
            "changed."
        )
    results = [each for each in receipts[:count] if each["event"] == "results"]
    if not results or results[-1]["files"] != hashes or results[-1]["bundle"] != frozen:
        problems.append(f"{directory.manifest} does not say what the receipt about the results says.")
    if results:  # of the two, the ledger is the one whose lines vouch for each other
        hashes, frozen = results[-1]["files"], results[-1]["bundle"]
    problems += changed_files(directory.results, hashes) + differing_files(directory.path, report)
    try:
        bundle = Bundle(directory.bundle)
    except InputError as error:
        return [*problems, str(error)]
    if not directory.plan.exists() or file_sha256(directory.plan) != bundle.files["plan.toml"]:
        problems.append(f"{directory.plan} is not the plan that was frozen.")
    if bundle.sha256 != frozen:
        problems.append(f"{directory.bundle / CONTENTS} is not the one that was frozen.")
    return problems + bundle.problems()


def _artifact_problems(directory: RunDirectory, receipts: list[dict[str, Any]]) -> list[str]:
    """Every finished stage has a receipt that names its files and their hashes."""
    said = {receipt["key"]: receipt for receipt in receipts if receipt["event"] == "end"}
    problems = []
    for place in sorted(directory.artifacts.glob("*/[!.]*")):
        try:
            artifact = read_artifact(place)
        except InputError as error:
            problems.append(str(error))
            continue
        if artifact is None:
            continue  # unfinished
        if artifact.key not in said:
            problems.append(f"{place} has no receipt that says it was finished.")
        elif said[artifact.key]["sha256"] != file_sha256(place / OUTPUTS):
            problems.append(f"{place / OUTPUTS} is not what its receipt says.")
        problems += changed_files(place, artifact.outputs, OUTPUTS)
    present = {place.name for place in directory.artifacts.glob("*/[!.]*")}
    problems += [
        f"{directory.artifacts / receipt['stage'] / receipt['key'][:16]} is missing, though its receipt is there."
        for receipt in receipts
        if receipt["event"] == "end" and receipt["key"][:16] not in present
    ]
    return problems


def seal_problems(directory: RunDirectory, receipts: list[dict[str, Any]]) -> list[str]:
    """Nothing scored the evaluation role before something was frozen."""
    frozen = False
    for number, receipt in enumerate(receipts, start=1):
        frozen |= receipt["event"] == "bundle" or (receipt["event"], receipt.get("stage")) == ("end", "freeze")
        if receipt.get("stage") in SCORED and not frozen:
            return [f"{directory.ledger}, line {number}: the {receipt['stage']} role was scored before the freeze."]
    return []
