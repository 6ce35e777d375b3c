"""How stable the choice of each fixed reference is."""

from collections.abc import Iterator

from leadwise.report.numbers import percent
from leadwise.report.tables.view import ReportTable, View, joined, same

PLACE = 45


def tables(view: View) -> Iterator[ReportTable]:
    keys = ["role", "evaluator", "metric", "k"]
    rows = joined(view.rows("selection_summary"), view.rows("selection", rank=1), keys, ["leads"], "left")
    rows = rows.assign(chosen=rows["probability"].map(percent) if len(rows) else None)
    caption = (
        "What a search would have found on other patients, for whom resamples of the selection role stand: how often "
        "it chooses the reference again, and how many sets it chooses at least once. The corrected value is the mean "
        "metric of what a resample chooses, for the patients whom it does not hold, where the value itself flatters a "
        "set that was chosen for it. The regret is how much worse than the best, on all patients, the set of a "
        "resample is on average."
    )
    columns = same("role", "evaluator", "k", "metric", "leads") | {"chosen": "chosen again"}
    columns |= {"sets": "sets ever chosen"} | same("value") | {"corrected": "corrected value"} | same("regret")
    source, order = ["selection_summary", "selection"], ["evaluator", "k", "metric"]
    yield view.table("selection", "References chosen anew", caption, source, rows, columns, order)
