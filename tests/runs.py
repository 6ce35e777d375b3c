"""A whole study on a tiny cohort, for the fixture `finished`, and what tests ask of such runs."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from leadwise.cohort.cohort import Records
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.roles import SCORED
from leadwise.leads import LEADS, LeadSet
from leadwise.run.bundle import Bundle
from leadwise.run.plan import read_plan
from leadwise.run.stage import in_order
from leadwise.run.stage_names import scoring_stage
from leadwise.store import file_sha256
from leadwise.study.graph import stages
from leadwise.study.scoring import RoleResults
from receipts import receipt_facts

PLAN = """
title = "tiny"
budgets = [2, 4]
first_lead = "controlled"
cohort = {kind = "synthetic", records = 160, seed = 3}
bootstrap = {replicates = 20, own_replicates = 40}

[evaluators.controlled]
kind = "logistic"
repeats = 2
references = [1, 2, 4]

[evaluators.controlled.variants]
controlled-1 = {seed = 1}

[evaluators.controlled-unbalanced]
kind = "logistic"
class_weight = "none"
repeats = 2
references = [1, 2, 4]

[evaluators.controlled-recalibrated]
kind = "recalibrated"
of = "controlled"
references = [1, 2, 4]

[evaluators.strong]
kind = "masked-resnet"
seeds = [1, 2]
widths = [4, 4, 8, 8]
references = [1, 2]
recipe = {epochs = 2, batch = 32, crop = 250, full_epochs = 1, norm_batches = 1}

[evaluators.strong-recalibrated]
kind = "recalibrated"
of = "strong"
references = [2]

[evaluators.strong-2]
kind = "seed"
of = "strong"
seed = 2
references = [2]

[evaluators.mask-robust]
kind = "masked-resnet"
seeds = [1]
widths = [4, 4, 8, 8]
masks_of = ["ecg-on-demand", "mga"]
recipe = {epochs = 2, batch = 32, crop = 250, full_epochs = 1, norm_batches = 1}

[policies.ecg-on-demand]
kind = "ecg-on-demand"
target = "controlled"
states = 120
hidden = 8
epochs = 2
batch = 64

[policies.mga]
kind = "mga"
target = "controlled"
states = 120
hidden = 8
epochs = 2
batch = 64

[policies.mga.variants]
mga-1 = {seed = 1}

[policies.ccga]
kind = "ccga"
target = "controlled"
states = 120
neighbours = 10

[policies.strong-mga]
kind = "mga"
target = "strong"
states = 120
hidden = 8
epochs = 2
batch = 64

[policies.strong-mga-controlled-state]
kind = "mga"
target = "strong"
state = "controlled"
states = 120
hidden = 8
epochs = 2
batch = 64

[policies.cohort-state]
kind = "cohort-state"
of = "ecg-on-demand"

[policies.random-subset]
kind = "random-subset"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "strong"
baseline = "controlled"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "strong"
baseline = "controlled"
reference = "controlled"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "strong"
baseline = "controlled"
reference = "strong"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "mask-robust"
baseline = "controlled"
reference = "controlled"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "mask-robust"
baseline = "controlled"
reference = "strong"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "strong"
baseline = "controlled-unbalanced"

[[interactions]]
policies = ["ecg-on-demand", "mga"]
evaluator = "strong"
baseline = "controlled-recalibrated"

[[variance]]
source = "draws of masks"
stand_ins = {controlled = ["controlled", "controlled-1"]}

[[variance]]
source = "seeds of a policy"
stand_ins = {mga = ["mga", "mga-1"]}

[transfer]
policies = ["mga", "strong-mga"]
evaluators = ["controlled", "controlled-recalibrated", "strong", "strong-recalibrated"]

[[decompositions]]
policies = ["mga"]
evaluator = "strong"
baseline = "controlled"
recalibrated_evaluator = "strong-recalibrated"
recalibrated_baseline = "controlled-recalibrated"

[[pairs]]
policies = ["ecg-on-demand", "mga"]
evaluators = ["controlled", "strong"]

[[pairs]]
policies = ["ecg-on-demand", "ccga"]
evaluators = ["controlled", "strong"]

[[pairs]]
policies = ["ecg-on-demand", "cohort-state"]
evaluators = ["controlled", "strong"]

[[pairs]]
policies = ["ecg-on-demand", "random-subset"]
evaluators = ["controlled", "strong"]

[[pairs]]
policies = ["strong-mga", "mga"]
evaluators = ["controlled", "strong"]

[[pairs]]
policies = ["strong-mga-controlled-state", "mga"]
evaluators = ["controlled", "strong"]

[[pairs]]
policies = ["strong-mga-controlled-state", "strong-mga"]
evaluators = ["controlled", "strong"]
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
    return [(each["event"], each.get("stage", "")) for each in receipt_facts(directory / "ledger.jsonl")]


def planned(plan: Path) -> list[str]:
    """Every stage in the order in which it is done."""
    return [stage.name for stage in in_order(stages(read_plan(plan), []))] + [scoring_stage(role) for role in SCORED]


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
