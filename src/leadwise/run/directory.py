"""A run's directory: where everything of a run lies, and who may write it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadwise.errors import InputError


class RunDirectory:
    """The places of a run, as DESIGN fixes them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.plan = self.path / "plan.toml"
        self.ledger = self.path / "ledger.jsonl"
        self.manifest = self.path / "manifest.json"
        self.artifacts = self.path / "artifacts"
        self.bundle = self.path / "bundle"
        self.results = self.path / "results"
        self.figures = self.path / "figures"
        self.report = self.path / "report.html"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only process that writes here; a kill gives the place free."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"Another process is writing the run {self.path}; wait for it, or name another directory."
                ) from None
            yield
