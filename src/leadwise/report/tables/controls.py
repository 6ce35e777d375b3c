"""Learned policies beside what does not know the patient, and their places among all fixed sets."""

from collections.abc import Iterator

from leadwise.report.tables.view import INTERVAL, NEGATIVE, ReportTable, View, exploratory, same

PLACE = 75


def tables(view: View) -> Iterator[ReportTable]:
    if len(rows := view.rows("controls")):
        caption = (
            "The metric with the leads of a policy minus the metric with those of a control, under the evaluators of "
            f"the study's question and under the one that the policy was trained on, on the {view.roles}: {NEGATIVE}. "
            "A control is a policy that was not trained, one that is made from the policy and sees the average "
            "patient, or the anchored set: of all fixed sets with the policy's first lead the best, for this evaluator "
            f"and metric, on the selection role.{exploratory(view.further)}"
        )
        columns = same("role", "policy", "evaluator", "k", "metric", "versus", "leads")
        columns |= {"value": "difference", INTERVAL: INTERVAL}
        order = ["role", "policy", "evaluator", "k", "metric"]
        title = "Learned policies beside controls"
        yield view.table("controls", title, caption, ["controls"], rows, columns, order, view.further)
    if len(rows := view.rows("places")):
        caption = (
            "Each policy on the selection role, where all fixed sets of as many leads were tried: its metric, and its "
            "rank among these sets, of which there are so many candidates; it is 1 for a policy that is better than "
            f"every fixed set.{exploratory(view.further)}"
        )
        columns = same("policy", "evaluator", "k", "metric", "value", "rank", "candidates")
        order = ["policy", "evaluator", "k", "metric"]
        title = "Places of the policies among all fixed sets"
        yield view.table("places", title, caption, ["places"], rows, columns, order, view.further)
