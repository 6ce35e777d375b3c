"""What a run found, in sentences. Every one follows from numbers that stand in the results, and changes with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd
from leadwise.report.plots.drawing import rows_of
from leadwise.report.wording import estimate, listing, percent, spoken

from leadwise.analysis.contrasts import OWN
from leadwise.cohort.roles import SCORED
from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, NO_INTERVAL, Findings, Found, side
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.findings.question import Cell, Family, Question
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, NOT_ANSWERABLE, VERDICTS
from leadwise.report.reading import at_budgets, folds_in_words, names, several, share, tally
from leadwise.run.contents import RunContents

PROPER, CALIBRATION = ("nll", "brier"), ("ece",)
METRICS = (*PROPER, *CALIBRATION)
SYNTHETIC = "The recordings are synthetic: a program made them, and they say nothing about patients."
EXPLORATORY = "exploratory"
"""What no hypothesis of the plan is about."""


@dataclass(frozen=True)
class Summary:
    """A sentence on the primary cell, and what else there is to say."""

    headline: str
    headings: list[str]
    """Of the paragraphs."""
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
    story = _Story(contents)
    parts = {
        "Whose results": story.scope,
        "The cell of the headline": story.primary_cell,
        "Across policies, budgets and metrics": story.across,
        "Other references, other evaluators": story.robustness,
        "Other evaluators in the place of the baseline": story.baselines,
        "A policy trained on the evaluator itself": story.aligned,
        "The evaluators with all leads": story.quality,
        "What the paper claims": story.claims,
        "How far this reaches": story.boundary,
    }
    said = {heading: paragraph for heading, part in parts.items() if (paragraph := " ".join(part()))}
    return Summary(story.headline(), list(said), list(said.values()))


class _Story:
    """The paragraphs, sentence by sentence, all from one look at the results."""

    def __init__(self, contents: RunContents) -> None:
        self.contents, self.plan, self.role = contents, contents.plan, contents.role
        self.find = Findings(contents.results, contents.plan.roles)
        self.interactions = rows_of(contents.results.get("interactions", pd.DataFrame()), role=self.role)
        question = Question.of(self.plan, self.find, self.role)
        self.family, self.planned, self.primary = question.family, question.planned, question.cell(self.find, self.role)
        self.evaluator, self.baseline = (f"the {spoken(name)} evaluator" for name in self.family[:2])
        self.than_baseline = f"under {self.evaluator} than under the {spoken(self.family.baseline)} one"
        owner = self.family.reference
        self.fixed = "the best fixed leads" if owner == OWN else f"the {spoken(owner)} evaluator's best fixed leads"

    def cell(self, family: Family, policy: str, k: int, metric: str) -> Cell:
        return Cell.at(self.find, self.role, family, policy, k, metric)

    def cells(self, family: Family) -> list[Cell]:
        """Every policy of a family at every budget of the plan, whether it is there or not."""
        rows = rows_of(self.interactions, **family.facts)
        policies = list(dict.fromkeys(rows["policy"])) if len(rows) else [self.primary.policy]
        return [self.cell(family, *place) for place in product(policies, self.plan.budgets, METRICS)]

    def _folds(self, role: str) -> str:
        """A role and its folds, as far as the plan has it."""
        folds = self.plan.roles.get(role, [])
        return f"{role} role" + (f" ({folds_in_words(folds)})" if folds else "")

    def _level(self, family: Family) -> str:
        """What the plan calls a family: the level of its broadest hypothesis."""
        levels = {
            len(each.policies) * len(each.budgets) * len(each.metrics): each.level
            for each in self.plan.hypotheses
            if each.quantity == "interaction" and (each.evaluator, each.baseline, each.reference) == family
        }
        return levels[max(levels)] if levels else EXPLORATORY

    def headline(self) -> str:
        """One sentence on the primary cell."""
        cell = self.primary
        warning = "On synthetic recordings, which say nothing about patients, in" if self.contents.synthetic else "In"
        start = f"{warning} the {self._folds(self.role)}, at k = {cell.k}, "
        gone = [name for name, found in self._arms() if found.missing]
        if gone:
            return f"{start}nothing can be said about {names([cell])}: there is no contrast under {listing(gone)}."
        return (
            f"{start}{self._verdict()}: D in {spoken(cell.metric)} is {estimate(*cell.before)} under {self.baseline} "
            f"and {estimate(*cell.after)} under the {spoken(self.family.evaluator)} one; {self._meaning(cell.change)}."
        )

    def _arms(self) -> tuple[tuple[str, Found], tuple[str, Found]]:
        return (self.baseline, self.primary.before), (self.evaluator, self.primary.after)

    def _verdict(self) -> str:
        """What becomes of the contrast of the primary cell."""
        cell, policy = self.primary, spoken(self.primary.policy)
        if side(cell.before) == side(cell.after) == INCLUDES:
            opposite = ", though their means have opposite signs" if cell.reverses or cell.reverses_back else ""
            return f"neither contrast of {policy} with {self.fixed} can be told from zero{opposite}"
        if zero := [name for name, found in self._arms() if found.value == 0]:
            return f"there is no reversal, D of {policy} against {self.fixed} being exactly zero under {listing(zero)}"
        if not (cell.reverses or cell.reverses_back):
            where = "ahead of" if cell.before.value < 0 else "behind"
            return f"there is no reversal, {policy} being {where} {self.fixed} on average under both evaluators"
        kind = "an ordered reversal" if cell.ordered else "a reversal of means only: not both intervals exclude zero"
        change = "advantage over {} turns into a loss" if cell.reverses else "loss against {} turns into an advantage"
        if cell.reverses_back:
            kind = kind.replace(" reversal", " reversal the other way round")
        replaced = f"when {self.evaluator} replaces the {spoken(self.family.baseline)} one"
        return f"{policy}'s {change.format(self.fixed)} {replaced} ({kind})"

    def _meaning(self, change: Found) -> str:
        """The interaction, and which way it points."""
        if change.missing:
            return "the interaction I is not among the results"
        meaning = {
            ABOVE: f": choosing pays less {self.than_baseline}",
            BELOW: f": choosing pays more {self.than_baseline}",
            INCLUDES: ", so a difference between the evaluators is not shown",
            NO_INTERVAL: "",
        }
        return f"the interaction I = {estimate(*change)} {side(change)}{meaning[side(change)]}"

    def scope(self) -> Iterator[str]:
        """Whose results these are, and how to read them."""
        if self.contents.synthetic:
            yield SYNTHETIC
        if self.contents.foreign:
            made_on, cohort = self.contents.made_on.title, self.contents.cohort.title
            yield f"Everything was fitted and chosen on {made_on}, and is scored on {cohort}, which is another cohort."
        counts = [self.find.find("splits", name, role=self.role).value for name in ("records", "patients")]
        many = (
            ""
            if pd.isna(counts).any()
            else f": {several(int(counts[0]), 'record')} of {several(int(counts[1]), 'patient')}"
        )
        yield f"These are results of the {self._folds(self.role)}{many}."
        if self.role != SCORED[-1]:
            unscored = self._folds(SCORED[-1])
            yield f"The {unscored} was not scored: this is the development audit, not the evaluation."
        yield "A negative contrast D favours choosing leads for each record over the best fixed set of as many leads."
        yield f"A positive interaction I says that choosing pays less {self.than_baseline}."
        yield "Brackets hold 95% intervals, pointwise unless they are called simultaneous."
        yield "An estimate is said to lie above or below zero where its whole interval does."

    def primary_cell(self) -> Iterator[str]:
        """What the plan makes of the headline, the same cell in other metrics, and how the plan's hypotheses fared."""
        cell = self.primary
        level = "the plan's primary hypothesis" if self.planned else f"{EXPLORATORY}, as the plan has no primary one"
        yield f"The cell of the headline, {names([cell])}, is {level}."
        for metric in METRICS:
            other = self.cell(self.family, cell.policy, cell.k, metric)
            if metric != cell.metric and not other.change.missing:
                both = f"{estimate(*other.before)} to {estimate(*other.after)}"
                yield f"In {spoken(metric)}, D goes from {both}; I = {estimate(*other.change)} {side(other.change)}."
        frame = hypotheses_frame(self.plan, self.contents.results)
        frame = frame[frame["role"] == self.role]
        if len(frame):
            titles = [f"number {row.number}, {row.level}" for row in frame.itertuples()]
            yield f"Of the plan's {len(frame)} hypotheses, the verdict is {_by_verdict(frame, titles)}."

    def across(self) -> Iterator[str]:
        """All policies, budgets and metrics: signs, intervals and exceptions."""
        everything = self.cells(self.family)
        there = [cell for cell in everything if not cell.change.missing]
        if not there:
            yield f"The results hold no interaction between {self.evaluator} and {self.baseline}."
            yield from self._contrasts(everything)
            return
        policies, budgets = (list(dict.fromkeys(getattr(cell, name) for cell in there)) for name in ("policy", "k"))
        level = self._level(self.family) + (" beyond the cell of the headline" if self.planned else "")
        yield f"Compared are {listing(map(spoken, policies))} at {at_budgets(budgets)} ({level})."
        if lacking := [k for k in self.plan.budgets if k not in budgets]:
            yield f"There is no interaction at {at_budgets(lacking)}."
        for metrics in (PROPER, CALIBRATION):
            if cells := [cell for cell in there if cell.metric in metrics]:
                yield from self._signs(cells)
                if not all(cell.ordered for cell in cells):  # else the signs have said it
                    yield from self._contrasts(cells)
                yield f"I in {_metrics(cells)} {tally(cells, 'change')}."
                if NO_INTERVAL not in {side(cell.jointly) for cell in cells}:
                    yield f"The simultaneous interval of I {tally(cells, 'jointly')}."

    def _signs(self, cells: Sequence[Cell]) -> Iterator[str]:
        """How many mean contrasts change sign."""
        known = [cell for cell in cells if not (cell.before.missing or cell.after.missing)]
        if not known:
            return
        changing = [cell for cell in known if cell.reverses]
        text = f"In {_metrics(known)}, {share(changing, known, 'contrasts')} change sign from below zero under "
        text += f"{self.baseline} to above zero under the {spoken(self.family.evaluator)} one"
        if changing:
            text += f", {sum(cell.ordered for cell in changing)} of them with both intervals off zero"
        if back := [cell for cell in known if cell.reverses_back]:
            ordered = sum(cell.ordered for cell in back)
            text += (
                f"; {len(back)} change it the other way round, {ordered} with both intervals off zero ({names(back)})"
            )
        if ties := [cell for cell in known if 0 in (cell.before.value, cell.after.value)]:
            text += f"; in {len(ties)} a contrast is exactly zero ({names(ties)})"
        yield f"{text}."

    def _contrasts(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Where the intervals of the contrasts lie, under one evaluator and under the other."""
        for evaluator, arm in ((self.baseline, "before"), (self.evaluator, "after")):
            if known := [cell for cell in cells if not getattr(cell, arm).missing]:
                yield f"Under {evaluator}, D in {_metrics(known)} {tally(known, arm)}."

    def robustness(self) -> Iterator[str]:
        """Whether the interaction survives common references and other evaluators."""
        for family in self._families():
            if family == self.family or family.baseline != self.family.baseline:
                continue
            same = self.cell(family, self.primary.policy, self.primary.k, self.primary.metric).change
            said = f"{self._setting(family)} ({self._level(family)}), "
            if not same.missing:
                said += f"I is {estimate(*same)} in the cell of the headline: "
                said += f"{_survival(same, self.primary.change)}. In all, "
            yield f"{said}I {tally([cell for cell in self.cells(family) if not cell.change.missing], 'change')}."

    def baselines(self) -> Iterator[str]:
        """Whether the contrast of the headline is there under other baselines, such as one that is recalibrated."""
        main = self.primary.before
        gained = "advantage" if main.value < 0 else "loss"
        for family in self._families():
            cell = self.cell(family, self.primary.policy, self.primary.k, self.primary.metric)
            if family.baseline == self.family.baseline or cell.before.missing:
                continue
            kept = ""
            if side(main) in (ABOVE, BELOW):
                kept = f": the {gained} {'is there too' if side(cell.before) == side(main) else 'is not shown there'}"
            said = (
                f"Under the {spoken(family.baseline)} evaluator, against its own references ({self._level(family)}), D "
            )
            yield f"{said}in the cell of the headline, {estimate(*cell.before)}, {side(cell.before)}{kept}."
            if not cell.change.missing:
                others = [each for each in self.cells(family) if not each.change.missing]
                to = f"I from it to the {spoken(family.evaluator)} evaluator"
                yield f"{to} is {estimate(*cell.change)}; in all, it {tally(others, 'change')}."

    def _families(self) -> list[Family]:
        """Every pair of evaluators, with its reference, that interactions are among the results for."""
        if self.interactions.empty:
            return []
        families = self.interactions[["evaluator", "baseline_evaluator", "reference"]].drop_duplicates()
        return [Family(*map(str, each)) for each in families.itertuples(index=False)]

    def _setting(self, family: Family) -> str:
        """What differs from the family of the headline, as the beginning of a sentence."""
        pair = f"the {spoken(family.evaluator)} evaluator in place of the {spoken(family.baseline)} one"
        if family[:2] == self.family[:2]:
            pair = "the same two evaluators"
        if family.reference == OWN:
            return f"With {pair}, each against its own references"
        return f"With {pair}, both against the {spoken(family.reference)} evaluator's references"

    def aligned(self) -> Iterator[str]:
        """What training a policy on the evaluator itself brings."""
        pairs = [each for each in self.plan.hypotheses if each.quantity == "paired"]
        policy, other = pairs[0].policies if pairs else ("strong-mga", "mga")
        evaluator, k = (pairs[0].evaluator, pairs[0].budgets[0]) if pairs else (self.family.evaluator, self.primary.k)
        found = {metric: self.find.paired(self.role, policy, other, evaluator, k, metric) for metric in METRICS}
        known = [
            f"{estimate(*each)} in {spoken(m)} ({_RANK[side(each)]})" for m, each in found.items() if not each.missing
        ]
        if not known:
            return
        start = f"Under the {spoken(evaluator)} evaluator at k = {k}, {spoken(policy)} minus {spoken(other)}"
        yield f"{start} ({pairs[0].level if pairs else EXPLORATORY}) is {listing(known)}."
        gap = self.find.contrast(self.role, other, evaluator, k, "nll")
        residual = self.find.contrast(self.role, policy, evaluator, k, "nll")
        if not residual.missing:
            rank = {
                ABOVE: ": it stays behind them",
                BELOW: ": it is ahead of them",
                INCLUDES: ", which does not show that the two are equal",
            }.get(side(residual), "")
            yield f"Against the best fixed leads its D in NLL, {estimate(*residual)}, {side(residual)}{rank}."
        facts = {"evaluator": evaluator, "policy": policy, "baseline_policy": other}
        closed = self.find.find("gap_closed", "share", role=self.role, k=k, metric="nll", **facts)
        if not closed.missing:
            yield _gap_closed(closed, gap, spoken(other), residual)
        sides = {
            each: side(self.find.contrast(self.role, policy, evaluator, each, "nll")) for each in self.plan.budgets
        }
        where = [
            f"{name} at {at_budgets(each for each, lies in sides.items() if lies == name)}"
            for name in (ABOVE, INCLUDES, BELOW)
            if name in sides.values()
        ]
        if len([lies for lies in sides.values() if lies != NO_INTERVAL]) > 1:
            yield f"Over the budgets, that D {listing(where)}."

    def quality(self) -> Iterator[str]:
        """Which evaluator is better with all leads."""
        evaluator, baseline, _ = self.family
        for role in dict.fromkeys((self.role, *SCORED)):
            levels, ranks = [], dict[str, list[str]]()
            for metric in (*METRICS, "auroc", "auprc"):
                ours, theirs = (self.find.quality(role, name, metric) for name in (evaluator, baseline))
                if not (ours.missing or theirs.missing):
                    gain = (ours.value - theirs.value) * (1 if metric.startswith("au") else -1)
                    ranks.setdefault("better" if gain > 0 else "worse" if gain < 0 else "equal", []).append(
                        spoken(metric)
                    )
                    levels.append(f"{spoken(metric)} {estimate(*ours)} against {estimate(*theirs)}")
            if levels:
                rank = listing(f"{word} in {listing(some)}" for word, some in ranks.items())
                yield f"With all available leads, in the {self._folds(role)}, {self.evaluator} is, compared"
                yield f"with the {spoken(baseline)} one, {rank} ({'; '.join(levels)})."
                return

    def claims(self) -> Iterator[str]:
        """How the paper's claims fared, those that are contradicted by name."""
        frame = self.contents.results.get("claims", pd.DataFrame())
        if not self.contents.about_paper or frame.empty:
            return
        titles = [f"“{claim}”" for claim in frame["claim"]]
        yield f"Of the paper's {len(frame)} claims, the verdict is {_by_verdict(frame, titles, NOT_ANSWERABLE)}."
        beside = frame[(frame["verdict"] == NOT_ANSWERABLE) & (frame["orientation_contradicted"].fillna(0) > 0)]
        if len(beside):
            cells = [
                f"“{row.claim}” ({row.orientation_contradicted} of {row.orientation_cells} cells)"
                for row in beside.itertuples()
            ]
            yield (
                f"For orientation, the {beside['orientation_role'].iloc[0]} role would contradict {'; '.join(cells)}, "
                "but the claims are about other patients, so that this decides nothing."
            )

    def boundary(self) -> Iterator[str]:
        """How far this evidence reaches."""
        yield (
            "Intervals take the trained evaluators and policies and the frozen references as given: they tell what "
            "other patients would change, not what another training would. All come from one resample, so they are "
            "correlated, and many pointwise intervals together are no joint statement."
        )
        yield (
            "No margin of equivalence, no rule for subgroups and no clinical threshold was set; an interval that "
            "includes zero does not show that two arms are equal."
        )
        yield (
            "The study looks back at one data set. A budget counts channels of recordings that were made with all "
            "their leads, not electrodes, and no benefit to patients is shown. An oracle, where one appears, looks at "
            "the labels and cannot be deployed."
        )
        yield "What no hypothesis of the plan is about is exploratory."
        if "post hoc" in {each.level for each in self.plan.hypotheses}:
            yield "What is called post hoc was added to the publication when results were known; here it is planned."
        if self.plan.hypotheses and self.contents.about_paper:
            yield (
                "Hypotheses that follow the publication were formed on results from the same data set: the scored "
                "records are new to the models of this run, the questions are not."
            )
        if self.contents.synthetic:
            yield SYNTHETIC


_RANK = {BELOW: "better", ABOVE: "worse", INCLUDES: "the interval includes zero", NO_INTERVAL: "without an interval"}
"""What the side says about a difference in a metric of which less is better."""


def _by_verdict(frame: pd.DataFrame, titles: Sequence[str], unnamed: str = "") -> str:
    """How often each verdict came out; whatever does not hold is named, unless it is ``unnamed``."""
    said = []
    for verdict in VERDICTS:
        named = [title for title, each in zip(titles, frame["verdict"], strict=True) if each == verdict]
        if named or verdict in (HOLDS, CONTRADICTED):
            which = f" ({'; '.join(named)})" if named and verdict not in (HOLDS, unnamed) else ""
            said.append(f"“{verdict}” for {len(named)}{which}")
    return listing(said)


def _metrics(cells: Sequence[Cell]) -> str:
    return listing(dict.fromkeys(spoken(cell.metric) for cell in cells))


def _survival(same: Found, main: Found) -> str:
    """Whether an interaction is still there in another setting; it has to have been there."""
    if side(main) not in (ABOVE, BELOW):
        return f"it {side(same)}"
    if side(same) == side(main):
        return "the interaction survives"
    return f"the interaction does not survive, it {side(same)}"


def _gap_closed(closed: Found, gap: Found, other: str, residual: Found) -> str:
    """The share of a gap that is closed, where there is a gap."""
    if side(gap) != ABOVE:
        return f"{other} shows no gap to them that could be closed."
    if closed.value < 0:
        return f"{other}'s gap of {estimate(*gap)} is not closed but wider on average."
    bounds = "" if pd.isna(closed.lo) else f" (interval from {percent(closed.lo)} to {percent(closed.hi)})"
    partly = ": a part of it" if side(residual) == ABOVE else ""
    return f"It closes {percent(closed.value)}{bounds} of {other}'s gap of {estimate(*gap)}{partly}."
