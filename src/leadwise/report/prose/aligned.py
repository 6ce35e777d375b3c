"""Two policies compared with each other: what training one on the evaluator itself brings."""

from collections.abc import Iterator

import pandas as pd

from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, NO_INTERVAL, Found, side
from leadwise.report.names import spoken, the_evaluator
from leadwise.report.numbers import estimate, listing, percent
from leadwise.report.prose.story import EXPLORATORY, METRICS, Story
from leadwise.report.prose.words import at_budgets

_RANK = {BELOW: "better", ABOVE: "worse", INCLUDES: "the interval includes zero", NO_INTERVAL: "without an interval"}
"""Words for a side of zero, of a difference in a metric of which less is better."""


def aligned(story: Story) -> Iterator[str]:
    """The pair of the plan's first hypothesis about one, else its first pair with different targets."""
    pair = _pair(story)
    if pair is None:
        return
    policy, other, evaluator, k, level = pair
    found = {metric: story.find.paired(story.role, policy, other, evaluator, k, metric) for metric in METRICS}
    known = [f"{estimate(*each)} in {spoken(m)} ({_RANK[side(each)]})" for m, each in found.items() if not each.missing]
    if not known:
        return
    start = f"Under {the_evaluator(evaluator)} at k = {k}, {spoken(policy)} minus {spoken(other)}"
    yield f"{start} ({level}) is {listing(known)}."
    gap = story.find.contrast(story.role, other, evaluator, k, "nll")
    residual = story.find.contrast(story.role, policy, evaluator, k, "nll")
    if not residual.missing:
        rank = {
            ABOVE: ": it stays behind them",
            BELOW: ": it is ahead of them",
            INCLUDES: ", which does not show that the two are equal",
        }.get(side(residual), "")
        yield f"Against the best fixed leads its D in NLL, {estimate(*residual)}, {side(residual)}{rank}."
    facts = {"evaluator": evaluator, "policy": policy, "baseline_policy": other}
    closed = story.find.find("gap_closed", "share", role=story.role, k=k, metric="nll", **facts)
    if not closed.missing:
        yield _gap_closed(closed, gap, spoken(other), residual)
    sides = {each: side(story.find.contrast(story.role, policy, evaluator, each, "nll")) for each in story.plan.budgets}
    where = [
        f"{name} at {at_budgets(each for each, lies in sides.items() if lies == name)}"
        for name in (ABOVE, INCLUDES, BELOW)
        if name in sides.values()
    ]
    if len([lies for lies in sides.values() if lies != NO_INTERVAL]) > 1:
        yield f"Over the budgets, that D {listing(where)}."


def _pair(story: Story) -> tuple[str, str, str, int, str] | None:
    """Two policies, the evaluator and the budget that they are compared at, and what the plan calls that."""
    for each in story.plan.hypotheses:
        if each.quantity == "paired":
            return each.policies[0], each.policies[1], each.evaluator, each.budgets[0], each.level
    targets = {name: getattr(each.settings, "target", None) for name, each in story.plan.policies.items()}
    for pair in story.plan.pairs:
        first, second = pair.policies
        if targets[second] not in (None, targets[first]) and targets[first] in pair.evaluators:
            return first, second, str(targets[first]), story.primary.k, EXPLORATORY
    for pair in story.plan.pairs:
        return pair.policies[0], pair.policies[1], pair.evaluators[0], story.primary.k, EXPLORATORY
    return None


def _gap_closed(closed: Found, gap: Found, other: str, residual: Found) -> str:
    """The share of a gap that is closed, where there is a gap."""
    if side(gap) != ABOVE:
        return f"{other} shows no gap to them that could be closed."
    if closed.value < 0:
        return f"{other}'s gap of {estimate(*gap)} is not closed but wider on average."
    bounds = "" if pd.isna(closed.lo) else f" (interval from {percent(closed.lo)} to {percent(closed.hi)})"
    partly = ": a part of it" if side(residual) == ABOVE else ""
    return f"It closes {percent(closed.value)}{bounds} of {other}'s gap of {estimate(*gap)}{partly}."
