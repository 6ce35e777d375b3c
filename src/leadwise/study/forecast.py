"""Forecast of a run: its stages, their time and disk, from a short calibration on this machine.

Every stage declares the work that it does in units, and every kind tries a little of each of its units; the rest is
multiplication. A factor of two either way is to be expected: small samples are read at another speed, and the machine
may be busy now or then.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.contract import COHORTS
from leadwise.cohort.roles import SCORED
from leadwise.cohort.synthetic import FEWEST_RECORDS, synthesize
from leadwise.errors import InputError
from leadwise.evaluators.contract import EVALUATORS, Material
from leadwise.run.directory import RunDirectory
from leadwise.run.plan import Plan, read_plan
from leadwise.run.stage import in_order
from leadwise.run.stage_names import evaluator_stage, scoring_stage
from leadwise.study.execute import find_plan, read_cohort
from leadwise.study.feasibility import check_plan, role_sizes
from leadwise.study.graph import seeds, stages
from leadwise.study.status import run_status

COHORT = "recordings"
"""Name of the work before the stages where the recordings are yet to be made."""
REPORT = "report"
OVERHEAD = {"stage": 0.1, "reselection": 5.0, "scoring": 10.0, REPORT: 10.0}
"""Seconds that everything takes beside the work that it declares: resampling, figures."""
BYTES_A_READING = 400
"""On disk, of what is read while a role is scored."""


def forecast(plan: str | Path, out: str | Path, cohort: str | Path | None = None) -> list[dict[str, Any]]:
    """One row a stage that is still to be done: stage, seconds, bytes on disk. The run is left alone."""
    wanted = read_plan(find_plan(plan))
    whole = read_cohort(wanted, cohort)
    check_plan(wanted, whole)
    directory = RunDirectory(out)
    if directory.path.exists() and not directory.path.is_dir():
        raise InputError(f"{out} is a file; name a directory for the run.")
    directory.check_ours()
    done = {COHORT} if not wanted.makes_cohort or directory.made_cohort(wanted).exists() else set()
    if directory.plan.exists():
        done |= {row["stage"] for row in run_status(out, wanted) if row["state"] == "done"}
    sizes = role_sizes(wanted, whole)
    done |= ready(wanted, whole)
    work = {name: cost for name, cost in amounts(wanted, sizes).items() if name not in done}
    if not work.keys() - {REPORT}:
        return []
    seconds, disk = calibrate(wanted, whole), disk_use(wanted, sizes)
    return [
        {
            "stage": name,
            "seconds": sum(amount * seconds.get(unit, 0.0) for unit, amount in cost.items()),
            "bytes": int(disk.get(name, 0)),
        }
        for name, cost in work.items()
    ]


def amounts(plan: Plan, sizes: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Amount of each unit of work, by stage."""
    work: dict[str, dict[str, float]] = {COHORT: dict(plan.cohort.settings.cost(sizes))}
    work |= {stage.name: {"stage": 1.0, **stage.cost} for stage in in_order(stages(plan, [], sizes))}
    for role in SCORED:
        if role in sizes:
            work[scoring_stage(role)] = {"scoring": 1.0, **_scoring(plan, sizes[role])}
    return work | {REPORT: {REPORT: 1.0}}


def _scoring(plan: Plan, records: int) -> dict[str, float]:
    """Readings by each evaluator: what every policy chose, and a few sets beside, at every budget."""
    policies = len(plan.policies.keys() - plan.stand_ins)
    readings = (policies + 4) * len(plan.budgets) * records
    return {f"read {name}": readings for name in plan.evaluators if name not in plan.stand_ins}


def calibrate(plan: Plan, cohort: Cohort | None) -> dict[str, float]:
    """Seconds that a unit of each kind of work takes here."""
    seconds = dict(OVERHEAD)
    if cohort is None:
        maker: Any = COHORTS.find(plan.cohort.kind)
        few = plan.cohort.settings.model_copy(update={"records": max(FEWEST_RECORDS, 100)})
        with TemporaryDirectory() as home:  # what was made before would be found, and cost nothing
            for unit, amount in few.cost({}).items():
                seconds[unit] = _seconds(lambda: maker.write(few, Path(home) / "cohort")) / amount
    batches = [getattr(getattr(each.settings, "recipe", None), "batch", 0) for each in plan.evaluators.values()]
    trial = synthesize(records=max(400, 2 * max(batches)), seed=1)
    train, validation = trial["train"], trial["validation"]
    for entry in [*plan.evaluators.values(), *plan.policies.values()]:
        kind = entry.registry.find(entry.kind)
        trials = kind.trials(entry.settings, train, validation) if hasattr(kind, "trials") else {}
        for unit, (amount, work) in trials.items():
            if unit not in seconds:
                seconds[unit] = min(_seconds(work) for _ in range(2)) / amount  # the first also compiles
    for name, entry in plan.evaluators.items():
        of = entry.settings.candidate
        read = EVALUATORS.find(plan.evaluators[of[0]].kind if of else entry.kind)
        # a kind that names no unit derives its answers from what others have read
        seconds[f"read {name}"] = seconds.get(getattr(read, "reading", ""), 0.0)
    return seconds


def ready(plan: Plan, cohort: Cohort | None) -> set[str]:
    """Stages whose evaluator ships with leadwise, made just as the plan says, on just these records."""
    found = set()
    for name, entry in plan.evaluators.items():
        kind = EVALUATORS.find(entry.kind)
        if cohort is None or not hasattr(kind, "shipped") or entry.settings.evaluators or entry.settings.policies:
            continue
        material = Material(name, cohort["train"], cohort["validation"])
        for seed in seeds(plan, name):
            if kind.shipped(entry.settings.model_copy(update={"seeds": [seed]}), material) is not None:
                found.add(evaluator_stage(name, seed))
    return found


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def disk_use(plan: Plan, sizes: Mapping[str, int]) -> dict[str, float]:
    """Bytes that stages leave on the disk, and need on the way, where they are many."""
    use = {COHORT: 48_000.0 * getattr(plan.cohort.settings, "records", 0), REPORT: 20e6}
    for name, entry in plan.evaluators.items():
        for stage in [evaluator_stage(name, seed) for seed in seeds(plan, name)] or [evaluator_stage(name)]:
            use[stage] = entry.settings.disk()
    for role in SCORED:
        use[scoring_stage(role)] = BYTES_A_READING * sum(_scoring(plan, sizes.get(role, 0)).values())
    return use
