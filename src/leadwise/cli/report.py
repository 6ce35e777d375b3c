"""leadwise report: the page of a run."""

from pathlib import Path
from typing import Annotated

import typer


def report(run: Annotated[Path, typer.Argument(help="The directory of a run that has come to its results.")]) -> None:
    """Make the report of a run again: report.html, figures (SVG, PDF) and LaTeX tables, from the results that it has.

    A run makes its report itself; this is for a newer version of leadwise, or for a report that was lost. Nothing is
    computed or scored again. The page is one file that opens without a network.
    """
    from leadwise.study.execute import report_run

    print(f"The report is {report_run(run)}.")
