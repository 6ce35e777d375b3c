"""Another evaluator with all its logits divided by one number, its temperature."""

import numpy as np

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, Material, SavedEvaluator, evaluator_name, register_evaluator
from leadwise.evaluators.recalibrated import Recalibrated, RecalibratedSettings, answers, with_lines
from leadwise.metrics import Labels, Probabilities

_LARGEST = 100.0
"""Slopes are sought between this and its reciprocal; beyond, no temperature fits."""


@register_evaluator("temperature")
class Temperature(Recalibrated):
    """An evaluator whose logits z are replaced by z / T; T has the lowest NLL on the validation role's frozen masks."""

    @classmethod
    def make(cls, settings: RecalibratedSettings, material: Material) -> SavedEvaluator:
        """The evaluator that the settings name, with the temperature that fits best."""
        return fit_temperature(material.evaluators[settings.of], material.validation, material.name)


def fit_temperature(evaluator: Evaluator, records: Records, name: str) -> SavedEvaluator:
    """The evaluator with its logits divided by the temperature that fits best on ``records`` under the frozen masks."""
    slope = best_slope(*answers(evaluator, records))
    if not 1.01 / _LARGEST < slope < _LARGEST / 1.01:
        raise InputError(
            f"No temperature fits {evaluator_name(evaluator)} on {records.name}; use a role with more records with and "
            "without each label."
        )
    labels = len(evaluator.labels)
    return with_lines(evaluator, name, records, np.zeros(labels), np.full(labels, slope))


def best_slope(labels: Labels, probabilities: Probabilities) -> float:
    """1 / T, the number s for which σ(s · logit p) has the lowest NLL over all records and labels."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logit

    z = logit(np.clip(probabilities, 1e-15, 1 - 1e-15)) * np.where(labels, -1.0, 1.0)

    def loss(log_slope: float) -> float:
        return float(np.logaddexp(0.0, np.exp(log_slope) * z).mean())

    bound = np.log(_LARGEST)
    return float(np.exp(minimize_scalar(loss, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-10}).x))
