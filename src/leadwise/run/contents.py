"""A finished run, read from its directory, for the report. Nothing is computed here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from leadwise.cohort.identity import PTBXL, SYNTHETIC, Identity
from leadwise.cohort.roles import SCORED
from leadwise.errors import InputError, one_line
from leadwise.notebook import html_table
from leadwise.run.bundle import Bundle
from leadwise.run.directory import RunDirectory
from leadwise.run.history import Chronology, History
from leadwise.run.ledger import Results
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


def read_run(path: str | Path) -> "RunContents":
    """A run whose results are there: its plan, bundle, receipts and tables, each table read when it is asked for."""
    return RunContents.read(path)


def read_cohort(history: History) -> Identity:
    """The cohort that a run read last, as its ledger tells."""
    try:
        return Identity.read(history.cohorts[-1].cohort)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"The ledger does not tell which cohort was read; carry out the same command again, {_AGAIN}"
        ) from None


def published_cohort(*cohorts: Identity) -> bool:
    """True if the paper is about these cohorts."""
    return all(cohort.kind == PTBXL for cohort in cohorts)


@dataclass(frozen=True, repr=False)
class RunContents:
    """A run whose results are there: its plan, frozen bundle, history and tables."""

    directory: RunDirectory
    plan: Plan
    bundle: Bundle
    history: History
    """History before the receipt of the report."""
    results: Mapping[str, pd.DataFrame]
    cohort: Identity
    """Whose records were scored, as the ledger tells."""
    made_on: Identity
    """The cohort that everything in the bundle was made on."""

    @classmethod
    def read(cls, path: str | Path) -> "RunContents":
        directory = RunDirectory(path)
        if not directory.ledger.exists():
            raise InputError(f"{directory.path} is no run: it has no {directory.ledger.name}.")
        history = History.read(directory.ledger).before_report
        if history.results is None:
            raise InputError(f"{directory.path} has no results yet; let the run come to its end first.")
        bundle, frames = Bundle(directory.bundle), Frames(directory.results)
        if "contrasts" not in frames:
            raise InputError(f"{directory.results}/contrasts.parquet is missing; run the plan again, {_AGAIN}")
        if "published" in frames and "table" not in frames["published"]:
            raise InputError(
                f"{directory.results} was written by an earlier version of leadwise; carry out the same command again, "
                f"{_AGAIN}"
            )
        return cls(directory, bundle.plan, bundle, history, frames, read_cohort(history), bundle.cohort)

    @property
    def gathered(self) -> Results:
        """The receipt about the results."""
        assert self.history.results is not None  # `read` has seen to it
        return self.history.results

    def __repr__(self) -> str:
        return f"<Run {self.directory.path}: {self.title}>"

    def _repr_html_(self) -> str:
        """Small table of the cohort, roles, evaluators, policies and tables of the run."""
        contrasts = self.results["contrasts"]
        facts = {
            "cohort": self.cohort.title,
            "roles scored": ", ".join(self.scored),
            "evaluators": ", ".join(contrasts["evaluator"].unique()),
            "policies": ", ".join(contrasts["policy"].unique()),
            "budgets": ", ".join(map(str, self.plan.budgets)),
            "tables in .results": ", ".join(self.results),
            "directory": self.directory.path,
        }
        return html_table(self.title, (), facts.items())

    @cached_property
    def chronology(self) -> Chronology:
        """Events before and after the freeze of the bundle."""
        return self.history.of_bundle(self.bundle.sha256)

    @property
    def synthetic(self) -> bool:
        """True if a program made the recordings up."""
        return self.cohort.kind == SYNTHETIC

    @property
    def foreign(self) -> bool:
        """True if another cohort was scored than everything was made on."""
        return self.cohort.differs_from(self.made_on)

    @property
    def about_paper(self) -> bool:
        """True if the paper is about just this: PTB-XL, read by what was made on PTB-XL."""
        return published_cohort(self.cohort, self.made_on)

    @property
    def title(self) -> str:
        """The plan's title, and which data this is about where that is not what the reader expects."""
        if self.foreign:
            return f"{self.plan.title} (made on {self.made_on.title}, scored on {self.cohort.title})"
        return f"{self.plan.title} (synthetic data)" if self.synthetic else self.plan.title

    @cached_property
    def scored(self) -> list[str]:
        """Roles that were scored after the freeze."""
        present = set(self.results["contrasts"]["role"])
        return [role for role in SCORED if role in present]

    @property
    def role(self) -> str:
        """The role that the report speaks about: the evaluation role where it was scored, else the audit role."""
        return self.scored[-1]
