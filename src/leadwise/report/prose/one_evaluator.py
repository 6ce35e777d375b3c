"""Sentences about contrasts under one evaluator, for a plan that compares no evaluators."""

from collections.abc import Iterator

from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, side
from leadwise.report.names import spoken
from leadwise.report.numbers import estimate
from leadwise.report.prose.story import CALIBRATION, METRICS, PROPER, Story
from leadwise.report.prose.words import metrics_of, names, tally


def headline(story: Story) -> str:
    """One sentence on the primary cell."""
    cell = story.primary
    start = story.opening
    if cell.after.missing:
        reason = f"there is no contrast with fixed leads under {story.evaluator}"
        return f"{start}nothing can be said about {names([cell])}: {reason}."
    verdict = {
        BELOW: f"is ahead of {story.fixed}",
        ABOVE: f"stays behind {story.fixed}",
        INCLUDES: f"cannot be told from {story.fixed}",
    }.get(side(cell.after), f"is compared with {story.fixed}")
    return (
        f"{start}{spoken(cell.policy)} {verdict}: D in {spoken(cell.metric)} is {estimate(*cell.after)} under "
        f"{story.evaluator}. The plan compares no evaluators, so whether that would be so under another is not known."
    )


def primary_cell(story: Story) -> Iterator[str]:
    """Sentences on the cell of the headline in other metrics."""
    cell = story.primary
    for metric in METRICS:
        other = story.cell(story.family, cell.policy, cell.k, metric).after
        if metric != cell.metric and not other.missing:
            yield f"In {spoken(metric)}, D is {estimate(*other)} and {side(other)}."


def across(story: Story) -> Iterator[str]:
    """A sentence on the side of zero of the intervals of all contrasts."""
    there = [cell for cell in story.cells(story.family) if not cell.after.missing]
    if not there:
        yield f"The results hold no contrast under {story.evaluator}."
    for metrics in (PROPER, CALIBRATION):
        if cells := [cell for cell in there if cell.metric in metrics]:
            yield f"Under {story.evaluator}, D in {metrics_of(cells)} {tally(cells, 'after')}."
