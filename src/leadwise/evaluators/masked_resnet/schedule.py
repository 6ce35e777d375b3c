"""The schedule of a training: which length, learning rate and averaging belong to which epoch and step."""

from dataclasses import dataclass

import numpy as np

from leadwise.evaluators.masked_resnet.recipe import Recipe


@dataclass(frozen=True)
class Schedule:
    """A recipe over so many steps an epoch, on records of so many samples. Epochs and steps count from 0."""

    recipe: Recipe
    steps: int
    samples: int

    def reads_whole_records(self, epoch: int) -> bool:
        """True for the last epochs, which read whole records where others read windows."""
        return epoch >= self.recipe.epochs - self.recipe.full_epochs

    def length(self, epoch: int) -> int:
        """Samples that a record is read with in an epoch."""
        return self.samples if self.reads_whole_records(epoch) else min(self.recipe.crop, self.samples)

    def measures(self, epoch: int) -> bool:
        """True if the averaged weights are measured at the end of an epoch."""
        return self.reads_whole_records(epoch) or (epoch + 1) % self.recipe.validate_every == 0

    def learning_rate(self, done: int) -> float:
        """Learning rate of the next step: up to the peak over the first 30% of all steps, then down to nothing.

        Both ways go along half a cosine. With torch's `OneCycleLR` the peak comes a step earlier and the end lies above
        nothing: trainings would end with other weights.
        """
        peak, total = self.recipe.learning_rate, self.recipe.epochs * self.steps
        rise = 0.3 * total
        if done < rise:
            return peak * (1 + 24 * (1 - np.cos(np.pi * done / rise)) / 2) / 25
        return peak * (1 + np.cos(np.pi * (done - rise) / (total - rise))) / 2

    def decay(self, done: int) -> float:
        """Share of the averaged weights that the next step leaves; less of a young average, which is mostly noise."""
        return min(self.recipe.averaging, (1 + done) / (10 + done))
