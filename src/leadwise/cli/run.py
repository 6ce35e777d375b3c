"""leadwise run: carry out a plan."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file; leadwise ships studies/ptbxl.toml.")],
    out: Annotated[Path, typer.Option(help="The run's directory; a run that is there goes on.")],
    cohort: Annotated[
        Path | None, typer.Option(envvar="LEADWISE_PTBXL", help="Where the recordings are, unless they are synthetic.")
    ] = None,
) -> None:
    """Every stage of a study that is not done yet, up to the results.

    Each stage is done once; change the plan, and what depends on the change is done again. Interrupt it whenever you
    like: the same command goes on where it was. Until everything is frozen in RUN/bundle nothing reads the audit or the
    evaluation role. Where the cohort has no evaluation role, the run ends with the audit.
    """
    from leadwise.study.run import run_study
    from leadwise.study.status import run_status

    directory = run_study(plan, out, cohort)
    print(f"Results are in {directory.results}, the frozen bundle in {directory.bundle}.")
    if "evaluation" not in (row["stage"] for row in run_status(directory.path)):
        print(
            "The cohort has no evaluation role. To score one with nothing refitted, elsewhere: "
            f"leadwise evaluate {directory.bundle} --cohort DIR --out RUN2"
        )
