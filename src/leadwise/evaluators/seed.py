"""One network of an evaluator that is trained with several seeds, by itself, whether it was chosen or not."""

from collections.abc import Mapping
from copy import copy
from pathlib import Path

from leadwise.evaluators.contract import Evaluator, Material, SavedEvaluator, register_evaluator
from leadwise.registry import Seed, Settings


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
        """The candidate with this seed, which is in the material in place of the one that was chosen."""
        candidate: SavedEvaluator = copy(material.evaluators[settings.of])  # type: ignore[assignment]
        candidate.name = material.name
        return candidate

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator]) -> SavedEvaluator:
        """Read what the candidate saved."""
        from leadwise.evaluators.saved import load_evaluator

        return load_evaluator(path, evaluators)
