"""A figure of the report: panels put together from the results of a run and its plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadwise.leads import LEADS
from leadwise.report.figures.drawing import TITLE
from leadwise.report.figures.rows import budget_of, budgets_in, first_of, policies_in, rows_of, shown_role
from leadwise.report.names import the_evaluator
from leadwise.report.numbers import listing
from leadwise.run.plan import Plan
from leadwise.run.plan_parts import Hypothesis

METRICS = ("nll", "brier", "ece")


@dataclass(frozen=True, eq=False)
class Shown:
    """The frames of a run and its plan, which says whom the figures show."""

    results: Mapping[str, pd.DataFrame]
    plan: Plan

    def frame(self, name: str) -> pd.DataFrame:
        return self.results.get(name, pd.DataFrame())

    @property
    def baseline(self) -> str:
        """The first of the plan's readers; blank where it has none."""
        return next(iter(self.plan.readers), "")

    @property
    def evaluator(self) -> str:
        """The last of the plan's readers."""
        return next(reversed(self.plan.readers), "")

    def policies(self, name: str, preferred: Sequence[str] = ()) -> list[str]:
        """Those of the preferred ones that a frame's role has, else all that it has in the order of the plan."""
        frame = self.frame(name)
        rows = rows_of(frame, role=shown_role(frame))
        return policies_in(rows, preferred) or policies_in(rows, [*self.plan.policies])

    def reader(self, name: str) -> str:
        """The baseline where the frame has it, else the frame's first evaluator."""
        return str(first_of(self.frame(name), "evaluator", [self.baseline]) or self.baseline)

    def budget(self, name: str) -> int:
        """The frame's budget that is nearest to that of the plan's primary hypothesis, else the one in the middle."""
        frame = self.frame(name)
        primary = [each.budgets[0] for each in self._primary]
        if not primary:
            return budget_of(frame, None)
        return min(budgets_in(frame), key=lambda k: (abs(k - primary[0]), k), default=primary[0])

    @property
    def _primary(self) -> list[Hypothesis]:
        return [each for each in self.plan.hypotheses if each.level == "primary"]

    @property
    def primary(self) -> list[str]:
        """Policies of the plan's primary hypothesis, else those that are looked at closely."""
        return self._primary[0].policies if self._primary else self.plan.studied

    @property
    def first_lead(self) -> str:
        """The lead that policies begin with; blank where the run does not tell."""
        if self.plan.first_lead in LEADS:
            return str(self.plan.first_lead)
        rows = rows_of(self.frame("references"), evaluator=self.plan.first_lead_of, metric="nll", k=1)
        return str(rows["leads"].iloc[0]) if len(rows) else ""


@dataclass(frozen=True)
class Composition:
    """A figure, in which place it stands, and what it says to people who cannot see it."""

    place: int
    name: str
    """Stem of its files."""
    title: str
    description: str
    """``{readers}`` and ``{baseline}`` stand for evaluators, ``{evaluator}`` for the last of the readers."""
    compose: Callable[[Shown], Figure]
    needs: str = ""
    """The frame without whose rows there is no such figure; the others say what they have no rows for."""

    def described(self, shown: Shown) -> str:
        names = [the_evaluator(name) for name in shown.plan.readers] or ["an evaluator"]
        return self.description.format(readers=listing(names), baseline=names[0], evaluator=names[-1])


def letter(panels: Sequence[Axes]) -> None:
    """(a), (b), … before the titles; a panel without a picture has its letter too."""
    for each, ax in zip("abcdefgh", panels, strict=False):
        title = ax.get_title(loc="left")
        ax.set_title(f"({each}) {title}", loc="left", fontsize=TITLE)
