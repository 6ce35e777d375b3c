"""Evaluators that were saved, of whatever kind."""

from pathlib import Path
from typing import Any

from leadwise.errors import InputError
from leadwise.evaluators import logistic
from leadwise.evaluators.masked_resnet import evaluator as network
from leadwise.store import read_format


def load_evaluator(path: Path) -> Any:
    """Read any evaluator's file."""
    kinds: dict[str | None, Any] = {
        logistic.FORMAT: logistic.LogisticEvaluator,
        network.FORMAT: network.NetworkEvaluator,
    }
    found = read_format(path)
    if found not in kinds:
        raise InputError(f"{path} is no evaluator of leadwise; it holds '{found}'.")
    return kinds[found].load(path)
