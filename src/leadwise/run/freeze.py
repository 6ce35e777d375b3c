"""When a bundle was frozen: the receipt that tells of it, and what the bundle carries of that receipt elsewhere."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadwise.errors import InputError
from leadwise.run.facts import Facts, read_facts
from leadwise.run.ledger import receipt_sha256
from leadwise.store import atomic_file

FREEZE = "freeze.json"
"""Beside the bundle's list of contents and not in it: a clock in the list would make equal bundles differ."""


class Freeze(Facts):
    """When a bundle was frozen, as the ledger of its run tells."""

    time: str
    head: str
    """Hash of the receipt that ends the freeze, in which all that came before is chained."""


class _Carried(Freeze):
    bundle: str
    """SHA-256 of the bundle's list of contents."""


def frozen_bundle(receipt: Mapping[str, Any]) -> str | None:
    """Hash of the bundle that a receipt says was frozen or taken over; None if it is about something else."""
    if receipt["event"] == "bundle":
        return str(receipt["sha256"])
    frozen = (receipt["event"], receipt.get("stage")) == ("end", "freeze")
    return receipt["outputs"].get("bundle.json") if frozen else None


def told_freeze(receipts: Sequence[dict[str, Any]], bundle: str) -> Freeze | None:
    """The freeze of a bundle (its SHA-256) as its run's ledger tells, or that of a run that took it over.

    None where the ledger does not know: the bundle that was taken over did not say.
    """
    for receipt in receipts:
        if frozen_bundle(receipt) != bundle:
            continue
        if receipt["event"] == "bundle":
            said = receipt.get("frozen")
            return Freeze(**said) if said else None
        return Freeze(time=receipt["time"], head=receipt_sha256(receipt))
    return None


def write_freeze(directory: Path, bundle: str, freeze: Freeze) -> None:
    """Let a bundle carry when it was frozen."""
    with atomic_file(directory / FREEZE) as draft:
        draft.write_text(json.dumps({"bundle": bundle, **freeze.model_dump()}, indent=1) + "\n")


def read_freeze(directory: Path, bundle: str) -> Freeze | None:
    """The freeze that a bundle carries; None if it carries none."""
    path = directory / FREEZE
    if not path.exists():
        return None
    try:
        carried = read_facts(_Carried, path.read_bytes())
        if carried.bundle != bundle:
            raise ValueError("it is of another bundle")
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; take the bundle from the run again.") from None
    return Freeze(time=carried.time, head=carried.head)
