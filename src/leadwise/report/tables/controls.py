"""Learned policies beside what does not know the patient, and their places among all fixed sets."""

from collections.abc import Iterator

from leadwise.report.tables.view import INTERVAL, NEGATIVE, ReportTable, View, exploratory, same

PLACE = 75


def tables(view: View) -> Iterator[ReportTable]:
    caption = (
        "The metric with the leads of a policy minus the metric with those of a control, under the evaluators of the "
        f"study's question and under the one that the policy was trained on, on the {view.roles}: {NEGATIVE}. "
        "A control is a policy that was not trained, one that is made from the policy and sees the average patient, or "
        "the anchored set: of all fixed sets with the policy's first lead the best, for this evaluator and metric, on "
        f"the selection role.{exploratory(view.further)}"
    )
    columns = same("role", "policy", "evaluator", "k", "metric", "versus", "leads")
    columns |= {"value": "difference", INTERVAL: INTERVAL}
    order = ["role", "policy", "evaluator", "k", "metric"]
    title = "Learned policies beside controls"
    yield view.table("controls", title, caption, ["controls"], view.rows("controls"), columns, order, view.further)
    caption = (
        "Each policy on the selection role, where all fixed sets of as many leads were tried: its metric, and its rank "
        "among these candidates, 1 for a policy that is better than every fixed set."
        f"{exploratory(view.further)}"
    )
    columns = same("role", "policy", "evaluator", "k", "metric", "value", "rank", "candidates")
    title = "Places of the policies among all fixed sets"
    yield view.table("places", title, caption, ["places"], view.rows("places"), columns, order, view.further)
