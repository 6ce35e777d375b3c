"""Scoring: what reaches an evaluator, what comes back, and how often it is asked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import InputError, SealedRole
from leadwise.evaluators import scoring
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.scoring import Scorer, score, score_subsets
from leadwise.leads import LEADS, LeadSet, subsets

LABELS = ("A", "B", "C")
RATE, LENGTH = 100, 80


def make_cohort(n: int = 30, length: int = LENGTH, seed: int = 0) -> Cohort:
    """Records of coloured noise in ten folds, labelled at random."""
    rng = np.random.default_rng(seed)
    labels = rng.random((n, 3)) < 0.5
    shift = 300 * labels @ rng.normal(size=(3, 12))
    signals = rng.normal(0, 40, (n, 12, length)).cumsum(axis=2) + shift[..., None]
    return Cohort(
        source="noise",
        ids=np.arange(n) + 101,
        patients=np.arange(n),
        folds=np.arange(n) % 10 + 1,
        age=np.full(n, 50.0),
        sex=np.zeros(n, dtype=np.int64),
        quality=np.zeros((n, 6), dtype=bool),
        missing=np.zeros((n, 12), dtype=np.int64),
        label_names=LABELS,
        sampling_rate=RATE,
        _signals=signals.round().clip(-30000, 30000).astype(np.int16),
        _labels=labels,
    )


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return make_cohort()


@pytest.fixture
def records(cohort: Cohort) -> Records:
    return cohort["train"]


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user meets, for whom shapes are not checked at the door."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class Summing:
    """A user's evaluator at its most careless: it adds up every sample that it is given, whatever the mask says."""

    def __init__(self, labels: Sequence[str] = LABELS, **declared: Any) -> None:
        self.labels = labels
        self.given: list[tuple[np.ndarray, np.ndarray]] = []
        for name, value in declared.items():
            setattr(self, name, value)

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        self.given.append((signals.copy(), masks.copy()))
        total = signals.astype(np.float64).sum(axis=(1, 2)) / 50
        return np.stack([1 / (1 + np.exp(-total * (1 + "ABC".index(label)))) for label in self.labels], axis=1)

    @property
    def signals(self) -> np.ndarray:
        return np.concatenate([signals for signals, _ in self.given])

    @property
    def masks(self) -> np.ndarray:
        return np.concatenate([masks for _, masks in self.given])


class Table:
    """A prepared evaluator: an arbitrary but fixed probability for every (record, lead set)."""

    labels = ("C", "A", "B")

    def __init__(self, shortcut: bool = True) -> None:
        self.shortcut = shortcut
        self.prepared: list[int] = []

    def probabilities(self, _signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
        raise AssertionError("the signals were not needed")

    def prepare(self, records: Records) -> Any:
        self.prepared.append(len(records))
        return _WithSubsets(records.ids) if self.shortcut else _PreparedTable(records.ids)


class _PreparedTable:
    def __init__(self, ids: np.ndarray) -> None:
        self.ids = ids

    def probabilities(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
        bits = masks @ (1 << np.arange(12))
        return (self.ids[positions, None] * 37 + bits[:, None] * 11 + np.array([300, 100, 200])) % 997 / 997


class _WithSubsets(_PreparedTable):
    def subsets(self, masks: np.ndarray) -> np.ndarray:
        n = len(self.ids)
        return np.stack([self.probabilities(np.arange(n), np.tile(mask, (n, 1))) for mask in masks])


def some_masks(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    masks = rng.random((n, 12)) < 0.4
    masks[np.arange(n), rng.integers(12, size=n)] = True
    return masks


def pairs_of(masks: np.ndarray) -> set[tuple[int, tuple[bool, ...]]]:
    """The distinct (record, mask) of stacked masks."""
    flat = masks.reshape(-1, *masks.shape[-2:])
    return {(row, tuple(mask)) for matrix in flat for row, mask in enumerate(matrix.tolist())}


# what an evaluator is given ------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_unobserved_leads_never_matter(seed: int) -> None:
    cohort = make_cohort(20)
    masks = some_masks(len(cohort["train"]), seed)
    rng = np.random.default_rng(seed)
    other = cohort._signals.copy()
    hidden = np.zeros((len(cohort), 12), dtype=bool)
    hidden[cohort["train"].rows] = ~masks
    other[hidden] = rng.integers(-32000, 32000, (int(hidden.sum()), other.shape[2]))
    changed = replace(cohort, _signals=other)["train"]
    np.testing.assert_array_equal(score(Summing(), cohort["train"], masks), score(Summing(), changed, masks))
    observed = replace(cohort, _signals=np.where(hidden[..., None], cohort._signals, cohort._signals[::-1]))["train"]
    assert (score(Summing(), cohort["train"], masks) != score(Summing(), observed, masks)).any(), "observed ones do"


def test_observed_leads_come_in_millivolts_and_the_others_as_zeros(records: Records) -> None:
    evaluator = Summing()
    masks = some_masks(len(records))
    score(evaluator, records, masks)
    assert evaluator.signals.dtype == np.float32
    assert evaluator.masks.dtype == bool
    np.testing.assert_array_equal(evaluator.masks, masks)
    np.testing.assert_allclose(evaluator.signals, records.signals[:] / 1000 * masks[..., None], rtol=1e-6)
    assert (evaluator.signals[~masks] == 0).all()


def test_probabilities_are_the_evaluators(records: Records) -> None:
    masks = some_masks(len(records))
    total = (records.signals[:].astype(np.float64) / 1000 * masks[..., None]).sum(axis=(1, 2)) / 50
    expected = 1 / (1 + np.exp(-total[:, None] * [1, 2, 3]))
    answer = score(Summing(), records, masks)
    assert answer.dtype == np.float64
    np.testing.assert_allclose(answer, expected, rtol=1e-5)


@pytest.mark.parametrize("order", [("A", "B", "C"), ("C", "A", "B"), ("B", "A", "C")])
def test_labels_are_matched_by_name(records: Records, order: tuple[str, ...]) -> None:
    masks = some_masks(len(records))
    np.testing.assert_array_equal(score(Summing(order), records, masks), score(Summing(), records, masks))


def test_single_precision_answers_are_carried_in_double(records: Records) -> None:
    evaluator = Summing()
    double = evaluator.probabilities
    evaluator.probabilities = lambda *given: double(*given).astype(np.float32)
    answer = score(evaluator, records, some_masks(len(records)))
    assert answer.dtype == np.float64
    np.testing.assert_array_equal(answer, answer.astype(np.float32))


def sines(rate: float, seconds: float = 4, n: int = 10) -> np.ndarray:
    """A slow wave, another phase in each lead, in mV: what a change of rate must leave as it is."""
    t = np.arange(round(rate * seconds)) / rate
    return np.sin(2 * np.pi * 1.5 * t + np.arange(12)[:, None] + np.arange(n)[:, None, None])


@pytest.mark.parametrize("rate", [50, 200, 250, 500, 62.5])
def test_signals_are_resampled_as_declared(rate: float) -> None:
    cohort = replace(make_cohort(10), _signals=(sines(RATE) * 1000).round().astype(np.int16))
    records = cohort["train"]
    masks = some_masks(len(records))
    evaluator = Summing(sampling_rate=rate)
    score(evaluator, records, masks)
    expected = sines(rate)[records.rows] * masks[..., None]
    assert evaluator.signals.shape == expected.shape
    assert evaluator.signals.dtype == np.float32
    inner = slice(round(rate), round(3 * rate))  # away from the ends, beyond which a filter knows nothing
    np.testing.assert_allclose(evaluator.signals[..., inner], expected[..., inner], atol=0.01)
    assert (evaluator.signals[~masks] == 0).all()


@pytest.mark.parametrize("length", [1, 50, 80, 81, 200])
def test_signals_are_cropped_or_padded_as_declared(records: Records, length: int) -> None:
    evaluator = Summing(length=length)
    masks = np.ones((len(records), 12), dtype=bool)
    score(evaluator, records, masks)
    expected = np.zeros((len(records), 12, length))
    kept = min(length, LENGTH)
    expected[..., :kept] = records.signals[:][..., :kept] / 1000
    np.testing.assert_allclose(evaluator.signals, expected, rtol=1e-6)


def test_rate_first_then_length(records: Records) -> None:
    masks = np.ones((len(records), 12), dtype=bool)
    both, alone = Summing(sampling_rate=50, length=30), Summing(sampling_rate=50)
    score(both, records, masks)
    score(alone, records, masks)
    assert alone.signals.shape[2] == 40
    np.testing.assert_array_equal(both.signals, alone.signals[..., :30])


def test_declaring_nothing_in_so_many_words(records: Records) -> None:
    masks = some_masks(len(records))
    silent = Summing(sampling_rate=None, length=None)
    np.testing.assert_array_equal(score(silent, records, masks), score(Summing(), records, masks))
    table = Table()
    table.sampling_rate = None  # type: ignore[attr-defined]
    score(table, records, masks)
    assert table.prepared == [len(records)]


# how often it is asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (0,)])
def test_stacked_masks(records: Records, shape: tuple[int, ...]) -> None:
    n = len(records)
    matrices = [some_masks(n, seed) for seed in range(int(np.prod(shape)))]
    masks = np.array(matrices, dtype=bool).reshape(*shape, n, 12)
    answer = score(Table(), records, masks)
    assert answer.shape == (*shape, n, 3)
    for matrix, part in zip(matrices, answer.reshape(-1, n, 3), strict=True):
        np.testing.assert_array_equal(part, score(Table(), records, matrix))


@pytest.mark.parametrize("batch", [1, 7, 256])
def test_each_distinct_pair_is_scored_once(records: Records, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(scoring, "BATCH", batch)
    first, second = some_masks(len(records), 1), some_masks(len(records), 2)
    second[::2] = first[::2]
    masks = np.stack([first, second, first, second[::-1]])
    evaluator = Summing()
    answer = score(evaluator, records, masks)
    assert len(evaluator.masks) == len(pairs_of(masks)) < masks[..., 0].size
    assert max(len(given) for given, _ in evaluator.given) <= batch
    asked = {
        (signal.tobytes(), mask.tobytes()) for signal, mask in zip(evaluator.signals, evaluator.masks, strict=True)
    }
    assert len(asked) == len(evaluator.masks), "no pair comes twice"
    for matrix, part in zip(masks, answer, strict=True):
        np.testing.assert_allclose(part, score(Summing(), records, matrix), rtol=1e-12)


def test_pairs_in_any_order(records: Records) -> None:
    positions, masks = np.array([5, 0, 5, 17, 5, 0]), some_masks(6)
    masks[2], masks[5] = masks[0], masks[0]
    evaluator = Summing()
    answer = Scorer(evaluator, records).pairs(positions, masks)
    assert len(evaluator.masks) == 5, "the first and the third are one question"
    for position, mask, p in zip(positions, masks, answer, strict=True):
        np.testing.assert_allclose(p, score(Summing(), records[position], mask[None])[0], rtol=1e-12)


def test_a_record_that_comes_twice_counts_as_two(records: Records) -> None:
    twice = records.select(np.array([3, 3, 1]))
    answer = score(Table(), twice, np.ones((3, 12), dtype=bool))
    np.testing.assert_array_equal(answer[0], answer[1])
    np.testing.assert_array_equal(answer, score(Table(), records, np.ones((len(records), 12), dtype=bool))[[3, 3, 1]])


SETS = [LeadSet.parse(text) for text in ("V2", "I II", "12-lead", "III aVR V2 V5", "V2")]


@pytest.mark.parametrize(
    "evaluator", [Summing(), Table(), Table(shortcut=False)], ids=["signals", "shortcut", "prepared"]
)
def test_subsets_are_the_same_as_set_by_set(records: Records, evaluator: Any) -> None:
    at_once = score_subsets(evaluator, records, SETS)
    assert at_once.shape == (len(SETS), len(records), 3)
    for leads, part in zip(SETS, at_once, strict=True):
        np.testing.assert_allclose(part, score(evaluator, records, np.tile(leads.mask, (len(records), 1))), rtol=1e-12)
    as_masks = score_subsets(evaluator, records, np.array([leads.mask for leads in SETS]))
    np.testing.assert_array_equal(as_masks, at_once)
    np.testing.assert_array_equal(score_subsets(evaluator, records, iter(SETS)), at_once)
    assert Scorer(evaluator, records).at_once == (getattr(evaluator, "shortcut", False) is True)


def test_subsets_ask_once_for_each_set(records: Records) -> None:
    evaluator = Summing()
    score_subsets(evaluator, records, SETS)
    assert len(evaluator.masks) == len(records) * len(set(SETS))


@pytest.mark.parametrize("evaluator", [Summing(), Table()], ids=["signals", "shortcut"])
def test_no_subsets_no_answers(records: Records, evaluator: Any) -> None:
    assert score_subsets(evaluator, records, []).shape == (0, len(records), 3)


def test_labels_of_a_shortcut_are_matched_too(records: Records) -> None:
    full = _PreparedTable(records.ids).probabilities(np.arange(len(records)), np.ones((len(records), 12), dtype=bool))
    answer = score_subsets(Table(), records, [LeadSet(4095)])[0]
    np.testing.assert_array_equal(answer[:, [2, 0, 1]], full)  # C A B, as the table has them


def test_records_are_prepared_once_for_many_questions(records: Records) -> None:
    table = Table()
    scorer = Scorer(table, records)
    for seed in range(3):
        scorer.masks(some_masks(len(records), seed))
        scorer.subsets(subsets(2))
    assert table.prepared == [len(records)]


def test_what_was_prepared_at_another_rate_is_not_used(records: Records) -> None:
    class Elsewhere(Summing):
        def prepare(self, _records: Records) -> Any:
            raise AssertionError("these records have another rate")

    evaluator = Elsewhere(sampling_rate=50)
    score(evaluator, records, some_masks(len(records)))
    assert evaluator.signals.shape[2] == 40


# what is wrong -------------------------------------------------------------------------------------------------------


def test_empty_mask(records: Records) -> None:
    masks = some_masks(len(records))
    masks[4] = False
    with pytest.raises(InputError, match=r"^A mask is empty; every record must be read with at least one lead\.$"):
        score(Summing(), records, masks)
    with pytest.raises(InputError, match=r"^A mask is empty"):
        Scorer(Summing(), records).pairs(np.array([1]), np.zeros((1, 12), dtype=bool))
    with pytest.raises(InputError, match=r"^A mask is empty"):
        score_subsets(Table(), records, [LeadSet(1), LeadSet(0)])


@pytest.mark.usefixtures("unchecked")
def test_wrong_width(records: Records) -> None:
    sentence = r"^A mask has 12 entries, one a lead; these have 8\.$"
    with pytest.raises(InputError, match=sentence):
        score(Summing(), records, np.ones((len(records), 8), dtype=bool))
    with pytest.raises(InputError, match=sentence):
        score_subsets(Summing(), records, np.ones((5, 8), dtype=bool))


def test_wrong_number_of_masks(records: Records) -> None:
    sentence = r"^There are 18 records but masks for 17; give one mask a record\.$"
    for masks in (some_masks(17), np.stack([some_masks(17)] * 2)):
        with pytest.raises(InputError, match=sentence):
            score(Summing(), records, masks)


def without(cohort: Cohort, row: int, *leads: str) -> Cohort:
    missing = cohort.missing.copy()
    missing[row, [LEADS.index(lead) for lead in leads]] = LENGTH
    return replace(cohort, missing=missing)


def test_unavailable_lead(cohort: Cohort) -> None:
    records = without(cohort, 2, "aVL", "V6")["train"]
    assert records.ids[2] == 103
    masks = np.ones((len(records), 12), dtype=bool)
    masks[2, LEADS.index("aVL")] = False
    with pytest.raises(InputError, match=r"^Record 103 has no lead V6, so it cannot be read with it\.$"):
        score(Summing(), records, masks)
    with pytest.raises(InputError, match=r"^Record 103 has no lead V6"):
        score(Summing(), records, np.stack([some_masks(len(records)) & records.available, masks]))
    for evaluator in (Summing(), Table()):
        with pytest.raises(InputError, match=r"^Record 103 has no lead aVL"):
            score_subsets(evaluator, records, [LeadSet.parse("I"), LeadSet.parse("I aVL")])
    with pytest.raises(InputError, match=r"^Record 103 has no lead V6"):
        Scorer(Summing(), records).pairs(np.array([0, 2]), masks[[0, 2]])
    assert Scorer(Summing(), records).pairs(np.array([0, 3]), masks[[0, 2]]).shape == (2, 3)
    masks[2, LEADS.index("V6")] = False
    assert score(Summing(), records, masks).shape == (len(records), 3)


def test_a_lead_with_a_single_sample_is_available(cohort: Cohort) -> None:
    missing = cohort.missing.copy()
    missing[0, 5] = LENGTH - 1
    records = replace(cohort, missing=missing)["train"]
    assert score(Summing(), records, np.ones((len(records), 12), dtype=bool)).shape == (len(records), 3)


def test_no_records(records: Records) -> None:
    none = records.select(slice(0, 0))
    with pytest.raises(InputError, match=r"^There are no records to score in a selection of the train role; choose"):
        score(Summing(), none, np.ones((0, 12), dtype=bool))
    with pytest.raises(InputError, match=r"^There are no records to score"):
        score_subsets(Summing(), none, SETS)


def test_sealed_records(cohort: Cohort) -> None:
    sealed = cohort["evaluation"]
    trained = LogisticEvaluator(repeats=1).fit(cohort["train"])
    for evaluator in (Summing(), trained):
        with pytest.raises(SealedRole):
            score(evaluator, sealed, np.ones((len(sealed), 12), dtype=bool))
        with pytest.raises(SealedRole):
            score_subsets(evaluator, sealed, SETS)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda n: np.full((n, 2), 0.5), r"^Evaluator Bad answered in shape \(18, 2\), where \(18, 3\) was due\.$"),
        (lambda n: np.full((n + 1, 3), 0.5), r"^Evaluator Bad answered in shape \(19, 3\), where \(18, 3\) was due\.$"),
        (lambda n: np.full(n, 0.5), r"^Evaluator Bad answered in shape \(18,\), where \(18, 3\) was due\.$"),
        (lambda n: np.full((n, 3), 3.5), r"^Evaluator Bad gave 3\.5 as a probability; are these logits\?$"),
        (lambda n: np.full((n, 3), -2.0), r"^Evaluator Bad gave -2 as a probability; are these logits\?$"),
        (
            lambda n: np.where(np.arange(n)[:, None] == 3, np.nan, np.full((n, 3), 0.5)),
            r"^Evaluator Bad gave no finite probability for record 104\.$",
        ),
        (
            lambda n: np.where(np.arange(n)[:, None] == 3, np.inf, np.full((n, 3), 0.5)),
            r"^Evaluator Bad gave no finite probability for record 104\.$",
        ),
    ],
    ids=["too few labels", "too many records", "one column", "logits", "negative", "nan", "infinite"],
)
def test_bad_answers(records: Records, answer: Callable[[int], np.ndarray], sentence: str) -> None:
    class Bad:
        labels = LABELS

        def probabilities(self, signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
            return answer(len(signals))

    class Prepared(Bad):
        name = "Bad"

        def prepare(self, _records: Records) -> Any:
            class Known:
                def probabilities(self, positions: np.ndarray, _masks: np.ndarray) -> np.ndarray:
                    return answer(len(positions))

            return Known()

    masks = np.ones((len(records), 12), dtype=bool)
    for evaluator in (Bad(), Prepared()):
        with pytest.raises(InputError, match=sentence):
            score(evaluator, records, masks)
        with pytest.raises(InputError, match=sentence):
            score_subsets(evaluator, records, [LeadSet(4095)])


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda s, n: np.full((n, s, 3), 0.5), r"answered in shape \(18, 5, 3\), where \(5, 18, 3\) was due"),
        (lambda s, n: np.full((s, n, 2), 0.5), r"answered in shape \(5, 18, 2\), where \(5, 18, 3\) was due"),
        (lambda s, n: np.full((s * n, 3), 0.5), r"answered in shape \(90, 3\), where \(5, 18, 3\) was due"),
        (lambda s, n: np.full((s, n, 3), 1.5), r"gave 1\.5 as a probability; are these logits"),
        (
            lambda s, n: np.where(np.arange(n)[:, None] == 3, np.nan, np.full((s, n, 3), 0.5)),
            r"gave no finite probability for record 104\.",
        ),
    ],
    ids=["transposed", "labels", "flat", "logits", "nan"],
)
def test_bad_answers_of_a_shortcut(records: Records, answer: Callable[[int, int], np.ndarray], sentence: str) -> None:
    class Bad(Table):
        labels = LABELS

        def prepare(self, records: Records) -> Any:
            known = _WithSubsets(records.ids)
            known.subsets = lambda masks: answer(len(masks), len(records))
            return known

    with pytest.raises(InputError, match=rf"^Evaluator Bad {sentence}"):
        score_subsets(Bad(), records, SETS)


@pytest.mark.parametrize(
    "labels", [("A", "B"), ("A", "B", "D"), ("A", "B", "C", "D"), ("A", "B", "B"), ("a", "b", "c")]
)
def test_labels_that_do_not_match(records: Records, labels: tuple[str, ...]) -> None:
    evaluator = Summing(labels, name="mine")
    with pytest.raises(
        InputError, match=rf"^Evaluator mine answers for {', '.join(labels)}; the cohort has A, B, C\.$"
    ):
        score(evaluator, records, some_masks(len(records)))
    assert evaluator.given == [], "it is not even asked"


# memory on disk ------------------------------------------------------------------------------------------------------


def test_a_second_scorer_reads_nothing_again(records: Records, tmp_path: Path) -> None:
    masks, memory = np.stack([some_masks(len(records), seed) for seed in range(3)]), tmp_path / "memory"
    first, second = Summing(), Summing()
    plain = score(Summing(), records, masks)
    scorer = Scorer(first, records, memory=memory)
    np.testing.assert_array_equal(scorer.masks(masks), plain)
    assert scorer.readings == len(pairs_of(masks)) == len(first.masks)
    again = Scorer(second, records, memory=memory)
    np.testing.assert_array_equal(again.masks(masks), plain)
    assert (again.readings, second.given) == (0, [])
    more = some_masks(len(records), 9)
    again.masks(np.concatenate([masks, more[None]]))
    assert again.readings == len(pairs_of(np.concatenate([masks, more[None]]))) - len(pairs_of(masks))


@pytest.mark.parametrize("batch", [1, 4, 256])
@pytest.mark.parametrize("torn", [1, 8, 31])
def test_a_torn_last_row_is_dropped_and_read_again(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, torn: int
) -> None:
    monkeypatch.setattr(scoring, "BATCH", batch)
    masks, memory = some_masks(len(records)), tmp_path / "memory"
    plain = Scorer(Summing(), records, memory=memory).masks(masks)
    content = memory.read_bytes()
    assert len(content) == len(records) * 8 * (1 + len(LABELS))
    memory.write_bytes(content[:-torn])
    evaluator = Summing()
    again = Scorer(evaluator, records, memory=memory)
    assert len(again.remembered[0]) == len(records) - 1
    np.testing.assert_array_equal(again.masks(masks), plain)
    assert again.readings == 1
    assert sorted(memory.read_bytes()) == sorted(content)


def test_what_was_read_before_a_kill_is_kept(records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "BATCH", 4)

    class Dying(Summing):
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            if len(self.given) == 2:
                raise KeyboardInterrupt
            return super().probabilities(signals, masks)

    masks, memory = some_masks(len(records)), tmp_path / "memory"
    with pytest.raises(KeyboardInterrupt):
        Scorer(Dying(), records, memory=memory).masks(masks)
    again = Scorer(Summing(), records, memory=memory)
    np.testing.assert_array_equal(again.masks(masks), score(Summing(), records, masks))
    assert again.readings == len(records) - 8


def test_what_is_remembered_comes_in_order(records: Records, tmp_path: Path) -> None:
    masks = np.stack([some_masks(len(records), seed) for seed in range(4)])
    for kept in ({"remember": True}, {"memory": tmp_path / "memory"}, {"memory": tmp_path / "memory"}):
        scorer = Scorer(Summing(), records, **kept)  # type: ignore[arg-type]
        answers = [scorer.masks(each) for each in masks[::-1]][::-1]
        positions, known, probabilities = scorer.remembered
        assert {(row, tuple(mask)) for row, mask in zip(positions.tolist(), known.tolist(), strict=True)} == pairs_of(
            masks
        )
        code = positions * 4096 + known @ (1 << np.arange(12))
        assert (np.diff(code) > 0).all(), "by position, then mask; each once"
        place = {key: row for row, key in enumerate(code.tolist())}
        for each, answer in zip(masks, answers, strict=True):
            rows = [place[key] for key in (np.arange(len(records)) * 4096 + each @ (1 << np.arange(12))).tolist()]
            np.testing.assert_array_equal(probabilities[rows], answer)


def test_without_being_told_nothing_is_remembered(records: Records) -> None:
    scorer = Scorer(Summing(), records)
    scorer.masks(some_masks(len(records)))
    assert len(scorer.remembered[0]) == 0


# what is read together and what is left over --------------------------------------------------------------------------

TOGETHER = 4


class LeavingOver(Summing):
    """Its engine reads four at a time, and what is left over otherwise: the last bits differ."""

    def prepare(self, records: Records) -> "LeavingOver":
        self.recordings = records.signals
        return self

    together, batch = TOGETHER, 2 * TOGETHER

    def probabilities(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
        told = self.recordings.millivolts(positions) * masks[..., None]
        answer = super().probabilities(told, masks)
        answer[len(answer) // TOGETHER * TOGETHER :] *= 1 - 1e-9
        return answer


def test_whole_batches_make_answers_independent_of_what_else_is_asked(records: Records, tmp_path: Path) -> None:
    masks = some_masks(len(records))
    everyone = np.arange(len(records))
    alone = [Scorer(LeavingOver(), records, whole=True).pairs(everyone[[i]], masks[[i]])[0] for i in everyone]
    scorer = Scorer(LeavingOver(), records, memory=tmp_path / "memory", whole=True)
    np.testing.assert_array_equal(scorer.pairs(everyone[3:], masks[3:]), alone[3:])
    np.testing.assert_array_equal(scorer.masks(masks), alone)
    assert scorer.readings == len(records), "what fills a batch up is not counted, or kept"
    assert len(scorer.remembered[0]) == len(records)
    again = Scorer(LeavingOver(), records, memory=tmp_path / "memory", whole=True)
    np.testing.assert_array_equal(again.masks(masks), alone)
    assert again.readings == 0


@pytest.mark.parametrize("before", [0, 1, 5, 17])
def test_with_a_source_no_answer_depends_on_what_was_asked_of_it(records: Records, before: int) -> None:
    """Equal to the bit to a scorer without one; read again is only what is left over."""
    several = [some_masks(len(records), seed) for seed in range(3)]
    plain = Scorer(LeavingOver(), records, remember=True)
    expected = [plain.masks(masks) for masks in several]
    source = Scorer(LeavingOver(), records, remember=True, whole=True)
    everyone = np.arange(len(records))
    source.pairs(everyone[:before], several[1][:before])
    scorer = Scorer(source.evaluator, records, remember=True, source=source)
    for masks, answer in zip(several, expected, strict=True):
        np.testing.assert_array_equal(scorer.masks(masks), answer)
    for mine, theirs in zip(scorer.remembered, plain.remembered, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert scorer.readings < 3 * TOGETHER
    assert source.readings + scorer.readings <= plain.readings + before
