"""The cell that a study is about first of all, and the cells that stand beside it."""

from typing import NamedTuple

from leadwise.analysis.contrasts import OWN
from leadwise.findings.estimates import ABOVE, BELOW, Findings, Found, side
from leadwise.run.plan import Plan


class Family(NamedTuple):
    """Interactions between two evaluators, each contrast against its own references or both against the same.

    Of a study that compares no evaluators the baseline is blank, and there are contrasts only.
    """

    evaluator: str
    baseline: str
    reference: str = OWN

    @property
    def facts(self) -> dict[str, str]:
        """The columns of ``interactions.csv`` that name it."""
        return {"evaluator": self.evaluator, "baseline_evaluator": self.baseline, "reference": self.reference}


class Question(NamedTuple):
    """The cell that a study is about first of all."""

    family: Family
    policy: str
    k: int
    metric: str
    planned: bool
    """True if it is the plan's primary hypothesis."""

    @classmethod
    def of(cls, plan: Plan, findings: Findings, role: str) -> "Question":
        """The plan's primary hypothesis, about an interaction or, where it compares no evaluators, a contrast.

        Without one it is the first policy of the first interactions, or of the study where it has none, in NLL at that
        of the budgets that is nearest four.
        """
        quantity = "interaction" if plan.interactions else "contrast"
        for each in plan.hypotheses:
            if (each.level, each.quantity) == ("primary", quantity):
                family = Family(each.evaluator, each.baseline or "", each.reference)
                return cls(family, each.policies[0], each.budgets[0], each.metrics[0], True)
        if plan.interactions:
            first = plan.interactions[0]
            family = Family(first.evaluator, first.baseline, first.reference)
            rows = findings.rows("interactions", role=role, **family.facts)
        else:
            reader = next(iter([*plan.readers, *plan.evaluators]))
            family, rows = Family(reader, ""), findings.rows("contrasts", role=role, evaluator=reader)
        compared = [int(k) for k in rows["k"]] if len(rows) else plan.budgets
        return cls(family, plan.studied[0], min(compared, key=lambda k: (abs(k - 4), k)), "nll", False)

    def cell(self, findings: Findings, role: str) -> "Cell":
        """Its estimates."""
        return Cell.at(findings, role, self.family, self.policy, self.k, self.metric)


class Cell(NamedTuple):
    """A policy at a budget: its contrast under the baseline and under the other evaluator, and their difference."""

    policy: str
    k: int
    metric: str
    before: Found
    after: Found
    change: Found
    jointly: Found
    """The change with its simultaneous interval."""

    @classmethod
    def at(cls, findings: Findings, role: str, family: Family, policy: str, k: int, metric: str) -> "Cell":
        """Look a cell up; what is not among the results is missing in it."""
        evaluator, baseline, reference = family
        before, after = (findings.contrast(role, policy, each, k, metric, reference) for each in (baseline, evaluator))
        facts: dict[str, object] = {"role": role, "policy": policy, "k": k, "metric": metric, **family.facts}
        change, low, high = (
            findings.find("interactions", column, **facts)
            for column in ("interaction", "lo_simultaneous", "hi_simultaneous")
        )
        return cls(policy, k, metric, before, after, change, Found(change.value, low.value, high.value))

    @property
    def reverses(self) -> bool:
        """True if the point estimates go from an advantage to a loss."""
        return bool(self.before.value < 0 < self.after.value)

    @property
    def reverses_back(self) -> bool:
        """True if the point estimates go from a loss to an advantage."""
        return bool(self.before.value > 0 > self.after.value)

    @property
    def ordered(self) -> bool:
        """True if the two intervals lie on opposite sides of zero."""
        return {side(self.before), side(self.after)} == {ABOVE, BELOW}
