"""Sides of zero, and how many lie there."""

from hypothesis import given
from hypothesis import strategies as st

from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, MISSING, NO_INTERVAL, Found, side
from leadwise.findings.question import Cell
from leadwise.report.prose.words import FEW, names, share, tally

SIDES = {ABOVE: Found(2.0, 1.0, 3.0), BELOW: Found(-2.0, -3.0, -1.0), INCLUDES: Found(0.5, -1.0, 2.0)}
SIDES[NO_INTERVAL] = Found(1.0)


def cell(change: Found, k: int = 4, policy: str = "mga", metric: str = "nll") -> Cell:
    return Cell(policy, k, metric, MISSING, MISSING, change, MISSING)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_a_side_is_that_of_the_whole_interval(low: float, width: float) -> None:
    high = low + width
    found = side(Found((low + high) / 2, low, high))
    assert (found == ABOVE) == (low > 0)
    assert (found == BELOW) == (high < 0)
    assert (found == INCLUDES) == (low <= 0 <= high)


def test_no_interval_is_on_no_side() -> None:
    assert side(MISSING) == side(Found(3.0)) == side(Found(3.0, lo=1.0)) == NO_INTERVAL


def test_reversals_are_of_point_estimates_and_ordered_ones_of_intervals() -> None:
    advantage, loss = SIDES[BELOW], SIDES[ABOVE]
    there = cell(MISSING)._replace(before=advantage, after=loss)
    assert (there.reverses, there.reverses_back, there.ordered) == (True, False, True)
    back = there._replace(before=loss, after=advantage)
    assert (back.reverses, back.reverses_back, back.ordered) == (False, True, True)
    vague = there._replace(after=SIDES[INCLUDES])
    assert (vague.reverses, vague.ordered) == (True, False)
    for tie in (there._replace(before=Found(0.0, -1.0, 1.0)), there._replace(after=Found(0.0, -1.0, 1.0))):
        assert (tie.reverses, tie.reverses_back, tie.ordered) == (False, False, False)
    assert not cell(MISSING).reverses


@given(st.lists(st.sampled_from(sorted(SIDES)), min_size=1, max_size=9))
def test_a_tally_counts_every_side_and_names_the_few(sides: list[str]) -> None:
    said = tally([cell(SIDES[each], k) for k, each in enumerate(sides, 1)], "change")
    largest = max(sides.count(each) for each in set(sides))
    if len(set(sides)) == 1:
        assert said.startswith(f"{sides[0]} in ")
        assert "(" not in said
        return
    assert f"in {largest} of {len(sides)} cells" in said
    for each in set(sides):
        assert f"{each} in {sides.count(each)}" in said
    few = [each for each in set(sides) if sides.count(each) <= FEW]
    assert said.count("(") == len(few) - (largest <= FEW)


def test_the_few_are_named() -> None:
    cells = [cell(MISSING, k) for k in (2, 3, 4, 6)]
    assert share(cells, cells, "contrasts") == "4 of 4 contrasts"
    assert share([], cells, "contrasts") == "0 of 4 contrasts"
    assert share(cells[:3], cells, "contrasts") == "3 of 4 contrasts (all but MGA in NLL at k = 6)"
    assert share(cells[:1], cells, "contrasts") == "1 of 4 contrasts (MGA in NLL at k = 2)"


def test_names_go_together_where_they_can() -> None:
    cells = [
        cell(MISSING, k, policy, metric) for policy in ("mga", "mine") for k in (2, 3) for metric in ("nll", "ece")
    ]
    assert names(cells[:5]) == "MGA in NLL at k = 2 and 3; MGA in ECE at k = 2 and 3; mine in NLL at k = 2"
