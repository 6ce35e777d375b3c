"""Chosen leads: likeness to the references, frequency of each, most frequent sets, and an oracle's choice."""

from collections.abc import Iterator

from leadwise.analysis.tidy import REFERENCE
from leadwise.leads import LEADS
from leadwise.report.numbers import percent
from leadwise.report.tables.patients import ENDS
from leadwise.report.tables.view import (
    EXPLORATORY,
    INTERVAL,
    ReportTable,
    View,
    column_of,
    joined,
    pivoted,
    renamed,
    same,
)

PLACE = 100
_RANKS = {1: "most often", 2: "second", 3: "third"}


def tables(view: View) -> Iterator[ReportTable]:
    yield _alignment(view)
    yield _frequencies(view)
    yield _modal_sets(view)
    yield _headroom(view)


def _alignment(view: View) -> ReportTable:
    """Likeness of the policies' sets to the references."""
    keys = ["role", "policy", "evaluator", "k"]
    rows = view.rows("alignment", versus=REFERENCE)
    near = renamed(rows[rows["statistic"] == "jaccard"] if len(rows) else rows, {"value": "jaccard"})
    said = [
        {"jaccard range": ENDS.get(label, ""), "shared leads": f"{label} shared"}.get(statistic, statistic)
        for statistic, label in zip(column_of(rows, "statistic"), column_of(rows, "label"), strict=True)
    ]
    more = same(*ENDS.values(), "identical", *(f"{number} shared" for number in range(max(view.plan.budgets) + 1)))
    rows = joined(near, pivoted(rows.assign(said=said), keys, "said", more), keys, list(more), "left")
    columns = {"role": "role", "policy": "policy", "evaluator": "reference of", "k": "k", "jaccard": "mean Jaccard"}
    return view.table(
        "alignment",
        "Likeness of chosen sets to the references",
        f"How much the sets that a policy chooses on the {view.roles} resemble the fixed set that is best for NLL "
        "under an evaluator: Jaccard similarity (1 is the same set), share of records with the very same set, and "
        "share of records whose set has 0, 1, 2 or more leads in common with it. Exploratory.",
        ["alignment"],
        rows,
        columns | same(INTERVAL) | more,
        keys,
        EXPLORATORY,
    )


def _frequencies(view: View) -> ReportTable:
    """In what share of the records each lead is acquired, and what that costs in electrodes."""
    keys = ["role", "policy", "k"]
    more = {"electrodes": "electrodes", "followed limb share": "limb leads that followed"}
    rows = view.rows("alignment", versus="", statistic=("lead frequency", *more))
    said = zip(column_of(rows, "label"), column_of(rows, "statistic"), strict=True)
    headings = same(*LEADS) | more
    rows = pivoted(rows.assign(said=[label or statistic for label, statistic in said]), keys, "said", headings)
    return view.table(
        "lead-frequencies",
        "How often each lead is chosen",
        f"Share of the records of the {view.roles} for which a policy acquires each lead, the mean number of "
        "electrodes that this takes, and the share of acquired limb leads that already followed from two others. "
        "Exploratory.",
        ["alignment"],
        rows,
        same(*keys, *headings.values()),
        keys,
        EXPLORATORY,
    )


def _modal_sets(view: View) -> ReportTable:
    """The three lead sets that each policy chooses most often."""
    keys = ["role", "policy", "k"]
    rows = view.rows("modal_sets", rank=tuple(_RANKS))
    said = zip(column_of(rows, "leads"), column_of(rows, "share"), strict=True)
    rows = rows.assign(value=[f"{leads} ({percent(share)})" for leads, share in said])
    return view.table(
        "modal-sets",
        "Sets that are chosen most often",
        f"The three lead sets that each policy chooses most often on the {view.roles}, with the share of records that "
        "get them. Exploratory.",
        ["modal_sets"],
        pivoted(rows, keys, "rank", _RANKS),
        same(*keys, *_RANKS.values()),
        keys,
        EXPLORATORY,
    )


def _headroom(view: View) -> ReportTable:
    """Metric of the best fixed sets, metric and first leads of label-aware oracles."""
    return view.table(
        "headroom",
        "What an oracle would gain",
        "Exploratory: NLL on the selection role with the best fixed set and with the leads that an oracle would "
        "choose for each record, and for what share of records it would begin with each lead. An oracle sees the "
        "labels, so it can never be deployed: it only says how much there would be to gain.",
        ["headroom"],
        view.rows("headroom"),
        same("role", "evaluator", "statistic", "k") | {"label": "leads"} | same("value", "deployable"),
        status=EXPLORATORY,
    )
