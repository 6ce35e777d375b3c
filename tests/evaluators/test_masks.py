"""Random masks: the draw that everything is compared on."""

from itertools import combinations
from math import comb

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from leadwise.evaluators.masks import CARDINALITIES, frozen_masks, random_masks


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
