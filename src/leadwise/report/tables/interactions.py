"""Interactions: a table for each family of the plan."""

from collections.abc import Iterator

from leadwise.analysis.contrasts import OWN
from leadwise.report.names import spoken, the_evaluator
from leadwise.report.tables.view import INTERVAL, ReportTable, View, exploratory, intervals, joined, renamed, same

PLACE = 60
SIMULTANEOUS = "simultaneous 95% interval"
_ENDS = {"interaction": "I", INTERVAL: INTERVAL, SIMULTANEOUS: SIMULTANEOUS}


def tables(view: View) -> Iterator[ReportTable]:
    levels = same("level") if any(each.quantity == "interaction" for each in view.plan.hypotheses) else {}
    for place, family in enumerate(view.plan.interactions):
        name, baseline, owner = family.evaluator, family.baseline, family.reference
        rows = view.rows("interactions", evaluator=name, baseline_evaluator=baseline, reference=owner)
        for arm, reader in (("d_baseline", baseline), ("d_evaluator", name)):  # what the paper says of both D
            own = view.rows("contrasts", evaluator=reader, reference_evaluator=reader if owner == OWN else owner)
            own = own[own["reference_metric"] == own["metric"]] if len(own) else own
            rows = joined(rows, renamed(own, {"delta": arm}), ["role", "policy", "k", "metric"], [], "left")
        rows = rows.assign(**{SIMULTANEOUS: intervals(rows, "lo_simultaneous", "hi_simultaneous")})
        columns = same("role", "policy", "k", "metric")
        columns |= {"d_baseline": f"D {spoken(baseline)}", "d_evaluator": f"D {spoken(name)}"}
        status = view.status("interaction", name, baseline, owner)
        common = f"both against the fixed sets of {the_evaluator(owner)}, so that only what reads the leads changes"
        against = "each against its own best fixed sets" if owner == OWN else common
        short = "own references" if owner == OWN else f"references of {spoken(owner)}"
        yield view.table(
            "interactions" if not place else f"interactions-{name}-{baseline}-{owner}",
            f"Change of evaluator: {spoken(name)} minus {spoken(baseline)}, {short}",
            f"I is D under {the_evaluator(name)} minus D under {the_evaluator(baseline)}, {against}, on the "
            f"{view.roles}: I above zero means that adaptation pays less under {the_evaluator(name)}, and negative D "
            "favours adaptation. Simultaneous intervals cover all cells of this table that are of one role."
            f"{exploratory(status)}",
            ["interactions"],
            view.with_levels(rows, "interaction"),
            columns | _ENDS | levels,
            ["role", "policy", "k", "metric"],
            status,
        )
    if not view.plan.interactions:
        yield view.table(
            "interactions",
            "Change of evaluator",
            "The plan compares no two evaluators, so it does not tell whether an advantage survives a change of "
            "evaluator.",
            ["interactions"],
            view.rows("interactions").iloc[:0],
            same("role", "policy", "k", "metric") | _ENDS,
        )
