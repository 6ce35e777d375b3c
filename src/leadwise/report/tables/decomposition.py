"""What recalibration removes of interactions: a table for each decomposition of the plan."""

from collections.abc import Iterator

from leadwise.report.names import spoken, the_evaluator
from leadwise.report.tables.view import INTERVAL, ReportTable, View, exploratory, same

PLACE = 64


def tables(view: View) -> Iterator[ReportTable]:
    for place, each in enumerate(view.plan.decompositions):
        recalibrated = {
            "recalibrated_evaluator": each.recalibrated_evaluator,
            "recalibrated_baseline": each.recalibrated_baseline,
        }
        raw = {"evaluator": each.evaluator, "baseline_evaluator": each.baseline}
        rows = view.rows("decomposition", policy=tuple(each.policies), **raw, **recalibrated)
        others = f"{the_evaluator(each.recalibrated_evaluator)} and {the_evaluator(each.recalibrated_baseline)}"
        yield view.table(
            f"decomposition-{place + 1}" if place else "decomposition",
            f"What recalibration removes: {spoken(each.evaluator)} minus {spoken(each.baseline)}",
            f"The whole is I, {the_evaluator(each.evaluator)} minus {the_evaluator(each.baseline)}; above zero, "
            f"adaptation pays less under the first. What remains is I of the same leads between {others}, each "
            "evaluator against its own best fixed sets; the share is removed / whole, with an interval where that of "
            f"the whole excludes zero.{exploratory(view.further)}",
            ["decomposition"],
            rows,
            same("role", "policy", "k", "metric") | {"statistic": "part"} | same("value", INTERVAL),
            ["role", "policy", "k", "metric"],
            view.further,
        )
