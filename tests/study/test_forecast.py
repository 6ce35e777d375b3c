"""What a run would take: every stage is in it, amounts follow from the plan, and nothing is written."""

from math import comb
from pathlib import Path

import pytest
from leadwise.study.stages import search_stage, stages

from leadwise.run.plan import Plan, read_plan
from leadwise.run.stage import in_order
from leadwise.study.execute import find_plan
from leadwise.study.feasibility import role_sizes
from leadwise.study.forecast import COHORT, amounts, calibrate, disk_use, forecast
from runs import PLAN

SIZES = {"train": 13_069, "validation": 2_176, "selection": 2_198, "audit": 2_183}


@pytest.fixture(scope="module")
def published() -> Plan:
    return read_plan(find_plan("ptbxl"))


def test_every_stage_is_forecast(published: Plan) -> None:
    names = [stage.name for stage in in_order(stages(published, []))]
    assert list(amounts(published, SIZES, set())) == [*names, "audit", "report"]
    assert set(disk_use(published, SIZES, 1e6)) <= {*names, "audit", "evaluation", "report"}


def test_the_search_is_all_sets_of_all_budgets(published: Plan) -> None:
    work = amounts(published, SIZES, set())
    for name, kind in (("strong", "reading"), ("controlled", "table"), ("controlled-unbalanced", "table")):
        searched = [work[search_stage(name, k)][kind] for k in (1, 2, 3, 4, 6, 8)]
        assert sum(searched) == 2_212 * SIZES["selection"]
        assert max(searched) == comb(12, 6) * SIZES["selection"]


def test_a_training_is_its_steps(published: Plan) -> None:
    work = amounts(published, SIZES, set())["mask-robust"]
    assert work["crop step"] == 40 * (13_069 // 128)
    assert work["whole step"] == 8 * (13_069 // 128)
    assert work["reading"] == (40 // 4 + 8) * SIZES["validation"]


def test_a_network_that_ships_costs_nothing(published: Plan) -> None:
    name = "strong-seed-20060928"
    assert "whole step" in amounts(published, SIZES, set())[name]
    assert "whole step" not in amounts(published, SIZES, {name})[name]


def test_twice_the_records_are_twice_the_work(published: Plan) -> None:
    once = amounts(published, SIZES, set())
    twice = amounts(published, {role: 2 * count for role, count in SIZES.items()}, set())
    for name, parts in once.items():
        for kind in {"reading", "table", "fit"} - ({"reading"} if name == "strong-mga" else set()):  # as many states
            assert twice[name].get(kind, 0) == pytest.approx(2 * parts.get(kind, 0))


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
    changed.write_text(PLAN.replace("search = [1, 2]", "search = [1, 2, 4]"))
    left = [row["stage"] for row in forecast(changed, finished)]
    assert left == ["references-strong-4", "freeze", "audit", "evaluation", "report"]


def test_every_kind_of_work_is_timed(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = read_plan(tmp_path / "plan.toml")
    rates = calibrate(plan)
    wanted = {kind for parts in amounts(plan, role_sizes(plan, None), set()).values() for kind in parts}
    assert wanted | {"parameters"} == set(rates)
    assert min(rates.values()) > 0
