"""Tables of what was compared: policies with references and with each other, evaluator with evaluator."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.report.paper_numbers import Row
from leadwise.report.views import INTERVAL, Views, intervals, joined, same
from leadwise.report.wording import spoken

ON_DEMAND, MGA = "ecg-on-demand", "mga"
CONTROLLED, STRONG, MASK_ROBUST = "controlled", "strong", "mask-robust"
SIMULTANEOUS = "simultaneous 95% interval"

Called = dict[str, list[str]]


def hypotheses(view: Views) -> pd.DataFrame:
    """What the plan expects, and what came of it."""

    def names(row: Row) -> Called:
        if row["cells"] != 1 or row["reference"] != OWN:
            return {}
        between = f"{row['evaluator']} minus {row['baseline']}" if row["baseline"] else row["evaluator"]
        title, at = f"{between} {row['quantity']}", f"k={row['budgets']}"
        return {
            "": [
                f"{title} {row['metrics']} {row['policies']}, {at}",
                f"{title}, {row['policies']}, {at}, {row['metrics']}",
            ]
        }

    columns = same("number", "role", "level", "quantity", "policies", "evaluator", "baseline")
    columns |= {"reference": "references", "budgets": "k", "metrics": "metrics", "expected": "expected"}
    columns |= {"cells": "cells", "present": "cells there", "holding": "as expected", "contradicted": "contradicted"}
    columns |= {"verdict": "verdict"}
    return view.show(view.rows("hypotheses"), columns | {"value": "estimate", INTERVAL: INTERVAL}, names)


def contrasts(view: Views, evaluator: str) -> pd.DataFrame:
    """All policies against an evaluator's own references."""
    return _contrasts(view, view.rows("contrasts", evaluator=evaluator, reference_evaluator=evaluator))


def aligned_contrasts(view: Views) -> pd.DataFrame:
    """Under the strong evaluator: what was trained on it, and MGA, which was not."""
    rows = view.rows("contrasts", evaluator=STRONG, reference_evaluator=STRONG)
    if len(rows):
        rows = rows[(rows["policy"] == MGA) | rows["policy"].str.startswith(f"{STRONG}-")]
    return _contrasts(view, rows)


def contrast_names(row: Row) -> Called:
    """What the paper's numbers for a contrast with an evaluator's own reference, and for its arms, are called."""
    evaluator, policy, metric, at = row["evaluator"], row["policy"], row["metric"], f"k={row['k']}"
    fixed = [f"{evaluator} value, reference of {policy}'s contrast, {at}, {metric}"]
    return {
        "": [
            f"{evaluator} contrast {metric} {policy}, {at}",
            f"{policy} contrast {metric}, {at}",
            f"{evaluator} contrast, {policy}, {at}, {metric}",
            f"{evaluator} contrast {metric} {policy} (derived), {at}",
        ],
        "adaptive": [f"{evaluator} {policy} {metric}, {at}", f"{evaluator} value, {policy}, {at}, {metric}"],
        "fixed": [f"{evaluator} fixed {metric}, {at}", *fixed] if policy == ON_DEMAND else fixed,
    }


def interaction_names(row: Row) -> Called:
    """What the paper's numbers for an interaction, and for its two contrasts, are called."""
    evaluator, baseline, policy = row["evaluator"], row["baseline_evaluator"], row["policy"]
    at = f"{policy}, k={row['k']}, {row['metric']}"
    if evaluator == MASK_ROBUST:  # the paper's are stated against one reference and look like those of the other
        scalar = f"{evaluator} interaction {row['metric']} {policy}, k={row['k']}"
        return {"": [scalar, f"{evaluator} minus {baseline} interaction, {at}"]}
    if baseline != CONTROLLED:  # which the paper does not have
        return {}
    against = "" if row["reference"] == OWN else f" against the {row['reference']} reference"
    called = {"": [f"{evaluator} minus {baseline} interaction{against}, {at}"]}
    return called | {f"D {each}": [f"{each} contrast{against}, {at}"] for each in (baseline, evaluator)}


def _contrasts(view: Views, rows: pd.DataFrame) -> pd.DataFrame:
    columns = same("role", "policy") | {"trained_on": "trained on"} | same("k", "metric", "adaptive", "fixed")
    columns |= {"delta": "D", INTERVAL: INTERVAL} | _level_column(view, "contrast")
    return view.show(_with_levels(view, rows, "contrast"), columns, contrast_names, ["role", "policy", "k", "metric"])


def pairs(view: Views) -> pd.DataFrame:
    """Policies against each other, and how alike the sets are that they choose."""
    keys = ["role", "policy_a", "policy_b", "k"]
    rows = view.rows("paired").reindex(columns=[*keys, "evaluator", "metric", "a", "b", "delta", "lo", "hi"])
    for statistic in ("identical", "jaccard"):
        alike = view.rows("alignment", statistic=statistic)
        alike = alike.rename(columns={"policy": "policy_a", "versus": "policy_b", "value": statistic})
        rows = joined(rows, alike.reindex(columns=[*keys, statistic]), keys, "left")

    def names(row: Row) -> Called:
        a, b, evaluator, metric, at = (row[name] for name in ("policy_a", "policy_b", "evaluator", "metric", "k"))
        called = {
            "": [f"{evaluator} difference, {a} minus {b}, k={at}, {metric}"],
            "A": [f"{evaluator} value, {a} in the pair {a} and {b}, k={at}, {metric}"],
            "B": [f"{evaluator} value, {b} in the pair {a} and {b}, k={at}, {metric}"],
        }
        alike = {"identical": [f"identical final sets {a} vs {b} (share), k={at}"]}
        return called | alike | {"Jaccard": [f"mean Jaccard {a} vs {b}, k={at}"]}

    columns = {"role": "role", "policy_a": "policy A", "policy_b": "policy B"} | same("evaluator", "k", "metric")
    columns |= {"a": "A", "b": "B", "delta": "A − B", INTERVAL: INTERVAL}
    columns |= {"identical": "identical sets", "jaccard": "mean Jaccard"}
    return view.show(rows, columns, names, ["role", "policy_a", "policy_b", "evaluator", "k", "metric"])


def gap_closed(view: Views) -> pd.DataFrame:
    """Policies trained on the strong evaluator against MGA, which was not, and the share of its gap that they close."""
    keys = ["role", "k", "metric", "policy", "baseline_policy"]
    paired = view.rows("paired", evaluator=STRONG, policy_b=MGA)
    paired = paired.rename(columns={"policy_a": "policy", "policy_b": "baseline_policy"})
    if len(paired):
        paired = paired[paired["policy"].str.startswith(f"{STRONG}-")]
    gaps = view.rows("gap_closed", evaluator=STRONG)
    gaps = gaps.assign(closed=intervals(gaps, "lo", "hi"))
    gaps = gaps.reindex(columns=[*keys, "d_baseline", "d_policy", "share", "closed"])
    rows = joined(paired.reindex(columns=[*keys, "delta", "lo", "hi"]), gaps, keys, "outer")

    def names(row: Row) -> Called:
        policy, other, metric, at = row["policy"], row["baseline_policy"], row["metric"], f"k={row['k']}"
        table = f"{STRONG} difference, {policy} minus {other}, {at}, {metric}"
        return {
            "": [f"{policy} minus {other} {metric}, {at}", table],
            "share": [f"share of {other}'s {metric} gap closed by {policy}, {at}"],
        }

    columns = {"role": "role", "policy": "policy", "baseline_policy": "minus", "k": "k", "metric": "metric"}
    columns |= {
        "delta": "difference",
        INTERVAL: INTERVAL,
        "d_baseline": "D of the other",
        "d_policy": "D of the policy",
    }
    columns |= {"share": "share closed", "closed": f"{INTERVAL} of the share"}
    return view.show(rows, columns, names, ["role", "policy", "k", "metric"])


def interactions(
    view: Views, evaluator: str, baselines: Sequence[str] = (CONTROLLED,), references: Sequence[str] = (OWN,)
) -> pd.DataFrame:
    """How D changes with the evaluator."""
    among = {"baseline_evaluator": tuple(baselines), "reference": tuple(references)}
    rows = view.rows("interactions", evaluator=evaluator, **among)
    rows = rows.assign(**{SIMULTANEOUS: intervals(rows, "lo_simultaneous", "hi_simultaneous")})

    columns = same("role", "policy")
    columns |= {"baseline_evaluator": "baseline"} if len(baselines) > 1 else {}
    columns |= {"reference": "references"} if len(references) > 1 else {}
    before = spoken(baselines[0]) if len(baselines) == 1 else "baseline"
    columns |= {"k": "k", "metric": "metric", "d_baseline": f"D {before}", "d_evaluator": f"D {spoken(evaluator)}"}
    columns |= {"interaction": "I", INTERVAL: INTERVAL, SIMULTANEOUS: SIMULTANEOUS}
    columns |= _level_column(view, "interaction")
    order = ["role", "baseline_evaluator", "reference", "policy", "k", "metric"]
    return view.show(_with_levels(view, rows, "interaction"), columns, interaction_names, order)


def _level_column(view: Views, quantity: str) -> dict[str, str]:
    return same("level") if any(each.quantity == quantity for each in view.plan.hypotheses) else {}


def _with_levels(view: Views, rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """What the plan calls each row (primary, supporting, …), by its first hypothesis that has it."""
    expected = [each for each in view.plan.hypotheses if each.quantity == quantity]

    def level(row: Row) -> str:
        place = row["evaluator"], row.get("baseline_evaluator"), row.get("reference", OWN)
        about = [each for each in expected if (each.evaluator, each.baseline, each.reference) == place]
        cell = row["policy"], row["k"], row["metric"]
        return next((each.level for each in about if _in(cell, (each.policies, each.budgets, each.metrics))), "")

    return rows.assign(level=[level(row) for row in rows.to_dict("records")])


def _in(cell: Sequence[Any], among: Sequence[Sequence[Any]]) -> bool:
    return all(value in values for value, values in zip(cell, among, strict=True))
