"""Tiny networks for tests: nothing in them is what a network begins with, and no two leads are standardised alike."""

from typing import Any

import numpy as np
import torch
from torch import nn

from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator, half_precision
from leadwise.evaluators.masked_resnet.network import MaskedResNet1D

LABELS = ("CD", "HYP", "MI", "NORM", "STTC")
WIDTHS = (4, 4, 8, 8)


def tiny_network(widths: tuple[int, ...] = WIDTHS, labels: int = len(LABELS), seed: int = 0) -> MaskedResNet1D:
    """Weights and batch statistics are all different from those that a network begins with."""
    torch.manual_seed(seed)
    network = MaskedResNet1D(labels, widths)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d | nn.LayerNorm):
            nn.init.normal_(layer.weight, 1, 0.3)
            nn.init.normal_(layer.bias, 0, 0.3)
        if isinstance(layer, nn.BatchNorm2d):
            assert layer.running_mean is not None
            assert layer.running_var is not None
            nn.init.normal_(layer.running_mean, 0, 0.3)
            nn.init.uniform_(layer.running_var, 0.3, 2)
    return network


def tiny_evaluator(seed: int = 0, **other: Any) -> NetworkEvaluator:
    """An evaluator around such a network."""
    rng = np.random.default_rng(seed)
    settings: dict[str, Any] = {
        "name": "tiny",
        "labels": LABELS,
        "sampling_rate": 100,
        "widths": WIDTHS,
        "mean": rng.normal(0, 0.1, 12),
        "scale": rng.uniform(0.1, 0.4, 12),
        "weights": half_precision("tiny", tiny_network(seed=seed)),
        "facts": {"epoch": 3, "nll": 0.3, "recipe": {"epochs": 4}},
        "engine": "torch",
    }
    return NetworkEvaluator(**settings | other)
