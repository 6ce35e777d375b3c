"""leadwise references: the best fixed sets of k leads."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadwise.cli.tables import print_table

if TYPE_CHECKING:
    from leadwise.cohort.cohort import Records
    from leadwise.evaluators.contract import Evaluator
    from leadwise.references import References

TOP = 10
VERSION = 1
"""Version of kept searches, bumped whenever the same evaluator on the same records would give other metrics."""


def references(
    cohort: Annotated[Path, typer.Option(envvar="LEADWISE_PTBXL", help="Where the recordings are.")],
    k: Annotated[int, typer.Option("--k", min=1, max=12, help="How many leads.")],
    evaluator: Annotated[str, typer.Option(help="Who reads the leads: an evaluator of the plan.")] = "controlled",
    plan: Annotated[Path | None, typer.Option(help="The plan of both; by default the one for PTB-XL.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The ten best lead sets of size K for each metric, with margins, and the named clinical sets beside them.

    Every set of K leads is scored on the selection role. Lower is better for all three metrics. An interrupted search
    goes on where it was; one that ships, of the same evaluator on the same records, is not repeated.
    """
    found = find(cohort, k, evaluator, plan)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(
        f"{found['candidates']:,} sets of {k} leads, read by {evaluator} on {found['records']:,} records"
        + (f" ({found['left_out']} with fewer leads left out)" if found["left_out"] else "")
        + (", as searched for the bundle that ships" if found["shipped"] else "")
    )
    for metric, rows in found["best"].items():
        shown = [
            [str(row["rank"]), row["leads"], f"{row['value']:.5f}", f"+{row['margin']:.5f}", str(row["electrodes"])]
            for row in rows
        ]
        print_table(["rank", "leads", metric, "margin", "electrodes"], shown, left=("leads",))
    print("Named clinical sets, with their rank among the sets of their own size:")
    columns = ["name", "leads", *(text for metric in found["best"] for text in (metric, f"{metric} rank"))]
    shown = [
        [row["name"], row["leads"], *(text for metric in found["best"] for text in _place(row, metric))]
        for row in found["clinical"]
    ]
    print_table(columns, shown, left=("name", "leads"))
    for row in found["clinical"]:
        if row["why_not"]:
            print(f"{row['name']} has no rank: {row['why_not']}.")


def _place(row: dict[str, Any], metric: str) -> tuple[str, str]:
    """Value and rank of a clinical set, as they are printed."""
    value, rank = row[metric], row[f"{metric}_rank"]
    return "–" if value is None else f"{value:.5f}", "–" if rank is None else f"{rank} of {row['of']}"


def find(cohort: Path, k: int, evaluator: str, plan: Path | None) -> dict[str, Any]:
    """The data that `references` prints."""
    from leadwise.cohort.contract import COHORTS
    from leadwise.leads import LeadSet
    from leadwise.references import MATCHED_METRICS, search_references
    from leadwise.run.bundle import shipped_references
    from leadwise.run.plan import read_plan
    from leadwise.study.execute import find_plan
    from leadwise.study.fitting import make_evaluator

    study = read_plan(find_plan(plan or "ptbxl"))
    whole = COHORTS.find(study.cohort.kind).read(study.cohort.settings, cohort, study.cohort_roles())
    fitted = make_evaluator(study, evaluator, whole)
    records = whole["selection"]
    searched = shipped_references(fitted, records)
    shipped = searched is not None and k in searched.budgets
    if searched is None or not shipped:
        searched = search_references(fitted, records, [k], _ledger(fitted, records))
    best = {}
    for metric in MATCHED_METRICS:
        ranked = searched.ranking(metric, k).head(TOP).rename(columns={metric: "value"})
        electrodes = [len(LeadSet(bits).electrodes) for bits in ranked["bits"]]
        ranked = ranked.assign(rank=range(1, len(ranked) + 1), electrodes=electrodes)
        best[metric] = ranked[["rank", "leads", "value", "margin", "electrodes"]].to_dict("records")
    left_out, candidates = searched.left_out[k], len(searched.ranking("nll", k))
    counts = {"records": len(records) - left_out, "left_out": left_out, "candidates": candidates}
    found = {"shipped": shipped, "best": best, "clinical": _clinical(fitted, records, searched)}
    return {"evaluator": evaluator, "k": k} | counts | found


def _ledger(evaluator: "Evaluator", records: "Records") -> Path | None:
    """File in which an interrupted search of this evaluator on these records goes on; None where there can be none."""
    from leadwise.evaluators.contract import evaluator_name, evaluator_sha256

    cache, weights = records.cohort.cache, evaluator_sha256(evaluator)
    if cache is None or weights is None or not os.access(cache, os.W_OK):
        return None
    return cache / f"search-{VERSION}-{evaluator_name(evaluator)}-{weights[:16]}-{records.labels_sha256[:16]}.jsonl"


def _clinical(evaluator: "Evaluator", records: "Records", searched: "References") -> list[dict[str, Any]]:
    """Every named clinical set with its metrics, and its rank, or why it has none."""
    from leadwise.leads import CLINICAL_SETS
    from leadwise.references import MATCHED_METRICS, quick_metrics, with_enough

    ranked: dict[str, Any] = {row["name"]: row for row in searched.clinical().to_dict("records")}
    nothing = {name: None for metric in MATCHED_METRICS for name in (metric, f"{metric}_rank")}
    rows = []
    for name, leads in CLINICAL_SETS.items():
        row: dict[str, Any] = {"name": name, "leads": str(leads), "k": len(leads), "of": None, "why_not": None}
        if name in ranked:
            row |= ranked[name] | {"of": len(searched.ranking("nll", len(leads)))}
        elif len(leads) in searched.budgets or not len(with_enough(records, leads)):
            row |= nothing | {"why_not": "some records lack one of its leads"}
        else:
            why_not = f"sets of {len(leads)} leads were not searched (--k {len(leads)} does)"
            row |= nothing | quick_metrics(evaluator, records, leads) | {"why_not": why_not}
        rows.append(row)
    return rows
