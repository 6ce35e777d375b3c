"""leadwise evaluate: score a frozen bundle."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    bundle: Annotated[Path, typer.Argument(help="A frozen bundle, or a run that has one.")],
    cohort: Annotated[Path, typer.Option(envvar="LEADWISE_PTBXL", help="Where the recordings are.")],
    out: Annotated[Path, typer.Option(help="Directory for the results, which is a run of its own.")],
    role: Annotated[
        str | None, typer.Option(help="evaluation or audit; by default evaluation where the cohort has it, else audit.")
    ] = None,
) -> None:
    """Score one role with everything that was frozen; nothing is fitted or chosen again."""
    from leadwise.study.run import evaluate_bundle

    directory, scored = evaluate_bundle(bundle, cohort, out, role)
    print(f"Scored the {scored} role; results are in {directory.results}.")
