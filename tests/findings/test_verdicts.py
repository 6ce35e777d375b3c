"""An interval decides only where it lies wholly on a side, and one cell on the wrong side decides for all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.findings.estimates import Found
from leadwise.findings.verdicts import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_ANSWERABLE,
    VERDICTS,
    cell_verdict,
    joint_verdict,
)

SIDES = ("above zero", "below zero")
bounds = st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(sorted)


@given(bounds, st.sampled_from(SIDES))
def test_a_side_needs_the_whole_interval(ends: list[float], expected: str) -> None:
    low, value, high = ends
    found = Found(value, low, high)
    verdict = cell_verdict(found, expected)
    assert (verdict == INCONCLUSIVE) == (low <= 0 <= high)
    assert (verdict == HOLDS) == ((low > 0) if expected == "above zero" else (high < 0))
    opposite = SIDES[SIDES[0] == expected]
    swapped = {HOLDS: CONTRADICTED, CONTRADICTED: HOLDS}
    assert cell_verdict(found, opposite) == swapped.get(verdict, verdict)
    assert cell_verdict(found.negated, opposite) == verdict


@given(bounds)
def test_spanning_zero_never_shows_equality(ends: list[float]) -> None:
    low, value, high = ends
    expected = INCONCLUSIVE if low <= 0 <= high else CONTRADICTED
    assert cell_verdict(Found(value, low, high), "includes zero") == expected


@pytest.mark.parametrize("expected", [*SIDES, "includes zero"])
def test_without_an_interval_nothing_is_decided(expected: str) -> None:
    assert cell_verdict(Found(0.5), expected) == NOT_ANSWERABLE
    assert cell_verdict(Found(0.5, np.nan, 0.6), expected) == NOT_ANSWERABLE


def test_a_statement_about_the_records_needs_no_interval() -> None:
    found = [Found(0.0), Found(0.001), Found(np.nan)]
    assert [cell_verdict(each, "zero") for each in found] == [HOLDS, CONTRADICTED, NOT_ANSWERABLE]


@given(st.lists(st.sampled_from([HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_ANSWERABLE]), max_size=6))
def test_cells_decide_together(cells: list[str]) -> None:
    verdict = joint_verdict(cells)
    assert verdict in VERDICTS
    assert (verdict == HOLDS) == (set(cells) == {HOLDS})
    assert (verdict == CONTRADICTED) == (CONTRADICTED in cells)
    assert (verdict == INCONCLUSIVE) == (INCONCLUSIVE in cells and set(cells) <= {HOLDS, INCONCLUSIVE})
    assert joint_verdict(cells[::-1]) == verdict
