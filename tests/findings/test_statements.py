"""Cells of a statement, and what of their estimates decides."""

import pandas as pd

from leadwise.findings.estimates import Findings
from leadwise.findings.statements import QUALITY, Statement
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_ANSWERABLE
from leadwise.leads import LEADS


def statement(quantity: str, policies: tuple[str, ...] = ("a", "b"), baseline: str | None = None) -> Statement:
    return Statement(quantity, policies, "reader", baseline, "own", [2, 4], ["nll", "ece"], "below zero")


def test_policies_are_cells_of_their_own_unless_they_are_a_pair() -> None:
    cells = [(place.policy, place.versus, place.k, place.metric) for place in statement("contrast").places]
    assert len(cells) == 8
    assert cells[:3] == [("a", "", 2, "nll"), ("a", "", 2, "ece"), ("a", "", 4, "nll")]
    pair = [(place.policy, place.versus, place.k, place.metric) for place in statement("paired").places]
    assert pair == [("a", "b", 2, "nll"), ("a", "b", 2, "ece"), ("a", "b", 4, "nll"), ("a", "b", 4, "ece")]


def quality(first: tuple[float, float, float], second: tuple[float, float, float]) -> str:
    rows = [("audit", name, " ".join(LEADS), "nll", *said) for name, said in (("reader", first), ("other", second))]
    frame = pd.DataFrame(rows, columns=["role", "evaluator", "leads", "metric", "value", "lo", "hi"])
    said = statement(QUALITY, ("",), "other")
    decided = said.decide(Findings({"evaluator_quality": frame}, {"audit": [9]}), "audit", said.places[0])
    assert [place.evaluator for place, _ in decided.estimates] == ["reader", "other"]
    return decided.verdict


def test_of_two_evaluators_quality_the_difference_decides() -> None:
    assert quality((0.3, 0.2, 0.4), (0.6, 0.5, 0.7)) == HOLDS
    assert quality((0.3, 0.2, 0.4), (0.4, 0.3, 0.5)) == INCONCLUSIVE, "their intervals overlap"
    assert quality((0.6, 0.5, 0.7), (0.3, 0.2, 0.4)) == CONTRADICTED


def test_what_is_not_there_is_not_answerable() -> None:
    for quantity in ("contrast", "interaction", "paired", "calibration", "spearman"):
        said = statement(quantity, baseline="other")
        verdicts = {said.decide(Findings({}, {}), role, place).verdict for place in said.places for role in ("x", None)}
        assert verdicts == {NOT_ANSWERABLE}
