"""What the command line answers."""

from collections.abc import Callable

Verb = Callable[..., tuple[int, str, str]]
"""Runs ``leadwise WORDS``; returns exit code, standard output and standard error."""


def said(answer: tuple[int, str, str], sentence: str) -> None:
    """One sentence and exit code 2."""
    code, out, err = answer
    assert (code, out) == (2, "")
    assert err.startswith("leadwise: ")
    assert sentence in err
    assert err.count("\n") == 1
