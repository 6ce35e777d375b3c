"""A hypothesis holds when every cell of it lies on the expected side with its whole interval, and only then."""

from collections.abc import Mapping
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import pandas as pd
import pytest

from findings.paper import DEMAND, Paper
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.run.plan import Plan, read_plan
from leadwise.run.plan_parts import PARTS, Hypothesis
from leadwise.run.results import TABLES

Results = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def results() -> Results:
    return Paper().results


@pytest.fixture(scope="module")
def plan() -> Plan:
    with as_file(files("leadwise") / "studies" / "ptbxl.toml") as path:
        return read_plan(path)


def changed(results: Results, name: str, facts: Mapping[str, Any], **cells: float) -> Results:
    frame = results[name].copy()
    rows = np.logical_and.reduce([frame[column] == value for column, value in facts.items()])
    assert rows.any()
    frame.loc[rows, list(cells)] = list(cells.values())
    return results | {name: frame}


def of(frame: pd.DataFrame, number: int, role: str = "evaluation") -> Any:
    (row,) = frame[(frame["number"] == number) & (frame["role"] == role)].itertuples()
    return row


PRIMARY = {"role": "evaluation", "policy": DEMAND, "evaluator": "strong", "reference": "own", "k": 4, "metric": "nll"}
SECONDARY = 5
PAIRED = 9
PUBLISHED = 9
"""Number of hypotheses that the paper answers, the first ones."""


def test_with_the_published_numbers_everything_expected_holds(plan: Plan, results: Results) -> None:
    frame = hypotheses_frame(plan, results)
    assert list(frame.columns) == list(TABLES["hypotheses"].columns)
    ours = frame[frame["role"] == "evaluation"]
    assert list(ours["number"]) == list(range(1, len(plan.hypotheses) + 1))
    published = ours["number"] <= PUBLISHED
    assert list(ours["cells"][published]) == [1, 1, 1, 1, 30, 10, 10, 30, 2]
    answered = ours[ours["present"] > 0]
    assert answered["number"].isin(ours["number"][published]).sum() == PUBLISHED
    assert set(answered["verdict"]) == {"holds"}
    assert (answered["present"] == answered["cells"]).all()
    assert (answered["holding"] == answered["cells"]).all()
    assert set(ours["verdict"][ours["present"] == 0]) == {"not answerable"}, "the paper has no such evaluators"


def test_only_a_single_cell_has_its_estimate_beside_it(plan: Plan, results: Results) -> None:
    frame = hypotheses_frame(plan, results)
    assert of(frame, 1)[-3:] == (0.040585, 0.030288, 0.049879)
    assert of(frame, 2)[-3:] == (-0.01112, -0.018652, -0.002885)
    several = frame[frame["cells"] > 1]
    assert len(several)
    assert several[["value", "lo", "hi"]].isna().all(axis=None)


def test_the_plan_stands_in_words(plan: Plan, results: Results) -> None:
    row = of(hypotheses_frame(plan, results), SECONDARY)
    assert row.policies == "ecg-on-demand mga"
    assert (row.evaluator, row.baseline, row.reference) == ("strong", "controlled", "own")
    assert (row.budgets, row.metrics, row.expected) == ("2 3 4 6 8", "nll brier ece", "above zero")
    assert of(hypotheses_frame(plan, results), 2).baseline == ""


@pytest.mark.parametrize(
    ("lo", "hi", "verdict"),
    [(-0.01, 0.05, "inconclusive"), (0.0, 0.05, "inconclusive"), (-0.05, -0.01, "contradicted")],
    ids=["spans", "touches", "opposite"],
)
def test_one_cell_is_enough_not_to_hold(plan: Plan, results: Results, lo: float, hi: float, verdict: str) -> None:
    frame = hypotheses_frame(plan, changed(results, "interactions", PRIMARY, lo=lo, hi=hi))
    contradicted = int(verdict == "contradicted")
    for number, holding in ((1, 0), (SECONDARY, 29)):
        row = of(frame, number)
        assert (row.verdict, row.holding, row.contradicted) == (verdict, holding, contradicted)
    assert of(frame, 1, "audit").verdict == "holds", "another role stays as it is"
    assert of(frame, 4).verdict == "holds", "another metric stays as it is"


def test_below_zero_means_the_upper_bound(plan: Plan, results: Results) -> None:
    place = {"role": "evaluation", "policy": DEMAND, "evaluator": "controlled", "k": 4, "metric": "nll"}
    assert of(hypotheses_frame(plan, changed(results, "contrasts", place, hi=0.0)), 2).verdict == "inconclusive"
    assert of(hypotheses_frame(plan, changed(results, "contrasts", place, hi=-1e-9)), 2).verdict == "holds"


def test_what_is_missing_is_neither_for_nor_against(plan: Plan, results: Results) -> None:
    frame = results["interactions"]
    fewer = results | {"interactions": frame[frame["k"] != 3]}
    row = of(hypotheses_frame(plan, fewer), SECONDARY)
    assert (row.cells, row.present, row.holding, row.verdict) == (30, 24, 24, "not answerable")
    row = of(hypotheses_frame(plan, changed(fewer, "interactions", PRIMARY, lo=-1)), SECONDARY)
    assert (row.cells, row.present, row.holding, row.verdict) == (30, 24, 23, "not answerable")
    row = of(hypotheses_frame(plan, changed(fewer, "interactions", PRIMARY, lo=-2, hi=-1)), SECONDARY)
    assert (row.cells, row.present, row.holding, row.verdict) == (30, 24, 23, "contradicted")
    row = of(hypotheses_frame(plan, changed(results, "interactions", PRIMARY, lo=np.nan)), 1)
    assert (row.cells, row.present, row.verdict) == (1, 0, "not answerable"), "no interval, no answer"
    without = {name: each for name, each in results.items() if name not in ("interactions", "paired")}
    verdicts = [of(hypotheses_frame(plan, without), number).verdict for number in range(1, 10)]
    assert verdicts == ["not answerable" if number not in (2, 3) else "holds" for number in range(1, 10)]


def test_roles_that_were_not_scored_have_no_row(plan: Plan, results: Results) -> None:
    audit = {
        name: frame[frame["role"] != "evaluation"] if "role" in frame and name != "splits" else frame
        for name, frame in results.items()
    }
    assert set(hypotheses_frame(plan, audit)["role"]) == {"audit"}
    assert hypotheses_frame(plan, {}).empty
    assert list(hypotheses_frame(plan, {}).columns) == list(TABLES["hypotheses"].columns)


def test_a_pair_may_have_been_compared_the_other_way_round(plan: Plan, results: Results) -> None:
    frame = results["paired"]
    swapped = frame.assign(
        policy_a=frame["policy_b"],
        policy_b=frame["policy_a"],
        delta=-frame["delta"],
        lo=-frame["hi"],
        hi=-frame["lo"],
    )
    assert of(hypotheses_frame(plan, results | {"paired": swapped}), PAIRED).verdict == "holds"
    opposite = frame.assign(delta=-frame["delta"], lo=-frame["hi"], hi=-frame["lo"])
    assert of(hypotheses_frame(plan, results | {"paired": opposite}), PAIRED).verdict == "contradicted"


def test_common_references_are_asked_for(plan: Plan, results: Results) -> None:
    """A contrast may name whose references it is against, as an interaction does."""
    place = {"role": "evaluation", "policy": DEMAND, "evaluator": "strong", "reference_evaluator": "controlled"}
    common = changed(results, "contrasts", place, lo=0.001, hi=0.02)
    facts = {"quantity": "contrast", "policies": [DEMAND], "evaluator": "strong", "budgets": [4], "metrics": ["nll"]}
    hypothesis = Hypothesis(level="post hoc", reference="controlled", expected="above zero", **facts)
    found = hypotheses_frame(plan.model_copy(update={"hypotheses": [hypothesis]}), common)
    assert of(found, 1)[-3:] == (0.009641, 0.001, 0.02)


def with_hypothesis(plan: Plan, **facts: Any) -> Plan:
    return plan.model_copy(update={"hypotheses": [Hypothesis(level="secondary", **facts)]})


@pytest.mark.parametrize("part", PARTS)
def test_the_parts_of_an_interaction_are_asked_for(plan: Plan, results: Results, part: str) -> None:
    facts = {"role": "evaluation", "policy": DEMAND, "evaluator": "strong", "baseline_evaluator": "controlled", "k": 4}
    rows = [
        facts | {"metric": "nll", "statistic": statistic, "value": value, "lo": value - 0.01, "hi": value + 0.01}
        for statistic, value in (("whole", 0.9), ("remaining", 0.2), ("removed", 0.3), ("share", 0.5))
    ]
    decomposed = results | {"decomposition": pd.DataFrame(rows)}
    about = {"evaluator": "strong", "baseline": "controlled", "budgets": [4], "metrics": ["nll"], "policies": [DEMAND]}
    asked = with_hypothesis(plan, quantity=part, expected="above zero", **about)
    row = of(hypotheses_frame(asked, decomposed), 1)
    assert row.verdict == "holds"
    assert row[-3:] == pytest.approx({"remaining": (0.2, 0.19, 0.21), "removed": (0.3, 0.29, 0.31)}[part])
    opposite = with_hypothesis(plan, quantity=part, expected="below zero", **about)
    assert of(hypotheses_frame(opposite, decomposed), 1).verdict == "contradicted"
    assert of(hypotheses_frame(asked, results), 1).verdict == "not answerable"


@pytest.mark.parametrize(
    ("said", "lo", "hi", "verdict"),
    [
        ("equivalent", -0.001, 0.0015, "holds"),
        ("equivalent", 0.0001, 0.0015, "holds"),
        ("worse", 0.0021, 0.005, "contradicted"),
        ("better", -0.005, -0.0021, "contradicted"),
        ("worse", 0.0019, 0.005, "inconclusive"),
        ("better", -0.005, -0.0019, "inconclusive"),
        ("not worse", -0.003, 0.001, "inconclusive"),
        ("undecided", -0.003, 0.003, "inconclusive"),
        ("undecided", np.nan, np.nan, "not answerable"),
    ],
)
def test_equivalence_takes_the_margin(
    plan: Plan, results: Results, said: str, lo: float, hi: float, verdict: str
) -> None:
    facts = {"role": "evaluation", "policy": "strong-mga", "evaluator": "strong", "k": 8, "metric": "nll"}
    row = facts | {"reference_evaluator": "strong", "delta": (lo + hi) / 2, "lo": lo, "hi": hi}
    tested = pd.DataFrame([row | {"margin": 0.002, "verdict": said}])
    about = {"policies": ["strong-mga"], "evaluator": "strong", "budgets": [8], "metrics": ["nll"]}
    asked = with_hypothesis(plan, quantity="contrast", expected="equivalent", **about)
    assert of(hypotheses_frame(asked, results | {"equivalence": tested}), 1).verdict == verdict
    others = tested.assign(reference_evaluator="controlled")
    assert of(hypotheses_frame(asked, results | {"equivalence": others}), 1).verdict == "not answerable"
    assert of(hypotheses_frame(asked, results), 1).verdict == "not answerable", "that zero is included is not enough"
