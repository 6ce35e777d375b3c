"""The controlled evaluator and its references on the real PTB-XL: what was found once must not move unnoticed.

Everything here is of folds 7 and 10.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.contract import check_evaluator
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.scoring import score
from leadwise.metrics import METRICS
from leadwise.references import search_references
from leadwise.run.plan import read_plan
from leadwise.study.execute import find_plan
from leadwise.study.fitting import make_evaluator

PLAN = read_plan(find_plan("ptbxl"))
PINNED = json.loads((Path(__file__).parent / "pinned_evaluators.json").read_text())
PAPER = {"auroc": 0.8355, "brier": 0.1587, "nll": 0.5031}
"""The published controlled evaluator on fold 7, all twelve leads."""


@pytest.fixture(scope="module")
def cohort(ptbxl: Path, tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return read_ptbxl(ptbxl)


@pytest.mark.parametrize("name", ["controlled", "controlled-unbalanced", "controlled-recalibrated", "strong"])
def test_quality_on_fold_7_is_what_was_found(cohort: Cohort, name: str) -> None:
    records = cohort["validation"]
    evaluator = make_evaluator(PLAN, name, cohort)
    full = score(evaluator, records, np.ones((len(records), 12), dtype=bool))
    found = {
        metric: METRICS[metric](records.labels, full, None) for metric in ("nll", "brier", "ece", "auroc", "auprc")
    }
    random = score(evaluator, records, frozen_masks(len(records)))
    found["random_nll"] = METRICS["nll"](records.labels, random, None)
    assert found == pytest.approx(PINNED[name], abs=1e-5)
    check_evaluator(evaluator, records)
    if name == "controlled":
        assert found["auroc"] >= PAPER["auroc"]
        assert found["brier"] <= PAPER["brier"]
        assert found["nll"] <= PAPER["nll"]


def test_references_on_fold_10_are_what_was_found(cohort: Cohort) -> None:
    evaluator = make_evaluator(PLAN, "controlled", cohort)
    frame = search_references(evaluator, cohort["selection"]).frame
    assert frame["candidates"].groupby(frame["k"]).first().to_dict() == {1: 12, 2: 66, 3: 220, 4: 495, 6: 924, 8: 495}
    for row, (k, metric, leads, value) in zip(frame.itertuples(), PINNED["references"], strict=True):
        assert (row.k, row.metric, row.leads) == (k, metric, leads)
        assert row.value == pytest.approx(value, abs=1e-5)
