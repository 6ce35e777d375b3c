"""Any cell comes out again from the readings; what else is broken, the checks' tests show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadwise.findings.recompute import recomputed_cell
from leadwise.report.prose.methods import describe_methods
from leadwise.run.contents import Frames, RunContents
from leadwise.run.directory import RunDirectory
from leadwise.run.plan_parts import Hypothesis
from leadwise.study.scoring import write_frames
from runs import gapped_results


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
    finished: Path, policy: str, evaluator: str, baseline: str, reference: str, k: int, metric: str
) -> None:
    pair = {"evaluator": evaluator, "baseline": baseline, "reference": reference}
    found = recomputed_cell(asking(finished, policies=[policy], budgets=[k], metrics=[metric], **pair))
    assert found is not None
    place, problems = found
    assert place.endswith(f"at k = {k}, evaluation role")
    assert problems == []


def test_cells_come_out_again_where_records_were_left_out(finished: Path, tmp_path: Path) -> None:
    _, frames = gapped_results(finished, tmp_path)
    (tmp_path / "results").mkdir()
    write_frames(tmp_path / "results", frames)
    for evaluator, reference, k in (("strong", "own", 2), ("mask-robust", "controlled", 4)):
        pair = {"evaluator": evaluator, "baseline": "controlled", "reference": reference}
        contents = asking(finished, policies=["mga"], budgets=[k], metrics=["nll"], **pair)
        gapped = replace(contents, directory=RunDirectory(tmp_path), results=Frames(tmp_path / "results"))
        found = recomputed_cell(gapped)
        assert found is not None
        assert found[1] == []
        methods = str(describe_methods(gapped))
        assert f"{(frames['left_out']['k'] == k).sum()} of the audit role at k = {k}" in methods


def test_what_is_not_there_cannot_be_recomputed(finished: Path) -> None:
    facts: dict[str, Any] = {"policies": ["mga"], "evaluator": "strong", "baseline": "controlled", "metrics": ["nll"]}
    contents = asking(finished, budgets=[4], **facts)
    assert recomputed_cell(contents) is None, "the strong evaluator was not searched there"
