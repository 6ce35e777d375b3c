"""Random masks of exact cardinality, which evaluators are trained and compared on."""

import numpy as np
from jaxtyping import Bool

CARDINALITIES = (1, 2, 3, 4, 6, 8, 12)


def random_masks(n: int, rng: np.random.Generator) -> Bool[np.ndarray, "n 12"]:
    """k uniform over `CARDINALITIES`, then uniform over the lead sets of that size, for each of n records."""
    k = rng.choice(CARDINALITIES, n)
    return rng.random((n, 12)).argsort(1).argsort(1) < k[:, None]


def frozen_masks(n: int) -> Bool[np.ndarray, "n 12"]:
    """The one draw on which epochs, recipes and seeds are compared: a mask for each record of a fold in turn."""
    return random_masks(n, np.random.default_rng(7))
