"""What a step sees of the training records: windows, rotations, changed amplitudes, noise, blends and masks."""

import numpy as np
import pytest

from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.training import Training
from trainings import LENGTH, TRAIN, make_training

BARE = Recipe(
    epochs=3, batch=8, crop=41, full_epochs=1, scaling=0.0, noise=0.0, mixing=0.0, shift=True, validate_every=9
)


def test_windows_are_windows_of_the_record() -> None:
    training, rows = make_training(recipe=BARE), np.arange(20)
    starts = set()
    for seed in range(10):
        windows = training.augmented.windows(rows, 41, np.random.default_rng(seed))
        assert windows.shape == (20, 12, 41)
        for record, window in zip(TRAIN.signals[rows], windows, strict=True):
            found = [at for at in range(LENGTH - 40) if np.array_equal(record[:, at : at + 41], window)]
            assert len(found) == 1
            starts |= set(found)
    assert {0, LENGTH - 41} <= starts, "from the first to the last"
    assert len(starts) > 40


def test_whole_records_are_rotated() -> None:
    training, rows = make_training(recipe=BARE), np.arange(30)
    shifts = set()
    for seed in range(10):
        for record, rotated in zip(
            TRAIN.signals[rows], training.augmented.windows(rows, LENGTH, np.random.default_rng(seed)), strict=True
        ):
            found = [by for by in range(LENGTH) if np.array_equal(np.roll(record, by, axis=1), rotated)]
            assert len(found) == 1
            shifts |= set(found)
    assert len(shifts) > 60
    still = make_training(recipe=BARE.model_copy(update={"shift": False}))
    np.testing.assert_array_equal(still.augmented.windows(rows, LENGTH, np.random.default_rng(0)), TRAIN.signals[rows])


def plain_batch(training: Training, rows: np.ndarray) -> np.ndarray:
    return (TRAIN.signals[rows] / 1000 - training.augmented.mean[:, None]) / training.augmented.scale[:, None]


def test_a_batch_without_changes_is_what_the_evaluator_will_read() -> None:
    training, rows = make_training(recipe=BARE.model_copy(update={"shift": False})), np.arange(3, 19)
    x, masks, y = training.augmented.batch(rows, LENGTH, np.random.default_rng(0))
    np.testing.assert_allclose(x, plain_batch(training, rows) * masks[..., None], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(y, TRAIN.labels[rows])
    assert set(np.unique(masks)) == {0, 1}
    read = training.evaluator().standardised(TRAIN.signals.millivolts(rows)) * masks[..., None]
    np.testing.assert_allclose(x, read, rtol=1e-4, atol=1e-5)


def test_scaling_and_noise() -> None:
    rows = np.repeat(np.arange(30), 20)
    settings = {"scaling": 0.3, "noise": 0.05, "shift": False}
    training = make_training(recipe=BARE.model_copy(update=settings), allocations={})
    x, masks, _ = training.augmented.batch(rows, LENGTH, np.random.default_rng(0))
    seen = plain_batch(training, rows) * masks[..., None]
    factor = (x * seen).sum(axis=(1, 2)) / (seen**2).sum(axis=(1, 2))  # one for each record, by least squares
    assert np.log(factor).mean() == pytest.approx(0, abs=0.05)
    assert np.log(factor).std() == pytest.approx(0.3, rel=0.1)
    assert len(set(factor.round(4))) > 550
    noise = (x - factor[:, None, None] * seen)[masks > 0]
    assert noise.std() == pytest.approx(0.05, rel=0.05)
    assert not x[masks == 0].any(), "an unobserved lead has no noise either"


def test_mixing_blends_records_with_their_labels() -> None:
    training = make_training(recipe=BARE.model_copy(update={"mixing": 0.5, "shift": False}), allocations={})
    rows = np.arange(24)
    x, masks, y = training.augmented.batch(rows, LENGTH, np.random.default_rng(1))
    seen, labels = plain_batch(training, rows), TRAIN.labels[rows].astype(float)
    partners = []
    for i in range(24):
        errors = []
        for j in range(24):
            a, b = seen[i] * masks[i][:, None], seen[j] * masks[i][:, None]
            share = 1.0 if i == j else ((x[i] - b) * (a - b)).sum() / ((a - b) ** 2).sum()
            same = np.abs(share * a + (1 - share) * b - x[i]).max() < 1e-3
            same &= np.abs(share * labels[i] + (1 - share) * labels[j] - y[i]).max() < 1e-3
            errors.append(same and share >= 0.5 - 1e-3)
        assert any(errors), "some record explains both, with the smaller share"
        partners.append(int(np.argmax(errors)))
    assert len(set(partners)) > 8
