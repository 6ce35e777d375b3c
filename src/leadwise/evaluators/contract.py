"""Protocols and registry of evaluators, and the check of an evaluator against them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import Complaints, InputError, one_line
from leadwise.registry import Registry, Settings


@runtime_checkable
class Evaluator(Protocol):
    """Maps observed leads to one probability a label. A class with these two members fits; it inherits nothing.

    Optional members:

    - ``name``: how it is called in results (else the name of its class);
    - ``sampling_rate``, ``length``: what it wants to be fed; signals are resampled, then cropped or zero-padded at the
      end, to fit;
    - ``prepare(records) -> Prepared``: whatever makes later scoring of these records cheap. They come without labels,
      and asking for those raises;
    - ``source`` and ``derive(probabilities) -> probabilities``, both or none: another evaluator, and what follows from
      its answers. What the source has read then need not be read again.
    """

    @property
    def labels(self) -> Sequence[str]:
        """Names of the labels, in the order of the columns of `probabilities`."""

    def probabilities(
        self, signals: Float[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]
    ) -> Float[np.ndarray, "n l"]:
        """Probabilities from signals in mV, float32, in which unobserved leads are zero; no mask is empty."""


class Prepared(Protocol):
    """An evaluator that knows some records already. It must not let unobserved leads matter: `check_evaluator` looks.

    Optional: ``subsets(masks: (s, 12)) -> (s, n, l)``, every lead set on every record, where that is cheaper at once;
    ``batch``, how many pairs of record and mask it wants to be asked for together.
    """

    def probabilities(
        self, positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]
    ) -> Float[np.ndarray, "m l"]:
        """Probabilities for the records at these positions of the records that were prepared."""


@dataclass(frozen=True)
class Material:
    """Material that an evaluator of a plan is made from."""

    name: str
    """Its name in results."""
    train: Records
    validation: Records
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict)
    """Those that its settings name."""
    candidate: "SavedEvaluator | None" = None
    """The one that its settings name as a ``candidate``."""
    allocations: Mapping[str, Bool[np.ndarray, "budgets n 12"]] = field(default_factory=dict)
    """Choices of the policies that its settings name, for the train role, as masks."""
    directory: Path | None = None
    """Directory for work that a kill must not take."""


class EvaluatorKind(Protocol):
    """A kind of evaluator that plans can name. Its instances are evaluators with ``name``, ``sha256`` and ``save``.

    Optional: ``trials(settings, train, validation) -> {unit: (amount, work)}``, a little of each kind of work that
    `Settings.cost` counts, so that a forecast can time it; ``reading``, the unit of its readings.
    ``version`` (1): a whole number, raised whenever `make` would make another one of the same material.
    """

    Settings: type[Settings]

    @classmethod
    def make(cls, settings: Any, material: Material) -> "SavedEvaluator":
        """Fit, train or read one."""

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator]) -> "SavedEvaluator":
        """Read what ``save`` wrote; ``evaluators`` are those that its settings name."""


class SavedEvaluator(Evaluator, Protocol):
    """An evaluator that can be kept."""

    name: str

    @property
    def sha256(self) -> str:
        """Hash of everything that decides its answers."""

    def save(self, path: Path) -> None:
        """Write one file."""


EVALUATORS: Registry[type[EvaluatorKind]] = Registry(
    "evaluator", "leadwise.evaluators", "leadwise.evaluators", ("make", "load")
)
register_evaluator = EVALUATORS.register
list_evaluators = EVALUATORS.names


def evaluator_name(evaluator: Evaluator) -> str:
    """Name of an evaluator in results."""
    return str(getattr(evaluator, "name", type(evaluator).__name__))


def evaluator_sha256(evaluator: Evaluator) -> str | None:
    """Hash of an evaluator's weights, by which policies and bundles know it; None if it has none."""
    digest = getattr(evaluator, "sha256", None)
    return None if digest is None else str(digest)


def as_array(answer: Any, who: str) -> Shaped[np.ndarray, "..."]:
    """Answer of an evaluator or a policy as an array of numbers."""
    why = "holds no numbers"
    try:
        array = np.asarray(answer)
        if array.dtype.kind in "biuf":
            return array
    except Exception as error:  # whatever the library says that made it, torch for instance of a tensor with gradients
        why = f"is no NumPy array ({one_line(error)})"
    raise InputError(f"{who} answered with an object of type {type(answer).__name__}, which {why}.")


class Fitted:
    """Base of classes whose `fit` sets attributes that they declare, or whose names end in ``_``.

    Asked for before, they raise a sentence.
    """

    if not TYPE_CHECKING:  # mypy would believe in any attribute

        def __getattr__(self, name: str) -> Never:
            kind = type(self).__name__
            declared = any(name in vars(each).get("__annotations__", {}) for each in type(self).__mro__)
            if declared or (name.endswith("_") and not name.startswith("_")):
                raise InputError(f"{kind} has no '{name}' before it is fitted; call its fit first.")
            raise AttributeError(f"'{kind}' object has no attribute '{name}'")


def check_facts(labels: Any, sampling_rate: Any) -> None:
    """Raise ValueError unless these can be an evaluator's labels and sampling rate."""
    named = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    if not named or not labels or len(set(labels)) != len(labels):
        raise ValueError(f"labels are {labels}, where different names are due")
    if isinstance(sampling_rate, bool) or not isinstance(sampling_rate, int | float) or sampling_rate <= 0:
        raise ValueError(f"the sampling rate is {sampling_rate}, where a number of samples per second is due")


def check_evaluator(evaluator: Evaluator, records: Records, tolerance: float = 1e-6) -> None:
    """Raise `InputError`, a line for each complaint, unless an evaluator keeps the contract on some of these records.

    Looked at: labels, shape and range of its answers; that it prepares itself without labels; that its answers are the
    same when asked again, and whatever else is in the batch; that unobserved leads do not matter; that a prepared
    evaluator answers as an unprepared one; and that nothing handed over is changed.
    """
    from leadwise.evaluators.scoring import Scorer

    name = evaluator_name(evaluator)
    if getattr(evaluator, "labels", None) is None or not callable(getattr(evaluator, "probabilities", None)):
        raise InputError(f"Evaluator {name} needs an attribute 'labels' and a method 'probabilities(signals, masks)'.")
    sample = Cohort.of(records.select(slice(0, 16))).records
    n, rng = len(sample), np.random.default_rng(0)
    masks = (rng.random((n, 12)) < 0.4) & sample.available
    masks[np.arange(n), sample.available.argmax(axis=1)] = True
    complaints, plain = Complaints(f"Evaluator {name}"), _Unprepared(evaluator)
    asked: Any = plain
    with complaints.gather():
        Scorer(evaluator, sample)
        asked = evaluator  # one that cannot be prepared is looked at without

    def ask(of: Records, with_masks: Bool[np.ndarray, "n 12"]) -> Float[np.ndarray, "n l"]:
        return Scorer(asked, of).masks(with_masks)

    def demand(again: Callable[[], Float[np.ndarray, "..."]], as_before: Float[np.ndarray, "..."], but: str) -> bool:
        difference = np.inf
        with complaints.gather():
            difference = np.abs(again() - as_before).max()
            if difference > tolerance:
                complaints.add(f"Evaluator {name} {but} (probabilities differ by up to {difference:.2g}).")
        return bool(difference <= tolerance)

    def watched(signals: Float[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]) -> Any:
        before = signals.copy(), masks.copy()
        answer = evaluator.probabilities(signals, masks)
        if not (np.array_equal(signals, before[0]) and np.array_equal(masks, before[1])):
            complaints.add(f"Evaluator {name} changes the signals or masks that it is given; let it work on a copy.")
        return answer

    def look() -> None:
        witness = _Unprepared(evaluator)
        witness.probabilities = watched
        Scorer(witness, sample).masks(masks)
        answer = ask(sample, masks)
        if not demand(lambda: ask(sample, masks), answer, "is not deterministic: asked twice, it answers differently"):
            return  # whatever differs below might differ for that reason

        alone = (ask(sample[i], masks[i : i + 1]) for i in range(n))
        demand(lambda: np.concatenate([*alone]), answer, "lets the other records of a batch change its answer")
        order = rng.permutation(n)
        moved = sample.select(order)
        demand(lambda: ask(moved, masks[order]), answer[order], "answers by the position in the batch")
        noise = rng.integers(-2000, 2000, sample.signals.shape).astype(np.int16)
        changed = Cohort.of(sample, np.where(masks[..., None], sample.signals[:], noise)).records
        demand(lambda: ask(changed, masks), answer, "lets leads matter that were not observed")
        if asked is plain or not hasattr(evaluator, "prepare"):
            return
        few = masks[:3] & sample.available.all(axis=0)
        few[:, sample.available.all(axis=0).argmax()] = True
        together, each = Scorer(evaluator, sample).subsets(few), (ask(sample, np.tile(mask, (n, 1))) for mask in few)
        demand(lambda: np.stack([*each]), together, "answers differently for all lead sets at once")
        unprepared = Scorer(plain, sample)
        demand(lambda: unprepared.masks(masks), answer, "answers differently from prepared records and from signals")

    with complaints.gather():
        look()
    complaints.say()


class _Unprepared:
    """An evaluator without its shortcuts."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.name, self.labels = evaluator_name(evaluator), evaluator.labels
        self.probabilities = evaluator.probabilities
        self.sampling_rate, self.length = (getattr(evaluator, name, None) for name in ("sampling_rate", "length"))
