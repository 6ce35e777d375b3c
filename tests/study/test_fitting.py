"""What a run asks of the things that kinds make."""

from pathlib import Path

import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.synthetic import synthesize
from leadwise.errors import InputError
from leadwise.evaluators.contract import register_evaluator
from leadwise.policies.contract import register_policy
from leadwise.registry import Settings
from leadwise.run.plan import read_plan
from leadwise.run.stage import Work
from leadwise.study.fitting import Study, fit_evaluator, fit_policy, make_evaluator

PLAN = """
budgets = [2]
first_lead = "II"
cohort = {kind = "synthetic", records = 100}
evaluators.mine.kind = "bare"
policies.mine.kind = "bare"
"""


class Bare:
    """Makes whatever it is told to."""

    Settings = Settings
    made: object = None

    @classmethod
    def make(cls, _settings, _material) -> object:
        return cls.made

    load = make


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    for registry in (register_evaluator, register_policy):
        monkeypatch.setattr(registry.__self__, "_kinds", dict(registry.__self__._kinds))
        registry("bare")(Bare)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    cohort: Cohort = synthesize(records=100)
    return Work(tmp_path, tmp_path, {}, tmp_path, Study(read_plan(plan), plan, cohort))


def test_what_is_made_has_all_that_a_run_needs(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = "which a run needs; add what is missing to its class"
    with pytest.raises(
        InputError, match=f"^The kind bare makes an object of type NoneType without 'name' and .*{rest}"
    ):
        fit_evaluator(work, "mine")
    half = type("Half", (), {"name": "mine", "labels": ["A"], "save": lambda _self, path: path.write_text("kept")})()
    monkeypatch.setattr(Bare, "made", half)
    expected = f"^The kind bare makes an object of type Half without 'sha256', {rest}"
    with pytest.raises(InputError, match=expected):
        fit_evaluator(work, "mine")
    with pytest.raises(InputError, match=expected):
        make_evaluator(work.study.plan, "mine", work.study.cohort)
    fit_policy(work, "mine")
    assert (work.out / "mine.safetensors").read_text() == "kept"
    monkeypatch.setattr(Bare, "made", object())
    with pytest.raises(
        InputError, match=f"^The kind bare makes an object of type object without 'name' and 'save', {rest}"
    ):
        fit_policy(work, "mine")
