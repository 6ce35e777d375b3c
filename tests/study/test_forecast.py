"""What a run would take: every stage is in it, amounts follow from the plan, and nothing is written."""

from math import comb
from pathlib import Path

import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.evaluators.masked_resnet.kind import MaskedResNet
from leadwise.run.plan import Plan, read_plan
from leadwise.run.stage import in_order
from leadwise.run.stage_names import search_stage
from leadwise.study.execute import find_plan
from leadwise.study.feasibility import role_sizes
from leadwise.study.forecast import COHORT, amounts, calibrate, disk_use, forecast, ready
from leadwise.study.graph import stages
from runs import PLAN

SIZES = {"train": 13_069, "validation": 2_176, "selection": 2_198, "audit": 2_183}


@pytest.fixture(scope="module")
def published() -> Plan:
    return read_plan(find_plan("ptbxl"))


def test_every_stage_is_forecast(published: Plan) -> None:
    names = [stage.name for stage in in_order(stages(published, []))]
    assert list(amounts(published, SIZES)) == [COHORT, *names, "score/audit", "report"]
    assert set(disk_use(published, SIZES)) <= {COHORT, *names, "score/audit", "score/evaluation", "report"}


def test_the_search_is_all_sets_of_all_budgets(published: Plan) -> None:
    work = amounts(published, SIZES)
    for name in ("strong", "controlled", "controlled-recalibrated"):
        searched = [work[search_stage(name, k)][f"read {name}"] for k in (1, 2, 3, 4, 6, 8)]
        assert sum(searched) == 2_212 * SIZES["selection"]
        assert max(searched) == comb(12, 6) * SIZES["selection"]


def test_a_training_is_its_steps(published: Plan) -> None:
    work = amounts(published, SIZES)["evaluator/mask-robust/seed-20060928"]
    assert work["crop step"] == 40 * (13_069 // 128)
    assert work["whole step"] == 8 * (13_069 // 128)
    assert work["network reading"] == (40 // 4 + 8) * SIZES["validation"]


def test_a_network_that_ships_costs_nothing(
    small_cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it asked of an evaluator that is trained on what policies choose: that is known only when they have."""
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = read_plan(tmp_path / "plan.toml")
    assert ready(plan, small_cohort) == set()
    monkeypatch.setattr(
        MaskedResNet, "shipped", lambda settings, _material: object() if settings.seeds == [2] else None
    )
    assert ready(plan, small_cohort) == {"evaluator/strong/seed-2"}
    assert ready(plan, None) == set()


def test_twice_the_records_are_twice_the_work(published: Plan) -> None:
    once, compared = amounts(published, SIZES), 0
    twice = amounts(published, {role: 2 * count for role, count in SIZES.items()})
    for name, parts in once.items():
        if name.startswith("policy/"):
            assert twice[name] == parts, "as many states"
            continue
        for unit, amount in parts.items():
            if "read" in unit or "fit" in unit:
                assert twice[name][unit] == 2 * amount
                compared += 1
    assert compared > 30


def test_the_sizes_of_a_cohort_that_is_yet_to_be_made(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    sizes = role_sizes(read_plan(tmp_path / "plan.toml"), None)
    assert sizes == {"train": 96, "validation": 16, "selection": 16, "audit": 16, "evaluation": 16}


def test_nothing_is_written_and_done_stages_are_left_out(finished: Path, tmp_path: Path) -> None:
    rows = {row["stage"]: row for row in forecast(finished / "plan.toml", tmp_path / "run")}
    assert not (tmp_path / "run").exists()
    assert rows[COHORT]["bytes"] > 160 * 24_000
    assert all(row["seconds"] > 0 for row in rows.values())
    left = [row["stage"] for row in forecast(finished / "plan.toml", finished)]
    assert left == []
    changed = tmp_path / "changed.toml"
    changed.write_text(PLAN.replace("references = [1, 2]\n", "references = [1, 2, 4]\n"))
    left, plan_of_changed = [row["stage"] for row in forecast(changed, finished)], read_plan(changed)
    places = [stage for stage in left if stage.startswith("places/")]
    assert len(places) == len(plan_of_changed.policies.keys() - plan_of_changed.stand_ins)
    searched = ["references/strong/4", "selection/strong"]
    rest = [stage for stage in left if stage not in places]
    assert rest == [*searched, "freeze", "score/audit", "score/evaluation", "report"]


def test_every_kind_of_work_is_timed(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = read_plan(tmp_path / "plan.toml")
    rates = calibrate(plan, None)
    assert {unit for parts in amounts(plan, role_sizes(plan, None)).values() for unit in parts} <= set(rates)
    derived = {f"read {name}" for name in ("controlled-recalibrated", "strong-recalibrated")}  # from others' readings
    assert {unit for unit, seconds in rates.items() if not seconds > 0} == derived
    assert rates["read strong-2"] == rates["read strong"]
