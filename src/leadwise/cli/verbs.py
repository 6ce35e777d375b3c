"""All verbs as one command."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from leadwise import progress
from leadwise.cli import bench, data, evaluate, info, references, report, run, status, verify

_NO_PROGRESS = "--no-progress"


class _Verbs(TyperGroup):
    """The verbs; an option of the whole command line is heeded after them too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        moved = [word for word in args[:end] if word == _NO_PROGRESS]
        kept = [word for word in args[:end] if word != _NO_PROGRESS]
        return super().parse_args(ctx, [*moved, *kept, *args[end:]])


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(info.info)
app.add_typer(data.app, name="data")
for _verb in (
    references.references,
    run.run,
    status.status,
    evaluate.evaluate,
    verify.verify,
    report.report,
    bench.bench,
):
    app.command()(_verb)


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
    no_progress: Annotated[bool, typer.Option(_NO_PROGRESS, help="Show no progress; may stand anywhere.")] = False,
) -> None:
    """Which ECG leads are worth recording for this patient, and does that choice pay when another model reads them?"""
    progress.enabled = not no_progress
