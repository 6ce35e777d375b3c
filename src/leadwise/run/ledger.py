"""The ledger: what a run says about itself, one receipt a line, each line holding the hash of the one before."""

import json
import os
import platform
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from subprocess import run
from typing import Any

import rfc8785

from leadwise.errors import InputError
from leadwise.run.facts import Facts

BEGINNING = "0" * 64
"""What the first receipt has for the hash of the one before."""


class _Software(Facts):
    leadwise: str
    commit: str
    python: str
    numpy: str
    torch: str
    cpu: str
    threads: int


class _Receipt(Facts):
    number: int
    previous: str
    time: str
    event: str
    software: _Software


class _Begin(_Receipt):
    stage: str
    key: str
    inputs: dict[str, str]


class _End(_Receipt):
    stage: str
    key: str
    seconds: float | None
    outputs: dict[str, str]
    sha256: str


class _Frozen(Facts):
    time: str
    head: str


class _Bundle(_Receipt):
    sha256: str
    frozen: _Frozen | None = None


class _Results(_Receipt):
    bundle: str
    files: dict[str, str]


class _Report(_Receipt):
    files: dict[str, str]


class _Cohort(_Receipt):
    cohort: dict[str, Any]
    unsealed: bool


_KINDS: dict[str, type[_Receipt]] = {
    "begin": _Begin,
    "end": _End,
    "bundle": _Bundle,
    "results": _Results,
    "report": _Report,
    "cohort": _Cohort,
}
"""What receipts of each event say at least."""


class Ledger:
    """An append-only, hash-chained list of receipts in a file of JSON lines.

    A line is canonical JSON (RFC 8785), so that its bytes, and with them the chain, follow from what it says. A last
    line that a kill has torn is taken away when the ledger is opened for writing, and overlooked when it is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.receipts = read_receipts(path)
        if path.exists():
            os.truncate(path, sum(len(line) + 1 for line in _whole_lines(path)))

    @property
    def head(self) -> str:
        """Hash of the last receipt."""
        return receipt_sha256(self.receipts[-1]) if self.receipts else BEGINNING

    def add(self, event: str, **facts: Any) -> dict[str, Any]:
        """Write a receipt about something that happened, with the clock and the machine, and flush it to the disk."""
        receipt = {
            "number": len(self.receipts) + 1,
            "previous": self.head,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            **facts,
            "software": software(),
        }
        with self.path.open("ab") as file:
            file.write(rfc8785.dumps(receipt) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.receipts.append(receipt)
        return receipt


def read_receipts(path: Path) -> list[dict[str, Any]]:
    """All receipts; raises `InputError` that names the line where the chain is broken."""
    receipts: list[dict[str, Any]] = []
    previous = BEGINNING
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            receipt = json.loads(line)
            sound = rfc8785.dumps(receipt) == line and receipt["number"] == number
            _KINDS.get(receipt["event"], _Receipt).model_validate(receipt)
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
        if not sound:
            raise InputError(f"{path}, line {number}: this is not a receipt as leadwise writes them; it was changed.")
        if receipt["previous"] != previous:
            raise InputError(
                f"{path}, line {number}: the receipt before it was changed or removed; the chain of hashes is broken."
            )
        previous = sha256(line).hexdigest()
        receipts.append(receipt)
    return receipts


def receipt_sha256(receipt: dict[str, Any]) -> str:
    """Hash of a receipt, which the next one holds."""
    return sha256(rfc8785.dumps(receipt)).hexdigest()


def _whole_lines(path: Path) -> list[bytes]:
    """Lines that end; what follows the last line break was torn by a kill."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


@cache
def software() -> dict[str, Any]:
    """Versions, processor kind and threads, which decide the last bits of a result."""
    import torch

    return {
        "leadwise": version("leadwise"),
        "commit": _commit(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "torch": version("torch"),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }


def _commit() -> str:
    """The commit of a checkout; empty for an installed package, or where git will not tell."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists():
        return ""
    try:
        return run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
