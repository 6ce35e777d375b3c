"""Progress with time left, for anything that takes more than a second."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

enabled = True
"""Set to False to switch every progress bar off (the command line's ``--no-progress`` does)."""


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar named ``what`` on standard error; yields a function that advances it by n.

    Nothing is drawn on a pipe, with ``NO_COLOR`` set, or when switched off.
    """
    if not enabled or "NO_COLOR" in os.environ or not sys.stderr.isatty():
        yield lambda _: None
        return
    # rich costs 0.1 s to import; only a person at a terminal needs it
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)
