"""What a reader of a cohort format gives: a function that reads a directory, and the settings that it takes."""

from collections.abc import Callable
from typing import ClassVar, Protocol

from pydantic import BaseModel

from leadwise.cohort.cohort import Cohort


class CohortReader(Protocol):
    """A kind of cohort that a plan can name. A class that has these fits without inheriting anything."""

    Settings: ClassVar[type[BaseModel]]
    """What a plan says of such a cohort."""
    makes: ClassVar[bool]
    """Whether it makes recordings up, in a directory of the run's, instead of reading one that the user names."""
    read: ClassVar[Callable[..., Cohort]]
    """``read(directory, roles, **settings)``: the cohort in a directory, each fold with its role.

    Signals are int16 microvolts of shape (n, 12, samples), leads in the order of `leadwise.LEADS`; ``missing`` says how
    many samples of each lead were not recorded. `Cohort` checks shapes, and that no patient is in two roles.
    """
