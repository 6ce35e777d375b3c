"""Contrasts and interactions in groups of records."""

from collections.abc import Iterator

from leadwise.report.names import spoken
from leadwise.report.tables.view import EXPLORATORY, INTERVAL, ReportTable, View, column_of, same

PLACE = 95
_SIGNS = {"contrast": "D", "interaction": "I"}


def tables(view: View) -> Iterator[ReportTable]:
    rows = view.rows("subgroups")
    readers = zip(*(column_of(rows, name) for name in ("evaluator", "baseline_evaluator")), strict=True)
    rows = rows.assign(
        evaluator=[f"{spoken(name)} minus {spoken(other)}" if other else name for name, other in readers],
        quantity=[_SIGNS[quantity] for quantity in column_of(rows, "quantity")],
    )
    yield view.table(
        "subgroups",
        "Contrasts and interactions in groups of records",
        f"Exploratory, on the {view.roles}: D against the evaluator's own fixed sets (negative favours adaptation) "
        "and I (above zero, adaptation pays less under the first evaluator), by sex, age, number of diagnoses and what "
        "annotators remark on the signal. Intervals are pointwise; levels of fewer than 20 patients have none.",
        ["subgroups"],
        rows,
        same("role")
        | {"group": "by", "level": "group"}
        | same("records", "patients")
        | same("quantity")
        | same("evaluator", "policy", "k", "metric", "value", INTERVAL),
        ["role", "group", "policy", "k", "metric"],
        EXPLORATORY,
    )
