"""The controlled evaluator: ten statistics a lead, and a logistic regression that knows which leads it was given."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from pydantic import Field, field_validator

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, PlanError, right_one
from leadwise.evaluators.contract import Fitted, Material, check_facts, register_evaluator
from leadwise.evaluators.masks import CARDINALITIES, random_masks
from leadwise.evaluators.scoring import score_subsets
from leadwise.evaluators.statistics import (
    FURTHER,
    STATISTICS,
    lead_moments,
    lead_statistics,
    select_statistics,
    waveform_statistics,
)
from leadwise.leads import subsets
from leadwise.registry import Budget, Count, Seed, Settings, Trials
from leadwise.store import check_tensors, read_tensors, whole_file, write_tensors

FORMAT = "leadwise logistic evaluator 1"


class LogisticSettings(Settings):
    """Settings of a logistic evaluator in a plan; `LogisticEvaluator` explains each."""

    class_weight: Literal["balanced", "none"] = "balanced"
    statistics: Annotated[list[str], Field(min_length=1)] = [*STATISTICS]  # noqa: RUF012  pydantic copies it
    cardinalities: Annotated[list[Budget], Field(min_length=1)] = [*CARDINALITIES]  # noqa: RUF012
    repeats: Count = 4
    strength: Annotated[float, Field(gt=0)] = 0.1
    clip: Annotated[float, Field(gt=0)] = 3.0
    seed: Seed = 20260901

    @field_validator("statistics")
    @classmethod
    def _statistics_are_known(cls, statistics: list[str]) -> list[str]:
        for name in statistics:
            if name not in (*STATISTICS, *FURTHER):
                raise PlanError(f"'statistics' names '{name}'; {right_one(name, [*STATISTICS, *FURTHER])}")
        return statistics

    def cost(self, sizes: Mapping[str, int]) -> Mapping[str, float]:
        return {"logistic fit": sizes["train"] * self.repeats}

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        del labels, length
        return {"repeats": 4_200 * self.repeats * sizes.get("train", 0)}


@register_evaluator("logistic")
class LogisticEvaluator(Fitted):
    """One-vs-rest logistic regression on standardised statistics × mask, and the mask.

    With z the standardised statistics and m the mask, the logit of label c is

        b_c + Σ_l m_l (u_cl + Σ_s w_cls z_ls),

    a sum over the observed leads. Every answer about a lead set is therefore a sum of per-lead tables, which is what
    makes the exhaustive search fast.

    - ``class_weight``: ``"balanced"`` weighs a label's positives and negatives equally, as in the study; None does not;
    - ``statistics``: which of the ten to use, or of the two that follow from them;
    - ``cardinalities``: sizes of its training masks, each as likely as another;
    - ``repeats``: random masks drawn for each training record, from ``seed``;
    - ``strength``: inverse of the L2 penalty (scikit-learn's C);
    - ``clip``: standardised statistics beyond so many deviations are taken back to it, lest a torn electrode decides.
    """

    Settings = LogisticSettings
    reading = "logistic reading"
    labels: Sequence[str]
    sampling_rate: float

    def __init__(
        self,
        name: str = "controlled",
        class_weight: str | None = "balanced",
        statistics: Sequence[str] = STATISTICS,
        repeats: int = 4,
        strength: float = 0.1,
        clip: float = 3.0,
        seed: int = 20260901,
        cardinalities: Sequence[int] = CARDINALITIES,
    ) -> None:
        unknown = set(statistics) - {*STATISTICS, *FURTHER}
        if unknown or not statistics:
            there_are = ", ".join((*STATISTICS, *FURTHER))
            raise InputError(f"'{', '.join(sorted(unknown))}' is no statistic; there are {there_are}.")
        self.name, self.class_weight, self.statistics = name, class_weight, tuple(statistics)
        self.repeats, self.strength, self.clip, self.seed = repeats, strength, clip, seed
        self.cardinalities = tuple(cardinalities)

    @classmethod
    def make(cls, settings: LogisticSettings, material: Material) -> "LogisticEvaluator":
        """Fit one on the train role."""
        said = settings.model_dump() | {"class_weight": None if settings.class_weight == "none" else "balanced"}
        return cls(material.name, **said).fit(material.train)

    @classmethod
    def trials(cls, settings: LogisticSettings, train: Records, _validation: Records) -> Trials:
        """A fit, and readings of many lead sets at once."""
        evaluator, sets = cls(repeats=settings.repeats), subsets(3)
        return {
            "logistic fit": (len(train) * settings.repeats, lambda: evaluator.fit(train)),
            cls.reading: (len(sets) * len(train), lambda: score_subsets(evaluator, train, sets)),
        }

    def fit(self, records: Records) -> "LogisticEvaluator":
        """Learn from a role, each record under ``repeats`` random masks, as far as it has the leads."""
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(self.seed)
        masks = np.concatenate([self._random_masks(records, rng) for _ in range(self.repeats)])
        seen = masks.any(axis=1)
        labels = np.tile(records.labels, (self.repeats, 1))[seen]
        for column, label in enumerate(records.label_names):
            if labels[:, column].all() or not labels[:, column].any():
                raise InputError(
                    f"No evaluator can learn {label} from {records.name}: it needs records with and without, and leads "
                    "that they have."
                )
        chosen = select_statistics(lead_statistics(records), self.statistics)
        self.labels, self.sampling_rate = records.label_names, records.sampling_rate
        self.mean_, deviation = lead_moments(chosen, records.available)
        self.scale_ = np.maximum(deviation, 1e-9)
        z = np.tile(self._standardised(chosen), (self.repeats, 1, 1)) * masks[..., None]
        inputs = np.concatenate([z.reshape(len(masks), -1), masks], axis=1)
        # Newton comes so near to the one optimum that the answers do not depend on the processor
        settings = {"C": self.strength, "class_weight": self.class_weight, "solver": "newton-cholesky", "tol": 1e-8}
        models = [LogisticRegression(**settings).fit(inputs[seen], of_label) for of_label in labels.T]
        self.weights_ = np.array([model.coef_[0, :-12].reshape(12, -1) for model in models])
        self.mask_weights_ = np.array([model.coef_[0, -12:] for model in models])
        self.intercept_ = np.array([model.intercept_[0] for model in models])
        return self

    def with_lines(
        self, name: str, intercepts: Float64[np.ndarray, " l"], slopes: Float64[np.ndarray, " l"]
    ) -> "LogisticEvaluator":
        """This model with each label's logit z replaced by a + s·z, which leaves it a logistic evaluator."""
        other = copy(self)
        other.name, other.weights_ = name, self.weights_ * slopes[:, None, None]
        other.mask_weights_ = self.mask_weights_ * slopes[:, None]
        other.intercept_ = self.intercept_ * slopes + intercepts
        return other

    def probabilities(
        self, signals: Float[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]
    ) -> Float64[np.ndarray, "n l"]:
        """Probabilities from waveforms in mV."""
        # whole microvolts, as files hold them: of float32 millivolts the statistics would differ in their last bits
        microvolts = np.clip(np.rint(signals * 1000), -32767, 32767).astype(np.int16)
        tables = self._tables(waveform_statistics(microvolts, self.sampling_rate))
        return _PreparedLogistic(tables, self.intercept_).probabilities(np.arange(len(masks)), masks)

    def prepare(self, records: Records) -> "_PreparedLogistic":
        """Per-lead logit tables of these records."""
        return _PreparedLogistic(self._tables(lead_statistics(records)), self.intercept_)

    def save(self, path: Path) -> None:
        """Write one safetensors file, settings included."""
        tensors = {name: getattr(self, f"{name}_") for name in _TENSORS}
        facts: dict[str, Any] = {"kind": "logistic", "settings": {name: getattr(self, name) for name in _SETTINGS}}
        facts |= {"labels": list(self.labels), "sampling_rate": self.sampling_rate}
        write_tensors(path, tensors, FORMAT, facts)

    @classmethod
    def load(cls, path: Path, _evaluators: object = None) -> "LogisticEvaluator":
        """Read what `save` wrote."""
        tensors, facts = read_tensors(path, FORMAT)
        with whole_file(path, "logistic evaluator"):
            evaluator = cls(**facts["settings"])
            evaluator.labels, evaluator.sampling_rate = facts["labels"], facts["sampling_rate"]
            check_facts(evaluator.labels, evaluator.sampling_rate)
            labels, statistics = len(evaluator.labels), len(evaluator.statistics)
            shapes = ((12, statistics), (12, statistics), (labels, 12, statistics), (labels, 12), (labels,))
            check_tensors(tensors, {name: ("<f8", shape) for name, shape in zip(_TENSORS, shapes, strict=True)})
            for name in _TENSORS:
                setattr(evaluator, f"{name}_", tensors[name])
        return evaluator

    @property
    def sha256(self) -> str:
        """Hash of everything that decides its answers."""
        facts = [list(self.labels), self.sampling_rate, self.clip, self.statistics]
        digest = hashlib.sha256(json.dumps(facts).encode())
        for name in _TENSORS:
            digest.update(np.ascontiguousarray(getattr(self, f"{name}_"), "<f8").tobytes())
        return digest.hexdigest()

    def _random_masks(self, records: Records, rng: np.random.Generator) -> Bool[np.ndarray, "n 12"]:
        """A training mask for each record, as far as it has the leads."""
        return random_masks(len(records), rng, self.cardinalities) & records.available

    def __repr__(self) -> str:
        state = " ".join(self.labels) if "labels" in vars(self) else "not fitted"
        return f"<LogisticEvaluator {self.name}: {state}>"

    def _standardised(self, chosen: Float64[np.ndarray, "n 12 s"]) -> Float64[np.ndarray, "n 12 s"]:
        return np.clip((chosen - self.mean_) / self.scale_, -self.clip, self.clip)

    def _tables(self, statistics: Float64[np.ndarray, "n 12 10"]) -> Float64[np.ndarray, "12 n l"]:
        """Contribution of each observed lead of each record to each logit: u_cl + Σ_s w_cls z_ls."""
        z = self._standardised(select_statistics(statistics, self.statistics))
        return np.einsum("nls,cls->lnc", z, self.weights_, optimize=True) + self.mask_weights_.T[:, None]


_SETTINGS = ("name", "class_weight", "statistics", "repeats", "strength", "clip", "seed", "cardinalities")
_TENSORS = ("mean", "scale", "weights", "mask_weights", "intercept")


class _PreparedLogistic:
    """Logits as sums of per-lead tables."""

    def __init__(self, tables: Float64[np.ndarray, "12 n l"], intercept: Float64[np.ndarray, " l"]) -> None:
        self.tables, self.intercept = tables, intercept

    def probabilities(
        self, positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]
    ) -> Float64[np.ndarray, "m l"]:
        return _sigmoid(np.einsum("ml,lmc->mc", masks, self.tables[:, positions]) + self.intercept)

    def subsets(self, masks: Bool[np.ndarray, "s 12"]) -> Float64[np.ndarray, "s n l"]:
        """All lead sets at once: one product of the 0/1 matrix with the tables."""
        _, n, n_labels = self.tables.shape
        logits = masks.astype(np.float64) @ self.tables.reshape(12, -1)
        logits += np.tile(self.intercept, n)
        return _sigmoid(logits).reshape(len(masks), n, n_labels)


def _sigmoid(logits: Float64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
    """1 / (1 + e^−z), in place. SciPy's `expit` is one and a half times slower on arrays of this size."""
    np.negative(logits, out=logits)
    with np.errstate(over="ignore"):  # e^1000 is infinite and its reciprocal is 0, which is right
        np.exp(logits, out=logits)
    logits += 1
    return np.reciprocal(logits, out=logits)
