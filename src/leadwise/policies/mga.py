"""Myopic Gain Acquisition: predict what each lead would gain next, take the largest."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from leadwise.evaluators.scoring import Scorer
from leadwise.policies.contract import register_policy
from leadwise.policies.learned import LearnedPolicy
from leadwise.policies.states import States, candidate_gains

if TYPE_CHECKING:
    import torch


@register_policy("mga")
class MGA(LearnedPolicy):
    """Regresses the one-step reduction in NLL under ``target`` for every lead that could come next; greedy.

    It does not know the budget, so its allocations for growing k are nested. With the strong evaluator as its target it
    is Strong-MGA.
    """

    kind = "mga"
    scores_are_gains = True
    budget_agnostic = True

    def _targets(self, scorer: Scorer, states: States, *_: object) -> Float64[np.ndarray, "m 12"]:
        return candidate_gains(scorer, states)

    def _loss(self, outputs: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
        """Mean squared error over the leads that could come next."""
        known = ~targets.isnan()
        return ((outputs - targets)[known] ** 2).mean()
