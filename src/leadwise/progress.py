"""Progress with time left, for anything that takes more than a second."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
"""Set to False to switch every progress bar off (the command line's ``--no-progress`` does)."""

_shown = False  # a bar within a bar stays hidden: the outer one knows more about the time left


class Bar:
    """A progress bar that nobody sees."""

    def __call__(self, n: int) -> None:
        """Advance by n."""

    def say(self, line: str) -> None:
        """Print a line that stays, above the bar."""


@contextmanager
def progress(what: str, total: int) -> Iterator[Bar]:
    """Show a bar named ``what`` on standard error; yields what advances it.

    Nothing is drawn on a pipe, with ``NO_COLOR`` set, when switched off, or within another bar.
    """
    global _shown
    if not enabled or _shown or "NO_COLOR" in os.environ or not sys.stderr.isatty():
        yield Bar()
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

        _shown = True
        try:
            yield Shown()
        finally:
            _shown = False
