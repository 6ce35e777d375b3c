"""The control that chooses any set for anyone."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from analysis.coverage import records_of, varied_records
from leadwise.cohort.cohort import Records
from leadwise.policies.contract import Material
from leadwise.policies.observation import Observation
from leadwise.policies.random_subset import RandomSubset
from leadwise.policies.rollout import allocate


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(30, seed=2)


def drawn(n: int, k: int, seed: int = 0, first: int = 1) -> np.ndarray:
    """Leads for records ``first`` and following, from observations made here: no recordings are needed."""
    policy, order = RandomSubset(seed), np.empty((n, 0), dtype=int)
    while order.shape[1] < k:
        mask = np.zeros((n, 12), dtype=bool)
        np.put_along_axis(mask, order, True, axis=1)
        seen = Observation(
            ids=np.arange(first, first + n),
            statistics=np.zeros((n, 12, 10)),
            mask=mask,
            available=np.ones((n, 12), dtype=bool),
            probabilities=None,
            remaining=k - order.shape[1],
            waveforms=lambda: np.zeros((n, 12, 1)),
        )
        order = np.column_stack([order, policy.choose(seen)])
    return order


@pytest.mark.parametrize("seed", [0, 1, 20260901, 2**40])
def test_every_lead_and_every_pair_is_as_likely(seed: int) -> None:
    order = drawn(12_000, 2, seed)
    for step in (0, 1):
        assert chisquare(np.bincount(order[:, step], minlength=12)).pvalue > 0.001
    pairs = [tuple(sorted(pair)) for pair in order.tolist()]
    assert chisquare([pairs.count(pair) for pair in combinations(range(12), 2)]).pvalue > 0.001


def test_every_order_of_three_is_as_likely() -> None:
    order = drawn(40_000, 3)
    code = order @ [144, 12, 1]
    counts = np.bincount(code, minlength=1728)
    possible = [a * 144 + b * 12 + c for a in range(12) for b in range(12) for c in range(12) if len({a, b, c}) == 3]
    assert counts[possible].sum() == 40_000
    assert chisquare(counts[possible]).pvalue > 0.001


@pytest.mark.parametrize(("one", "other"), [((0, 1), (1, 1)), ((0, 1), (0, 2)), ((7, 1), (8, 2)), ((0, 1), (2**31, 1))])
def test_neither_seeds_nor_neighbours_resemble_each_other(one: tuple[int, int], other: tuple[int, int]) -> None:
    """(seed, first id) of two draws; neighbours in the table, or the same record under the next seed."""
    table = np.zeros((12, 12))
    for a, b in zip(drawn(8000, 1, *one)[:, 0], drawn(8000, 1, *other)[:, 0], strict=True):
        table[a, b] += 1
    assert chi2_contingency(table).pvalue > 0.001


def test_the_draw_is_of_the_record_and_the_seed(records: Records) -> None:
    seeds = (4, 5, 6)
    forth = [allocate(RandomSubset(seed), records, 4).order for seed in seeds]
    back = [allocate(RandomSubset(seed), records, 4).order for seed in reversed(seeds)][::-1]
    np.testing.assert_array_equal(forth, back)
    assert len({order.tobytes() for order in forth}) == 3
    np.testing.assert_array_equal(forth[0], drawn(len(records), 4, seed=4))
    material = Material("my-leads", records, records, [4], ["V3"])
    built = RandomSubset.make(RandomSubset.Settings(seed=5), material)
    assert built.name == "my-leads"
    np.testing.assert_array_equal(allocate(built, records, 4).order, forth[1])


def test_random_leads_are_those_that_there_are() -> None:
    n = 3000
    missing = np.zeros((n, 12), dtype=int)
    missing[:, [0, 5, 11]] = 3
    poor = records_of(np.arange(n), np.ones((n, 1), dtype=bool), missing=missing)
    counts = np.bincount(allocate(RandomSubset(), poor, 2).order.ravel(), minlength=12)
    assert not counts[[0, 5, 11]].any()
    assert chisquare(np.delete(counts, [0, 5, 11])).pvalue > 0.001
