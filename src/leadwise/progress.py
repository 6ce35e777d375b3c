"""Progress with time left, for anything that takes more than a second."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

enabled = True
"""Set to False to show no progress at all (the command line's ``--no-progress`` does)."""
line_seconds = 60.0
"""Seconds between two lines where no bar can be drawn, as in a log or a notebook."""


class Bar:
    """A progress bar that nobody sees."""

    def __call__(self, n: int) -> None:
        """Advance by n."""

    def say(self, line: str) -> None:
        """Print a line that stays, above the bar."""


class _Counting(Bar):
    """A bar that is told in lines."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done, self.start = what, total, 0, time.monotonic()
        self.found = 0

    def __call__(self, n: int) -> None:
        if time.monotonic() - self.start < 1:
            self.found += n  # most likely done before an interruption, and no measure of speed
        self.done += n

    def __str__(self) -> str:
        share = f"{self.what}, {100 * self.done // max(self.total, 1)}%"
        new, seconds = self.done - self.found, time.monotonic() - self.start
        return share + (f", about {_minutes(seconds * (self.total - self.done) / new)} left" if new > 0 else "")


class _Screen:
    """State of standard error. All threads of a process share it, as they share standard error."""

    stage = ""
    """The part of a larger work that is under way, and its number."""
    bar: Bar | None = None
    """The outermost bar. A bar within it stays hidden: the outer one knows more about the time left."""

    @contextmanager
    def showing(self, bar: Bar) -> Iterator[Bar]:
        """Let a bar be the outermost one."""
        self.bar = bar
        try:
            yield bar
        finally:
            self.bar = None


_screen = _Screen()


@contextmanager
def stage(name: str, number: int | None = None, count: int | None = None) -> Iterator[None]:
    """Name the part of a larger work that is under way, of how many; a line a minute tells of it."""
    _screen.stage = f"{name} (stage {number} of {count})" if count else name
    try:
        with _lines(_draws()):
            yield
    finally:
        _screen.stage = ""


@contextmanager
def progress(what: str, total: int) -> Iterator[Bar]:
    """Show a bar named ``what`` on standard error; yields what advances it.

    On a pipe, in a notebook or with ``NO_COLOR`` set a line a minute takes its place. Nothing is shown when switched
    off, or within another bar.
    """
    if not enabled or _screen.bar:
        yield Bar()
        return
    if not _draws():
        with _screen.showing(_Counting(what, total)) as bar, _lines(bool(_screen.stage)):  # a stage's lines tell of it
            yield bar
        return
    # rich costs 0.1 s to import; only a person at a terminal needs it
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(what, total=total)

        class Shown(Bar):
            def __call__(self, n: int) -> None:
                display.advance(task, n)

            def say(self, line: str) -> None:
                display.console.print(line, highlight=False, markup=False)
                display.refresh()

        with _screen.showing(Shown()) as bar:
            yield bar


def _draws() -> bool:
    return "NO_COLOR" not in os.environ and sys.stderr.isatty()


@contextmanager
def _lines(needless: bool) -> Iterator[None]:
    """Print a line a minute about what is under way, also while nothing advances."""
    if needless or not enabled:
        yield
        return
    start, ended = time.monotonic(), Event()

    def tell() -> None:
        while not ended.wait(line_seconds):
            done = str(_screen.bar or f"{_minutes(time.monotonic() - start)} so far")
            print(f"{_screen.stage}: {done}" if _screen.stage else done, file=sys.stderr, flush=True)

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def _minutes(seconds: float) -> str:
    """A duration in words.

    >>> _minutes(20), _minutes(59.6 * 60), _minutes(9000)
    ('1 min', '1 h 00 min', '2 h 30 min')
    """
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
