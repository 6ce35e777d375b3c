"""Sides of zero, reversals, and which cell a study is about first of all."""

from importlib.resources import as_file, files

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings.paper import DEMAND, ROLES, Paper
from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, MISSING, NO_INTERVAL, Findings, Found, side
from leadwise.findings.question import Cell, Family, Question
from leadwise.run.plan import Hypothesis, InteractionFamily, Plan, read_plan

ADVANTAGE, LOSS, VAGUE = Found(-2.0, -3.0, -1.0), Found(2.0, 1.0, 3.0), Found(0.5, -1.0, 2.0)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_a_side_is_that_of_the_whole_interval(low: float, width: float) -> None:
    high = low + width
    found = side(Found((low + high) / 2, low, high))
    assert (found == ABOVE) == (low > 0)
    assert (found == BELOW) == (high < 0)
    assert (found == INCLUDES) == (low <= 0 <= high)


def test_no_interval_is_on_no_side() -> None:
    assert side(MISSING) == side(Found(3.0)) == side(Found(3.0, lo=1.0)) == NO_INTERVAL


def test_reversals_are_of_point_estimates_and_ordered_ones_of_intervals() -> None:
    nothing = Cell("a", 4, "nll", MISSING, MISSING, MISSING, MISSING)
    there = nothing._replace(before=ADVANTAGE, after=LOSS)
    assert (there.reverses, there.reverses_back, there.ordered) == (True, False, True)
    back = there._replace(before=LOSS, after=ADVANTAGE)
    assert (back.reverses, back.reverses_back, back.ordered) == (False, True, True)
    vague = there._replace(after=VAGUE)
    assert (vague.reverses, vague.ordered) == (True, False)
    for tie in (there._replace(before=Found(0.0, -1.0, 1.0)), there._replace(after=Found(0.0, -1.0, 1.0))):
        assert (tie.reverses, tie.reverses_back, tie.ordered) == (False, False, False)
    assert not nothing.reverses


@pytest.fixture(scope="module")
def findings() -> Findings:
    return Findings(Paper().results, ROLES)


@pytest.fixture(scope="module")
def plan() -> Plan:
    with as_file(files("leadwise") / "studies" / "ptbxl.toml") as path:
        return read_plan(path)


def asked(plan: Plan, findings: Findings, role: str = "evaluation", **changed: object) -> Question:
    return Question.of(plan.model_copy(update=changed), findings, role)


def test_the_primary_hypothesis_is_asked_first(plan: Plan, findings: Findings) -> None:
    family = Family("strong", "controlled")
    assert asked(plan, findings) == (family, DEMAND, 4, "nll", True)
    cell = asked(plan, findings).cell(findings, "evaluation")
    assert (cell.before.value, cell.after.value, cell.change.value) == (-0.01112, 0.029466, 0.040585)


def test_without_one_the_first_interactions_of_the_plan_are_asked_about(plan: Plan, findings: Findings) -> None:
    assert asked(plan, findings, hypotheses=[]) == (Family("strong", "controlled"), DEMAND, 4, "nll", False)
    others = [
        InteractionFamily(policies=["mga"], evaluator="mask-robust", baseline="controlled", reference="controlled")
    ]
    family = Family("mask-robust", "controlled", "controlled")
    assert asked(plan, findings, hypotheses=[], interactions=others) == (family, "mga", 4, "nll", False)
    frame = findings.results["interactions"]
    fewer = Findings({**findings.results, "interactions": frame[frame["k"].isin([2, 8])]}, ROLES)
    assert asked(plan, fewer, hypotheses=[]).k == 2, "the nearest four of those that are there"
    nothing = Findings({"interactions": pd.DataFrame()}, ROLES)
    assert asked(plan, nothing, hypotheses=[], budgets=[3, 6]).k == 3, "where none is there, of the plan's"


def test_a_study_that_compares_no_evaluators_asks_about_a_contrast(plan: Plan, findings: Findings) -> None:
    question = asked(plan, findings, hypotheses=[], interactions=[])
    assert question == (Family("controlled", ""), DEMAND, 4, "nll", False)
    cell = question.cell(findings, "evaluation")
    assert (cell.after.value, cell.before.missing, cell.change.missing) == (-0.01112, True, True)
    facts = {"policies": ["mga"], "evaluator": "strong", "budgets": [6], "metrics": ["brier"]}
    primary = Hypothesis(level="primary", quantity="contrast", expected="above zero", **facts)  # type: ignore[arg-type]
    found = asked(plan, findings, hypotheses=[primary], interactions=[])
    assert found == (Family("strong", ""), "mga", 6, "brier", True)
