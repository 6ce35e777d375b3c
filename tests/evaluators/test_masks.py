"""Random masks: the draw that everything is compared on; and the masks that networks learn from."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from leadwise.evaluators.masks import CARDINALITIES, frozen_masks, possible_masks, random_masks, training_masks


@given(st.integers(0, 50), st.integers(0, 2**32 - 1))
def test_every_mask_has_one_of_the_sizes(n: int, seed: int) -> None:
    masks = random_masks(n, np.random.default_rng(seed))
    assert masks.shape == (n, 12)
    assert masks.dtype == bool
    assert set(masks.sum(axis=1)) <= set(CARDINALITIES)
    np.testing.assert_array_equal(masks, random_masks(n, np.random.default_rng(seed)))


def test_sizes_are_those_of_the_study() -> None:
    assert CARDINALITIES == (1, 2, 3, 4, 6, 8, 12)


def test_sizes_and_the_sets_of_a_size_are_equally_likely() -> None:
    masks = random_masks(70_000, np.random.default_rng(11))
    size = masks.sum(axis=1)
    assert chisquare([(size == k).sum() for k in CARDINALITIES]).pvalue > 1e-4
    bits = masks @ (1 << np.arange(12))
    for k in (1, 2, 3):
        wanted = [sum(1 << lead for lead in leads) for leads in combinations(range(12), k)]
        count = [(bits[size == k] == want).sum() for want in wanted]
        assert len(count) == comb(12, k)
        assert chisquare(count).pvalue > 1e-4


def test_the_frozen_draw() -> None:
    """Letter by letter as the protocol has it: other numbers are measured on it."""
    for n in (1, 25, 2198):
        rng = np.random.default_rng(7)
        k = rng.choice([1, 2, 3, 4, 6, 8, 12], n)
        expected = rng.random((n, 12)).argsort(1).argsort(1) < k[:, None]
        np.testing.assert_array_equal(frozen_masks(n), expected)


# what a record lacks -------------------------------------------------------------------------------------------------


def some_leads(n: int, seed: int, share: float = 0.6) -> np.ndarray:
    """Which leads records have; each has at least one."""
    rng = np.random.default_rng(seed)
    available = rng.random((n, 12)) < share
    available[np.arange(n), rng.integers(12, size=n)] = True
    return available


@given(st.integers(1, 20), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_masks_that_are_possible(n: int, seed: int, share: float) -> None:
    available = some_leads(n, seed, share)
    masks = random_masks(n, np.random.default_rng(seed))
    masks[0] = False
    for had, wanted, got in zip(available, masks, possible_masks(masks, available), strict=True):
        common = set(np.flatnonzero(had)) & set(np.flatnonzero(wanted))
        assert set(np.flatnonzero(got)) == (common or set(np.flatnonzero(had)))


# what networks learn from --------------------------------------------------------------------------------------------

EVERY = np.ones((64, 12), dtype=bool)


def allocations(policies: int, n: int, seed: int = 0, budgets: int = 5) -> list[np.ndarray]:
    """Made so that a mask tells whose it is, for which budget and for which record it was made."""
    given = np.zeros((policies, budgets, n, 12), dtype=bool)
    for policy, budget, record in np.ndindex(given.shape[:3]):
        given[policy, budget, record] = np.random.default_rng([seed, policy, budget, record]).random(12) < 0.5
    given[..., 0] = True
    return list(given)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_without_allocations_all_masks_are_random(b: int, seed: int) -> None:
    rows = np.random.default_rng(seed).permutation(64)[:b]
    masks, source = training_masks(rows, EVERY, [], np.random.default_rng(seed))
    np.testing.assert_array_equal(masks, random_masks(b, np.random.default_rng(seed)))
    assert set(masks.sum(axis=1)) <= set(CARDINALITIES)
    assert set(source) == {-1}


@given(st.integers(1, 16).map(lambda quarter: 4 * quarter), st.integers(0, 2**32 - 1))
def test_two_policies_have_a_quarter_each(b: int, seed: int) -> None:
    """In every batch, not only in the mean; and all that a policy gives was made for that very record."""
    rng = np.random.default_rng(seed)
    rows, given = rng.permutation(64)[:b], allocations(2, 64)
    masks, source = training_masks(rows, EVERY, given, rng)
    assert [(source == which).sum() for which in (-1, 0, 1)] == [b // 2, b // 4, b // 4]
    for row, mask, which in zip(rows, masks, source, strict=True):
        if which < 0:
            assert mask.sum() in CARDINALITIES
        else:
            assert (given[which][:, row] == mask).all(axis=1).any()


@pytest.mark.parametrize(("policies", "b"), [(1, 32), (3, 48), (2, 7), (5, 3)])
def test_shares_of_any_number_of_policies(policies: int, b: int) -> None:
    rng = np.random.default_rng(policies)
    _, source = training_masks(rng.permutation(64)[:b], EVERY, allocations(policies, 64), rng)
    count = [(source == which).sum() for which in range(policies)]
    assert (source == -1).sum() == (b + 1) // 2
    assert max(count) - min(count) <= 1


def test_budgets_are_equally_likely_and_random_masks_stay_random() -> None:
    n, budgets, rng = 4000, 5, np.random.default_rng(3)
    given = np.zeros((2, budgets, n, 12), dtype=bool)
    for policy, budget in np.ndindex(2, budgets):
        given[policy, budget, :, : budget + 1] = True  # budgets of 1 to 5 leads: from the left, and from the right
    given[1] = given[1][..., ::-1]
    masks, source = training_masks(rng.permutation(n), np.ones((n, 12), dtype=bool), list(given), rng)
    for which in (0, 1):
        own = masks[source == which]
        assert chisquare([(own.sum(axis=1) == k).sum() for k in range(1, 6)]).pvalue > 1e-4
        assert own[:, -1 if which else 0].all()
    size = masks[source == -1].sum(axis=1)
    assert chisquare([(size == k).sum() for k in CARDINALITIES]).pvalue > 1e-4


@given(st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_no_training_mask_holds_a_lead_that_is_not_there(policies: int, seed: int) -> None:
    available, rng = some_leads(64, seed, 0.3), np.random.default_rng(seed)
    rows = rng.permutation(64)[:32]
    masks, _ = training_masks(rows, available, allocations(policies, 64), rng)
    assert not (masks & ~available[rows]).any()
    assert masks.any(axis=1).all()
