"""The ledger: what a run says about itself, one receipt a line, each line holding the hash of the one before."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from subprocess import run
from typing import Any

import rfc8785
from pydantic import Field, PrivateAttr

from leadwise.errors import InputError
from leadwise.run.facts import Facts

BEGINNING = "0" * 64
"""In the first receipt, in place of the hash of the one before."""


class Software(Facts):
    """Versions, processor kind and threads, which decide the last bits of a result."""

    leadwise: str
    commit: str
    python: str
    numpy: str
    torch: str
    cpu: str
    threads: int


class Receipt(Facts):
    """Fields of every receipt, and all fields of one whose event this version does not know."""

    number: int
    previous: str
    time: str
    event: str
    software: Software
    _sha256: str = PrivateAttr()

    @classmethod
    def read(cls, line: bytes) -> "Receipt":
        """The receipt of a line, of the type that its event has; raises ValueError where it is none."""
        facts = json.loads(line)
        if not isinstance(facts, dict) or rfc8785.dumps(facts) != line:
            raise ValueError("it is no object in canonical JSON")
        receipt = _TYPES.get(str(facts.get("event")), Receipt).model_validate(facts)
        receipt._sha256 = sha256(line).hexdigest()
        return receipt

    @property
    def sha256(self) -> str:
        """Hash of its line, what this version does not know of it included; the next receipt holds it."""
        return self._sha256

    @property
    def when(self) -> str:
        """Its clock, to the second, and its number."""
        return f"{clock(self.time)} (receipt {self.number})"


class OfStage(Receipt):
    """Something happened to a stage."""

    stage: str
    key: str


class Begin(OfStage):
    """A stage was begun."""

    inputs: dict[str, str]
    """Hash of everything that the stage needs, by its name."""

    @property
    def roles(self) -> dict[str, str]:
        """Fingerprints of the roles that the stage was given."""
        return {name[5:]: fingerprint for name, fingerprint in self.inputs.items() if name.startswith("role:")}


class End(OfStage):
    """A stage is done."""

    seconds: float | None
    """None where a kill came between the last file and this receipt."""
    outputs: dict[str, str]
    """SHA-256 of each file that it made."""
    list_sha256: str = Field(alias="sha256")
    """SHA-256 of the artifact's own list of its files."""

    @property
    def artifact(self) -> str:
        """The artifact's hash, by which the stages that need it name it."""
        return outputs_sha256(self.outputs)


class Freeze(Facts):
    """When a bundle was frozen, as the ledger of its run tells."""

    time: str
    head: str
    """Hash of the receipt that ends the freeze, in which all that came before is chained."""


class BundleTaken(Receipt):
    """A bundle that was frozen elsewhere was taken over."""

    bundle: str = Field(alias="sha256")
    frozen: Freeze | None = None
    """None where the bundle does not say when it was frozen."""


class Results(Receipt):
    """The results of a bundle were gathered."""

    bundle: str
    files: dict[str, str]


class Report(Receipt):
    """The report was made, with figures and LaTeX tables."""

    files: dict[str, str]


class CohortRead(Receipt):
    """A cohort was read."""

    cohort: dict[str, Any]
    """The facts of its `leadwise.cohort.identity.Identity`."""
    unsealed: bool


_TYPES: dict[str, type[Receipt]] = {
    "begin": Begin,
    "end": End,
    "bundle": BundleTaken,
    "results": Results,
    "report": Report,
    "cohort": CohortRead,
}


def outputs_sha256(outputs: Mapping[str, str]) -> str:
    """Hash of an artifact, from the hashes of its files."""
    return sha256(rfc8785.dumps(dict(outputs))).hexdigest()


def clock(time: str) -> str:
    """The time of a receipt, to the second.

    >>> clock("2026-11-18T06:47:09.735+00:00")
    '2026-11-18 06:47:09 UTC'
    """
    return f"{time[:19].replace('T', ' ')} UTC"


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
        return self.receipts[-1].sha256 if self.receipts else BEGINNING

    def add(self, event: str, **facts: Any) -> None:
        """Write a receipt about something that happened, with the clock and the machine, and flush it to the disk."""
        content = {
            "number": len(self.receipts) + 1,
            "previous": self.head,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            **facts,
            "software": software(),
        }
        line = rfc8785.dumps(content)
        receipt = Receipt.read(line)
        with self.path.open("ab") as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.receipts.append(receipt)


def read_receipts(path: Path) -> list[Receipt]:
    """All receipts; raises `InputError` that names the line where the chain is broken."""
    receipts: list[Receipt] = []
    previous = BEGINNING
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            receipt = Receipt.read(line)
            sound = receipt.number == number
        except (ValueError, RecursionError):
            sound = False
        if not sound:
            raise InputError(f"{path}, line {number}: this is not a receipt as leadwise writes them; it was changed.")
        if receipt.previous != previous:
            raise InputError(
                f"{path}, line {number}: the receipt before it was changed or removed; the chain of hashes is broken."
            )
        previous = receipt.sha256
        receipts.append(receipt)
    return receipts


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
