"""Augmentation: batches of training records, each time anew at random."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float32, Int, Int16

from leadwise.cohort.cohort import Records
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.standardisation import lead_scales, standardise
from leadwise.evaluators.masks import training_masks


class AugmentedRecords:
    """Training records as a step sees them: standardised, changed at random as the recipe says, and masked.

    Half of the masks are random and half come from ``allocations``, the masks that each policy chose, if there are any.
    """

    def __init__(
        self, records: Records, recipe: Recipe, allocations: Sequence[Bool[np.ndarray, "budgets n 12"]]
    ) -> None:
        self.recipe, self.allocations, self.signals = recipe, allocations, records.signals
        self.available, self.labels = records.available, records.labels.astype(np.float32)
        self.mean, self.scale = lead_scales(records)

    def batch(
        self, rows: Int[np.ndarray, " b"], length: int, rng: np.random.Generator
    ) -> tuple[Float32[np.ndarray, "b 12 s"], Float32[np.ndarray, "b 12"], Float32[np.ndarray, "b l"]]:
        """Augmented, standardised, masked signals; masks; labels."""
        recipe, n = self.recipe, len(rows)
        x = standardise(self.windows(rows, length, rng), self.mean, self.scale, per_millivolt=1000)
        x *= np.exp(recipe.scaling * rng.standard_normal((n, 1, 1), dtype=np.float32))
        x += recipe.noise * rng.standard_normal(x.shape, dtype=np.float32)
        y = self.labels[rows]
        if recipe.mixing:
            share = rng.beta(recipe.mixing, recipe.mixing, n).astype(np.float32)
            share, other = np.maximum(share, 1 - share), rng.permutation(n)
            x = share[:, None, None] * x + (1 - share)[:, None, None] * x[other]
            y = share[:, None] * y + (1 - share)[:, None] * y[other]
        masks = training_masks(rows, self.available, self.allocations, rng)[0].astype(np.float32)
        x *= masks[..., None]
        return x, masks, y

    def windows(
        self, rows: Int[np.ndarray, " b"], length: int, rng: np.random.Generator
    ) -> Int16[np.ndarray, "b 12 s"]:
        """A random window of each record, or the whole record rotated."""
        signals = self.signals[rows]
        if length < signals.shape[2]:
            starts = rng.integers(signals.shape[2] - length + 1, size=len(rows))
            return np.stack([one[:, start : start + length] for one, start in zip(signals, starts, strict=True)])
        if not self.recipe.shift:
            return signals
        shifts = rng.integers(length, size=len(rows))
        return np.stack([np.roll(one, shift, axis=1) for one, shift in zip(signals, shifts, strict=True)])
