"""Policies beside controls, which know nothing of the patient: an advantage over those is due to adaptation."""

from collections.abc import Iterator

import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, NO_INTERVAL, Found, side
from leadwise.report.names import spoken, the_evaluator
from leadwise.report.numbers import estimate, listing
from leadwise.report.prose.story import Story
from leadwise.report.prose.words import at_budgets

_RANK = {
    BELOW: "is ahead of",
    INCLUDES: "cannot be told from",
    ABOVE: "is behind",
    NO_INTERVAL: "has no interval against",
}
"""Words for a side of zero, of a difference in a metric of which less is better."""


def controls(story: Story) -> Iterator[str]:
    """Sentences on each studied policy and its controls, under each evaluator of the headline."""
    evaluator, baseline, _ = story.family
    for reader in filter(None, (baseline, evaluator)):
        for policy in story.plan.studied:
            ranks = [_rank(control, found) for control, found in _differences(story, policy, reader).items()]
            if ranks:
                metric = spoken(story.primary.metric)
                yield f"Under {the_evaluator(reader)}, in {metric}, {spoken(policy)} {'; it '.join(ranks)}."
    yield from _reversal(story)


def _differences(story: Story, policy: str, evaluator: str) -> dict[str, dict[int, Found]]:
    """For each control, the metric of the headline with the policy's leads minus that with the control's, by budget."""
    facts = {"role": story.role, "policy": policy, "evaluator": evaluator, "metric": story.primary.metric}
    rows = story.find.rows("controls", **facts)
    found: dict[str, dict[int, Found]] = {}
    for row in rows.to_dict("records"):
        if pd.isna(row["leads"]) or not row["leads"]:  # else it is one set for all, which begins as the policy does
            found.setdefault(row["versus"], {})[row["k"]] = Found(row["value"], row["lo"], row["hi"])
    return found


def _rank(control: str, differences: dict[int, Found]) -> str:
    """Budgets at which the policy is ahead of a control, cannot be told from it, or is behind."""
    sides = {k: side(found) for k, found in sorted(differences.items())}
    there = [where for where in _RANK if where in sides.values()]
    names = [f"the control {spoken(control)}", *["it"] * (len(there) - 1)]
    return listing(
        f"{_RANK[where]} {name} at {at_budgets(k for k, each in sides.items() if each == where)}"
        for where, name in zip(there, names, strict=True)
    )


def _reversal(story: Story) -> Iterator[str]:
    """A sentence on what a reversal is not, where the policy of the headline is not shown to beat its controls."""
    cell, (evaluator, _, reference) = story.primary, story.family
    at_cell = {
        name: each[cell.k] for name, each in _differences(story, cell.policy, evaluator).items() if cell.k in each
    }
    unbeaten = {name: found for name, found in at_cell.items() if side(found) != BELOW}
    if not (cell.reverses and unbeaten):
        return
    owner = evaluator if reference == OWN else reference
    tried = story.find.find("references", "candidates", evaluator=owner, metric=cell.metric, k=cell.k)
    best = "" if tried.missing else f", the best of {int(tried.value):,} sets"
    shown = listing(f"{spoken(name)} ({estimate(*found)})" for name, found in unbeaten.items())
    yield (
        f"What reverses in the headline is the comparison with the best fixed leads{best}: under "
        f"{story.evaluator}, at k = {cell.k}, {spoken(cell.policy)} is not shown to be better than {shown} either."
    )
