"""The report's tables, each a view of results. A module here that has ``PLACE`` and ``tables`` adds its own."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from leadwise.report.tables.view import ReportTable, View
from leadwise.run.contents import RunContents


@cache
def _sections() -> list[ModuleType]:
    """The modules that make tables, in the order of their places."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    return sorted((each for each in modules if hasattr(each, "PLACE")), key=lambda each: int(each.PLACE))


def report_tables(contents: RunContents) -> list[ReportTable]:
    """Every table of a report; one that has no rows in this run is there, and empty."""
    view = View(contents)
    return [table for section in _sections() for table in section.tables(view)]
