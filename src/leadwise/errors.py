"""Errors that speak to the user: one sentence that says what is wrong, where, and what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def one_line(error: object) -> str:
    """A library's message as a part of a sentence: on one line, without a full stop."""
    return " ".join(str(error).split()).rstrip(".")


def right_one(wrong: object, right: Iterable[str]) -> str:
    """End of a sentence: the word that was perhaps meant by a wrong one, or all possible ones."""
    known = list(right)
    near = get_close_matches(str(wrong), known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}."


class LeadwiseError(Exception):
    """Something the user can put right. The command line prints it and exits with code 2."""


class CohortError(LeadwiseError):
    """A cohort on disk is missing, incomplete, or not what it says it is."""


class PlanError(LeadwiseError):
    """A plan, or a request made of one, names something that does not exist."""


class SealedRole(LeadwiseError):
    """Signals or labels of a sealed role were asked for before the bundle was frozen."""


class FetchError(LeadwiseError):
    """A download could not be completed."""


class LeadwiseWarning(UserWarning):
    """Something the user should know, but need not put right."""


class InputError(LeadwiseError):
    """Arrays that were handed over do not fit together, or hold what they cannot hold."""


class Complaints:
    """Complaints about something that somebody else wrote, gathered so that all are said at once."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """One more complaint; the same one is kept once."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Make a complaint of whatever error ends the block."""
        try:
            yield
        except LeadwiseError as error:
            self.add(str(error))
        except Exception as error:
            self.add(f"{self.about} fails with {type(error).__name__}: {one_line(error)}.")

    def say(self) -> None:
        """Raise `InputError` with all complaints, one a line, if there are any."""
        if self.sentences:
            raise InputError("\n".join(self.sentences))
