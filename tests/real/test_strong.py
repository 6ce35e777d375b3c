"""The shipped network on real PTB-XL: what was measured when it was trained is what it gives here.

Its other numbers are pinned with those of the controlled evaluators.
"""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.contract import build_evaluator
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator
from leadwise.evaluators.masked_resnet.training import Training, random_mask_nll
from leadwise.run.plan import read_plan


@pytest.fixture(scope="module")
def cohort(ptbxl: Path, tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return read_ptbxl(ptbxl)


@pytest.fixture(scope="module")
def strong() -> NetworkEvaluator:
    return shipped_evaluator("strong")


def test_it_came_out_of_the_plan_s_training_but_for_how_epochs_were_compared(
    cohort: Cohort, strong: NetworkEvaluator
) -> None:
    plan = read_plan(Path(str(files("leadwise") / "studies" / "ptbxl.toml"))).strong
    assert plan.seeds[0] == strong.facts["seed"]
    training = Training(cohort["train"], cohort["validation"], recipe=plan.recipe, widths=tuple(plan.widths))
    differing = [
        name for name, value in json.loads(json.dumps(training.facts)).items() if strong.facts.get(name) != value
    ]
    assert differing == ["epochs_compared_with"]
    assert not training.made(strong)
    assert build_evaluator("strong", cohort["train"], cohort["validation"]).sha256 == strong.sha256


def test_random_masks(cohort: Cohort, strong: NetworkEvaluator) -> None:
    """Within 0.002 of what the recipe was reported to give."""
    value = random_mask_nll(strong, cohort["validation"])
    assert value == pytest.approx(strong.facts["nll"], abs=1e-6)
    assert value == pytest.approx(0.2973, abs=2e-3)
