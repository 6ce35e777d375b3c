"""A run's directory: where everything of a run lies, and who may write it."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadwise.errors import InputError
from leadwise.run.history import History
from leadwise.run.plan import Plan
from leadwise.run.stage_names import FREEZE
from leadwise.store import error_number

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_LOCK = ".lock"
_MARK = "leadwise run\n"
"""In the lock file: the directory was new or empty when a run began to write there."""
_BUNDLED = ("bundle.json", "freeze.json", "plan.toml", "evaluators", "policies", "references", "tables")


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
        self.readings = self.path / ".readings"

    def made_cohort(self, plan: Plan) -> Path:
        """Directory of the recordings that the run makes for a plan, one for each cohort that it has made."""
        said = "-".join(str(value) for value in plan.cohort.settings.model_dump().values())
        return self.path / f"cohort-{said}"

    def check_ours(self) -> None:
        """Raise unless a run may write here: nothing is there, or a run; and of a run, only what runs have made.

        What is about to be replaced is removed, so it must hold nothing that somebody else has put there.
        """
        if not self.path.is_dir():
            return  # it is yet to be made, or cannot be
        history, lock = History.read(self.ledger), self.path / _LOCK
        marked = lock.is_file() and lock.read_text(errors="replace") == _MARK
        begun = lock.is_file() and not lock.stat().st_size  # a kill came before the mark
        if not (len(history) or marked) and set(self.path.iterdir()) - ({lock} if begun else set()):
            raise InputError(
                f"{self.path} is neither empty nor a run of leadwise, and stays as it is; name a new or an empty "
                "directory."
            )
        gathered = history.results is not None
        bundled = history.taken_over or any(each.stage == FREEZE for each in history.staged)
        for place, made, belonging in (
            (self.bundle, bundled, lambda path: path.name in _BUNDLED),
            (self.results, gathered, lambda path: path.name in history.result_files),
            (self.figures, gathered, lambda path: path.suffix in (".svg", ".pdf")),
            (self.tables, gathered, lambda path: path.suffix == ".tex"),
        ):
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise InputError(f"{place} is no directory of the run's; move it elsewhere, and the run can go on.")
            found = sorted(place.iterdir()) if place.is_dir() else []
            foreign = [path for path in found if not (made and belonging(path))]
            if foreign:
                raise InputError(
                    f"{foreign[0]} was not made by the run, which would replace {place}; move it elsewhere, and the "
                    "run can go on."
                )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only process that writes here, where no one else has; a kill gives the place free.

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
        self.check_ours()
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"Another process is writing the run {self.path}; wait for it, or name another directory."
                ) from None
            if not file.tell():
                file.write(_MARK)
                file.flush()
            yield
