"""Interactions with each of their intervals, over patients, references and seeds; differences too small to matter."""

from collections.abc import Iterator

from leadwise.report.names import over, the_evaluator
from leadwise.report.tables.view import INTERVAL, NEGATIVE, ReportTable, View, column_of, exploratory, intervals, same

PLACE = 65
_NARROWER = "90% interval"


def tables(view: View) -> Iterator[ReportTable]:
    if view.plan.variance and view.plan.interactions:
        yield _variance(view)
    rows = view.rows("equivalence")
    yield view.table(
        "equivalence",
        "Differences in NLL, and how small they were shown to be",
        f"D in NLL under each evaluator against its own best fixed sets ({NEGATIVE}): equivalent where the 90% "
        "interval lies within the margin, whichever side of zero it is on. Detectable is the smallest D that is told "
        f"from zero with a power of 80%.{exploratory(view.further)}",
        ["equivalence"],
        rows.assign(**{_NARROWER: intervals(rows)}),
        same("role", "evaluator", "policy", "k")
        | {"delta": "D", _NARROWER: _NARROWER, **same("margin", "detectable", "verdict")},
        ["role", "evaluator", "policy", "k"],
        view.further,
    )


def _variance(view: View) -> ReportTable:
    """The first family of interactions."""
    first = view.plan.interactions[0]
    rows = view.rows("variance", quantity="interaction")
    rows = rows.assign(over=[over(source) for source in column_of(rows, "source")])
    evaluators = f"{the_evaluator(first.evaluator)} minus {the_evaluator(first.baseline)}"
    return view.table(
        "variance",
        "What the intervals are of",
        f"I of {evaluators}, own references, on the {view.roles}: given these models, and with what else varies. Where "
        "that is seeds, I is the mean over replications, and the deviation that from one to another, apart from "
        f"patients.{exploratory(view.further)}",
        ["variance"],
        rows,
        same("role", "policy", "k", "metric", "over", "replications")
        | {"value": "I", INTERVAL: INTERVAL, "sd_source": "deviation"},
        ["role", "policy", "k", "metric"],
        view.further,
    )
