"""A control: random leads for each record, which are as diverse as leads can be and know nothing of the patient."""

from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt64

from leadwise.errors import InputError
from leadwise.policies.contract import Material, register_policy
from leadwise.policies.learned import FORMAT, read_policy
from leadwise.policies.observation import Observation
from leadwise.registry import Seed, Settings
from leadwise.store import check_tensors, whole_file, write_tensors


class RandomSubsetSettings(Settings):
    """Settings of random subsets in a plan."""

    seed: Seed = 0


@register_policy("random-subset")
class RandomSubset:
    """Random leads for each record, the same for the same seed whatever else is in the batch.

    Every record draws one random key a lead from its id and the seed; the smallest key that can be chosen comes next.
    """

    Settings = RandomSubsetSettings
    kind = "random-subset"
    needs_ids = True
    first_lead = None
    state_evaluator = None
    target = None
    scores_are_gains = False
    budget_agnostic = True

    def __init__(self, seed: int = 0, name: str = "random-subset") -> None:
        if not (isinstance(seed, int) and 0 <= seed < 2**64):
            raise InputError(f"The seed of random leads cannot be {seed}; give a whole number from 0 to 2^64 − 1.")
        self.seed, self.name = seed, name

    @classmethod
    def make(cls, settings: RandomSubsetSettings, material: Material) -> "RandomSubset":
        """There is nothing to learn."""
        return cls(settings.seed, material.name)

    def __repr__(self) -> str:
        return f"<RandomSubset {self.name}: seed {self.seed}>"

    def choose(self, observation: Observation) -> Int[np.ndarray, " n"]:
        """The lead with the smallest key among those that can be chosen."""
        assert observation.ids is not None  # needs_ids says so
        record = _mix(observation.ids.astype(np.uint64) + _mix(np.array([self.seed], dtype=np.uint64)))
        keys = _mix(record[:, None] + np.arange(12, dtype=np.uint64))
        return np.where(observation.candidates, keys, np.uint64(2**64 - 1)).argmin(axis=1)

    def save(self, path: Path) -> None:
        """Write one safetensors file, which holds nothing but settings."""
        write_tensors(path, {}, FORMAT, {"kind": self.kind, "settings": {"seed": self.seed, "name": self.name}})

    @classmethod
    def load(cls, path: Path, _evaluators: object = None, _policies: object = None) -> "RandomSubset":
        """Read what `save` wrote."""
        with whole_file(path, "policy"):
            tensors, facts = read_policy(path, cls.kind)
            check_tensors(tensors, {})
            return cls(**facts["settings"])


def _mix(x: UInt64[np.ndarray, "..."]) -> UInt64[np.ndarray, "..."]:
    """SplitMix64: well-mixed bits for any counter. NumPy's generators would need one object for each record."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
