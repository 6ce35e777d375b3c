"""The manifest: what a run has come to, written last."""

import json
from typing import Any

from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import receipt_sha256
from leadwise.store import atomic_file, file_sha256


def write_manifest(directory: RunDirectory, receipts: list[dict[str, Any]]) -> None:
    """Name the head of the chain, so that a missing last receipt is seen, and the hash of all that was made for people.

    What the results are is taken from the receipt about them, not from the disk.
    """
    results = next(receipt for receipt in reversed(receipts) if receipt["event"] == "results")
    made = [directory.report, *directory.figures.glob("*"), *directory.tables.glob("*")]
    facts = {
        "head": receipt_sha256(receipts[-1]),
        "receipts": len(receipts),
        "bundle": results["bundle"],
        "results": results["files"],
        "report": {str(file.relative_to(directory.path)): file_sha256(file) for file in sorted(made)},
    }
    with atomic_file(directory.manifest) as draft:
        draft.write_text(json.dumps(facts, indent=1) + "\n")
