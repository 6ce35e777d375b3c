"""leadwise verify: compare a run or a bundle with what it says of itself."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadwise.errors import InputError


def verify(
    path: Annotated[Path | None, typer.Argument(help="A run's directory, or a frozen bundle.")] = None,
    pretrained: Annotated[
        bool, typer.Option("--pretrained", help="Verify the bundle that ships with leadwise.")
    ] = False,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head of the ledger that was kept elsewhere, to compare with.")
    ] = None,
) -> None:
    """The chain of receipts, the hash of every artifact, the bundle, the results, the report and the seal.

    All of it is what the run says of itself: whoever holds the files can write them anew. Only --head, with a head
    that was published or kept elsewhere, shows that; it stands for its receipt and all before it.

    Prints a sentence for everything that is wrong, and exits with 2 if anything is.
    """
    from leadwise.run.verify import verify as find_problems

    place = chosen(path, pretrained)
    problems = find_problems(place, head)
    if not problems:
        print(f"{place} is what it says it is{'' if head is None else _up_to(place, head)}.")
        return
    for problem in problems:
        print(f"leadwise: {problem}", file=sys.stderr)
    raise typer.Exit(2)


def _up_to(run: Path, head: str) -> str:
    """Words for the receipts that a head which was kept elsewhere stands for."""
    from leadwise.run.directory import RunDirectory
    from leadwise.run.history import History

    history = History.read(RunDirectory(run).ledger)
    return f"; the head stands for its receipts 1 to {history.place_of(head)} of {len(history)}"


def chosen(path: Path | None, pretrained: bool) -> Path:
    """The bundle or run that is named, or the bundle that ships."""
    from leadwise.run.bundle import pretrained_bundle

    if (path is None) != pretrained:
        raise InputError("Name a run or a bundle, or say --pretrained for the bundle that ships; one of the two.")
    return pretrained_bundle() if path is None else path
