"""leadwise status: how far a run has come."""

import json
from pathlib import Path
from typing import Annotated

import typer

from leadwise.cli.tables import print_table


def status(
    run: Annotated[Path, typer.Argument(help="A run's directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The stages of a run: done, unfinished, outdated by a change of the plan, or to do; and how long each took."""
    from leadwise.study.status import run_status

    rows = run_status(run)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    shown = (
        [row["stage"], row["state"], "" if row["seconds"] is None else f"{row['seconds']:,.1f}", row["time"] or ""]
        for row in rows
    )
    print_table(["stage", "state", "seconds", "last receipt"], shown, left=("stage", "state", "last receipt"))
