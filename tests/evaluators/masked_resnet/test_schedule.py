"""Lengths, learning rates and measurements, epoch by epoch and step by step."""

import numpy as np
import pytest
import torch

from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.schedule import Schedule

LENGTH = 96


@pytest.mark.parametrize(
    ("recipe", "lengths"),
    [
        (Recipe(epochs=4, crop=41, full_epochs=2), [41, 41, LENGTH, LENGTH]),
        (Recipe(epochs=2, crop=500, full_epochs=1), [LENGTH, LENGTH]),
        (Recipe(epochs=2, crop=41, full_epochs=9), [LENGTH, LENGTH]),
    ],
)
def test_lengths_of_the_epochs(recipe: Recipe, lengths: list[int]) -> None:
    assert [Schedule(recipe, 3, LENGTH).length(epoch) for epoch in range(recipe.epochs)] == lengths


@pytest.mark.parametrize(
    ("every", "full", "measured"), [(2, 1, [1, 3, 4]), (4, 1, [3, 4]), (9, 2, [3, 4]), (1, 1, [0, 1, 2, 3, 4])]
)
def test_epochs_that_are_measured(every: int, full: int, measured: list[int]) -> None:
    """Those of whole records, and every so-manieth."""
    schedule = Schedule(Recipe(epochs=5, full_epochs=full, validate_every=every), 3, LENGTH)
    assert [epoch for epoch in range(5) if schedule.measures(epoch)] == measured


def test_the_learning_rate_is_one_cycle() -> None:
    """As torch has it, which counts from step to step where we count steps, and stops just short of nothing."""
    schedule, total = Schedule(Recipe(epochs=100, learning_rate=2e-3), 3, LENGTH), 300
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=total + 1, cycle_momentum=False)
    ours, theirs = [], []
    for done in range(total + 1):
        ours.append(schedule.learning_rate(done))
        theirs.append(cycle.get_last_lr()[0])
        optimiser.step()
        if done < total:
            cycle.step()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-3 * 0.015)
    assert ours[0] == pytest.approx(2e-3 / 25, rel=1e-12)
    assert ours[90] == max(ours) == pytest.approx(2e-3, rel=1e-12)
    assert ours[total] == 0
    assert (np.diff(ours[:91]) > 0).all()
    assert (np.diff(ours[90:]) < 0).all()


def test_a_young_average_follows_quickly() -> None:
    schedule = Schedule(Recipe(averaging=0.9), 3, LENGTH)
    assert [schedule.decay(done) for done in (0, 1, 8)] == [0.1, 2 / 11, 0.5]
    assert schedule.decay(10**6) == 0.9
