"""Summary of a run. Every sentence follows from numbers that stand in the results, and changes with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from leadwise.cohort.roles import SCORED
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, NOT_ANSWERABLE, VERDICTS
from leadwise.report.names import spoken
from leadwise.report.numbers import estimate, listing, several
from leadwise.report.prose import one_evaluator, other_settings, transfer
from leadwise.report.prose.aligned import aligned
from leadwise.report.prose.controls import controls
from leadwise.report.prose.matrix import decomposition, matrix
from leadwise.report.prose.story import EXPLORATORY, METRICS, Story
from leadwise.report.prose.words import names
from leadwise.run.contents import RunContents

SYNTHETIC = "The recordings are synthetic: a program made them, and they say nothing about patients."


@dataclass(frozen=True)
class Summary:
    """A sentence on the primary cell, and what else there is to say."""

    headline: str
    headings: list[str]
    """Headings of the paragraphs."""
    paragraphs: list[str]
    """The last says how far the evidence reaches."""

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Headings and paragraphs of all but the last."""
        return list(zip(self.headings, self.paragraphs, strict=True))[:-1]

    @property
    def boundary(self) -> str:
        return self.paragraphs[-1]


def summarise(contents: RunContents) -> Summary:
    """The findings of the role that the report speaks about."""
    story = Story(contents)
    main = transfer if story.transfers else one_evaluator
    parts = {
        "Whose results": scope(story),
        "The cell of the headline": [level(story), *main.primary_cell(story), *hypotheses(story)],
        "Across policies, budgets and metrics": main.across(story),
        "Beside controls": controls(story),
        "Other references, other evaluators": other_settings.robustness(story),
        "Other evaluators in the place of the baseline": other_settings.baselines(story),
        "Policies trained on other evaluators": [matrix(story)],
        "What recalibration removes": decomposition(story),
        "Policies compared with each other": aligned(story),
        "The evaluators with all leads": quality(story),
        "What the paper claims": claims(story),
        "How far this reaches": boundary(story),
    }
    said = {heading: paragraph for heading, part in parts.items() if (paragraph := " ".join(" ".join(part).split()))}
    return Summary(main.headline(story), list(said), list(said.values()))


def scope(story: Story) -> Iterator[str]:
    """Whose results these are, and how to read them."""
    if story.contents.synthetic:
        yield SYNTHETIC
    if story.contents.foreign:
        made_on, cohort = story.contents.made_on.title, story.contents.cohort.title
        yield f"Everything was fitted and chosen on {made_on}, and is scored on {cohort}, which is another cohort."
    counts = [story.find.find("splits", name, role=story.role).value for name in ("records", "patients")]
    known = not pd.isna(counts).any()
    many = f": {several(int(counts[0]), 'record')} of {several(int(counts[1]), 'patient')}" if known else ""
    yield f"These are results of the {story.folds(story.role)}{many}."
    if story.role != SCORED[-1]:
        unscored = story.folds(SCORED[-1])
        yield f"The {unscored} was not scored: this is the development audit, not the evaluation."
    yield "A negative contrast D favours adaptation over the best fixed set of as many leads."
    if story.transfers:
        than = f"under {story.evaluator} than under {story.other_baseline}"
        yield f"A positive interaction I says that adaptation pays less {than}."
    yield "Brackets hold 95% intervals, pointwise unless they are called simultaneous."
    yield "An estimate is said to lie above or below zero where its whole interval does."


def level(story: Story) -> str:
    """The level of the headline in the plan."""
    said = "the plan's primary hypothesis" if story.planned else f"{EXPLORATORY}, as the plan has no primary one"
    return f"The cell of the headline, {names([story.primary])}, is {said}."


def hypotheses(story: Story) -> Iterator[str]:
    """A sentence on the verdicts on the plan's hypotheses."""
    frame = hypotheses_frame(story.plan, story.contents.results)
    frame = frame[frame["role"] == story.role]
    if len(frame):
        titles = [f"number {row.number}, {row.level}" for row in frame.itertuples()]
        yield f"Of the plan's {len(frame)} hypotheses, the verdict is {_by_verdict(frame, titles)}."


def quality(story: Story) -> Iterator[str]:
    """A sentence on which evaluator is better with all leads."""
    evaluator, baseline, _ = story.family
    if not story.transfers:
        return
    for role in dict.fromkeys((story.role, *SCORED)):
        levels, ranks = [], dict[str, list[str]]()
        for metric in (*METRICS, "auroc", "auprc"):
            ours, theirs = (story.find.quality(role, name, metric) for name in (evaluator, baseline))
            if not (ours.missing or theirs.missing):
                gain = (ours.value - theirs.value) * (1 if metric.startswith("au") else -1)
                ranks.setdefault("better" if gain > 0 else "worse" if gain < 0 else "equal", []).append(spoken(metric))
                levels.append(f"{spoken(metric)} {estimate(*ours)} against {estimate(*theirs)}")
        if levels:
            rank = listing(f"{word} in {listing(some)}" for word, some in ranks.items())
            yield f"With all available leads, in the {story.folds(role)}, {story.evaluator} is, compared"
            yield f"with {story.other_baseline}, {rank} ({'; '.join(levels)})."
            return


def claims(story: Story) -> Iterator[str]:
    """Verdicts on the paper's claims, those that are contradicted by name."""
    frame = story.contents.results.get("claims", pd.DataFrame())
    if not story.contents.about_paper or frame.empty:
        return
    titles = [f"“{claim}”" for claim in frame["claim"]]
    yield f"Of the paper's {len(frame)} claims, the verdict is {_by_verdict(frame, titles, NOT_ANSWERABLE)}."
    beside = frame[(frame["verdict"] == NOT_ANSWERABLE) & (frame["orientation_contradicted"].fillna(0) > 0)]
    if len(beside):
        which = zip(beside["claim"], beside["orientation_contradicted"], beside["orientation_cells"], strict=True)
        cells = "; ".join(f"“{claim}” ({against} of {count} cells)" for claim, against, count in which)
        yield (
            f"For orientation, the {beside['orientation_role'].iloc[0]} role would contradict {cells}, "
            "but the claims are about other patients, so that this decides nothing."
        )


def boundary(story: Story) -> Iterator[str]:
    """Limits of the evidence."""
    yield (
        "Intervals take the trained evaluators and policies and the frozen references as given: they tell what "
        "other patients would change, not what another training would. All come from one resample, so they are "
        "correlated, and many pointwise intervals together are no joint statement. "
        "No rule for subgroups and no clinical threshold was set. An interval that includes zero does not show that "
        f"two arms are equal; that takes the plan's margin of equivalence, {story.plan.equivalence.margin:g} in NLL. "
        "The study looks back at one data set. A budget counts channels of recordings that were made with all "
        "their leads, not electrodes, and no benefit to patients is shown. An oracle, where one appears, looks at "
        "the labels and cannot be deployed. What no hypothesis of the plan is about is exploratory."
    )
    lacking = [what for what, there in _parts(story).items() if not there]
    yield f"The plan has no {listing(lacking, 'or')}." if lacking else ""
    if "post hoc" in {each.level for each in story.plan.hypotheses}:
        yield "What is called post hoc was added to the publication when results were known; here it is planned."
    if story.plan.hypotheses and story.contents.about_paper:
        yield (
            "Hypotheses that follow the publication were formed on results from the same data set: the scored "
            "records are new to the models of this run, the questions are not."
        )
    if story.contents.synthetic:
        yield SYNTHETIC


def _parts(story: Story) -> dict[str, bool]:
    """Parts that a plan may have."""
    plan = story.plan
    return {
        "references": any(each.references for each in plan.evaluators.values()),
        "second evaluator": len(plan.evaluators) > 1,
        "interactions": bool(plan.interactions),
        "pairs of policies": bool(plan.pairs),
        "hypotheses": bool(plan.hypotheses),
    }


def _by_verdict(frame: pd.DataFrame, titles: Sequence[str], unnamed: str = "") -> str:
    """Counts of the verdicts; whatever does not hold is named, unless it is ``unnamed``."""
    said = []
    for verdict in VERDICTS:
        named = [title for title, each in zip(titles, frame["verdict"], strict=True) if each == verdict]
        if named or verdict in (HOLDS, CONTRADICTED):
            which = f" ({'; '.join(named)})" if named and verdict not in (HOLDS, unnamed) else ""
            said.append(f"“{verdict}” for {len(named)}{which}")
    return listing(said)
