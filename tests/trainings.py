"""Small trainings for tests, on noise, with everything random switched on."""

from pathlib import Path
from typing import Any

import numpy as np

from leadwise.cohort.cohort import Cohort
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.training import Training

LENGTH, WIDTHS = 96, (4, 4, 8, 8)
RECIPE = Recipe(epochs=3, batch=8, crop=41, full_epochs=1, mixing=0.4, averaging=0.9, norm_batches=2, validate_every=2)
"""Everything random is switched on; epochs 2 and 3 are measured."""


def make_cohort(n: int = 50, seed: int = 0) -> Cohort:
    """Coloured noise whose offsets hint at the labels; a tenth of the leads is not there."""
    rng = np.random.default_rng(seed)
    labels = rng.random((n, 3)) < 0.5
    shift = 300 * labels @ rng.normal(size=(3, 12)) + 100 * rng.normal(size=12)
    signals = rng.normal(0, 1, (n, 12, LENGTH)).cumsum(axis=2) * rng.uniform(10, 80, (12, 1)) + shift[..., None]
    return Cohort(
        source="noise",
        ids=np.arange(n) + 101,
        patients=np.arange(n),
        folds=np.arange(n) % 10 + 1,
        age=np.full(n, 50.0),
        sex=np.zeros(n, dtype=np.int64),
        quality=np.zeros((n, 6), dtype=bool),
        missing=np.where(rng.random((n, 12)) < 0.1, LENGTH, 0),
        label_names=("A", "B", "C"),
        sampling_rate=100,
        _signals=signals.round().astype(np.int16),
        _labels=labels,
    )


COHORT = make_cohort()
TRAIN, VALIDATION = COHORT["train"], COHORT["validation"]


def some_allocations(seed: int = 5) -> dict[str, np.ndarray]:
    """Masks of two policies at three budgets; where a record has all leads, never of a size that a random mask has."""
    rng = np.random.default_rng(seed)
    return {
        policy: np.stack([rng.random((len(TRAIN), 12)).argsort(1).argsort(1) < k for k in sizes]) & TRAIN.available
        for policy, sizes in (("mga", (5, 7, 9)), ("ccga", (5, 10, 11)))
    }


def make_training(directory: Path | None = None, **other: Any) -> Training:
    settings = {"recipe": RECIPE, "widths": WIDTHS, "seed": 3, "allocations": some_allocations(), "device": "cpu"}
    return Training(TRAIN, VALIDATION, directory=directory, **settings | other)
