"""Tables that describe: who is studied, what reads the leads, how calibrated it is, whom it helps, what is chosen."""

from typing import Any

import pandas as pd

from leadwise.analysis.tidy import REFERENCE
from leadwise.findings.estimates import ALL_LEADS
from leadwise.findings.paper import published_numbers
from leadwise.leads import LEADS
from leadwise.report.comparisons import CONTROLLED, ON_DEMAND, Called, contrast_names, interaction_names
from leadwise.report.paper_numbers import Row, as_number
from leadwise.report.views import INTERVAL, Views, intervals, joined, same
from leadwise.report.wording import estimate, percent, spoken

_ARMS = ("ecg-on-demand", "mga", REFERENCE)
_MATCHED = "ECE-matched set"
_STRUCTURE = ("nll", "brier", "ece", "macro |intercept|", "macro |slope - 1|", "variance", "entropy")
_TWELVE = "all twelve"


def splits(view: Views) -> pd.DataFrame:
    """Who is studied, role by role."""
    rows = view.rows("splits")
    labels = [str(column).removeprefix("prevalence_") for column in rows if str(column).startswith("prevalence_")]
    counted = {"records": "records", "patients": "patients", "all_zero": "without any label"}
    counted |= {"shared_patients": "patients also in other roles"} if "shared_patients" in rows else {}
    rows = rows.assign(**{column: rows[column].astype("Int64") for column in counted if column in rows})
    counts = published_numbers().query("folds != '' and table == 'splits' and column == 'records'")
    published = {
        f"{row['folds'].split()[0]}-{row['folds'].split()[-1]}": row["quantity"].split(", ")[1]
        for row in counts.to_dict("records")
    }

    def names(row: Row) -> Called:
        first, *more = str(row["folds"]).split()
        folds = f"{first}-{[first, *more][-1]}"
        called = f"{published.get(folds)}{f', folds {folds}' if more else ''}"
        counts = {"records": "records", "patients": "patients", "unlabelled": "records without any label"}
        found = {word: [f"{name}, {called}"] for word, name in counts.items()}
        return found | {label: [f"prevalence {label}"] for label in labels}

    columns = same("role", "folds") | counted | {f"prevalence_{label}": f"share of {label}" for label in labels}
    return view.show(rows, columns, names)


def evaluator_quality(view: Views) -> pd.DataFrame:
    """Every evaluator with all leads and under random masks."""

    def names(row: Row) -> Called:
        evaluator, metric = row["evaluator"], row["metric"]
        if row["leads"] == _TWELVE:
            return {"": [f"{evaluator} evaluator with all leads, {metric}", f"{evaluator} full-12 {metric}"]}
        return {"": _random_mask(evaluator, metric)}

    rows = view.rows("evaluator_quality")
    rows = rows.assign(leads=[_TWELVE if leads == ALL_LEADS else leads for leads in rows.get("leads", ())])
    columns = same("role", "evaluator", "leads", "metric", "value", INTERVAL)
    return view.show(rows, columns, names, ["role", "leads", "evaluator", "metric"])


def references(view: Views) -> pd.DataFrame:
    """The best fixed sets, and out of how many."""

    def names(row: Row) -> Called:
        at = f"k={row['k']}"
        return {"": [f"{row['evaluator']} reference, {at}, {row['metric']}"], "out of": [f"candidates, {at}"]}

    columns = same("evaluator", "k", "metric", "leads", "value", "candidates")
    return view.show(view.rows("references"), columns, names, ["evaluator", "k", "metric"])


def seeds(view: Views) -> pd.DataFrame:
    """The networks that were trained and which of them was chosen; of the mask-robust ones there is only one."""

    def names(row: Row) -> Called:
        if row["chosen"] is not True:
            return {}
        evaluator = row["evaluator"]
        chosen = {word: [f"{evaluator} chosen {word}"] for word in ("seed", "epoch")}
        return {"": _random_mask(evaluator, row["metric"])} | chosen

    columns = same("evaluator", "seed", "epoch", "role", "metric", "value", "chosen")
    tried = view.rows("seeds").reindex(columns=list(columns)).astype(object)
    rows = pd.concat([tried, view.rows("boundary").reindex(columns=list(columns)).astype(object)])
    rows = rows.assign(seed=["" if pd.isna(seed) else str(seed) for seed in rows["seed"]])  # it counts nothing
    return view.show(rows, columns, names)


def _random_mask(evaluator: str, metric: str) -> list[str]:
    return [f"{evaluator} random-mask {metric}{when}" for when in (" at the chosen epoch", "")]


# calibration ---------------------------------------------------------------------------------------------------------


def calibration_structure(view: Views) -> pd.DataFrame:
    """The studied policies and the fixed set side by side."""

    def names(row: Row) -> Called:
        title, at = f"{row['evaluator']} {row['statistic']}", f"k={row['k']}"
        return {_arm(arm): [f"{title}, {_MATCHED if arm == REFERENCE else arm}, {at}"] for arm in _ARMS}

    keys = ["role", "evaluator", "k", "statistic"]
    rows = view.rows("calibration", versus="", label="", statistic=_STRUCTURE)
    rows = _pivot(rows, keys, "policy", list(_ARMS))
    columns = same(*keys) | {arm: _arm(arm) for arm in _ARMS}
    shown = view.show(rows, columns, names, keys)
    return shown.assign(statistic=shown["statistic"].map(spoken))


def _arm(arm: str) -> str:
    return _MATCHED if arm == REFERENCE else spoken(arm)


def calibration_differences(view: Views) -> pd.DataFrame:
    """Metrics and binnings of the studied policies minus those of the fixed set, and the variance that they keep."""

    def names(row: Row) -> Called:
        metric, policy, at = row["statistic"].removesuffix(" difference"), row["policy"], f"k={row['k']}"
        if row["evaluator"] != CONTROLLED:
            return {}
        if metric.startswith("ece"):
            return {"": [f"ece contrast {metric.removeprefix('ece') or 10} bins {policy}, {at}"]}
        kept = policy == ON_DEMAND and metric == "variance retention"
        return {"": [f"variance retention ratio, {at}"]} if kept else {}

    rows = view.rows("calibration", versus=REFERENCE, label="")
    columns = same("role", "evaluator", "policy", "k", "statistic", "value", INTERVAL)
    shown = view.show(rows, columns, names, ["role", "evaluator", "policy", "k"])
    return shown.assign(statistic=[_difference(statistic) for statistic in shown["statistic"]])


def _difference(statistic: str) -> str:
    metric = statistic.removesuffix(" difference")
    return statistic if metric == statistic else f"difference in {spoken(metric)}"


def label_calibration(view: Views) -> pd.DataFrame:
    """ECE of each label, policy minus fixed set."""

    def names(row: Row) -> Called:
        if (row["evaluator"], row["policy"]) != (CONTROLLED, ON_DEMAND):
            return {}
        return {"": [f"label-wise ece difference {row['label']}, k={row['k']}"]}

    rows = view.rows("calibration", versus=REFERENCE, statistic="ece difference")
    rows = rows[rows["label"] != ""] if len(rows) else rows
    columns = same("role", "evaluator", "policy", "k", "label") | {"value": "ECE difference", INTERVAL: INTERVAL}
    return view.show(rows, columns, names, ["role", "evaluator", "policy", "k"])


# patients ------------------------------------------------------------------------------------------------------------

_SUMMARIES = (
    *("mean", "median", "mean trimmed 5%", "mean trimmed 10%", "mean winsorised 5%", "mean without largest 1%"),
    *("range", "improved", "worsened", "unchanged"),
)
_ENDS = {"min": "smallest", "max": "largest"}
_BENEFITS = {
    "spearman": "Spearman uncertainty vs benefit {policy}",
    "benefit jaccard": "benefited sets Jaccard {policy} vs {versus}",
    "benefit under both": "benefit under both policies (share)",
    "benefit under the first only": "benefit under {policy} only (share)",
    "benefit under the second only": "benefit under {versus} only (share)",
    "benefit under neither": "benefit under neither (share)",
    **{f"Q{q} mean": f"quartile {q} mean delta nll {{policy}}" for q in range(1, 5)},
    **{f"Q{q} benefit rate": f"quartile {q} benefit rate {{policy}}" for q in range(1, 5)},
}
"""What the paper calls the statistics of who benefits."""
_GROUPS = {"one label": "patients with one superclass", "several labels": "patients with two or more superclasses"}


def patient_effects(view: Views) -> pd.DataFrame:
    """Robust summaries of the patients' effects, each patient counting once."""

    def names(row: Row) -> Called:
        statistic, at = row["statistic"], f"{row['policy']}, k={row['k']}"
        if row["evaluator"] != CONTROLLED:
            return {}
        ends = [f"{end} patient delta nll, k={row['k']}" for end in _ENDS.values() if statistic == f"{end} effect"]
        return {
            "": [f"patient delta nll, {statistic}, {at}", *(ends if row["policy"] == ON_DEMAND else [])],
            "percent": [f"percent of patients {statistic}, {at}"],
        }

    rows = view.rows("patients", versus=REFERENCE, statistic=_SUMMARIES)
    rows = rows[rows["label"].isin(["", *_ENDS])] if len(rows) else rows  # subgroups have a table of their own
    ends = [
        f"{_ENDS[label]} effect" if label else said
        for said, label in zip(*_columns(rows, "statistic", "label"), strict=True)
    ]
    columns = same("role", "evaluator", "policy", "k", "statistic", "value", INTERVAL)
    return view.show(rows.assign(statistic=ends), columns, names, ["role", "evaluator", "policy", "k"])


def patient_benefit(view: Views) -> pd.DataFrame:
    """Effects by uncertainty after the first lead, and whether two policies help the same patients."""

    def names(row: Row) -> Called:
        called = _BENEFITS[row["statistic"]].format(policy=row["policy"], versus=row["versus"])
        return {"": [f"{called}, k={row['k']}"]} if row["evaluator"] == CONTROLLED else {}

    rows = view.rows("patients", statistic=tuple(_BENEFITS))
    rows = rows.assign(other=["" if versus == REFERENCE else spoken(versus) for versus in rows.get("versus", ())])
    columns = same("role", "evaluator", "policy") | {"other": "second policy"}
    columns |= same("k", "statistic", "value", INTERVAL)
    return view.show(rows, columns, names, ["role", "evaluator", "k", "other", "policy"])


def patient_groups(view: Views) -> pd.DataFrame:
    """Mean effects of patients with so many labels, with and without each label."""

    def names(row: Row) -> Called:
        if (row["evaluator"], row["policy"]) != (CONTROLLED, ON_DEMAND):
            return {}
        group = _GROUPS.get(row["label"], f"{row['label'].replace(' ', '-')} patients")
        return {"": [f"mean delta nll {group}, k={row['k']}"]}

    keys = ["role", "evaluator", "policy", "k", "label"]
    rows = view.rows("patients", versus=REFERENCE, statistic="mean").reindex(columns=[*keys, "value", "lo", "hi"])
    count = view.rows("patients", versus=REFERENCE, statistic="patients").rename(columns={"value": "patients"})
    rows = joined(rows, count.reindex(columns=[*keys, "patients"]), keys, "inner")  # everybody is no group
    rows = rows.assign(patients=rows["patients"].astype("Int64"))
    columns = same("role", "evaluator", "policy", "k") | {"label": "group"}
    columns |= {"patients": "patients", "value": "mean effect", INTERVAL: INTERVAL}
    return view.show(rows, columns, names, ["role", "evaluator", "policy", "k"])


# what is chosen ------------------------------------------------------------------------------------------------------


def alignment(view: Views) -> pd.DataFrame:
    """How near the sets that policies choose are to the references."""
    keys = ["role", "policy", "evaluator", "k"]
    rows = view.rows("alignment", versus=REFERENCE)
    near = rows[rows["statistic"] == "jaccard"] if len(rows) else rows
    near = near.rename(columns={"value": "jaccard"}).reindex(columns=[*keys, "jaccard", "lo", "hi"])
    shared = [f"{number} shared" for number in range(max(view.plan.budgets) + 1)]
    said = [
        {"jaccard range": _ENDS.get(label, ""), "shared leads": f"{label} shared"}.get(statistic, statistic)
        for statistic, label in zip(*_columns(rows, "statistic", "label"), strict=True)
    ]
    more = ["smallest", "largest", "identical", *shared]
    rows = joined(near, _pivot(rows.assign(said=said), keys, "said", more), keys, "left")
    counts = dict(zip(("one lead", "two leads", "three leads"), shared[1:], strict=False))

    def names(row: Row) -> Called:
        policy, owner, at = row["policy"], row["evaluator"], f"k={row['k']}"
        called = {"Jaccard": [f"mean Jaccard {policy} vs {owner} reference, {at}"]}
        called |= {end: [f"{end} Jaccard {policy} vs {owner} reference, {at}"] for end in _ENDS.values()}
        called["identical"] = [f"sets identical to the {owner} reference {policy} (share), {at}"]
        if policy != ON_DEMAND:
            return called
        overlaps = {
            short: [f"overlap of {long} with the {owner} reference (share), {at}"] for long, short in counts.items()
        }
        return called | overlaps

    columns = {"role": "role", "policy": "policy", "evaluator": "reference of", "k": "k", "jaccard": "mean Jaccard"}
    columns |= same(INTERVAL, *more)
    return view.show(rows, columns, names, ["role", "policy", "evaluator", "k"])


def lead_frequencies(view: Views) -> pd.DataFrame:
    """In what share of the records each lead is acquired, and what that costs in electrodes."""

    def names(row: Row) -> Called:
        return {lead: [f"lead share {lead} {row['policy']}, k={row['k']}"] for lead in LEADS}

    keys = ["role", "policy", "k"]
    more = {"electrodes": "electrodes", "followed limb share": "limb leads that followed"}
    rows = view.rows("alignment", versus="", statistic=("lead frequency", *more))
    said = [label or statistic for label, statistic in zip(*_columns(rows, "label", "statistic"), strict=True)]
    rows = _pivot(rows.assign(said=said), keys, "said", [*LEADS, *more])
    return view.show(rows, same(*keys, *LEADS) | more, names, keys)


def modal_sets(view: Views) -> pd.DataFrame:
    """The three lead sets that each policy chooses most often."""
    keys = ["role", "policy", "k"]
    rows = view.rows("modal_sets", rank=(1, 2, 3))
    texts = [f"{leads} ({percent(share)})" for leads, share in zip(*_columns(rows, "leads", "share"), strict=True)]
    ranks = {1: "most often", 2: "second", 3: "third"}
    said = [ranks[rank] for rank in rows.get("rank", ())]
    rows = _pivot(rows.assign(value=texts, said=said), keys, "said", [*ranks.values()])
    return view.show(rows, same(*keys, *ranks.values()), order=keys)


def headroom(view: Views) -> pd.DataFrame:
    """What the best fixed set reaches, what label-aware oracles would reach, and where they would begin."""
    columns = same("role", "evaluator", "statistic", "k") | {"label": "leads"} | same("value", "deployable")
    return view.show(view.rows("headroom"), columns)


# the paper -----------------------------------------------------------------------------------------------------------


def claims(view: Views) -> pd.DataFrame:
    """What the paper claims in words, and what this run says to it."""
    rows = view.rows("claims")
    counts = [f"orientation_{name}" for name in ("role", "cells", "holding", "contradicted")]
    rows = rows.assign(orientation=[_orientation(*each) for each in zip(*_columns(rows, *counts), strict=True)])
    columns = same("claim", "where", "role", "cells", "holding", "contradicted", "verdict")
    return view.show(rows, columns | {"orientation": "for orientation"})


def _orientation(role: Any, cells: Any, holding: Any, contradicted: Any) -> str:
    """What the cells of another role would say."""
    if pd.isna(cells) or not cells:
        return ""
    return f"{role}: {int(holding)} of {int(cells)} hold, {int(contradicted)} contradict"


def claim_cells(view: Views) -> pd.DataFrame:
    """The cells of each claim."""

    def names(row: Row) -> Called:
        called: Called = {}
        if row["quantity"] == "contrast":
            called = contrast_names(row)
        elif row["quantity"] == "interaction":
            called = interaction_names({**row, "baseline_evaluator": row["baseline"]})
        elif row["quantity"] == "paired":
            pair = f"{row['policy']} minus {row['versus']}"
            called = {"": [f"{row['evaluator']} difference, {pair}, k={row['k']}, {row['metric']}"]}
        return {word: named for word, named in called.items() if not word}

    columns = same("claim", "cell", "role", "decides", "policy", "versus", "evaluator", "baseline")
    columns |= same("reference", "k", "metric")
    columns |= same("value", INTERVAL, "verdict")
    return view.show(view.rows("claim_cells"), columns, names)


def published(view: Views) -> pd.DataFrame:
    """Every published number beside ours."""
    rows = view.rows("published").iloc[: None if view.about_paper else 0]
    for arm in ("published", "ours"):
        values = [as_number(row, arm) for row in rows.to_dict("records")]
        rows = rows.assign(**{arm: pd.Series(values, index=rows.index, dtype=object)})  # a count stays one
        rows = rows.assign(**{f"{arm}_interval": intervals(rows, f"{arm}_lo", f"{arm}_hi")})
    columns = same("quantity", "where") | {"published": "paper", "published_interval": f"paper, {INTERVAL}"}
    columns |= {"ours": "ours", "ours_interval": f"ours, {INTERVAL}", "beside": "for orientation"}
    columns |= {"difference": "ours − paper", "patients": "patients", "z": "z", "same_sign": "same sign"}
    return view.show(rows.assign(beside=_beside(rows)), columns)


def _beside(rows: pd.DataFrame) -> list[str]:
    """Our number of another role, with its interval."""
    return [
        f"{row['orientation_role']}: "
        f"{estimate(as_number(row, 'orientation'), row['orientation_lo'], row['orientation_hi'])}"
        if isinstance(row["orientation_role"], str)
        else ""
        for row in rows.to_dict("records")
    ]


def _columns(rows: pd.DataFrame, *names: str) -> list[list[Any]]:
    """Columns as lists; empty where there is no such column."""
    return [rows[name].tolist() if name in rows else [] for name in names]


def _pivot(rows: pd.DataFrame, keys: list[str], across: str, headings: list[Any]) -> pd.DataFrame:
    """One row for each combination of keys, in order of appearance, with a column for each heading."""
    if rows.empty:
        return pd.DataFrame(columns=[*keys, *headings])
    wide = rows.pivot(index=keys, columns=across, values="value").reindex(columns=headings)
    return wide.reindex(pd.MultiIndex.from_frame(rows[keys].drop_duplicates())).rename_axis(columns=None).reset_index()
