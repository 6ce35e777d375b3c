"""All policies against an evaluator's own references; a table for each evaluator that has some."""

from collections.abc import Iterator

from leadwise.report.names import the_evaluator
from leadwise.report.tables.view import INTERVAL, NEGATIVE, ReportTable, View, exploratory, same

PLACE = 50
_COLUMNS = same("role", "policy") | {"trained_on": "trained on"} | same("k", "metric", "adaptive", "fixed")
_COLUMNS |= {"delta": "D", INTERVAL: INTERVAL}


def tables(view: View) -> Iterator[ReportTable]:
    plan = view.plan
    searched = [name for name, each in plan.evaluators.items() if each.references and name not in plan.stand_ins]
    levels = same("level") if any(each.quantity == "contrast" for each in plan.hypotheses) else {}
    for name in searched:
        evaluator, status = the_evaluator(name), view.status("contrast", name)
        rows = view.rows("contrasts", evaluator=name, reference_evaluator=name)
        yield view.table(
            f"contrasts-{name}",
            f"Contrasts under {evaluator}",
            "D is the metric with the leads that a policy chose minus the metric with the best fixed set of "
            f"{evaluator} for that metric, both read by it, on the {view.roles}: {NEGATIVE}.{exploratory(status)}",
            ["contrasts"],
            view.with_levels(rows, "contrast"),
            _COLUMNS | levels,
            ["role", "policy", "k", "metric"],
            status,
        )
    if not searched:
        yield view.table(
            "contrasts",
            "Contrasts",
            "No evaluator of the plan has references, so nothing is compared with fixed sets.",
            ["contrasts"],
            view.rows("contrasts").iloc[:0],
            _COLUMNS,
        )
