"""A whole study on a tiny cohort, for the fixture `finished`, and what tests ask of such runs."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from leadwise.cohort.cohort import Records
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.leads import LEADS, LeadSet
from leadwise.run.bundle import Bundle
from leadwise.run.ledger import read_receipts
from leadwise.run.plan import read_plan
from leadwise.run.stage import in_order
from leadwise.store import file_sha256
from leadwise.study.results import RoleResults
from leadwise.study.stages import stages

PLAN = """
title = "tiny"
budgets = [2, 4]
cohort = {kind = "synthetic", records = 160, seed = 3}
controlled = {repeats = 2}
bootstrap = {replicates = 20}
policies = {states = 120, hidden = 8, epochs = 2, batch = 64, neighbours = 10}

[strong]
seeds = [1, 2]
widths = [4, 4, 8, 8]
search = [1, 2]
recipe = {epochs = 2, batch = 32, crop = 250, full_epochs = 1, norm_batches = 1}

[mask_robust]
seed = 1
recipe = {epochs = 2, batch = 32, crop = 250, full_epochs = 1, norm_batches = 1}
"""
"""All stages, on as few records as they work with."""


def hashes(directory: Path) -> dict[str, str]:
    """Every file of finished artifacts, bundle, results, figures and tables; not what a kill left behind."""
    return {
        str(file.relative_to(directory)): file_sha256(file)
        for part in ("artifacts", "bundle", "results", "figures", "tables")
        for file in sorted((directory / part).rglob("*"))
        if file.is_file()
        and not any(p.startswith(".") or p.endswith(".unfinished") for p in file.parts[-3:])
        and file.name != "freeze.json"  # it tells when the clock stood where
    }


def events(directory: Path) -> list[tuple[str, str]]:
    """Events of the ledger, with their stages."""
    return [(each["event"], each.get("stage", "")) for each in read_receipts(directory / "ledger.jsonl")]


def planned(plan: Path) -> list[str]:
    """Every stage in the order in which it is done."""
    return [stage.name for stage in in_order(stages(read_plan(plan), []))] + ["audit", "evaluation"]


def gapped_results(run: Path, memory: Path) -> tuple[Records, dict[str, pd.DataFrame]]:
    """The audit role, in which some records lack leads, and its tables by the bundle of a run."""
    bundle = Bundle(run / "bundle")
    cohort = read_ptbxl(run / "cohort-160-3", bundle.plan.cohort_roles())
    missing, rows = cohort.missing.copy(), cohort["audit"].rows
    for row, leads in zip(rows, ("I II III aVR aVL aVF V1 V2 V3 V4 V5", *LEADS[:9]), strict=False):
        missing[row, list(LeadSet.parse(leads).indices)] = 1000
    records = replace(cohort, missing=missing)["audit"]
    frames = RoleResults(bundle, records, memory).frames()
    frames["references"] = pd.concat([each.frame for each in bundle.references.values()], ignore_index=True)
    return records, frames
