"""Policies against each other, how alike the sets are that they choose, and what a better target regains."""

from collections.abc import Iterator

from leadwise.report.tables.view import (
    EXPLORATORY,
    INTERVAL,
    ReportTable,
    View,
    exploratory,
    intervals,
    joined,
    renamed,
    same,
)

PLACE = 70


def tables(view: View) -> Iterator[ReportTable]:
    statuses = [view.status("paired", name) for name in view.plan.evaluators]
    status = next((each for each in statuses if each != EXPLORATORY), EXPLORATORY)
    yield _pairs(view, status)
    if view.plan.pairs:
        yield _gaps(view, status)


def _pairs(view: View, status: str) -> ReportTable:
    keys = ["role", "policy_a", "policy_b", "k"]
    rows = view.rows("paired")
    for statistic in ("identical", "jaccard"):
        alike = view.rows("alignment", statistic=statistic)
        alike = renamed(alike, {"policy": "policy_a", "versus": "policy_b", "value": statistic})
        rows = joined(rows, alike, keys, [statistic], "left")
    columns = {"role": "role", "policy_a": "policy A", "policy_b": "policy B"} | same("evaluator", "k", "metric")
    columns |= {"a": "A", "b": "B", "delta": "A − B", INTERVAL: INTERVAL}
    columns |= {"identical": "identical sets", "jaccard": "mean Jaccard"}
    caption = (
        f"The metric with the leads of policy A minus the metric with those of policy B, on the {view.roles}: negative "
        "favours policy A. Beside it, in what share of the records both choose the same set, and how alike their "
        f"sets are on average (Jaccard similarity; 1 is the same set).{exploratory(status)}"
    )
    if not view.plan.pairs:
        caption = "The plan compares no two policies with each other."
    order = ["role", "policy_a", "policy_b", "evaluator", "k", "metric"]
    title = "Policies compared with each other"
    return view.table("pairs", title, caption, ["paired", "alignment"], rows, columns, order, status)


def _gaps(view: View, status: str) -> ReportTable:
    keys = ["role", "evaluator", "k", "metric", "policy", "baseline_policy"]
    paired = renamed(view.rows("paired"), {"policy_a": "policy", "policy_b": "baseline_policy"})
    gaps = view.rows("gap_closed")
    gaps = gaps.assign(closed=intervals(gaps)).drop(columns=["lo", "hi"], errors="ignore")
    rows = joined(gaps, paired, keys, ["delta", "lo", "hi"], "left")
    columns = same("role", "policy") | {"baseline_policy": "minus"} | same("evaluator", "k", "metric")
    columns |= {"delta": "difference", INTERVAL: INTERVAL, "d_baseline": "D of the other"}
    columns |= {"d_policy": "D of the policy", "share": "share closed", "closed": f"{INTERVAL} of the share"}
    caption = (
        f"On the {view.roles}: the policy's metric minus that of a policy that was trained on another evaluator, both "
        "read by the same; negative favours the policy. The share of the gap closed, (D of the other − D of the "
        "policy) / D of the other, stands only where D of the other is above zero, so that there is a gap."
        f"{exploratory(status)}"
    )
    title = "How much of the gap training on the evaluator itself closes"
    order = ["role", "evaluator", "policy", "k", "metric"]
    return view.table("gap-closed", title, caption, ["paired", "gap_closed"], rows, columns, order, status)
