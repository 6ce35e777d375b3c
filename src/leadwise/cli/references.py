"""leadwise references: which k leads to record, if everybody gets the same."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from leadwise.cli.tables import print_table

TOP = 10


def references(
    cohort: Annotated[Path, typer.Option(envvar="LEADWISE_PTBXL", help="Where the recordings are.")],
    k: Annotated[int, typer.Option("--k", min=1, max=12, help="How many leads.")],
    evaluator: Annotated[str, typer.Option(help="Who reads the leads; fitted on the train role.")] = "controlled",
    plan: Annotated[Path | None, typer.Option(help="Take the roles from this plan.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The ten best lead sets of size K for each metric, with margins, and the named clinical sets beside them.

    Every set of K leads is scored on the selection role. Lower is better for all three metrics.
    """
    found = find(cohort, k, evaluator, plan)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(
        f"{found['candidates']:,} sets of {k} leads, read by {evaluator} on {found['records']:,} records"
        + (f" ({found['left_out']} with fewer leads left out)" if found["left_out"] else "")
    )
    for metric, rows in found["best"].items():
        print_table(
            ["rank", "leads", metric, "margin", "electrodes"],
            (
                [str(row["rank"]), row["leads"], f"{row['value']:.5f}", f"+{row['margin']:.5f}", str(row["electrodes"])]
                for row in rows
            ),
            left=("leads",),
        )
    print("Named clinical sets, with their rank among the sets of their own size:")
    print_table(
        ["name", "leads", *(text for metric in found["best"] for text in (metric, f"{metric} rank"))],
        (
            [
                row["name"],
                row["leads"],
                *(text for m in found["best"] for text in (f"{row[m]:.5f}", f"{row[f'{m}_rank']} of {row['of']}")),
            ]
            for row in found["clinical"]
        ),
        left=("name", "leads"),
    )


def find(cohort: Path, k: int, evaluator: str, plan: Path | None) -> dict[str, Any]:
    """What `references` prints, as data."""
    from leadwise.cohort.ptbxl import read_ptbxl
    from leadwise.evaluators.contract import build_evaluator
    from leadwise.leads import CLINICAL_SETS, LeadSet
    from leadwise.references import MATCHED_METRICS, search_references
    from leadwise.run.plan import Plan, read_plan

    whole = read_ptbxl(cohort, (read_plan(plan) if plan else Plan()).cohort_roles())
    fitted = build_evaluator(evaluator, whole["train"], whole["validation"])
    records = whole["selection"]
    searched = search_references(fitted, records, sorted({k, *map(len, CLINICAL_SETS.values())}))
    sizes = searched.candidates["k"].value_counts()
    best = {}
    for metric in MATCHED_METRICS:
        ranked = searched.ranking(metric, k).head(TOP)
        best[metric] = [
            {
                "rank": rank,
                "leads": str(LeadSet(int(row["bits"]))),
                "value": float(row[metric]),
                "margin": float(row["margin"]),
                "electrodes": len(LeadSet(int(row["bits"])).electrodes),
            }
            for rank, (_, row) in enumerate(ranked.iterrows(), start=1)
        ]
    clinical = [row | {"of": int(sizes[row["k"]])} for row in searched.clinical().to_dict("records")]
    return {
        "evaluator": evaluator,
        "k": k,
        "records": len(records) - searched.left_out[k],
        "left_out": searched.left_out[k],
        "candidates": int(sizes[k]),
        "best": best,
        "clinical": clinical,
    }
