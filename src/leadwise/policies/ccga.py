"""Cohort-Conditional Greedy Acquisition: the lead with the largest mean gain in similar training records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.cohort.roles import SCORED
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator
from leadwise.evaluators.scoring import Scorers
from leadwise.leads import lead_index
from leadwise.policies.contract import register_policy
from leadwise.policies.learned import BUDGETS, FORMAT, READINGS, StatesPolicy, StatesSettings, kept_type
from leadwise.policies.observation import Observation
from leadwise.policies.state_network import logits
from leadwise.policies.states import candidate_gains, random_states
from leadwise.registry import Count
from leadwise.store import check_tensors, write_tensors


class CCGASettings(StatesSettings):
    """Settings of CCGA in a plan."""

    neighbours: Count = 200

    @property
    def options(self) -> dict[str, Any]:
        return {"neighbours": self.neighbours}

    def cost(self, sizes: Mapping[str, int]) -> Mapping[str, float]:
        del sizes
        return {f"read {self.target}": READINGS * self.states}

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        scored = max((sizes[role] for role in SCORED if role in sizes), default=0)
        near = min(self.neighbours, self.states)
        return {**super().memory(sizes, labels, length), "neighbours": 220 * near * scored}


@register_policy("ccga")
class CCGA(StatesPolicy):
    """Conditional mean gains of the training role, no network.

    The diagnostic state is the logits of the current probabilities, at the same number of acquired leads. A lead's
    predicted gain is its mean gain in those of the ``neighbours`` nearest training states in which it could be chosen.
    The rest is as for every `StatesPolicy`.
    """

    Settings = CCGASettings
    kind = "ccga"
    scores_are_gains = True
    budget_agnostic = True
    kept = ("first_lead", "name", "states", "neighbours", "budgets", "seed")

    def __init__(
        self,
        target: Evaluator,
        first_lead: Sequence[str],
        state_evaluator: Evaluator | None = None,
        name: str | None = None,
        states: int = 44_000,
        neighbours: int = 200,
        budgets: Sequence[int] = BUDGETS,
        seed: int = 0,
    ) -> None:
        super().__init__(target, first_lead, state_evaluator, name, states, budgets, seed)
        if neighbours < 1:
            raise InputError(f"A mean over {neighbours} neighbours is impossible; take one or more.")
        self.neighbours = neighbours

    def fit(self, train: Records, validation: Records | None = None, memory: Path | None = None) -> "CCGA":
        """Remember training states: their logits, number of leads, and every lead's gain."""
        del validation
        rng = np.random.default_rng([self.seed, 2])
        ranking = [lead_index(lead) for lead in self.first_lead]
        scorers = Scorers(train, memory)
        scorer = scorers.of(self.state_evaluator)  # it refuses what cannot be read, nobody for instance
        states = random_states(train, ranking, self.states, self.budgets, rng)
        seen = scorer.pairs(states.positions, states.masks)
        gains = candidate_gains(scorers.of(self.target), states)
        # as they are kept: 45 bytes a state instead of 144, which decide the same neighbours
        self._remember(logits(seen).astype("<f4"), states.masks.sum(axis=1).astype("<i1"), gains.astype("<f2"))
        return self

    def scores(self, observation: Observation) -> Float64[np.ndarray, "n 12"]:
        """Mean gain of each lead among the nearest training states with as many leads."""
        if observation.probabilities is None:
            raise InputError(f"Policy {self.name} needs a first lead: without probabilities it has no state.")
        near, acquired = logits(observation.probabilities), observation.mask.sum(axis=1)
        scores = np.empty((len(observation), 12))
        for size in np.unique(acquired):
            rows = acquired == size
            scores[rows] = self._mean_gains(int(size), near[rows])
        return scores

    def save(self, path: Path) -> None:
        """Write one safetensors file, settings and the evaluators' hashes included."""
        facts = self._facts() | {"known_gains": int(np.isfinite(self.gains_).sum())}
        tensors = {"logits": self.logits_, "sizes": self.sizes_, "gains": self.gains_}
        write_tensors(path, tensors, FORMAT, facts)

    def _restore(self, tensors: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        types = {"logits": ("<f4", "<f8"), "sizes": ("<i1", "<i8"), "gains": ("<f2", "<f8")}
        shapes = {"logits": ("states", len(self.state_evaluator.labels)), "sizes": ("states",), "gains": ("states", 12)}
        due = {name: (kept_type(tensors, name, *types[name]), shape) for name, shape in shapes.items()}
        check_tensors(tensors, due, undefined=["gains"])
        sizes = tensors["sizes"]
        if not len(sizes) or sizes.min() < 1 or sizes.max() > 11:
            raise ValueError("tensor 'sizes' needs states with 1 to 11 acquired leads")
        # files without this number are of records that have all leads
        if np.isfinite(tensors["gains"]).sum() != facts.get("known_gains", int((12 - sizes).sum())):
            raise ValueError("tensor 'gains' holds NaN for a lead that could come next, or a number for another")
        self._remember(tensors["logits"], sizes, tensors["gains"])

    def _remember(
        self, logits: Float[np.ndarray, "m l"], sizes: Int[np.ndarray, " m"], gains: Float[np.ndarray, "m 12"]
    ) -> None:
        from scipy.spatial import KDTree

        self.logits_, self.sizes_, self.gains_ = logits, sizes, gains
        groups = {int(size): sizes == size for size in np.unique(sizes)}
        exact = gains.astype(np.float64)
        self.trees_ = {size: (KDTree(logits[rows]), exact[rows]) for size, rows in groups.items()}

    def _mean_gains(self, size: int, logits: Float64[np.ndarray, "n l"]) -> Float64[np.ndarray, "n 12"]:
        # a budget beyond those that it was meant for is served by the nearest number of leads that it knows
        tree, gains = self.trees_[min(self.trees_, key=lambda known: (abs(known - size), known))]
        _, index = tree.query(logits, k=min(self.neighbours, len(gains)), workers=-1)
        near = gains[index.reshape(len(logits), -1)]
        known = ~np.isnan(near)
        count = known.sum(axis=1)
        # a lead that no neighbour could still choose is not preferred to any that one could
        return np.where(count > 0, np.where(known, near, 0).sum(axis=1) / np.maximum(count, 1), -1e9)
