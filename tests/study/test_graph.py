"""Stages of a plan."""

from pathlib import Path

import pytest

from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.run.directory import RunDirectory
from leadwise.run.plan import read_plan
from leadwise.run.stage import Finder, Stage
from leadwise.study.graph import stages

PLAN = """
budgets = [2]
first_lead = "II"
cohort = {kind = "synthetic", records = 100}

[evaluators.plain]
kind = "logistic"
references = [2]

[policies.any]
kind = "random-subset"

[policies.step]
kind = "ccga"
target = "plain"
"""


@pytest.fixture
def made(tmp_path: Path):
    """All stages of the plan by name, as they are when they are asked for."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)

    def made() -> dict[str, Stage]:
        return {stage.name: stage for stage in stages(read_plan(plan), [])}

    return made


def test_a_class_declares_the_version_of_its_stages(made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made()
    assert {stage.version for stage in before.values()} == {1}
    monkeypatch.setattr(LogisticEvaluator, "version", 2, raising=False)
    after = made()
    assert {name: stage.version for name, stage in after.items() if stage.version != 1} == {"evaluator/plain": 2}
    finder = Finder(RunDirectory(tmp_path), {"train": "t", "validation": "v"})
    keys = [finder.key(each["evaluator/plain"]) for each in (before, after)]
    assert keys[0] != keys[1], "the stage is outdated"


@pytest.mark.parametrize("version", ["1.0", 2.0, True, None])
def test_a_version_is_a_whole_number(made, monkeypatch: pytest.MonkeyPatch, version: object) -> None:
    monkeypatch.setattr(LogisticEvaluator, "version", version, raising=False)
    with pytest.raises(InputError, match=r"The kind logistic has the version .*, where a whole number is due\."):
        made()
