"""The manifest: what a run has come to, written last."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.facts import Facts, read_facts
from leadwise.run.ledger import Ledger, receipt_sha256
from leadwise.store import atomic_file, file_sha256


class Manifest(Facts):
    """What ``manifest.json`` says."""

    head: str
    """Hash of the last receipt."""
    receipts: Annotated[int, Field(ge=1)]
    bundle: str
    results: dict[str, str]
    report: dict[str, str]
    """SHA-256 of all that was made for people."""


def made_for_people(directory: RunDirectory) -> dict[str, str]:
    """SHA-256 of the report, figures and LaTeX tables, by their place in the run."""
    made = [directory.report, *directory.figures.rglob("*"), *directory.tables.rglob("*")]
    return {str(file.relative_to(directory.path)): file_sha256(file) for file in sorted(made) if file.is_file()}


def last_of(receipts: Sequence[dict[str, Any]], event: str) -> dict[str, Any] | None:
    """The last receipt of an event; None if there is none."""
    return next((each for each in reversed(receipts) if each["event"] == event), None)


def close_run(directory: RunDirectory, ledger: Ledger) -> None:
    """Write a receipt of the report, unless the last one says the same, and the manifest.

    The report prints the head of the chain as it was before, so its own receipt comes after that head.
    """
    made = made_for_people(directory)
    said = last_of(ledger.receipts, "report")
    if said is None or said["files"] != made:
        ledger.add("report", files=made)
    write_manifest(directory, ledger.receipts)


def write_manifest(directory: RunDirectory, receipts: list[dict[str, Any]]) -> None:
    """Name the head of the chain, so that a missing last receipt is seen, and the hash of all that was made.

    What results and report are is taken from the receipts about them, not from the disk.
    """
    results, report = (last_of(receipts, event) for event in ("results", "report"))
    assert results is not None  # a run is closed once it has results
    assert report is not None
    facts = {
        "head": receipt_sha256(receipts[-1]),
        "receipts": len(receipts),
        "bundle": results["bundle"],
        "results": results["files"],
        "report": report["files"],
    }
    with atomic_file(directory.manifest) as draft:
        draft.write_text(json.dumps(facts, indent=1) + "\n")


def read_manifest(directory: RunDirectory) -> Manifest:
    """What the manifest says; raises `InputError` where it is damaged."""
    try:
        return read_facts(Manifest, directory.manifest.read_bytes())
    except ValueError as error:
        raise InputError(f"{directory.manifest} is damaged ({error}); leadwise report writes it again.") from None
