"""Effects patient by patient, by uncertainty, and in groups."""

from collections.abc import Iterator

from leadwise.analysis.tidy import REFERENCE
from leadwise.report.names import spoken
from leadwise.report.tables.view import (
    EXPLORATORY,
    INTERVAL,
    ReportTable,
    View,
    column_of,
    exploratory,
    joined,
    renamed,
    same,
)

PLACE = 90
ENDS = {"min": "smallest", "max": "largest"}
_SOURCE = ["patients"]
_HELPED = "negative means that adaptation helped"
_SUMMARIES = (
    *("mean", "median", "mean trimmed 5%", "mean trimmed 10%", "mean winsorised 5%", "mean without largest 1%"),
    *("range", "improved", "worsened", "unchanged"),
)
_BENEFITS = (
    *("spearman", "benefit jaccard", "benefit under both", "benefit under the first only"),
    *("benefit under the second only", "benefit under neither"),
    *(f"Q{q} {statistic}" for statistic in ("mean", "benefit rate") for q in range(1, 5)),
    *(f"Q4 minus Q{q} benefit rate" for q in range(1, 4)),
)


def tables(view: View) -> Iterator[ReportTable]:
    yield _effects(view)
    yield _benefit(view)
    yield _groups(view)


def _effects(view: View) -> ReportTable:
    """Robust summaries of the patients' effects, each patient counting once."""
    rows = view.rows("patients", versus=REFERENCE, statistic=_SUMMARIES)
    rows = rows[rows["label"].isin(["", *ENDS])] if len(rows) else rows  # subgroups have a table of their own
    said = zip(column_of(rows, "statistic"), column_of(rows, "label"), strict=True)
    rows = rows.assign(statistic=[f"{ENDS[label]} effect" if label else statistic for statistic, label in said])
    return view.table(
        "patient-effects",
        "Effects on patients",
        "A patient's effect is the mean NLL with chosen leads minus that with the fixed set that is best for NLL, "
        f"on the {view.roles}; each patient counts once, and {_HELPED}. Improved, worsened and unchanged are shares "
        f"of patients.{exploratory(view.further)}",
        _SOURCE,
        rows,
        same("role", "evaluator", "policy", "k", "statistic", "value", INTERVAL),
        ["role", "evaluator", "policy", "k"],
        view.further,
    )


def _benefit(view: View) -> ReportTable:
    """Effects by uncertainty after the first lead, and whether two policies help the same patients."""
    rows = view.rows("patients", statistic=_BENEFITS)
    rows = rows.assign(other=["" if versus == REFERENCE else spoken(versus) for versus in column_of(rows, "versus")])
    return view.table(
        "patient-benefit",
        "Who benefits",
        f"Exploratory, on the {view.roles}: mean effect on NLL ({_HELPED}) and share of patients helped, by quartile "
        "of the uncertainty that the first lead leaves, Q1 the least, and the rank correlation of that uncertainty "
        "with benefit. For two policies, in what share of patients both, one or neither helps.",
        _SOURCE,
        rows,
        same("role", "evaluator", "policy") | {"other": "second policy"} | same("k", "statistic", "value", INTERVAL),
        ["role", "evaluator", "k", "other", "policy"],
        EXPLORATORY,
    )


def _groups(view: View) -> ReportTable:
    """Mean effects of patients with so many labels, with and without each label."""
    keys = ["role", "evaluator", "policy", "k", "label"]
    count = renamed(view.rows("patients", versus=REFERENCE, statistic="patients"), {"value": "patients"})
    # everybody is no group
    rows = joined(view.rows("patients", versus=REFERENCE, statistic="mean"), count, keys, ["patients"], "inner")
    return view.table(
        "patient-groups",
        "Effects in groups of patients",
        f"Exploratory, on the {view.roles}: mean effect on NLL against the fixed set that is best for NLL ({_HELPED}), "
        "for patients by their diagnoses. Groups describe, and are known only once the diagnosis is; they are no rule "
        "for whom to choose.",
        _SOURCE,
        rows.assign(patients=rows["patients"].astype("Int64")),
        same("role", "evaluator", "policy", "k")
        | {"label": "group", "patients": "patients", "value": "mean effect", INTERVAL: INTERVAL},
        ["role", "evaluator", "policy", "k"],
        EXPLORATORY,
    )
