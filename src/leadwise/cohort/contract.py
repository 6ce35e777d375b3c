"""Protocol and registry of the kinds of cohort: classes that read one, or make one."""

from pathlib import Path
from typing import Any, Protocol

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.roles import Roles
from leadwise.registry import Registry, Settings


class CohortKind(Protocol):
    """A way to a cohort that plans can name.

    Optional: ``write(settings, directory)``, where the recordings are made and not found. Then nobody names a
    directory; a run makes them in its own.
    """

    Settings: type[Settings]

    @classmethod
    def read(cls, settings: Any, directory: Path, roles: Roles) -> Cohort:
        """The cohort in a directory."""


COHORTS: Registry[type[CohortKind]] = Registry("cohort", "leadwise.cohorts", "leadwise.cohort", ("read",))
register_cohort = COHORTS.register
list_cohorts = COHORTS.names
