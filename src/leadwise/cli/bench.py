"""leadwise bench: ours and the alternative, side by side in one run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from leadwise.bench import BENCHMARKS, run
from leadwise.cli.tables import print_table


def bench(
    name: Annotated[str | None, typer.Argument(help=f"One of {', '.join(BENCHMARKS)}; all of them without it.")] = None,
    cohort: Annotated[
        Path | None, typer.Option(envvar="LEADWISE_PTBXL", help="A cohort to measure on; a synthetic one without it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure speed as ratios of ours to the alternative; above 1 means that ours is better."""
    rows = run(name, cohort)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    shown = []
    for row in rows:
        numbers = f"{row['ours']:,.4g}", f"{row['other']:,.4g}", f"{row['ratio']:.1f}"
        shown.append([row["name"], *numbers, row["unit"], row["what"]])
    print_table(["name", "ours", "other", "ratio", "unit", "what"], shown, left=("name", "unit", "what"))
