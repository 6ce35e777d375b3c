"""What the plan expected, and what came of it."""

from collections.abc import Iterator

import pandas as pd

from leadwise.report.tables.published import PAPER
from leadwise.report.tables.view import INTERVAL, ReportTable, View, same

PLACE = 10


def tables(view: View) -> Iterator[ReportTable]:
    rows = view.rows("hypotheses")
    single = rows[rows["cells"] == 1] if len(rows) else rows
    policies = single.get("policies", pd.Series(dtype=str)).str.split()
    versus = policies.str[1].astype(object).fillna("")
    place = {"policy": policies.str[0], "versus": versus, "metric": single.get("metrics")}
    place |= {"k": pd.to_numeric(single.get("budgets", policies))}
    said = view.cells(single.assign(**place))
    columns = same("number", "role", "level", "quantity", "policies", "evaluator", "baseline")
    columns |= {"reference": "references", "budgets": "k", "metrics": "metrics", "expected": "expected"}
    columns |= {"cells": "cells", "present": "cells there", "holding": "as expected", "contradicted": "contradicted"}
    columns |= {"verdict": "verdict", "value": "estimate", INTERVAL: INTERVAL}
    yield view.table(
        "hypotheses",
        "Hypotheses",
        f"What the plan expected before anybody looked at the {view.roles}, and what came of it.",
        ["hypotheses"],
        rows.assign(**{PAPER: said.get(PAPER)}),
        columns,
    )
