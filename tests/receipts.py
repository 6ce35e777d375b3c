"""Receipts for tests: those of a ledger as plain JSON, and ledgers that tell another story with a sound chain."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import rfc8785

from leadwise.run.history import History
from leadwise.run.ledger import BEGINNING, Receipt

Told = dict[str, Any]

SOFTWARE: Told = {
    "leadwise": "0.1.0",
    "commit": "",
    "python": "3.11",
    "numpy": "2",
    "torch": "2",
    "cpu": "AVX2",
    "threads": 2,
}
COMMON: Told = {"time": "2026-11-18T06:47:09.735+00:00", "software": SOFTWARE}
OF_EVENT: dict[str, Told] = {
    "begin": {"key": "k", "inputs": {}},
    "end": {"key": "k", "seconds": 1.0, "outputs": {}, "sha256": ""},
    "results": {"bundle": "", "files": {}},
    "report": {"files": {}},
    "cohort": {"cohort": {}, "unsealed": False},
}


def chained(told: Iterable[Told]) -> list[bytes]:
    """The lines of a ledger that says this, numbered and chained anew."""
    lines: list[bytes] = []
    previous = BEGINNING
    for number, each in enumerate(told, 1):
        lines.append(rfc8785.dumps(each | {"number": number, "previous": previous}))
        previous = sha256(lines[-1]).hexdigest()
    return lines


def history(*told: Told) -> History:
    """What a ledger that says this tells; what is not said of a receipt is made up."""
    return History(map(Receipt.read, chained(COMMON | OF_EVENT.get(each["event"], {}) | each for each in told)))


def receipt_facts(ledger: Path) -> list[Told]:
    """All receipts of a ledger as they are written, but for a torn last line."""
    content = ledger.read_bytes() if ledger.exists() else b""
    return [json.loads(line) for line in content.split(b"\n")[:-1]]
