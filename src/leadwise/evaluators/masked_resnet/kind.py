"""The kind of evaluator that is a trained network."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from leadwise.cohort.cohort import Records
from leadwise.errors import PlanError
from leadwise.evaluators.contract import Material, register_evaluator
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator, shipped_networks
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.sizes import activation_bytes, network_parameters
from leadwise.registry import Count, Seed, Settings, Trials

if TYPE_CHECKING:
    from leadwise.evaluators.masked_resnet.training import Training


class MaskedResNetSettings(Settings):
    """Settings of a masked residual network in a plan; of several seeds the selection role picks one."""

    seeds: Annotated[list[Seed], Field(min_length=1)] = [20060928]
    widths: Annotated[list[Count], Field(min_length=4, max_length=4)] = [64, 96, 160, 256]
    recipe: Recipe = Recipe()
    masks_of: list[str] = []
    """Policies whose allocations make up half of the training masks, in equal parts; the rest is random."""

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds: list[int]) -> list[int]:
        for seed in seeds:
            if seeds.count(seed) > 1:
                raise PlanError(f"'seeds' names {seed} twice; give every network a seed of its own.")
        return seeds

    @property
    def policies(self) -> list[str]:
        return self.masks_of

    def cost(self, sizes: Mapping[str, int]) -> Mapping[str, float]:
        recipe = self.recipe
        steps, full = sizes["train"] // recipe.batch, min(recipe.full_epochs, recipe.epochs)
        crops = recipe.epochs - full
        measured = crops // recipe.validate_every + full  # epochs are compared by readings of the validation role
        reading = {MaskedResNet.reading: measured * sizes["validation"]}
        return {"crop step": crops * steps, "whole step": full * steps} | reading

    def disk(self) -> float:
        return 36.0 * network_parameters(self.widths, labels=5)  # weights, and two checkpoints on the way

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        recipe = self.recipe
        samples = length if recipe.full_epochs else min(recipe.crop, length)
        batch = min(recipe.batch, sizes.get("train", recipe.batch))
        # weights, gradients, two moments, their average, and what is measured, in float32
        needs = {"widths": 24.0 * network_parameters(self.widths, labels), "recipe.epochs": 1_000.0 * recipe.epochs}
        return needs | {"recipe.batch": float(batch * activation_bytes(self.widths, samples))}


@register_evaluator("masked-resnet")
class MaskedResNet:
    """A residual network over time that is told which leads it reads, trained under masks."""

    Settings = MaskedResNetSettings
    reading = "network reading"

    @classmethod
    def make(cls, settings: MaskedResNetSettings, material: Material) -> NetworkEvaluator:
        """The network of the first seed; one that ships, if it was trained just so, on just these records."""
        return cls.shipped(settings, material) or cls._training(settings, material).run()

    @classmethod
    def shipped(cls, settings: MaskedResNetSettings, material: Material) -> NetworkEvaluator | None:
        """The network that ships, if it was trained just as the settings say, on just these records."""
        training = cls._training(settings, material)
        return next((network for network in shipped_networks() if training.made(network)), None)

    @classmethod
    def _training(cls, settings: MaskedResNetSettings, material: Material) -> "Training":
        from leadwise.evaluators.masked_resnet.training import Training

        given: dict[str, Any] = {name: getattr(material, name) for name in ("name", "allocations", "directory")}
        given |= {"seed": settings.seeds[0], "recipe": settings.recipe, "widths": tuple(settings.widths)}
        return Training(material.train, material.validation, **given)

    @classmethod
    def load(cls, path: Path, _evaluators: object = None) -> NetworkEvaluator:
        """Read what a network saved."""
        return NetworkEvaluator.load(path)

    @classmethod
    def trials(cls, settings: MaskedResNetSettings, train: Records, validation: Records) -> Trials:
        """Steps of training on crops and on whole records, and readings."""
        import numpy as np

        from leadwise.evaluators.devices import keep_freed_memory
        from leadwise.evaluators.masked_resnet.training import Training
        from leadwise.evaluators.masks import frozen_masks
        from leadwise.evaluators.scoring import score

        keep_freed_memory()  # as a training does
        # batch statistics of its own would take longer than all the rest, and change no time of reading
        recipe = settings.recipe.model_copy(update={"norm_batches": 0, "batch": min(settings.recipe.batch, len(train))})
        training = Training(train, validation, recipe=recipe, widths=tuple(settings.widths))
        rows = np.arange(-(-recipe.batch // 4))  # a part of a batch takes its part of the time
        strong, masks = training.evaluator().on("auto"), frozen_masks(len(train))

        part = len(rows) / recipe.batch

        def step(epoch: int) -> None:
            training.epoch = epoch
            training.learn(rows)

        steps: Trials = {"crop step": (part, lambda: step(0)), "whole step": (part, lambda: step(recipe.epochs - 1))}
        return {**steps, cls.reading: (len(train), lambda: score(strong, train, masks))}
