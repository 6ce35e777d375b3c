"""Another evaluator with a line fitted to each label's logit, which changes its calibration and nothing else."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float64

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import (
    Evaluator,
    Material,
    SavedEvaluator,
    evaluator_name,
    evaluator_sha256,
    register_evaluator,
)
from leadwise.evaluators.derived import DerivedEvaluator, find_source
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.scoring import score
from leadwise.metrics import Labels, Probabilities, calibration_line
from leadwise.registry import Settings
from leadwise.store import check_tensors, read_facts, read_tensors, whole_file, write_tensors

FORMAT = "leadwise recalibrated evaluator 1"
_SMALLEST = 1e-15
"""Probabilities nearer to 0 or 1 have a logit as if they were so far away."""


class RecalibratedSettings(Settings):
    """Settings of a recalibrated evaluator in a plan."""

    of: str
    """The evaluator that is recalibrated."""

    @property
    def evaluators(self) -> list[str]:
        return [self.of]


@register_evaluator("recalibrated")
class Recalibrated:
    """An evaluator whose logit z of each label is replaced by a + s·z, fitted on the validation role."""

    Settings = RecalibratedSettings

    @classmethod
    def make(cls, settings: RecalibratedSettings, material: Material) -> SavedEvaluator:
        """The evaluator that the settings name, recalibrated."""
        return recalibrate(material.evaluators[settings.of], material.validation, material.name)

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator]) -> SavedEvaluator:
        """Read what was saved; a logistic evaluator stays one."""
        if read_facts(path).get("format") == FORMAT:
            return RecalibratedEvaluator.load(path, evaluators)
        return LogisticEvaluator.load(path)


class RecalibratedEvaluator(DerivedEvaluator):
    """An evaluator that answers σ(a_c + s_c · logit p_c) where its source answers p_c, for each label c."""

    def __init__(
        self,
        source: Evaluator,
        name: str,
        intercepts: Float64[np.ndarray, " l"],
        slopes: Float64[np.ndarray, " l"],
    ) -> None:
        super().__init__(source, name)
        self.intercepts, self.slopes = intercepts, slopes

    @property
    def sha256(self) -> str:
        """Hash of everything that decides its answers."""
        digest = hashlib.sha256(str(evaluator_sha256(self.source)).encode())
        for line in (self.intercepts, self.slopes):
            digest.update(np.ascontiguousarray(line, "<f8").tobytes())
        return digest.hexdigest()

    def derive(self, probabilities: Float[np.ndarray, "*many l"]) -> Float64[np.ndarray, "*many l"]:
        """Its own probabilities, where these are the source's."""
        from scipy.special import expit, logit

        z = logit(np.clip(probabilities.astype(np.float64), _SMALLEST, 1 - _SMALLEST))
        return np.asarray(expit(self.intercepts + self.slopes * z))

    def save(self, path: Path) -> None:
        """Write one safetensors file, the source's name and hash included."""
        facts = {"kind": "recalibrated", "name": self.name, "labels": list(self.labels), "source": self.source_facts()}
        write_tensors(path, {"intercepts": self.intercepts, "slopes": self.slopes}, FORMAT, facts)

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator]) -> "RecalibratedEvaluator":
        """Read what `save` wrote, around the same source, which is found by name."""
        tensors, facts = read_tensors(path, FORMAT)
        with whole_file(path, "recalibrated evaluator"):
            source = find_source(facts["source"], evaluators, path)
            if list(source.labels) != facts["labels"]:
                raise ValueError(f"its labels are {facts['labels']}, those of its source are {list(source.labels)}")
            check_tensors(tensors, dict.fromkeys(("intercepts", "slopes"), ("<f8", (len(source.labels),))))
            return cls(source, facts["name"], tensors["intercepts"], tensors["slopes"])


def recalibrate(evaluator: Evaluator, records: Records, name: str) -> SavedEvaluator:
    """The evaluator with each label's logit z replaced by a + s·z, fitted on ``records`` under the frozen masks."""
    intercepts, slopes = calibration_line(*answers(evaluator, records))
    for column in np.flatnonzero(~np.isfinite(intercepts + slopes)):
        raise InputError(
            f"{evaluator_name(evaluator)} cannot be recalibrated for {records.label_names[column]} on {records.name}: "
            "no finite line fits its logits there; use a role with more records with and without the label."
        )
    return with_lines(evaluator, name, records, intercepts, slopes)


def answers(evaluator: Evaluator, records: Records) -> tuple[Labels, Probabilities]:
    """Labels of the records and the evaluator's probabilities under the frozen masks, which lines are fitted to.

    Records that have none of the leads of their mask are left out.
    """
    masks = frozen_masks(len(records)) & records.available
    readable = masks.any(axis=1)
    kept = records.select(readable)
    return kept.labels, score(evaluator, kept, masks[readable])


def with_lines(
    source: Evaluator,
    name: str,
    records: Records,
    intercepts: Float64[np.ndarray, " l"],
    slopes: Float64[np.ndarray, " l"],
) -> SavedEvaluator:
    """The source with lines, given in the order of the labels of ``records``, in its logits.

    A logistic evaluator takes them into its weights, so that its searches stay as fast as they are.
    """
    order = [list(records.label_names).index(label) for label in source.labels]
    a, s = intercepts[order], slopes[order]
    if isinstance(source, LogisticEvaluator):
        return source.with_lines(name, a, s)
    return RecalibratedEvaluator(source, name, a, s)
