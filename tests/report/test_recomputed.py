"""Any cell comes out again from the readings; what else is broken, the checks' tests show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadwise.report.contents import RunContents
from leadwise.report.recomputed import recomputed_cell
from leadwise.run.plan import Hypothesis
from study.test_run import finished_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run(tmp_path_factory)


def asking(run: Path, **facts: Any) -> RunContents:
    """The run, as if this had been its primary question."""
    contents = RunContents.read(run)
    hypothesis = Hypothesis(level="primary", quantity="interaction", expected="above zero", **facts)
    return replace(contents, plan=contents.plan.model_copy(update={"hypotheses": [hypothesis]}))


@pytest.mark.parametrize("metric", ["nll", "brier", "ece"])
@pytest.mark.parametrize("policy", ["ecg-on-demand", "mga"])
@pytest.mark.parametrize(
    ("evaluator", "baseline", "reference", "k"),
    [
        ("strong", "controlled", "own", 2),
        ("strong", "controlled", "controlled", 4),
        ("strong", "controlled", "strong", 2),
        ("mask-robust", "controlled", "controlled", 4),
        ("strong", "controlled-recalibrated", "own", 2),
    ],
)
def test_every_kind_of_cell_comes_out_again(
    run: Path, policy: str, evaluator: str, baseline: str, reference: str, k: int, metric: str
) -> None:
    pair = {"evaluator": evaluator, "baseline": baseline, "reference": reference}
    found = recomputed_cell(asking(run, policies=[policy], budgets=[k], metrics=[metric], **pair))
    assert found is not None
    place, problems = found
    assert place.endswith(f"at k = {k}, evaluation role")
    assert problems == []


def test_what_is_not_there_cannot_be_recomputed(run: Path) -> None:
    facts: dict[str, Any] = {"policies": ["mga"], "evaluator": "strong", "baseline": "controlled", "metrics": ["nll"]}
    assert recomputed_cell(asking(run, budgets=[4], **facts)) is None, "the strong evaluator was not searched there"
