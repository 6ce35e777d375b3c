"""The command line: one file a verb."""

import os
import sys
import warnings
from typing import Annotated

import typer

from leadwise import progress
from leadwise.cli import bench, data, evaluate, info, references, report, run, status, verify
from leadwise.errors import LeadwiseError, LeadwiseWarning, one_line
from leadwise.store import error_number

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)
app.command("info")(info.info)
app.add_typer(data.app, name="data")
app.command("references")(references.references)
app.command("run")(run.run)
app.command("status")(status.status)
app.command("evaluate")(evaluate.evaluate)
app.command("verify")(verify.verify)
app.command("report")(report.report)
app.command("bench")(bench.bench)


def _print_version(wanted: bool | None) -> None:
    if wanted:
        import leadwise

        print(f"leadwise {leadwise.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool | None,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Draw no progress bars.")] = False,
) -> None:
    """Which ECG leads are worth recording for this patient, and does that choice pay when another model reads them?"""
    progress.enabled = not no_progress


def main() -> None:
    """Run the command line: 2 and one sentence for what the user can put right, 130 for Ctrl-C."""
    warnings.simplefilter("ignore")  # what libraries say to their own developers
    warnings.simplefilter("always", LeadwiseWarning)
    warnings.showwarning = lambda message, *_: print(f"leadwise: warning: {message}", file=sys.stderr)
    try:
        app()
    except LeadwiseError as error:
        _fail(str(error))
    except OSError as error:
        number, where = error_number(error), error.filename2 or error.filename
        what = one_line(error.strerror or (os.strerror(number) if number else error))
        _fail(f"{where}: {what}." if where else f"{what}.")
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(sentence: str) -> None:
    print(f"leadwise: {sentence}", file=sys.stderr)
    sys.exit(2)
