"""What stages are called, and what their names say."""

from leadwise.run import stage_names
from leadwise.run.stage_names import FREEZE, evaluator_stage, is_search, policy_stage, scored_role, search_stage


def test_a_scoring_is_known_by_its_name() -> None:
    assert {role: scored_role(stage_names.scoring_stage(role)) for role in ("audit", "evaluation")} == {
        "audit": "audit",
        "evaluation": "evaluation",
    }
    assert {scored_role(stage) for stage in (FREEZE, policy_stage("audit"), evaluator_stage("evaluation"))} == {None}


def test_scorings_of_ledgers_from_before_are_known() -> None:
    """Or nobody would see that they came before the freeze."""
    assert [scored_role(stage) for stage in ("audit", "evaluation")] == ["audit", "evaluation"]


def test_a_search_is_known_by_its_name() -> None:
    assert is_search(search_stage("strong", 4))
    assert not is_search(evaluator_stage("references"))
    assert evaluator_stage("strong", 3) == "evaluator/strong/seed-3"
