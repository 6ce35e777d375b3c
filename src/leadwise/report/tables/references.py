"""The best fixed sets, and out of how many."""

from collections.abc import Iterator

from leadwise.report.tables.view import ReportTable, View, same

PLACE = 40


def tables(view: View) -> Iterator[ReportTable]:
    yield view.table(
        "references",
        "Fixed references and the size of their search",
        "The best fixed set of k leads for each evaluator and metric, out of all candidates, found on the selection "
        "role: what policies have to beat. The value is the metric on the selection role.",
        ["references"],
        view.rows("references"),
        same("evaluator", "k", "metric", "leads", "value", "candidates"),
        ["evaluator", "k", "metric"],
    )
