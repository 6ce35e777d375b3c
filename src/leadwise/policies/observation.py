"""What a policy may see: acquired leads, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int


@dataclass(frozen=True, eq=False)
class Observation:
    """n records part of the way through their acquisition, all with the same number of leads to go.

    It is built by the rollout, which alone touches signals; whatever was not acquired is zero in it.
    """

    ids: Int[np.ndarray, " n"]
    statistics: Float64[np.ndarray, "n 12 10"]
    """The ten statistics of acquired leads, zero elsewhere."""
    mask: Bool[np.ndarray, "n 12"]
    """Which leads are acquired."""
    available: Bool[np.ndarray, "n 12"]
    """Which leads there are at all."""
    probabilities: Float64[np.ndarray, "n l"] | None
    """What the policy's state evaluator makes of the acquired leads; None without one, or with nothing acquired."""
    remaining: int
    """How many leads are still to be chosen, the next one included."""
    waveforms: Callable[[], Float[np.ndarray, "n 12 t"]]
    """Call it for the acquired waveforms in mV; other leads are zero."""

    @property
    def candidates(self) -> Bool[np.ndarray, "n 12"]:
        """Leads that may be chosen next."""
        return self.available & ~self.mask

    def __len__(self) -> int:
        return len(self.ids)
