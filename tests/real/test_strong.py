"""The shipped network on real PTB-XL: what was measured when it was trained is what it gives here.

Its other numbers are pinned with those of the controlled evaluators.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.contract import Material
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator, shipped_evaluator
from leadwise.evaluators.masked_resnet.kind import MaskedResNet
from leadwise.evaluators.masked_resnet.training import Training, random_mask_nll
from leadwise.run.plan import read_plan
from leadwise.study.execute import find_plan
from leadwise.study.fitting import make_evaluator


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
    plan = read_plan(find_plan("ptbxl"))
    said: Any = plan.evaluators["strong"].settings
    assert said.seeds[0] == strong.facts["seed"]
    training = Training(cohort["train"], cohort["validation"], recipe=said.recipe, widths=tuple(said.widths))
    differing = [
        name for name, value in json.loads(json.dumps(training.facts)).items() if strong.facts.get(name) != value
    ]
    assert differing == ["epochs_compared_with"]
    assert not training.made(strong)
    assert make_evaluator(plan, "strong", cohort).sha256 == strong.sha256


SEEDS = sorted(Path(str(files("leadwise") / "networks")).glob("*.safetensors"))


@pytest.mark.parametrize("file", SEEDS, ids=lambda file: file.stem)
def test_a_seed_that_ships_is_taken_for_the_plan_s_training(cohort: Cohort, file: Path) -> None:
    shipped, said = NetworkEvaluator.load(file), read_plan(find_plan("ptbxl")).evaluators["strong"].settings
    assert random_mask_nll(shipped, cohort["validation"]) == pytest.approx(shipped.facts["nll"], abs=1e-6)
    settings = said.model_copy(update={"seeds": [shipped.facts["seed"]]})
    material = Material("strong", cohort["train"], cohort["validation"])
    taken = MaskedResNet.shipped(settings, material)
    assert taken is not None
    assert (taken.sha256, file.stem) == (shipped.sha256, f"strong-{shipped.facts['seed']}")


def test_random_masks(cohort: Cohort, strong: NetworkEvaluator) -> None:
    """Within 0.002 of what the recipe was reported to give."""
    value = random_mask_nll(strong, cohort["validation"])
    assert value == pytest.approx(strong.facts["nll"], abs=1e-6)
    assert value == pytest.approx(0.2973, abs=2e-3)
