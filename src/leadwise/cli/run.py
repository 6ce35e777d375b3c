"""leadwise run: carry out a plan."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leadwise.cli.interrupted import going_on
from leadwise.cli.tables import print_table
from leadwise.errors import LeadwiseError


def run(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file; leadwise ships 'ptbxl' and 'demo' by name.")],
    out: Annotated[Path, typer.Option(help="The run's directory; a run that is there goes on.")],
    cohort: Annotated[
        Path | None, typer.Option(help="Where PTB-XL is, if the plan studies it; by default $LEADWISE_PTBXL.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the stages, the time and the disk that they would take.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run, print JSON.")] = False,
) -> None:
    """Every stage of a study that is not done yet, up to the report.

    Each stage is done once; change the plan, and what depends on the change is done again. Interrupt it whenever you
    like: the same command goes on where it was. Until everything is frozen in RUN/bundle nothing reads the audit or the
    evaluation role. Where the cohort has no evaluation role, the run ends with the audit.

    To begin with:  leadwise run demo --out demo-run   and open demo-run/report.html
    """
    from leadwise.run.plan import read_plan
    from leadwise.run.stage_names import scoring_stage
    from leadwise.study.execute import find_plan, run_study
    from leadwise.study.forecast import forecast

    if cohort is None and "LEADWISE_PTBXL" in os.environ and read_plan(find_plan(plan)).cohort.kind == "ptbxl":
        cohort = Path(os.environ["LEADWISE_PTBXL"])
    if dry_run:
        _show(forecast(plan, out, cohort), out, as_json)
        return
    with going_on():
        directory = run_study(plan, out, cohort, tell=lambda line: print(line, file=sys.stderr, flush=True))
    print(f"The report is {directory.report}, its numbers are in {directory.results}.")
    if not (directory.artifacts / scoring_stage("evaluation")).exists():
        print(
            "The cohort has no evaluation role, so the run ended with the audit. To score the evaluation role with "
            f"nothing refitted: leadwise evaluate {directory.bundle} --cohort DIR --out RUN2"
        )


def _show(rows: list[dict[str, Any]], out: Path, as_json: bool) -> None:
    """Print the stages to come, and their sums."""
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    shown = [[row["stage"], _duration(row["seconds"]), f"{row['bytes'] / 1e6:,.1f}"] for row in rows]
    print_table(["stage", "expected", "MB"], shown, left=("stage",))
    seconds, size = (sum(row[name] for row in rows) for name in ("seconds", "bytes"))
    place = next(place for place in (out, *out.absolute().parents) if place.exists())
    free = shutil.disk_usage(place).free
    print(f"About {_duration(seconds)} on this machine, and {size / 1e6:,.0f} of {free / 1e6:,.0f} MB of free disk.")
    if free < size:
        raise LeadwiseError(f"{place} has not enough space for this run; free some, or name another directory.")


def _duration(seconds: float) -> str:
    hours, minutes = int(seconds // 3600), int(seconds % 3600 // 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds % 60:02.0f} s" if minutes else f"{seconds:.1f} s"
