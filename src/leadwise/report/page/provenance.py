"""Where a report's numbers come from, as the receipts say it."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import pandas as pd
import rfc8785

from leadwise.cohort.roles import SCORED
from leadwise.report.wording import listing
from leadwise.run.contents import RunContents

Receipt = Mapping[str, Any]


def used_artifacts(receipts: Sequence[Receipt], bundle: str) -> list[Receipt]:
    """The receipts of all finished stages that the results of a bundle (its SHA-256) rest on, in their order.

    A run may have carried out other plans before, so the chain is followed back from the scored roles: the receipt that
    begins a stage names the hashes of its inputs, the receipt that ends a stage names its outputs.
    """
    ended = {(each["stage"], _outputs_sha256(each)): each for each in receipts if each["event"] == "end"}
    inputs = {each["key"]: each["inputs"] for each in receipts if each["event"] == "begin"}
    frozen = {made for made, each in ended.items() if each["outputs"].get("bundle.json") == bundle}
    left, opened = list(frozen), None
    for receipt in receipts:
        if receipt["event"] == "bundle":
            opened = receipt["sha256"]  # frozen elsewhere; what follows is scored with it
        elif receipt["event"] == "end" and receipt["stage"] in SCORED:
            needs = inputs[receipt["key"]]
            if ("freeze", needs.get("freeze")) in frozen or ("freeze" not in needs and opened == bundle):
                left.append((receipt["stage"], _outputs_sha256(receipt)))
    used: dict[int, Receipt] = {}
    while left:
        receipt = ended.get(left.pop(), {})
        if receipt and receipt["number"] not in used:  # a role of the cohort is no stage
            used[receipt["number"]] = receipt
            left += inputs[receipt["key"]].items()
    return [used[number] for number in sorted(used)]


def result_hashes(receipts: Sequence[Receipt]) -> dict[str, str]:
    """SHA-256 of every file of the results."""
    return dict(next(each["files"] for each in reversed(receipts) if each["event"] == "results"))


def hash_frames(contents: RunContents) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Tables of hashes, each with its name, title and caption."""
    used = used_artifacts(contents.receipts, contents.bundle.sha256)
    rows = [(each["stage"], each["key"][:16], each["seconds"], each["sha256"]) for each in used]
    artifacts = pd.DataFrame(rows, columns=["stage", "key", "seconds", "SHA-256"])
    where = "Every artifact that the results rest on, in artifacts/STAGE/KEY. The hash is that of its outputs.json, "
    yield ("used", "Artifacts", where + "which holds the hash of each of its files."), artifacts
    bundle, results = contents.bundle.files, result_hashes(contents.receipts)
    yield ("frozen", "Bundle", "What was frozen before a scored role was looked at, in bundle/."), _files(bundle)
    yield ("results", "Results", "What all tables and figures of this report show, in results/."), _files(results)


def software_frame(receipts: Sequence[Receipt]) -> pd.DataFrame:
    """A row for each software and machine that wrote receipts, with the stages that it worked on."""
    stages: dict[tuple[Any, ...], dict[str, None]] = {}
    for receipt in receipts:
        facts = tuple(receipt["software"].get(name) for name in _SOFTWARE)
        stages.setdefault(facts, {})[receipt.get("stage", receipt["event"])] = None
    rows = [(*facts, "all" if len(stages) == 1 else listing(names)) for facts, names in stages.items()]
    return pd.DataFrame(rows, columns=[*_SOFTWARE.values(), "stages"])


_SOFTWARE = {
    "leadwise": "leadwise",
    "commit": "commit",
    "python": "Python",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "cpu": "CPU",
    "threads": "threads",
}


def _files(hashes: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(hashes.items(), columns=["file", "SHA-256"])


def _outputs_sha256(receipt: Receipt) -> str:
    """An artifact's hash as the stages that need it name it; see `leadwise.run.stage.Artifact`."""
    return sha256(rfc8785.dumps(receipt["outputs"])).hexdigest()
