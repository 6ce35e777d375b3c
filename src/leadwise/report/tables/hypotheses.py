"""The plan's hypotheses and their verdicts."""

from collections.abc import Iterator

from leadwise.findings.verdicts import EQUIVALENT
from leadwise.report.tables.published import PAPER
from leadwise.report.tables.view import INTERVAL, ReportTable, View, column_of, same

PLACE = 10


def tables(view: View) -> Iterator[ReportTable]:
    rows = view.rows("hypotheses")
    single = rows[rows["cells"] == 1] if len(rows) else rows
    policies = [text.split() for text in column_of(single, "policies")]
    place = {"policy": [first for first, *_ in policies], "versus": [" ".join(others) for _, *others in policies]}
    place |= {"k": [int(k) for k in column_of(single, "budgets")], "metric": column_of(single, "metrics")}
    said = view.cells(single.assign(**place))
    columns = same("number", "role", "level", "quantity", "policies", "evaluator", "baseline")
    columns |= {"reference": "references", "budgets": "k", "metrics": "metrics", "expected": "expected"}
    columns |= {"cells": "cells", "present": "cells there", "holding": "as expected", "contradicted": "contradicted"}
    columns |= {"verdict": "verdict", "value": "estimate", INTERVAL: INTERVAL}
    equivalence = " Where equivalence is expected, the interval is of 90%, and has to lie within the plan's margin."
    yield view.table(
        "hypotheses",
        "Hypotheses",
        f"What the plan expected before anybody looked at the {view.roles}, and what came of it."
        f"{equivalence * (EQUIVALENT in column_of(rows, 'expected'))}",
        ["hypotheses"],
        rows.assign(**{PAPER: said.get(PAPER)}),
        columns,
    )
