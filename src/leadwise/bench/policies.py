"""Training the learned policies, and the gains that they learn from: many states at once, beside one by one."""

from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from leadwise.bench import row, timed
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.scoring import Scorer
from leadwise.metrics import record_nll
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.mga import MGA
from leadwise.policies.states import candidate_gains, random_states

STATES = 10_000
MOST_STATES = 44_000
SAMPLE = 100


def measure(cohort: Path) -> list[dict[str, Any]]:
    whole = read_ptbxl(cohort)
    train, validation = whole["train"], whole["validation"]
    evaluator = LogisticEvaluator().fit(train)
    states = random_states(train, range(12), STATES, (2, 3, 4, 6, 8), np.random.default_rng(0))

    scorer, labels = Scorer(evaluator, train), train.labels
    ours, our_seconds = timed(lambda: candidate_gains(scorer, states))
    start = perf_counter()
    for index in range(SAMPLE):
        position, mask = states.positions[index : index + 1], states.masks[index : index + 1]
        before = record_nll(labels[position], scorer.pairs(position, mask))
        for lead in np.flatnonzero(~mask[0]):
            after = mask.copy()
            after[0, lead] = True
            gain = before - record_nll(labels[position], scorer.pairs(position, after))
            if abs(gain[0] - ours[index, lead]) > 1e-12:
                raise LeadwiseError("Gains differ alone and together; this is a bug, please report it.")
    their_seconds = perf_counter() - start
    count = min(MOST_STATES, 4 * len(train))
    policies = MGA(evaluator, ["aVR"], states=count), ECGOnDemand(evaluator, ["aVR"], states=count)
    training = {policy.name: timed(partial(policy.fit, train, validation))[1] for policy in policies}
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in training.items())
    what = f"gains of {len(states):,} states, against one reading at a time; whole trainings took {took}"
    rates = len(states) / our_seconds, SAMPLE / their_seconds
    return [row("policies", "states/s", *rates, what, training_seconds=training)]
