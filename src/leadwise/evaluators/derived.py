"""Evaluators whose answers follow from those of another one, their source, so that nothing is read twice."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, evaluator_name, evaluator_sha256


class DerivedEvaluator(ABC):
    """An evaluator that answers with what it derives from its source's answers about the same records and leads."""

    def __init__(self, source: Evaluator, name: str) -> None:
        self.source, self.name = source, name
        self.sampling_rate, self.length = getattr(source, "sampling_rate", None), getattr(source, "length", None)

    @property
    def labels(self) -> Sequence[str]:
        """Those of the source."""
        return self.source.labels

    def probabilities(
        self, signals: Float[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]
    ) -> Float[np.ndarray, "n l"]:
        """Probabilities from waveforms in mV."""
        return self.derive(np.asarray(self.source.probabilities(signals, masks)))

    @abstractmethod
    def derive(self, probabilities: Float[np.ndarray, "*many l"]) -> Float[np.ndarray, "*many l"]:
        """Its own probabilities, where these are the source's."""

    def source_facts(self) -> dict[str, str | None]:
        """Name and hash of the source, for a file."""
        return {"name": evaluator_name(self.source), "sha256": evaluator_sha256(self.source)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: of {evaluator_name(self.source)}>"


def find_source(facts: Mapping[str, Any], evaluators: Mapping[str, Evaluator], path: Path) -> Evaluator:
    """The evaluator that a file names as its source; raises unless it is there, with the same hash."""
    name = facts["name"]
    if name not in evaluators:
        others = ", ".join(evaluators) or "none"
        raise InputError(f"{path} needs '{name}', which is not here; there are {others}.")
    if evaluator_sha256(evaluators[name]) != facts["sha256"]:
        raise InputError(f"{path} was made of another evaluator '{name}' than this one; make it again.")
    return evaluators[name]
