"""leadwise evaluate: score a frozen bundle."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadwise.cli.interrupted import going_on
from leadwise.cli.verify import chosen


def evaluate(
    cohort: Annotated[Path, typer.Option(envvar="LEADWISE_PTBXL", help="Where the recordings are.")],
    out: Annotated[Path, typer.Option(help="Directory for the results, which is a run of its own.")],
    role: Annotated[
        str | None, typer.Option(help="evaluation or audit; by default evaluation where the cohort has it, else audit.")
    ] = None,
    bundle: Annotated[Path | None, typer.Argument(help="A frozen bundle, or a run that has one.")] = None,
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="Score the bundle that ships with leadwise.")
    ] = False,
) -> None:
    """Score one role with everything that was frozen; nothing is fitted or chosen again.

    The results are a run of their own: a ledger that begins with the hash of the bundle, all tables, and a report.
    Score the evaluation role once, when everything is decided; each time leaves a receipt.
    """
    from leadwise.study.execute import evaluate_bundle

    with going_on():
        directory, scored = evaluate_bundle(
            chosen(bundle, pretrained), cohort, out, role, tell=lambda line: print(line, file=sys.stderr, flush=True)
        )
    print(f"Scored the {scored} role; the report is {directory.report}, its numbers are in {directory.results}.")
