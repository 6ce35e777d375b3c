"""leadwise verify: whether a run or a bundle is still what it says it is."""

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
) -> None:
    """The chain of receipts, the hash of every artifact, the bundle, the results and the seal.

    Prints a sentence for everything that is wrong, and exits with 2 if anything is.
    """
    from leadwise.run.verify import verify as find_problems

    place = chosen(path, pretrained)
    problems = find_problems(place)
    if not problems:
        print(f"{place} is what it says it is.")
        return
    for problem in problems:
        print(f"leadwise: {problem}", file=sys.stderr)
    raise typer.Exit(2)


def chosen(path: Path | None, pretrained: bool) -> Path:
    """The bundle or run that is named, or the bundle that ships."""
    from leadwise.run.bundle import pretrained_bundle

    if (path is None) != pretrained:
        raise InputError("Name a run or a bundle, or say --pretrained for the bundle that ships; one of the two.")
    return pretrained_bundle() if path is None else path
