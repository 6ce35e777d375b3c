"""The transfer matrix: policies trained on each of several evaluators, read by all of them."""

from collections.abc import Iterator

from leadwise.report.tables.view import INTERVAL, NEGATIVE, ReportTable, View, exploratory, same

PLACE = 62


def tables(view: View) -> Iterator[ReportTable]:
    if view.plan.transfer is None:
        return
    yield view.table(
        "transfer",
        "Policies trained on each evaluator, read by all of them",
        f"D of every policy under every evaluator of the matrix, on the {view.roles}, against the best fixed sets of "
        f"the evaluator that reads: {NEGATIVE}, but in AUROC, of which more is better, D above zero does. AUROC is "
        f"compared with the sets that are best for NLL.{exploratory(view.further)}",
        ["transfer"],
        view.rows("transfer"),
        same("role", "policy")
        | {"trained_on": "trained on", "evaluator": "read by"}
        | same("k", "metric", "adaptive", "fixed")
        | {"delta": "D", INTERVAL: INTERVAL},
        ["role", "policy", "evaluator", "k", "metric"],
        view.further,
    )
