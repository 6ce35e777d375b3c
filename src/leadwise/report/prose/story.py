"""Subject of a summary's sentences: the role, the family of interactions and the cell of the headline."""

from collections.abc import Sequence
from itertools import product

from leadwise.analysis.contrasts import OWN
from leadwise.findings.estimates import Findings
from leadwise.findings.question import Cell, Family, Question
from leadwise.report.names import the_evaluator, the_other
from leadwise.report.prose.words import folds_in_words
from leadwise.run.contents import RunContents

PROPER, CALIBRATION = ("nll", "brier"), ("ece",)
METRICS = (*PROPER, *CALIBRATION)
EXPLORATORY = "exploratory"
"""Level of cells that no hypothesis of the plan is about."""


class Story:
    """One look at the results of the role that the report speaks about."""

    def __init__(self, contents: RunContents) -> None:
        self.contents, self.plan, self.role = contents, contents.plan, contents.role
        self.find = Findings(contents.results, contents.plan.roles)
        question = Question.of(self.plan, self.find, self.role)
        self.family, self.planned, self.primary = question.family, question.planned, question.cell(self.find, self.role)
        self.transfers = bool(self.family.baseline)
        """True if evaluators are compared; else the family has no baseline."""
        self.evaluator, self.baseline = (the_evaluator(name) for name in self.family[:2])
        self.other = the_other(self.family.evaluator)
        """The evaluator after the baseline has been spoken of."""
        self.other_baseline = the_other(self.family.baseline)
        owner = self.family.reference
        self.fixed = "the best fixed leads" if owner == OWN else f"the best fixed leads of {the_evaluator(owner)}"

    @property
    def opening(self) -> str:
        """The beginning of the headline."""
        warning = "On synthetic recordings, which say nothing about patients, in" if self.contents.synthetic else "In"
        return f"{warning} the {self.folds(self.role)}, at k = {self.primary.k}, "

    def cell(self, family: Family, policy: str, k: int, metric: str) -> Cell:
        return Cell.at(self.find, self.role, family, policy, k, metric)

    def cells(self, family: Family, policies: Sequence[str] = ()) -> list[Cell]:
        """Every policy of a family at every budget of the plan, whether it is there or not.

        Without ``policies`` they are those that the plan names together with that of the headline.
        """
        together = [
            each.policies
            for each in self.plan.interactions
            if (each.evaluator, each.baseline, each.reference) == family and self.primary.policy in each.policies
        ]
        named = policies or next(iter(together), self.plan.studied)
        return [self.cell(family, *place) for place in product(named, self.plan.budgets, METRICS)]

    def folds(self, role: str) -> str:
        """A role and its folds, as far as the plan has it."""
        folds = self.plan.roles.get(role, [])
        return f"{role} role" + (f" ({folds_in_words(folds)})" if folds else "")

    def level(self, family: Family, quantity: str = "interaction") -> str:
        """Level of a family in the plan: that of its broadest hypothesis."""
        evaluator, baseline, reference = family
        about = (quantity, evaluator, baseline if quantity == "interaction" else None, reference)
        levels = {
            len(each.policies) * len(each.budgets) * len(each.metrics): each.level
            for each in self.plan.hypotheses
            if (each.quantity, each.evaluator, each.baseline, each.reference) == about
        }
        return levels[max(levels)] if levels else EXPLORATORY
