"""Quality of the evaluators, with all leads and under random masks; training seeds, and the network chosen."""

from collections.abc import Iterator

from leadwise.findings.estimates import ALL_LEADS
from leadwise.report.tables.view import INTERVAL, ReportTable, View, column_of, same

PLACE = 30


def tables(view: View) -> Iterator[ReportTable]:
    rows = view.rows("evaluator_quality")
    rows = rows.assign(leads=["all twelve" if leads == ALL_LEADS else leads for leads in column_of(rows, "leads")])
    yield view.table(
        "evaluator-quality",
        "Evaluator quality",
        "How well each evaluator reads all twelve leads, and a frozen draw of random lead sets, one for each "
        "record. Lower is better for NLL, Brier and ECE, higher for AUROC and AUPRC, which have no interval.",
        ["evaluator_quality"],
        rows,
        same("role", "evaluator", "leads", "metric", "value", INTERVAL),
        ["role", "leads", "evaluator", "metric"],
    )
    rows = view.rows("seeds")
    rows = rows.assign(seed=[str(seed) for seed in column_of(rows, "seed")])  # it counts nothing
    yield view.table(
        "seeds",
        "Networks that were trained",
        "NLL of every network under the frozen draw of random lead sets. Of several seeds of an evaluator, the one "
        "with the lowest NLL on the selection role was chosen; where there is one seed, it chose nothing.",
        ["seeds"],
        rows,
        same("evaluator", "seed", "epoch", "role", "metric", "value", "chosen"),
        ["evaluator"],
    )
