"""Allocations, references and readings that the tests of contrasts, interactions and pairs share."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from analysis.coverage import Reader
from leadwise.analysis.bootstrap import Estimate
from leadwise.cohort.cohort import Records
from leadwise.leads import LeadSet, subsets
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation
from leadwise.references import References

CONTRASTS = "role policy trained_on evaluator reference_evaluator reference_metric k metric adaptive fixed delta lo hi"
INTERACTIONS = (
    "role policy trained_on evaluator baseline_evaluator reference k metric d_baseline d_evaluator interaction lo hi "
    "lo_simultaneous hi_simultaneous"
)
PAIRED = "role evaluator k metric policy_a policy_b a b delta lo hi"

REPLICATES = 25
READERS = {name: Reader(name) for name in ("first", "second", "third")}


def some_references(name: str, seed: int) -> References:
    """All sets of two and three leads, with metrics out of thin air: what is best for one is not for another."""
    rng = np.random.default_rng(seed)
    rows = [(k, int(bits), *rng.random(3)) for k in (2, 3) for bits in subsets(k) @ (1 << np.arange(12))]
    return References(name, pd.DataFrame(rows, columns=["k", "bits", "nll", "brier", "ece"]), {})


def some_allocation(records: Records, policy: str, k: int, seed: int) -> Allocation:
    order = np.random.default_rng(seed).random((len(records), 12)).argsort(axis=1)[:, :k]
    return Allocation(records, policy, "first", order)


def read(evaluator: str, records: Records, masks: np.ndarray) -> np.ndarray:
    """Probabilities straight from an evaluator."""
    signals = records.signals.millivolts(slice(None))
    signals[~masks] = 0
    return READERS[evaluator].probabilities(signals, masks)


def by_hand(
    metric: str, role: Records, part: Records, a: np.ndarray, b: np.ndarray, replicates: int
) -> tuple[float, np.ndarray]:
    """metric(a) − metric(b), and in every replicate: records weighed with how often their patient was drawn."""
    everyone = sorted(set(role.patients.tolist()))
    count = len(everyone)
    draws = np.random.default_rng(20270909).multinomial(count, [1 / count] * count, size=replicates)
    where = np.array([everyone.index(patient) for patient in part.patients.tolist()])
    function: Callable[..., float] = METRICS[metric]
    point = function(part.labels, a, None) - function(part.labels, b, None)
    return point, np.array([function(part.labels, a, w[where]) - function(part.labels, b, w[where]) for w in draws])


def fixed_masks(records: Records, leads: LeadSet) -> np.ndarray:
    return np.array([[lead in leads.indices for lead in range(12)]] * len(records))


def check(estimate: Estimate, point: float, replicates: np.ndarray) -> None:
    np.testing.assert_allclose(estimate.value, point, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.replicates, replicates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.interval, np.percentile(replicates, [2.5, 97.5]), rtol=0, atol=1e-12)
