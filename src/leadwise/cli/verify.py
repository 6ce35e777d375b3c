"""leadwise verify: whether a run or a bundle is still what it says it is."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def verify(path: Annotated[Path, typer.Argument(help="A run's directory, or a frozen bundle.")]) -> None:
    """The chain of receipts, the hash of every artifact, the bundle, the results and the seal.

    Prints a sentence for everything that is wrong, and exits with 2 if anything is.
    """
    from leadwise.run.verify import verify as find_problems

    problems = find_problems(path)
    if not problems:
        print(f"{path} is what it says it is.")
        return
    for problem in problems:
        print(f"leadwise: {problem}", file=sys.stderr)
    raise typer.Exit(2)
