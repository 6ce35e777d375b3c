"""What a run would take: its stages, their time and the disk they need, from a short calibration on this machine.

Each kind of work is timed on a few synthetic recordings and multiplied by how much of it the plan asks for. A factor of
two either way is to be expected: small samples are read at another speed, and the machine may be busy now or then.
"""

import time
from collections.abc import Callable, Mapping
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.roles import SCORED
from leadwise.cohort.synthetic import synthesize, write_synthetic
from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.scoring import score
from leadwise.leads import LEADS
from leadwise.policies.mga import MGA
from leadwise.policies.state_network import StateNetwork
from leadwise.references import search_references
from leadwise.run.directory import RunDirectory
from leadwise.run.plan import Plan, read_plan
from leadwise.run.stage import in_order
from leadwise.study.feasibility import check_plan, role_sizes
from leadwise.study.run import find_plan, read_cohort, synthetic_place
from leadwise.study.stages import LOGISTIC, MASK_ROBUST, RECALIBRATED, STRONG, STRONG_MGA, search_stage, shipped, stages
from leadwise.study.status import run_status

COHORT = "synthetic cohort"
"""What comes before the stages where the recordings are yet to be made."""
POLICIES = 7
"""Policies and controls of a study."""
READINGS = 11 * 1.1
"""For each state that a policy learns from: the state, the leads that could come next, a tenth more for validation."""


def forecast(plan: str | Path, out: str | Path, cohort: str | Path | None = None) -> list[dict[str, Any]]:
    """One row a stage that is still to be done: stage, seconds, bytes on disk. The run is left alone."""
    wanted = read_plan(find_plan(plan))
    whole = read_cohort(wanted, cohort)
    check_plan(wanted, whole)
    directory = RunDirectory(out)
    if directory.path.exists() and not directory.path.is_dir():
        raise InputError(f"{out} is a file; name a directory for the run.")
    directory.check_ours()
    done = {COHORT} if synthetic_place(wanted, directory).exists() else set()
    if directory.plan.exists():
        done |= {row["stage"] for row in run_status(out, wanted) if row["state"] == "done"}
    sizes, rates = role_sizes(wanted, whole), calibrate(wanted)
    work, disk = amounts(wanted, sizes, already_trained(wanted, whole)), disk_use(wanted, sizes, rates["parameters"])
    if not work.keys() - done - {"report"}:
        return []
    return [
        {
            "stage": name,
            "seconds": sum(amount * rates[kind] for kind, amount in parts.items()),
            "bytes": int(disk.get(name, 0)),
        }
        for name, parts in work.items()
        if name not in done
    ]


def already_trained(plan: Plan, cohort: Cohort | None) -> set[str]:
    """Stages whose network ships with leadwise, trained just as the plan says, on just these records."""
    if cohort is None:
        return set()
    return {
        f"strong-seed-{seed}"
        for seed in plan.strong.seeds
        if shipped(plan, cohort, STRONG, seed, plan.strong.recipe) is not None
    }


def calibrate(plan: Plan) -> dict[str, float]:
    """Seconds that a unit of each kind of work takes here, and the network's number of parameters."""
    from leadwise.evaluators.devices import keep_freed_memory
    from leadwise.evaluators.masked_resnet.training import Training

    recipe, repeats = plan.strong.recipe, plan.controlled.repeats
    records = max(400, 2 * recipe.batch)
    rates = {"overhead": 0.1}
    with TemporaryDirectory() as home:  # what was made before would be found, and cost nothing
        rates["recording"] = _seconds(lambda: write_synthetic(Path(home) / "cohort", records, seed=1)) / records
    cohort = synthesize(records=records, seed=1)
    train, validation = cohort["train"], cohort["validation"]
    controlled = LogisticEvaluator(**plan.controlled.model_dump())
    rates["fit"] = _seconds(lambda: controlled.fit(train)) / (len(train) * repeats)
    rates["table"] = _seconds(lambda: search_references(controlled, train, [3])) / (comb(12, 3) * len(train))
    network = StateNetwork(plan.policies.hidden, plan.policies.epochs, plan.policies.batch)
    policy = MGA(controlled, LEADS, states=min(2000, plan.policies.states), budgets=plan.budgets, network=network)
    rates["state"] = _seconds(lambda: policy.fit(train, validation)) / policy.states
    # batch statistics of its own would take longer than all the rest, and change no time of reading
    plain = recipe.model_copy(update={"norm_batches": 0})
    training = Training(train, validation, recipe=plain, widths=tuple(plan.strong.widths))
    keep_freed_memory()  # as a training does
    rows = np.arange(-(-recipe.batch // 4))  # a part of a batch takes its part of the time
    for kind, training.epoch in (("crop step", 0), ("whole step", recipe.epochs - 1)):
        training.learn(rows)  # the first step also fetches memory
        rates[kind] = min(_seconds(lambda: training.learn(rows)) for _ in range(2)) * recipe.batch / len(rows)
    strong, masks = training.evaluator().on("auto"), frozen_masks(len(train))
    score(strong, train, masks)  # the first reading also compiles
    rates["reading"] = _seconds(lambda: score(strong, train, masks)) / len(train)
    rates["parameters"] = sum(weight.numel() for weight in training.network.parameters())
    return rates


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def amounts(plan: Plan, sizes: Mapping[str, int], trained: set[str]) -> dict[str, dict[str, float]]:
    """How much of each kind of work every stage does, by stage."""
    work: dict[str, dict[str, float]] = {}
    if plan.cohort.kind == "synthetic":
        work[COHORT] = {"recording": plan.cohort.records or 0}
    scored = [role for role in SCORED if role in sizes]
    work |= {stage.name: {"overhead": 1} for stage in in_order(stages(plan, []))}
    work |= {role: {"overhead": 100} for role in (*scored, "report")}  # resampling, figures
    for name in (*LOGISTIC, RECALIBRATED):
        work[name] |= {"fit": sizes["train"] * plan.controlled.repeats}
        for k in (1, *plan.budgets):
            work[search_stage(name, k)] |= {"table": comb(12, k) * sizes["selection"]}
    for seed in plan.strong.seeds:
        name = f"strong-seed-{seed}"
        work[name] |= {} if name in trained else _training(plan.strong.recipe, sizes)
    work[MASK_ROBUST] |= _training(plan.mask_robust.recipe, sizes)
    work[STRONG] |= {"reading": sizes["selection"] * len(plan.strong.seeds)}
    for k in plan.strong.search:
        work[search_stage(STRONG, k)] |= {"reading": comb(12, k) * sizes["selection"]}
    states = plan.policies.states
    for name in ("ecg-on-demand", "mga"):
        work[name] |= {"state": states}
    work["strong-mga"] |= {"state": len(STRONG_MGA) * states, "reading": READINGS * states}
    work["development"] |= {"reading": 4 * sizes["validation"]}
    for role in scored:
        work[role] |= {"reading": (POLICIES + 4) * len(plan.budgets) * sizes[role]}
    return work


def _training(recipe: Recipe, sizes: Mapping[str, int]) -> dict[str, float]:
    """Steps on crops and on whole records, and the readings by which epochs are compared."""
    steps, full = sizes["train"] // recipe.batch, min(recipe.full_epochs, recipe.epochs)
    crops = recipe.epochs - full
    measured = crops // recipe.validate_every + full
    return {"crop step": crops * steps, "whole step": full * steps, "reading": measured * sizes["validation"]}


def disk_use(plan: Plan, sizes: Mapping[str, int], parameters: float) -> dict[str, float]:
    """Bytes that each stage leaves on the disk, and, of a training, also needs on the way."""
    weights = 2 * parameters
    checkpoints = 2 * 16 * parameters
    scored = {role: 400 * (POLICIES + 4) * len(plan.budgets) * sizes.get(role, 0) for role in SCORED}
    training = dict.fromkeys((*(f"strong-seed-{seed}" for seed in plan.strong.seeds), MASK_ROBUST), weights)
    training[MASK_ROBUST] += checkpoints  # one training at a time
    synthetic = {COHORT: 48_000 * (plan.cohort.records or 0)} if plan.cohort.kind == "synthetic" else {}
    return synthetic | training | {STRONG: weights, "freeze": 4 * weights, "report": 20e6} | scored
