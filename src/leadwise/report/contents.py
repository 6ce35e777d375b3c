"""What a report is made of: a finished run, read from its directory. Nothing is computed here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from leadwise.cohort.roles import SCORED
from leadwise.errors import InputError, one_line
from leadwise.run.bundle import Bundle
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import read_receipts, receipt_sha256
from leadwise.run.plan import Plan

_AGAIN = "which gathers the results anew and redoes no stage."


class Frames(Mapping[str, pd.DataFrame]):
    """The tables of a run's ``results`` by the stem of their file, each read when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        self._files = {file.stem: file for file in sorted(directory.glob("*.parquet"))}
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._read:
            file = self._files[name]
            try:
                self._read[name] = pd.read_parquet(file)
            except (OSError, ValueError) as error:
                raise InputError(f"{file} cannot be read ({one_line(error)}); run the plan again, {_AGAIN}") from None
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


@dataclass(frozen=True)
class RunContents:
    """A run whose results are there: its plan, frozen bundle, receipts and tables."""

    directory: RunDirectory
    plan: Plan
    bundle: Bundle
    receipts: list[dict[str, Any]]
    results: Mapping[str, pd.DataFrame]

    @classmethod
    def read(cls, path: str | Path) -> "RunContents":
        directory = RunDirectory(path)
        if not directory.ledger.exists():
            raise InputError(f"{directory.path} is no run: it has no {directory.ledger.name}.")
        receipts = read_receipts(directory.ledger)
        if not any(receipt["event"] == "results" for receipt in receipts):
            raise InputError(f"{directory.path} has no results yet; let the run come to its end first.")
        bundle, frames = Bundle(directory.bundle), Frames(directory.results)
        if "contrasts" not in frames:
            raise InputError(f"{directory.results}/contrasts.parquet is missing; run the plan again, {_AGAIN}")
        if "claims" in frames and "contradicted" not in frames["claims"]:
            raise InputError(
                f"{directory.results} was written by an earlier version of leadwise; carry out the same command again, "
                f"{_AGAIN}"
            )
        return cls(directory, bundle.plan, bundle, receipts, frames)

    @cached_property
    def head(self) -> str:
        """Hash of the last receipt, in which all others are chained."""
        return receipt_sha256(self.receipts[-1])

    @property
    def synthetic(self) -> bool:
        """Whether the recordings were made up by a program."""
        return self.plan.cohort.kind == "synthetic"

    @cached_property
    def scored(self) -> list[str]:
        """Roles that were scored after the freeze."""
        present = set(self.results["contrasts"]["role"])
        return [role for role in SCORED if role in present]

    @property
    def role(self) -> str:
        """The role that the report speaks about: the evaluation role where it was scored, else the audit role."""
        return self.scored[-1]
