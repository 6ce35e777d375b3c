"""The shipped bundle on real PTB-XL: its references and choices come out again on the roles it was made from."""

from pathlib import Path

import numpy as np
import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.scoring import score
from leadwise.metrics import nll
from leadwise.policies.rollout import allocate
from leadwise.references import search_references
from leadwise.run.bundle import Bundle, pretrained_bundle


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle(pretrained_bundle())


@pytest.fixture(scope="module")
def cohort(ptbxl: Path, tmp_path_factory: pytest.TempPathFactory, bundle: Bundle) -> Cohort:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return read_ptbxl(ptbxl, bundle.plan.cohort_roles())


@pytest.mark.parametrize(("evaluator", "budgets"), [("controlled", [1, 2, 3, 4]), ("strong", [1])])
def test_references_come_out_again(cohort: Cohort, bundle: Bundle, evaluator: str, budgets: list[int]) -> None:
    found = search_references(bundle.evaluators[evaluator], cohort["selection"], budgets)
    frozen = bundle.references[evaluator].candidates
    frozen = frozen[frozen["k"].isin(budgets)].reset_index(drop=True)
    assert found.candidates["bits"].tolist() == frozen["bits"].tolist()
    np.testing.assert_allclose(found.candidates["nll"], frozen["nll"], atol=1e-6)
    for k in budgets:
        assert found.best("nll", k) == bundle.references[evaluator].best("nll", k)


def test_choosing_pays_under_the_light_evaluator_and_not_under_the_strong_one(cohort: Cohort, bundle: Bundle) -> None:
    """The study's finding, on the role where policies were compared while they were made."""
    records, contrast = cohort["validation"], {}
    chosen = allocate(bundle.policies["ecg-on-demand"], records, 4)
    for name in ("controlled", "strong"):
        evaluator, best = bundle.evaluators[name], bundle.references[name].best("nll", 4)
        fixed = np.tile(best.mask, (len(records), 1))
        contrast[name] = nll(records.labels, score(evaluator, records, chosen.masks))
        contrast[name] -= nll(records.labels, score(evaluator, records, fixed))
    assert contrast["controlled"] < -0.01
    assert contrast["strong"] > 0.01
