"""The manifest: what a run has come to, written last."""

import json
from typing import Annotated

from pydantic import Field

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.facts import Facts, read_facts
from leadwise.run.history import History
from leadwise.run.ledger import Ledger
from leadwise.store import atomic_file, file_sha256


class Manifest(Facts):
    """Content of ``manifest.json``."""

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


def close_run(directory: RunDirectory, ledger: Ledger) -> None:
    """Write a receipt of the report, unless the last one says the same, and the manifest.

    The report prints the head of the chain as it was before, so its own receipt comes after that head. The manifest
    names the head of the chain, so that a missing last receipt is seen; what it says of results and report is taken
    from the receipts about them, not from the disk.
    """
    made, report = made_for_people(directory), History(ledger.receipts).report
    if report is None or report.files != made:
        ledger.add("report", files=made)
    results = History(ledger.receipts).results
    assert results is not None  # a run is closed once it has results
    facts = Manifest(
        head=ledger.head, receipts=len(ledger.receipts), bundle=results.bundle, results=results.files, report=made
    )
    with atomic_file(directory.manifest) as draft:
        draft.write_text(json.dumps(facts.model_dump(), indent=1) + "\n")


def read_manifest(directory: RunDirectory) -> Manifest:
    """Content of the manifest; raises `InputError` where it is damaged."""
    try:
        return read_facts(Manifest, directory.manifest.read_bytes())
    except ValueError as error:
        raise InputError(f"{directory.manifest} is damaged ({error}); leadwise report writes it again.") from None
