"""How far a run has come."""

from pathlib import Path
from typing import Any

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import read_receipts
from leadwise.run.plan import read_plan
from leadwise.run.stage import in_order
from leadwise.study.stages import stages


def run_status(path: str | Path) -> list[dict[str, Any]]:
    """One row a stage: stage, state (done, unfinished, to do), seconds, and when it was last heard of."""
    directory = RunDirectory(path)
    if not directory.plan.exists():
        raise InputError(f"{directory.path} is no run: it has no plan.toml.")
    receipts = read_receipts(directory.ledger)
    last = {receipt["stage"]: receipt for receipt in receipts if "stage" in receipt}
    planned = [stage.name for stage in in_order(stages(read_plan(directory.plan), []))]
    scored = [name for name in ("development", "audit", "evaluation") if name in last or name != "evaluation"]
    states = {"end": "done", "begin": "unfinished"}
    return [
        {
            "stage": name,
            "state": states[last[name]["event"]] if name in last else "to do",
            "seconds": last[name].get("seconds") if name in last else None,
            "time": last[name]["time"] if name in last else None,
        }
        for name in planned + scored
    ]
