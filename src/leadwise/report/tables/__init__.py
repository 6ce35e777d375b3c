"""The report's tables, each a view of results. A module here that has ``PLACE`` and ``tables`` adds its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from leadwise.report.tables.view import ReportTable, View
from leadwise.run.contents import RunContents


@dataclass(frozen=True)
class _Section:
    place: int
    tables: Callable[[View], Iterator[ReportTable]]


@cache
def _sections() -> list[_Section]:
    """Those that make tables, in the order of their places."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    made = [_Section(module.PLACE, module.tables) for module in modules if hasattr(module, "PLACE")]
    return sorted(made, key=lambda section: section.place)


def report_tables(contents: RunContents) -> list[ReportTable]:
    """Every table of a report; one that has no rows in this run is there, and empty."""
    view = View(contents)
    return [table for section in _sections() for table in section.tables(view)]
