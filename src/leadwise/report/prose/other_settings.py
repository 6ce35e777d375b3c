"""The interaction of the headline with other references, other evaluators and other baselines."""

from collections.abc import Iterable, Iterator

from leadwise.analysis.contrasts import OWN
from leadwise.findings.estimates import ABOVE, BELOW, Found, side
from leadwise.findings.question import Cell, Family
from leadwise.report.names import spoken, the_evaluator, the_other
from leadwise.report.numbers import estimate, listing
from leadwise.report.prose.story import Story
from leadwise.report.prose.words import tally


def robustness(story: Story) -> Iterator[str]:
    """Sentences on the interaction with common references and other evaluators."""
    for family, policies, there in _families(story):
        if family == story.family or family.baseline != story.family.baseline:
            continue
        same = story.cell(family, story.primary.policy, story.primary.k, story.primary.metric).change
        said = f"{_setting(story, family)} ({story.level(family)}), "
        if same.missing or story.primary.policy not in policies:
            said += f"for {_policies(there)}, "
        else:
            said += f"I is {estimate(*same)} in the cell of the headline: "
            said += f"{_survival(same, story.primary.change)}. In all, "
        yield f"{said}I {tally(there, 'change')}."


def baselines(story: Story) -> Iterator[str]:
    """Sentences on contrasts under other baselines, such as one that is recalibrated, and on interactions from them."""
    main = story.primary.before
    gained = "advantage" if main.value < 0 else "loss"
    for family, policies, there in _families(story):
        cell = story.cell(family, story.primary.policy, story.primary.k, story.primary.metric)
        if family.baseline == story.family.baseline:
            continue
        owner = family.reference
        references = "its own references" if owner == OWN else f"the references of {the_evaluator(owner)}"
        start = f"Under {the_evaluator(family.baseline)}, against {references} ({story.level(family)}), "
        to = f"I from it to {the_evaluator(family.evaluator)}"
        if story.primary.policy not in policies:
            known = [each for each in there if not each.before.missing]
            own = f"D of {_policies(there)} {tally(known, 'before')}; " if known else ""
            yield f"{start}{own}{to} {tally(there, 'change')}."
        elif not cell.before.missing:
            kept = ""
            if side(main) in (ABOVE, BELOW):
                kept = f": the {gained} {'is there too' if side(cell.before) == side(main) else 'is not shown there'}"
            yield f"{start}D in the cell of the headline, {estimate(*cell.before)}, {side(cell.before)}{kept}."
            if not cell.change.missing:
                yield f"{to} is {estimate(*cell.change)}; in all, it {tally(there, 'change')}."


def _families(story: Story) -> Iterator[tuple[Family, list[str], list[Cell]]]:
    """Those of the plan that interactions are among the results for, with their policies, and the cells that are."""
    for each in story.plan.interactions:
        family = Family(each.evaluator, each.baseline, each.reference)
        there = [cell for cell in story.cells(family, each.policies) if not cell.change.missing]
        if there:
            yield family, each.policies, there


def _policies(cells: Iterable[Cell]) -> str:
    return listing(dict.fromkeys(spoken(cell.policy) for cell in cells))


def _setting(story: Story, family: Family) -> str:
    """Differences from the family of the headline, as the beginning of a sentence."""
    pair = f"{the_evaluator(family.evaluator)} in place of {the_other(family.baseline)}"
    if family[:2] == story.family[:2]:
        pair = "the same two evaluators"
    if family.reference == OWN:
        return f"With {pair}, each against its own references"
    return f"With {pair}, both against the references of {the_evaluator(family.reference)}"


def _survival(same: Found, main: Found) -> str:
    """Words for an interaction in another setting: its survival, if the main one was clear of zero, or its side."""
    if side(main) not in (ABOVE, BELOW):
        return f"it {side(same)}"
    if side(same) == side(main):
        return "the interaction survives"
    return f"the interaction does not survive, it {side(same)}"
