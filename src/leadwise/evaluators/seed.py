"""One network of an evaluator that is trained with several seeds, by itself, whether it was chosen or not."""

from collections.abc import Mapping
from copy import copy
from pathlib import Path

import numpy as np
from jaxtyping import Float

from leadwise.evaluators.contract import Evaluator, Material, SavedEvaluator, evaluator_sha256, register_evaluator
from leadwise.evaluators.derived import DerivedEvaluator, find_source
from leadwise.registry import Seed, Settings
from leadwise.store import read_facts, whole_file, write_tensors

FORMAT = "leadwise chosen seed 1"


class SeedSettings(Settings):
    """Settings of one network of several in a plan."""

    of: str
    """The evaluator that is trained with several seeds."""
    seed: Seed
    """One of them, or another that the selection role does not choose among."""

    @property
    def evaluators(self) -> list[str]:
        return [self.of]

    @property
    def candidate(self) -> tuple[str, int]:
        return self.of, self.seed


@register_evaluator("seed")
class OneSeed:
    """The evaluator that another one of the plan would be, had this seed been chosen."""

    Settings = SeedSettings

    @classmethod
    def make(cls, settings: SeedSettings, material: Material) -> SavedEvaluator:
        """The candidate with this seed; where it is the one that was chosen, its weights are not kept twice."""
        chosen, candidate = material.evaluators[settings.of], material.candidate
        assert candidate is not None  # the settings name one
        if evaluator_sha256(candidate) == evaluator_sha256(chosen):
            return ChosenSeed(chosen, material.name)
        renamed: SavedEvaluator = copy(candidate)
        renamed.name = material.name
        return renamed

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator]) -> SavedEvaluator:
        """Read what was saved."""
        from leadwise.evaluators.saved import load_evaluator

        facts = read_facts(path)
        if facts.get("format") != FORMAT:
            return load_evaluator(path, evaluators)
        with whole_file(path, "chosen seed"):
            return ChosenSeed(find_source(facts["of"], evaluators, path), facts["name"])


class ChosenSeed(DerivedEvaluator):
    """The chosen evaluator under another name."""

    @property
    def sha256(self) -> str:
        """Hash of the source's weights."""
        return str(evaluator_sha256(self.source))

    def derive(self, probabilities: Float[np.ndarray, "*many l"]) -> Float[np.ndarray, "*many l"]:
        """The source's own."""
        return probabilities

    def save(self, path: Path) -> None:
        """Write a file without weights, which names the source."""
        write_tensors(path, {}, FORMAT, {"kind": "seed", "name": self.name, "of": self.source_facts()})
