"""Sentences on the transfer matrix, and on what recalibration removes; they stand in the templates of that name."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leadwise.findings.estimates import Found, side
from leadwise.report.names import spoken, the_evaluator
from leadwise.report.numbers import estimate, listing
from leadwise.report.prose.story import Story
from leadwise.report.prose.templates import templates

METRIC, AREA = "nll", "auroc"
CALIBRATED = ("recalibrated", "temperature")
"""Kinds of evaluators that differ from another in their calibration alone."""


class Entry(NamedTuple):
    """A cell of the matrix."""

    policy: str
    trained_on: str
    reader: str
    k: int
    metric: str
    found: Found

    @property
    def at_home(self) -> bool:
        """True if the policy was trained on the evaluator that reads."""
        return self.trained_on == self.reader


def matrix(story: Story) -> str:
    """Sentences on policies that are read by what they were trained on, by its copies, and by others."""
    entries, plan = _entries(story), story.plan
    budgets = sorted({each.k for each in entries})
    if not budgets:
        return ""
    k = min(budgets, key=lambda k: (abs(k - story.primary.k), k))
    everywhere = [each for each in entries if each.metric == METRIC]
    here = [each for each in everywhere if each.k == k]
    copies = []
    for name, said in plan.evaluators.items():
        source = getattr(said.settings, "of", None) if said.kind in CALIBRATED else None
        if several := [each for each in here if (each.reader, each.trained_on) == (name, source)]:
            copies.append((name, source, several))
    return (
        templates()
        .get_template("matrix.j2")
        .render(
            level="secondary" if plan.hypotheses else "exploratory",
            policies=list(dict.fromkeys(each.policy for each in here)),
            readers=list(dict.fromkeys(each.reader for each in here)),
            k=k,
            budgets=budgets,
            home=_said([each for each in here if each.at_home]),
            copies=[(name, source, listing(map(_brief, several))) for name, source, several in copies],
            away=_sides([each.found for each in here if not each.at_home]),
            home_everywhere=_sides([each.found for each in everywhere if each.at_home]),
            away_everywhere=_sides([each.found for each in everywhere if not each.at_home]),
            areas=_sides([each.found for each in entries if each.metric == AREA and each.k == k]),
        )
    )


def _entries(story: Story) -> list[Entry]:
    """The matrix of the role that the report is about, in the order of its table."""
    rows = story.find.rows("transfer", role=story.role).to_dict("records")
    return [
        Entry(
            policy=row["policy"],
            trained_on=row["trained_on"],
            reader=row["evaluator"],
            k=row["k"],
            metric=row["metric"],
            found=Found(row["delta"], row["lo"], row["hi"]),
        )
        for row in rows
    ]


def _brief(entry: Entry) -> str:
    return f"{estimate(*entry.found)} for {spoken(entry.policy)}"


def _said(entries: Sequence[Entry]) -> str:
    """Each D with what the policy was trained on, and on which side of zero they lie; blank where there are none."""
    each = [f"{_brief(entry)} (trained on {the_evaluator(entry.trained_on)})" for entry in entries]
    return f"{listing(each)}: it {_sides([entry.found for entry in entries])}" if entries else ""


def _sides(several: Sequence[Found]) -> str:
    """On which side of zero the intervals lie, the commonest first; blank where there are none.

    >>> _sides([Found(0.2, 0.1, 0.3), Found(0.2, 0.0, 0.3), Found(0.3, 0.2, 0.4)])
    'lies above zero in 2 of 3 cells and includes zero in 1'
    """
    counts = Counter(map(side, several)).most_common()
    if not counts:
        return ""
    (words, count), *others = counts
    if not others:
        return f"{words} in {'all ' * (count > 1)}{count} {'cells' if count > 1 else 'cell'}"
    first = f"{words} in {count} of {len(several)} cells"
    return listing([first, *(f"{words} in {count}" for words, count in others)])


class Parts(NamedTuple):
    """An interaction and what it is made of."""

    whole: Found
    removed: Found
    remaining: Found
    share: Found


def decomposition(story: Story) -> Iterator[str]:
    """A sentence on each interaction that the plan takes apart, at the budget and in the metric of the headline."""
    cell = story.primary
    for each in story.plan.decompositions:
        facts = {name: value for name, value in each.model_dump().items() if "recalibrated" in name}
        facts |= {"role": story.role, "evaluator": each.evaluator, "baseline_evaluator": each.baseline}
        for policy in each.policies:
            at = facts | {"policy": policy, "k": cell.k, "metric": cell.metric}
            parts = Parts(*(story.find.find("decomposition", statistic=name, **at) for name in Parts._fields))
            if not parts.whole.missing:
                yield (
                    templates()
                    .get_template("decomposition.j2")
                    .render(policy=policy, cell=cell, plan=each, parts=parts, lies=side(parts.remaining))
                )
