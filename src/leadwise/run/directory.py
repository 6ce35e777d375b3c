"""A run's directory: where everything of a run lies, and who may write it."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadwise.errors import InputError
from leadwise.store import error_number

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


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
        self.tables = self.path / "tables"
        self.report = self.path / "report.html"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only process that writes here; a kill gives the place free.

        What cannot be written, whichever library says so, raises an `InputError`. Nothing is lost by it.
        """
        try:
            with self._locked():
                yield
        except OSError as error:
            number, place = error_number(error), Path(str(error.filename))
            if number in _FULL:
                raise InputError(
                    f"There is no room left for the run {self.path} ({os.strerror(number)}); free some, and the same "
                    "command goes on where it was."
                ) from None
            here = self.path in (place, *place.parents) or place in self.path.parents
            if number in _FORBIDDEN and here:
                raise InputError(
                    f"The run {self.path} cannot be written ({os.strerror(number)}); make it writable, or name another "
                    "directory."
                ) from None
            raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"Another process is writing the run {self.path}; wait for it, or name another directory."
                ) from None
            yield
