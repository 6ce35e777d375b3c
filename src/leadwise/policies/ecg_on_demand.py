"""ECG-on-Demand: rank the leads by what they are worth to the end of the budget."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.evaluators.contract import Evaluator
from leadwise.evaluators.scoring import Scorer
from leadwise.policies.contract import register_policy
from leadwise.policies.learned import LearnedPolicy
from leadwise.policies.observation import Observation
from leadwise.policies.states import States, candidate_gains

if TYPE_CHECKING:
    import torch


@register_policy("ecg-on-demand")
class ECGOnDemand(LearnedPolicy):
    """Scores the leads that could come next from acquired statistics, mask, current probabilities and remaining budget.

    A lead's worth with b leads to go is the reduction in NLL that it brings together with the b − 1 leads that would
    fill the budget: random ones in the first round, in the second those that the policy itself then scored highest.
    Training is listwise (ListNet): with worths u and scores s, it minimises the cross entropy
    −Σ_l softmax(u / τ)_l log softmax(s)_l over the leads that could come next.

    - ``temperature``: τ, in units of the deviation of the worths;
    - ``redundancy``: λ. A candidate's score is lowered by λ times its largest absolute correlation, over the training
      role, with an acquired lead. The study's value is 0;
    - ``others``: as for every `LearnedPolicy`.
    """

    kind = "ecg-on-demand"
    scores_are_gains = False
    budget_agnostic = False

    def __init__(
        self,
        target: Evaluator,
        first_lead: Sequence[str],
        temperature: float = 1.0,
        redundancy: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(target, first_lead, **others)
        self.temperature, self.redundancy = temperature, redundancy
        self.correlation_ = np.zeros((12, 12))

    def scores(self, observation: Observation) -> Float64[np.ndarray, "n 12"]:
        if not self.redundancy:
            return super().scores(observation)
        nearest = (self.correlation_ * observation.mask[:, None, :]).max(axis=2)
        return super().scores(observation) - self.redundancy * nearest

    def _prepare(self, train: Records) -> None:
        if self.redundancy:
            self.correlation_ = lead_correlation(train)

    def _targets(
        self, scorer: Scorer, states: States, inputs: Float64[np.ndarray, "m d"], number: int, rng: np.random.Generator
    ) -> Float64[np.ndarray, "m 12"]:
        preference = rng.random((len(states), 12)) if number == 0 else self.network(inputs)
        candidates = scorer.records.available[states.positions] & ~states.masks
        return candidate_gains(scorer, states, completions(preference, candidates, states.remaining - 1))

    def _loss(self, outputs: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
        """ListNet: cross entropy of the two distributions over the leads that could come next."""
        known, low = ~targets.isnan(), -1e9
        wanted = (targets.nan_to_num() / self.temperature).masked_fill(~known, low).softmax(dim=1)
        return -(wanted * outputs.masked_fill(~known, low).log_softmax(dim=1)).sum(dim=1).mean()

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"temperature": self.temperature, "redundancy": self.redundancy}

    def _tensors(self) -> dict[str, np.ndarray]:
        return {"correlation": self.correlation_}

    def _take_tensors(self, tensors: dict[str, np.ndarray]) -> None:
        self.correlation_ = tensors["correlation"]


def completions(
    preference: Float64[np.ndarray, "m 12"], candidates: Bool[np.ndarray, "m 12"], further: Int[np.ndarray, " m"]
) -> Bool[np.ndarray, "m 12 12"]:
    """For each candidate lead, the ``further`` most preferred of the other candidates, (m, candidate, 12).

    >>> completions(np.array([[3.0, 2, 1] + [0] * 9]), np.ones((1, 12), bool), np.array([1]))[0, :2, :3].astype(int)
    array([[0, 1, 0],
           [1, 0, 0]])
    """
    order = np.where(candidates, -preference, np.inf).argsort(axis=1, kind="stable")
    rank = order.argsort(axis=1, kind="stable")
    # without the candidate itself, whoever stands behind it moves up by one
    place = rank[:, None, :] - (rank[:, None, :] > rank[:, :, None])
    return (place < further[:, None, None]) & candidates[:, None, :] & ~np.eye(12, dtype=bool)


def lead_correlation(records: Records) -> Float64[np.ndarray, "12 12"]:
    """Absolute correlation of every two leads, over all samples of the records that have both, 0 on the diagonal."""
    product, total, square, count = (np.zeros((12, 12)) for _ in range(4))
    available = records.available.astype(np.float64)
    for part, chunk in records.signals.chunks(256):
        has = available[part]
        x = chunk * has[..., None]
        product += np.einsum("nit,njt->ij", x, x, optimize=True)
        total += x.sum(axis=2).T @ has  # of lead i, over the records that have lead j too
        square += (x**2).sum(axis=2).T @ has
        count += has.T @ has * x.shape[2]
    count = np.maximum(count, 1)
    mean, spread = total / count, np.sqrt(np.maximum(square / count - (total / count) ** 2, 1e-12))
    return np.abs((product / count - mean * mean.T) / (spread * spread.T)) * (1 - np.eye(12))
