"""How a table looks on the terminal."""

import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str] = ()) -> None:
    """Print rows under columns, right-aligned but for those named in ``left``; on a pipe nothing is cut or wrapped."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", no_wrap=not sys.stdout.isatty())
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 500).print(table)
