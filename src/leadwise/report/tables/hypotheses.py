"""What the plan expected, and what came of it."""

from collections.abc import Iterator

from leadwise.report.tables.view import INTERVAL, ReportTable, View, same

PLACE = 10


def tables(view: View) -> Iterator[ReportTable]:
    columns = same("number", "role", "level", "quantity", "policies", "evaluator", "baseline")
    columns |= {"reference": "references", "budgets": "k", "metrics": "metrics", "expected": "expected"}
    columns |= {"cells": "cells", "present": "cells there", "holding": "as expected", "contradicted": "contradicted"}
    columns |= {"verdict": "verdict", "value": "estimate", INTERVAL: INTERVAL}
    yield view.table(
        "hypotheses",
        "Hypotheses",
        f"What the plan expected before anybody looked at the {view.roles}, and what came of it.",
        ["hypotheses"],
        view.rows("hypotheses"),
        columns,
    )
