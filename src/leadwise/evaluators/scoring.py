"""The one way from leads to probabilities. Nothing else in the package calls an evaluator.

Scoring matches labels by name, zeroes unobserved leads before an evaluator sees them, scores each distinct pair of
record and mask once, and checks what comes back. Memory: one batch of recordings, and the answer.
"""

import os
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, as_array, evaluator_name, evaluator_sha256
from leadwise.leads import LEADS, LeadSet, bits_masks, mask_bits
from leadwise.progress import progress

BATCH = 256
"""Recordings handed to an evaluator at once, about 12 MB of signals, unless what it prepared names another number."""


def score(
    evaluator: Evaluator, records: Records, masks: Bool[np.ndarray, "*many n 12"]
) -> Float64[np.ndarray, "*many n l"]:
    """Probabilities of the cohort's labels for each record, read with the leads of its own mask.

    ``masks`` has one row a record, or several such matrices stacked: pairs that they share are scored once.
    """
    return Scorer(evaluator, records).masks(masks)


def score_subsets(
    evaluator: Evaluator, records: Records, lead_sets: Iterable[LeadSet] | Bool[np.ndarray, "s 12"]
) -> Float64[np.ndarray, "s n l"]:
    """Probabilities for every record, read with each of the lead sets. The answer takes 8·s·n·l bytes."""
    if not isinstance(lead_sets, np.ndarray):
        lead_sets = np.array([leads.mask for leads in lead_sets], dtype=bool).reshape(-1, len(LEADS))
    return Scorer(evaluator, records).subsets(lead_sets)


class Scorer:
    """An evaluator on some records, prepared once for many questions.

    With ``remember`` it keeps every answer to `pairs` and `masks`, so that no pair is ever read twice: worth the memory
    (8 bytes a label and a pair) for evaluators that take their time. With a ``memory`` file it also keeps them there, a
    batch as soon as it is read, and begins with what it finds: the file must be of this evaluator and these records.

    An engine may read some pairs together and those that are left over in another way, which differs in the last bits.
    With ``whole`` nothing is left over, so that an answer does not depend on what was asked with it, or is known. A
    scorer with a ``source`` of that kind takes from it all but what is left over of a question: it answers to the bit
    as one without a source, whatever others have asked the source before. The source scores the same evaluator, one of
    the same weights, or the one that this evaluator derives its answers from.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        records: Records,
        remember: bool = False,
        memory: Path | None = None,
        whole: bool = False,
        source: "Scorer | None" = None,
    ) -> None:
        if not len(records):
            what = f"There are no records to score in {records.name}"
            raise InputError(f"{what}; choose a role or selection that has some.")
        self.evaluator, self.records = evaluator, records
        self._who = f"Evaluator {evaluator_name(evaluator)}"
        self._columns = _match_labels(evaluator, records)
        self._available = records.available
        self._remember, self._memory = remember or memory is not None, memory
        self._known, self._answers = np.empty(0, dtype=np.int64), np.empty((0, len(self._columns)))
        if memory is not None and memory.exists():
            self._recall(memory)
        self.readings = 0
        """Number of pairs of record and mask that the evaluator has read."""
        self._source = source
        self._derives = source is not None and getattr(evaluator, "source", None) is source.evaluator
        self._prepared: Any = _prepared(evaluator, records) if source is None else source._prepared
        if self._derives:
            self._prepared = _Derived(evaluator, self._prepared)
        self._together = getattr(self._prepared, "together", 1) if whole else 1

    def masks(self, masks: Bool[np.ndarray, "*many n 12"]) -> Float64[np.ndarray, "*many n l"]:
        """See `score`."""
        _check_masks(masks)
        n = len(self.records)
        if masks.shape[-2] != n:
            raise InputError(f"There are {n} records but masks for {masks.shape[-2]}; give one mask a record.")
        flat = self.pairs(np.tile(np.arange(n), masks.size // (12 * n)), masks.reshape(-1, 12))
        return flat.reshape(*masks.shape[:-1], len(self._columns))

    def pairs(self, positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]) -> Float64[np.ndarray, "m l"]:
        """Probabilities for the records at these positions, each under its own mask; equal pairs are scored once."""
        _check_masks(masks)
        self._check_available(masks & ~self._available[positions], self.records.ids[positions])
        distinct, inverse = np.unique(mask_bits(masks) + 4096 * positions, return_inverse=True)
        return self._answer(distinct)[inverse]

    def _answer(self, distinct: Int[np.ndarray, " m"]) -> Float64[np.ndarray, "m l"]:
        """From memory, or read; a pair is 4096 · position + mask bits."""
        place = np.searchsorted(self._known, distinct)
        new = np.append(self._known, -1)[place] != distinct
        answer = np.empty((len(distinct), len(self._columns)))
        answer[~new] = self._answers[place[~new]]
        asked = distinct[new]
        # what makes whole batches comes from the source, where there is one
        whole = 0 if self._source is None else len(asked) // self._source._together * self._source._together
        taken = [] if self._source is None else [self._derived(self._source._answer(asked[:whole]))]
        answer[new] = np.concatenate([*taken, self._read(asked[whole:])])
        if self._remember and new.any():
            self._keep(asked, answer[new])
        return answer

    def _derived(self, answer: Float64[np.ndarray, "m l"]) -> Float64[np.ndarray, "m l"]:
        """What this evaluator answers where the source's answers, in the cohort's order of labels, are these."""
        if not self._derives:
            return answer
        theirs = np.empty_like(answer)
        theirs[:, self._columns] = answer
        said: Any = self.evaluator
        return np.asarray(said.derive(theirs))[:, self._columns]

    @property
    def remembered(self) -> tuple[Int[np.ndarray, " m"], Bool[np.ndarray, "m 12"], Float64[np.ndarray, "m l"]]:
        """Positions, masks and probabilities of all that it remembers, in order of position and mask."""
        return self._known // 4096, bits_masks(self._known % 4096), self._answers

    def _keep(self, codes: Int[np.ndarray, " m"], answers: Float64[np.ndarray, "m l"]) -> None:
        codes = np.concatenate([self._known, codes])
        order = codes.argsort(kind="stable")
        self._known, self._answers = codes[order], np.concatenate([self._answers, answers])[order]

    def _recall(self, memory: Path) -> None:
        """Take what a memory file holds: rows of a pair's code and its probabilities, all as float64."""
        width = 1 + len(self._columns)
        content = memory.read_bytes()
        whole = len(content) // (8 * width) * (8 * width)
        os.truncate(memory, whole)  # a kill may have torn the last row
        rows = np.frombuffer(content[:whole], "<f8").reshape(-1, width)
        self._keep(rows[:, 0].astype(np.int64), rows[:, 1:])

    def _read(self, pairs: Int[np.ndarray, " m"]) -> Float64[np.ndarray, "m l"]:
        """Ask the evaluator, a batch at a time."""
        answer = np.empty((len(pairs), len(self._columns)))
        size = getattr(self._prepared, "batch", BATCH)
        with progress(f"Reading with {evaluator_name(self.evaluator)}", len(pairs)) as advance:
            for start in range(0, len(pairs), size):
                part = slice(start, start + size)
                batch = pairs[part]
                batch = np.concatenate([batch, np.repeat(batch[:1], -len(batch) % self._together)])
                said = self._prepared.probabilities(batch // 4096, bits_masks(batch % 4096))
                answer[part] = self._checked(said, batch // 4096)[: len(pairs[part])]
                if self._memory is not None:
                    with self._memory.open("ab") as file:
                        file.write(np.column_stack([pairs[part], answer[part]]).astype("<f8").tobytes())
                advance(len(pairs[part]))
        self.readings += len(pairs)
        return answer

    @property
    def at_once(self) -> bool:
        """True if many lead sets cost less together than one by one."""
        return hasattr(self._prepared, "subsets")

    def subsets(self, masks: Bool[np.ndarray, "s 12"]) -> Float64[np.ndarray, "s n l"]:
        """See `score_subsets`."""
        _check_masks(masks)
        self._check_available(masks.any(axis=0) & ~self._available, self.records.ids)
        n = len(self.records)
        if not (self.at_once and len(masks)):
            return self.masks(np.repeat(masks[:, None], n, axis=1))
        return self._checked(self._prepared.subsets(masks), np.arange(n), len(masks))

    def _check_available(self, wanting: Bool[np.ndarray, "m 12"], ids: Int[np.ndarray, " m"]) -> None:
        if wanting.any():
            record, lead = np.argwhere(wanting)[0]
            raise InputError(f"Record {ids[record]} has no lead {LEADS[lead]}, so it cannot be read with it.")

    def _checked(self, answer: Any, positions: Int[np.ndarray, " m"], *sets: int) -> Float64[np.ndarray, "*sets m l"]:
        """Answer of an evaluator in the cohort's order of labels; raises where it is no matrix of probabilities."""
        probabilities, due = as_array(answer, self._who), (*sets, len(positions), len(self._columns))
        if probabilities.shape != due:
            raise InputError(f"{self._who} answered in shape {probabilities.shape}, where {due} was due.")
        low, high = probabilities.min(), probabilities.max()
        if not (low >= 0 and high <= 1):
            finite = np.isfinite(probabilities).all(axis=-1)
            if not finite.all():
                worst = self.records.ids[positions[np.argwhere(~finite)[0][-1]]]
                raise InputError(f"{self._who} gave no finite probability for record {worst}.")
            raise InputError(f"{self._who} gave {low if low < 0 else high:g} as a probability; are these logits?")
        return probabilities[..., self._columns].astype(np.float64, copy=False)


class Scorers:
    """Evaluators on some records, each prepared once: what one asker has had read is there for the next.

    In the directory ``memory``, readings are kept as they are made, and found again. For ``whole`` see `Scorer`.
    """

    def __init__(self, records: Records, memory: Path | None = None, whole: bool = False) -> None:
        self.records, self.memory, self.whole = records, memory, whole
        self._made: dict[str, Scorer] = {}

    def of(self, evaluator: Evaluator) -> Scorer:
        """The scorer of an evaluator, made when it is first asked for."""
        name = evaluator_name(evaluator)
        if name not in self._made:
            source = self._source(evaluator)
            weights = (evaluator_sha256(evaluator) or "")[:16]  # a directory may outlive an evaluator of this name
            place = self.memory and self.memory / f"{name}-{weights}-{self.records.labels_sha256[:16]}.readings"
            memory = place if source is None else None  # the source keeps what is read
            self._made[name] = Scorer(evaluator, self.records, True, memory, self.whole, source)
        if self._made[name].evaluator is not evaluator:
            raise InputError(f"Two evaluators are called '{name}'; give each a name of its own.")
        return self._made[name]

    def _source(self, evaluator: Evaluator) -> Scorer | None:
        """The scorer that an evaluator's answers can be had from: of what it derives them from, or of its weights."""
        if hasattr(evaluator, "derive"):
            derived: Any = evaluator
            return self.of(derived.source)
        weights = evaluator_sha256(evaluator)
        alike = (each for each in self._made.values() if weights and evaluator_sha256(each.evaluator) == weights)
        return next(alike, None)


def _prepared(evaluator: Evaluator, records: Records) -> Any:
    """The evaluator prepared for these records: by itself, where it is for their sampling rate."""
    if hasattr(evaluator, "derive"):
        derived: Any = evaluator
        return _Derived(evaluator, _prepared(derived.source, records))
    prepare = getattr(evaluator, "prepare", None)
    fits = (getattr(evaluator, "sampling_rate", None) or records.sampling_rate) == records.sampling_rate
    return prepare(records.unlabelled) if prepare and fits else _FromSignals(evaluator, records)


class _Derived:
    """An evaluator that derives its answers from those of another, which is prepared already."""

    def __init__(self, evaluator: Any, source: Any) -> None:
        who = f"Evaluator {evaluator_name(evaluator.source)}"
        self.probabilities = lambda *asked: evaluator.derive(as_array(source.probabilities(*asked), who))
        self.batch, self.together = getattr(source, "batch", BATCH), getattr(source, "together", 1)
        if hasattr(source, "subsets"):
            self.subsets = lambda masks: evaluator.derive(as_array(source.subsets(masks), who))


class _FromSignals:
    """Feeds an evaluator that has no `prepare` from the recordings."""

    def __init__(self, evaluator: Evaluator, records: Records) -> None:
        self.evaluator, self.signals = evaluator, records.signals
        rate = getattr(evaluator, "sampling_rate", None) or records.sampling_rate
        ratio = Fraction(rate).limit_denominator(1000) / Fraction(records.sampling_rate).limit_denominator(1000)
        self.resample = (ratio.numerator, ratio.denominator)
        self.length = getattr(evaluator, "length", None)

    def probabilities(
        self, positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]
    ) -> Float[np.ndarray, "m any"]:
        signals = self.signals.millivolts(positions)
        signals[~masks] = 0
        if self.resample != (1, 1):
            from scipy.signal import resample_poly

            signals = resample_poly(signals, *self.resample, axis=2).astype(np.float32)
        if self.length:
            signals = signals[..., : self.length]
            signals = np.pad(signals, ((0, 0), (0, 0), (0, self.length - signals.shape[2])))
        return self.evaluator.probabilities(signals, masks)


def _match_labels(evaluator: Evaluator, records: Records) -> Int[np.ndarray, " l"]:
    """Columns of the evaluator's answers in the cohort's order of labels."""
    declared = getattr(evaluator, "labels", None)
    if declared is None:
        raise InputError(f"Evaluator {evaluator_name(evaluator)} has no 'labels'; give an evaluator that is fitted.")
    theirs = list(declared)
    if sorted(theirs) != sorted(records.label_names):
        answers = f"Evaluator {evaluator_name(evaluator)} answers for {', '.join(theirs)}"
        raise InputError(f"{answers}; the cohort has {', '.join(records.label_names)}.")
    return np.array([theirs.index(label) for label in records.label_names])


def _check_masks(masks: np.ndarray) -> None:
    if masks.shape[-1] != len(LEADS):
        raise InputError(f"A mask has 12 entries, one a lead; these have {masks.shape[-1]}.")
    if not masks.any(axis=-1).all():
        raise InputError("A mask is empty; every record must be read with at least one lead.")
