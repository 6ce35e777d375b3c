"""The one standardisation: of stored µV in training, of mV in use."""

import numpy as np

from leadwise.evaluators.masked_resnet.standardisation import lead_scales, standardise
from trainings import TRAIN


def test_microvolts_and_millivolts_give_the_same() -> None:
    mean, scale = lead_scales(TRAIN)
    z = standardise(TRAIN.signals[:], mean, scale, per_millivolt=1000)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z, standardise(TRAIN.signals.millivolts(slice(None)), mean, scale), rtol=0, atol=1e-4)
    np.testing.assert_allclose(z, (TRAIN.signals[:] / 1000 - mean[:, None]) / scale[:, None], rtol=0, atol=1e-4)


def test_what_is_there_becomes_mean_0_and_deviation_1() -> None:
    z = standardise(TRAIN.signals[:], *lead_scales(TRAIN), per_millivolt=1000)
    for lead in range(12):
        there = z[TRAIN.available[:, lead], lead].astype(float)
        assert abs(there.mean()) < 1e-4
        assert abs(there.std() - 1) < 1e-4
