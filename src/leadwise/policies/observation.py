"""Observations of a policy: acquired leads, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped


@dataclass(frozen=True, eq=False, repr=False)
class Observation:
    """n records part of the way through their acquisition, all with the same number of leads to go.

    It is built by the rollout, which alone touches signals; whatever was not acquired is zero in it. Its arrays are
    copies that cannot be made writeable, so nothing in it can be widened.
    """

    statistics: Float64[np.ndarray, "n 12 10"]
    """The ten statistics of acquired leads, zero elsewhere."""
    mask: Bool[np.ndarray, "n 12"]
    """Mask of the acquired leads."""
    available: Bool[np.ndarray, "n 12"]
    """Mask of the leads that the records have."""
    probabilities: Float64[np.ndarray, "n l"] | None
    """Probabilities of the policy's state evaluator with the acquired leads; None without either."""
    remaining: int
    """Number of leads still to be chosen, the next one included."""
    waveforms: Callable[[], Float[np.ndarray, "n 12 t"]]
    """Call it for the acquired waveforms in mV; other leads are zero."""
    ids: Int[np.ndarray, " n"] | None = None
    """Ids of the records, only for a policy with ``needs_ids = True``: they are nothing to learn from."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, unchangeable(value))

    @property
    def candidates(self) -> Bool[np.ndarray, "n 12"]:
        """Leads that may be chosen next."""
        return self.available & ~self.mask

    def __repr__(self) -> str:
        acquired = sorted(set(self.mask.sum(axis=1).tolist()))
        leads = " to ".join(map(str, dict.fromkeys([acquired[0], acquired[-1]]))) if acquired else "0"
        return f"<Observation of {len(self)} records: {leads} leads acquired, {self.remaining} to go>"

    def __len__(self) -> int:
        return len(self.mask)


def unchangeable(array: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """A copy that cannot be written to: unlike ``flags.writeable``, which its owner may set again, bytes stay bytes."""
    return np.ndarray(array.shape, array.dtype, np.ascontiguousarray(array).tobytes())
