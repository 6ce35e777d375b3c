"""Sentences on how contrasts change with the evaluator: the headline's cell, then all policies and budgets."""

from collections.abc import Iterator, Sequence

from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, NO_INTERVAL, Found, side
from leadwise.findings.question import Cell
from leadwise.report.names import spoken
from leadwise.report.numbers import estimate, listing
from leadwise.report.prose.story import CALIBRATION, METRICS, PROPER, Story
from leadwise.report.prose.words import at_budgets, metrics_of, names, share, tally


def headline(story: Story) -> str:
    """One sentence on the primary cell."""
    cell = story.primary
    start = story.opening
    gone = [name for name, found in _arms(story) if found.missing]
    if gone:
        return f"{start}nothing can be said about {names([cell])}: there is no contrast under {listing(gone)}."
    return (
        f"{start}{_verdict(story)}: D in {spoken(cell.metric)} is {estimate(*cell.before)} under {story.baseline} "
        f"and {estimate(*cell.after)} under {story.other}; {_meaning(story, cell.change)}."
    )


def _arms(story: Story) -> tuple[tuple[str, Found], tuple[str, Found]]:
    return (story.baseline, story.primary.before), (story.evaluator, story.primary.after)


def _verdict(story: Story) -> str:
    """Sentences on the contrast of the primary cell under both evaluators."""
    cell, policy = story.primary, spoken(story.primary.policy)
    if side(cell.before) == side(cell.after) == INCLUDES:
        opposite = ", though their means have opposite signs" if cell.reverses or cell.reverses_back else ""
        return f"neither contrast of {policy} with {story.fixed} can be told from zero{opposite}"
    if zero := [name for name, found in _arms(story) if found.value == 0]:
        return f"there is no reversal, D of {policy} against {story.fixed} being exactly zero under {listing(zero)}"
    if not (cell.reverses or cell.reverses_back):
        where = "ahead of" if cell.before.value < 0 else "behind"
        return f"there is no reversal, {policy} being {where} {story.fixed} on average under both evaluators"
    kind = "an ordered reversal" if cell.ordered else "a reversal of means only: not both intervals exclude zero"
    change = "advantage over {} turns into a loss" if cell.reverses else "loss against {} turns into an advantage"
    if cell.reverses_back:
        kind = kind.replace(" reversal", " reversal the other way round")
    replaced = f"when {story.evaluator} replaces {story.other_baseline}"
    return f"{policy}'s {change.format(story.fixed)} {replaced} ({kind})"


def _meaning(story: Story, change: Found) -> str:
    """The interaction, and which way it points."""
    if change.missing:
        return "the interaction I is not among the results"
    meaning = {
        ABOVE: f": adaptation pays less under {story.evaluator} than under {story.other_baseline}",
        BELOW: f": adaptation pays more under {story.evaluator} than under {story.other_baseline}",
        INCLUDES: ", so a difference between the evaluators is not shown",
        NO_INTERVAL: "",
    }
    return f"the interaction I = {estimate(*change)} {side(change)}{meaning[side(change)]}"


def primary_cell(story: Story) -> Iterator[str]:
    """Sentences on the cell of the headline in other metrics."""
    cell = story.primary
    for metric in METRICS:
        other = story.cell(story.family, cell.policy, cell.k, metric)
        if metric != cell.metric and not other.change.missing:
            both = f"{estimate(*other.before)} to {estimate(*other.after)}"
            yield f"In {spoken(metric)}, D goes from {both}; I = {estimate(*other.change)} {side(other.change)}."


def across(story: Story) -> Iterator[str]:
    """All policies, budgets and metrics: signs, intervals and exceptions."""
    everything = story.cells(story.family)
    there = [cell for cell in everything if not cell.change.missing]
    if not there:
        yield f"The results hold no interaction between {story.evaluator} and {story.baseline}."
        yield from _contrasts(story, everything)
        return
    policies, budgets = (list(dict.fromkeys(getattr(cell, name) for cell in there)) for name in ("policy", "k"))
    level = story.level(story.family) + (" beyond the cell of the headline" if story.planned else "")
    yield f"Compared are {listing(map(spoken, policies))} at {at_budgets(budgets)} ({level})."
    if lacking := [k for k in story.plan.budgets if k not in budgets]:
        yield f"There is no interaction at {at_budgets(lacking)}."
    for metrics in (PROPER, CALIBRATION):
        if cells := [cell for cell in there if cell.metric in metrics]:
            yield from _signs(story, cells)
            if not all(cell.ordered for cell in cells):  # else the signs have said it
                yield from _contrasts(story, cells)
            yield f"I in {metrics_of(cells)} {tally(cells, 'change')}."
            if NO_INTERVAL not in {side(cell.jointly) for cell in cells}:
                yield f"The simultaneous interval of I {tally(cells, 'jointly')}."


def _signs(story: Story, cells: Sequence[Cell]) -> Iterator[str]:
    """A sentence on the number of mean contrasts that change sign."""
    known = [cell for cell in cells if not (cell.before.missing or cell.after.missing)]
    if not known:
        return
    changing = [cell for cell in known if cell.reverses]
    text = f"In {metrics_of(known)}, {share(changing, known, 'contrasts')} change sign from below zero under "
    text += f"{story.baseline} to above zero under {story.other}"
    if changing:
        text += f", {sum(cell.ordered for cell in changing)} of them with both intervals off zero"
    if back := [cell for cell in known if cell.reverses_back]:
        ordered = sum(cell.ordered for cell in back)
        text += f"; {len(back)} change it the other way round, {ordered} with both intervals off zero ({names(back)})"
    if ties := [cell for cell in known if 0 in (cell.before.value, cell.after.value)]:
        text += f"; in {len(ties)} a contrast is exactly zero ({names(ties)})"
    yield f"{text}."


def _contrasts(story: Story, cells: Sequence[Cell]) -> Iterator[str]:
    """Sides of zero of the contrasts' intervals, under one evaluator and under the other."""
    for evaluator, arm in ((story.baseline, "before"), (story.evaluator, "after")):
        if known := [cell for cell in cells if not getattr(cell, arm).missing]:
            yield f"Under {evaluator}, D in {metrics_of(known)} {tally(known, arm)}."
