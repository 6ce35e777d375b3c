"""Choosing leads: all records of a role together, beside record by record."""

from pathlib import Path
from typing import Any

import numpy as np

from leadwise.bench import row, timed
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.statistics import lead_statistics
from leadwise.policies.mga import MGA
from leadwise.policies.rollout import allocate
from leadwise.policies.state_network import StateNetwork

BUDGET = 8
SAMPLE = 40


def measure(cohort: Path) -> list[dict[str, Any]]:
    whole = read_ptbxl(cohort)
    train, records = whole["train"], whole["validation"]
    lead_statistics(records)  # computed once for a cohort, for both ways
    # how well it was trained does not matter for how fast it chooses
    policy = MGA(LogisticEvaluator().fit(train), ["aVR"], states=2000, network=StateNetwork(epochs=2))
    policy.fit(train, records)

    ours, our_seconds = timed(lambda: allocate(policy, records, BUDGET), 3)  # a few, since it is over so soon
    chosen = np.linspace(0, len(records) - 1, min(SAMPLE, len(records)), dtype=int)
    theirs, their_seconds = timed(
        lambda: np.concatenate([allocate(policy, records[position], BUDGET).order for position in chosen])
    )
    if not np.array_equal(theirs, ours.order[chosen]):
        raise LeadwiseError("Records choose differently alone and together; this is a bug, please report it.")
    rates = len(records) / our_seconds, len(chosen) / their_seconds
    what = f"{len(records):,} records to k = {BUDGET} in {our_seconds:.2f} s, against record by record"
    return [row("rollout", "records/s", *rates, what, seconds=our_seconds)]
