"""A recipe is what it says, and nothing else."""

from typing import Any

import pytest
from pydantic import ValidationError

from leadwise.evaluators.masked_resnet.recipe import Recipe


def test_the_default_is_the_recipe_of_the_shipped_weights() -> None:
    assert Recipe().model_dump() == {
        "epochs": 48,
        "batch": 128,
        "learning_rate": 2e-3,
        "weight_decay": 0.05,
        "dropout": 0.3,
        "crop": 500,
        "full_epochs": 8,
        "shift": True,
        "scaling": 0.1,
        "noise": 0.02,
        "mixing": 0.0,
        "averaging": 0.998,
        "norm_batches": 16,
        "validate_every": 4,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": 3},
        {"epochs": 0},
        {"epochs": 2.5},
        {"epochs": "3"},
        {"epochs": True},
        {"batch": 0},
        {"learning_rate": 0.0},
        {"learning_rate": -1e-3},
        {"learning_rate": float("nan")},
        {"weight_decay": -0.1},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"crop": 0},
        {"full_epochs": 0},
        {"shift": 1},
        {"scaling": -1.0},
        {"noise": -1.0},
        {"noise": float("nan")},
        {"mixing": -1.0},
        {"averaging": 1.0},
        {"norm_batches": -1},
        {"validate_every": 0},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Recipe(**wrong)


def test_a_recipe_does_not_change() -> None:
    recipe = Recipe(epochs=3)
    with pytest.raises(ValidationError, match="frozen"):
        recipe.epochs = 4  # type: ignore[misc]
    assert recipe.epochs == 3


def test_it_survives_json() -> None:
    recipe = Recipe(epochs=3, mixing=0.2, shift=False)
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe != Recipe()
