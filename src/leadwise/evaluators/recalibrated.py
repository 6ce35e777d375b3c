"""Another evaluator of the plan with a line fitted to each label's logit, which changes its calibration only."""

from collections.abc import Mapping
from pathlib import Path

from leadwise.errors import PlanError
from leadwise.evaluators.contract import Evaluator, Material, register_evaluator
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.registry import Settings


class RecalibratedSettings(Settings):
    """Settings of a recalibrated evaluator in a plan."""

    of: str
    """The evaluator that is recalibrated."""

    @property
    def evaluators(self) -> list[str]:
        return [self.of]


@register_evaluator("recalibrated")
class Recalibrated:
    """A logistic evaluator whose logit z of each label is replaced by a + s·z, fitted on the validation role."""

    Settings = RecalibratedSettings
    reading = LogisticEvaluator.reading

    @classmethod
    def make(cls, settings: RecalibratedSettings, material: Material) -> LogisticEvaluator:
        """The evaluator that the settings name, recalibrated."""
        evaluator = material.evaluators[settings.of]
        if not isinstance(evaluator, LogisticEvaluator):
            key = f"'evaluators.{material.name}.of'"
            raise PlanError(f"{key} is {settings.of}, but only logistic ones can be recalibrated.")
        return evaluator.recalibrated(material.validation, material.name)

    @classmethod
    def load(cls, path: Path, _evaluators: Mapping[str, Evaluator]) -> LogisticEvaluator:
        """Read the file, which is one of a logistic evaluator: a line in its logit leaves it one."""
        return LogisticEvaluator.load(path)
