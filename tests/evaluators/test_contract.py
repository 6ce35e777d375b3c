"""`check_evaluator` finds each way of breaking the contract, and has nothing to say about evaluators that keep it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import InputError, SealedRole
from leadwise.evaluators.contract import (
    EVALUATORS,
    Evaluator,
    Material,
    check_evaluator,
    evaluator_name,
    evaluator_sha256,
    list_evaluators,
)
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.recalibrated import recalibrate
from leadwise.evaluators.saved import load_evaluator
from leadwise.evaluators.scoring import score, score_subsets
from leadwise.leads import LeadSet

LABELS = ("CD", "HYP", "MI", "NORM", "STTC")

REGISTERED: dict[str, dict[str, Any]] = {
    "logistic": {"class_weight": "none", "repeats": 2},
    "recalibrated": {"of": "plain"},
    "temperature": {"of": "plain"},
    "seed": {"of": "controlled", "seed": 7},
    "masked-resnet": {
        "seeds": [5],
        "widths": [4, 4, 8, 8],
        "recipe": {"epochs": 1, "batch": 64, "full_epochs": 1, "norm_batches": 1},
    },
}
"""Settings of every registered kind, which is checked below; a new one is named here, so somebody has thought of it."""


@pytest.fixture(scope="module")
def cohort(small_cohort: Cohort) -> Cohort:
    return small_cohort


@pytest.fixture
def records(cohort: Cohort) -> Records:
    return cohort["validation"]


class Good:
    """As little as an evaluator can be: it inherits nothing and has two members."""

    labels = LABELS

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        voltage = signals.std(axis=2, dtype=np.float64).sum(axis=1) / masks.sum(axis=1)
        return 1 / (1 + np.exp(-voltage[:, None] * np.arange(1, 6) + 1))


class Prepared(Good):
    """The same with a shortcut that keeps the contract, and switches to break it."""

    def __init__(self, leak: bool = False, differ: bool = False, differ_at_once: bool = False) -> None:
        self.leak, self.differ, self.differ_at_once = leak, differ, differ_at_once

    def prepare(self, records: Records) -> Any:
        return _Known(self, records)


class _Known:
    def __init__(self, of: Prepared, records: Records) -> None:
        self.of, self.deviation = of, records.signals.millivolts(slice(None)).std(axis=2, dtype=np.float64)

    def probabilities(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
        seen = self.deviation[positions] * (masks | self.of.leak)
        voltage = seen.sum(axis=1) / masks.sum(axis=1) + 0.1 * self.of.differ
        return 1 / (1 + np.exp(-voltage[:, None] * np.arange(1, 6) + 1))

    def subsets(self, masks: np.ndarray) -> np.ndarray:
        n = len(self.deviation)
        found = np.stack([self.probabilities(np.arange(n), np.tile(mask, (n, 1))) for mask in masks])
        return found**2 if self.of.differ_at_once else found


def refused(evaluator: Any, records: Records, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_evaluator(evaluator, records)


# what is right -------------------------------------------------------------------------------------------------------


def test_every_registered_evaluator_has_a_case() -> None:
    assert set(list_evaluators()) == set(REGISTERED)
    assert list_evaluators() == sorted(REGISTERED)


@pytest.fixture(scope="module")
def made(cohort: Cohort, controlled: LogisticEvaluator) -> dict[str, Any]:
    """One evaluator of each kind."""
    sources = {"controlled": controlled, "plain": Good()}
    material: dict[str, Any] = {"train": cohort["train"], "validation": cohort["validation"], "evaluators": sources}
    material["candidate"] = controlled
    kinds = {name: EVALUATORS.find(name) for name in REGISTERED}
    return {
        name: kind.make(kind.Settings(**REGISTERED[name]), Material(f"my-{name}", **material))
        for name, kind in kinds.items()
    }


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_evaluators_keep_the_contract(cohort: Cohort, made: dict[str, Any], name: str) -> None:
    assert evaluator_name(made[name]) == f"my-{name}"
    assert isinstance(made[name], Evaluator)
    for role in ("validation", "selection"):
        check_evaluator(made[name], cohort[role])


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_evaluators_are_kept_and_found_again(
    made: dict[str, Any], controlled: LogisticEvaluator, tmp_path: Path, name: str
) -> None:
    """By the kind that a plan names, with what it is made from, and by what the file says of itself."""
    kind, file = EVALUATORS.find(name), tmp_path / "any-name.safetensors"
    made[name].save(file)
    sources: dict[str, Any] = {"controlled": controlled, "Good": Good()}
    for loaded in (kind.load(file, sources), load_evaluator(file, sources)):
        assert (loaded.name, loaded.sha256) == (made[name].name, made[name].sha256)


@pytest.mark.parametrize("name", REGISTERED)
def test_what_is_made_from_the_same_is_the_same(
    cohort: Cohort, controlled: LogisticEvaluator, made: dict[str, Any], name: str
) -> None:
    """Settings that are named twice make the same evaluator; its hash says so, whatever it is called."""
    if name == "masked-resnet":
        pytest.skip("a training is repeated to the bit in its own tests")
    kind = EVALUATORS.find(name)
    sources: dict[str, Any] = {"controlled": controlled, "plain": Good()}
    material = Material("other", cohort["train"], cohort["validation"], sources, controlled)
    again = kind.make(kind.Settings(**REGISTERED[name]), material)
    assert (again.name, again.sha256) == ("other", made[name].sha256)


@pytest.mark.parametrize("evaluator", [Good(), Prepared()], ids=["minimal", "prepared"])
def test_hand_written_evaluators_keep_it(records: Records, evaluator: Any) -> None:
    check_evaluator(evaluator, records)


def test_fewer_records_do(records: Records) -> None:
    for n in (1, 2, 5):
        check_evaluator(Prepared(), records.select(slice(0, n)))


def test_missing_leads_do(records: Records) -> None:
    missing = records.cohort.missing.copy()
    missing[records.rows[:4], 0] = records.length
    missing[records.rows[1], 6:] = records.length
    partial = replace(records.cohort, missing=missing)["validation"]
    check_evaluator(Good(), partial)
    check_evaluator(Prepared(), partial)


@pytest.mark.parametrize(("rate", "length"), [(100, 500), (100, 1200), (50, None), (250, 2000)])
def test_an_evaluator_is_fed_what_it_declares(records: Records, rate: float, length: int | None) -> None:
    """Also while it is checked: one that cannot take any other length must not be handed one."""

    class Particular(Good):
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            assert signals.shape[2] == (length or 10 * rate)
            return super().probabilities(signals, masks)

    evaluator = Particular()
    evaluator.sampling_rate = rate  # type: ignore[attr-defined]
    if length:
        evaluator.length = length  # type: ignore[attr-defined]
    check_evaluator(evaluator, records)


def test_differences_in_the_last_bits_are_none(records: Records) -> None:
    class Rounding(Good):
        calls = 0

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            self.calls += 1
            return super().probabilities(signals, masks) + 1e-9 * self.calls / (self.calls + 1)

    check_evaluator(Rounding(), records)
    with pytest.raises(InputError, match="not deterministic"):
        check_evaluator(Rounding(), records, tolerance=1e-12)


def test_the_cohort_is_left_as_it_was(cohort: Cohort, records: Records) -> None:
    before = records.signals[:].copy()
    check_evaluator(Good(), records)
    np.testing.assert_array_equal(records.signals[:], before)
    assert records.cohort is cohort


# what is wrong -------------------------------------------------------------------------------------------------------


def test_company(records: Records) -> None:
    class Normalising(Good):
        """Divides by the largest voltage of the batch."""

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return super().probabilities(signals / np.abs(signals).max(), masks)

    refused(
        Normalising(), records, r"^Evaluator Normalising lets the other records of a batch change its answer \(prob"
    )


def test_position(records: Records) -> None:
    class Counting(Good):
        """Adds the position in the batch."""

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return super().probabilities(signals, masks) * (1 - 0.01 * np.arange(len(signals))[:, None])

    refused(Counting(), records, r"^Evaluator Counting (lets the other records|answers by the position)")


def test_chance(records: Records) -> None:
    class Rolling(Good):
        rng = np.random.default_rng()

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return super().probabilities(signals, masks) * self.rng.uniform(0.9, 1, (len(signals), 1))

    refused(Rolling(), records, r"^Evaluator Rolling is not deterministic: asked twice, it answers differently \(prob")


def test_logits(records: Records) -> None:
    class Raw(Good):
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            p = super().probabilities(signals, masks)
            return np.log(p / (1 - p))

    refused(Raw(), records, r"^Evaluator Raw gave -?[\d.]+ as a probability; are these logits\?$")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("part", "shape"), [(np.s_[:, :4], r"16, 4"), (np.s_[:, 0], r"16,"), (np.s_[:-1], r"15, 5")])
def test_shape(records: Records, part: Any, shape: str) -> None:
    class Short(Good):
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return super().probabilities(signals, masks)[part]

    refused(Short(), records, rf"^Evaluator Short answered in shape \({shape}\), where \(16, 5\) was due\.$")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("how", ["prepared", "from signals", "at once"])
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda p: torch.tensor(p, requires_grad=True), r"Tensor, which is no NumPy array \(.*detach.*\)\.$"),
        (lambda _: [[0.5], [0.5, 0.5]], r"list, which is no NumPy array \(.*\)\.$"),
        (lambda p: p.astype(str), r"ndarray, which holds no numbers\.$"),
        (lambda _: None, r"NoneType, which holds no numbers\.$"),
        (lambda p: p.astype(complex), r"ndarray, which holds no numbers\.$"),
    ],
    ids=["gradients", "ragged", "text", "nothing", "complex"],
)
def test_answers_that_are_no_arrays_of_numbers(records: Records, answer: Any, sentence: str, how: str) -> None:
    class Odd(Good if how == "from signals" else Prepared):  # type: ignore[misc]
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> Any:
            return answer(super().probabilities(signals, masks))

        def prepared(self, records: Records) -> Any:
            known = _Known(self, records)
            if how == "prepared":
                return SimpleNamespace(probabilities=lambda *given: answer(known.probabilities(*given)))
            return SimpleNamespace(subsets=lambda masks: answer(known.subsets(masks)[0]))

    if how != "from signals":
        Odd.prepare = Odd.prepared
    with pytest.raises(InputError, match="^Evaluator Odd answered with an object of type " + sentence):
        if how == "at once":
            score_subsets(Odd(), records, [LeadSet.parse("I V2")])
        else:
            score(Odd(), records, np.ones((len(records), 12), dtype=bool))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("answer", [torch.tensor, np.ndarray.tolist, lambda p: torch.tensor(p, dtype=torch.float32)])
def test_whatever_numpy_reads_is_an_answer(records: Records, answer: Any) -> None:
    class Other(Good):
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> Any:
            return answer(super().probabilities(signals, masks))

    masks = np.ones((len(records), 12), dtype=bool)
    np.testing.assert_allclose(score(Other(), records, masks), score(Good(), records, masks), rtol=1e-6)


def test_not_a_number(records: Records) -> None:
    class Lost(Good):
        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return np.where(masks.sum(axis=1, keepdims=True) > 5, np.nan, super().probabilities(signals, masks))

    refused(Lost(), records, r"^Evaluator Lost gave no finite probability for record \d+\.$")


def test_labels(records: Records) -> None:
    class Foreign(Good):
        labels = ("CD", "HYP", "MI", "NORM", "AFIB")

    refused(Foreign(), records, r"^Evaluator Foreign answers for CD, HYP, MI, NORM, AFIB; the cohort has CD, HYP, MI,")


def test_other_order_of_labels_is_fine(records: Records) -> None:
    class Reversed(Good):
        labels = LABELS[::-1]

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return super().probabilities(signals, masks)[:, ::-1]

    check_evaluator(Reversed(), records)
    masks = np.ones((len(records), 12), dtype=bool)
    np.testing.assert_array_equal(score(Reversed(), records, masks), score(Good(), records, masks))


def test_leak(records: Records) -> None:
    refused(Prepared(leak=True), records, r"^Evaluator Prepared lets leads matter that were not observed \(prob")


def test_leak_of_a_single_lead(records: Records) -> None:
    class Peeking(Prepared):
        """Looks at V6 alone, and only a little."""

        def prepare(self, records: Records) -> Any:
            known = _Known(self, records)
            plain, last = known.probabilities, records.signals.millivolts(slice(None))[:, 11].max(axis=1)
            known.probabilities = lambda positions, masks: (
                plain(positions, masks)
                * (  # type: ignore[method-assign]
                    1 - 0.01 * np.tanh(last[positions, None])
                )
            )
            return known

    refused(Peeking(), records, r"^Evaluator Peeking lets leads matter that were not observed")


ASKING = {
    "the records": lambda records: records.labels,
    "a selection": lambda records: records.select(slice(0, 2)).labels,
    "one record": lambda records: records[0].labels,
    "each record": lambda records: [record.labels for record in records],
    "the cohort": lambda records: records.cohort.fold(7).labels,
    "a role": lambda records: records.cohort["validation"].labels,
    "the hash": lambda records: records.labels_sha256,
}


@pytest.mark.parametrize("where", ASKING)
def test_preparing_from_labels(records: Records, where: str) -> None:
    class Cheating(Prepared):
        def prepare(self, records: Records) -> Any:
            ASKING[where](records)
            return super().prepare(records)

    refused(Cheating(), records, r"^The labels of .* were asked for where records are handed over without them: what")
    with pytest.raises(InputError, match=r"^The labels of "):
        score(Cheating(), records, np.ones((len(records), 12), dtype=bool))


def test_all_complaints_at_once(records: Records) -> None:
    class Awful(Prepared):
        """Asks for labels, looks at the company, and spoils what it is given."""

        def prepare(self, records: Records) -> Any:
            return records.labels

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            answer = super().probabilities(signals / np.abs(signals).max(), masks)
            signals[:] = 0
            return answer

    with pytest.raises(InputError) as refusal:
        check_evaluator(Awful(), records)
    labels, spoils, company = str(refusal.value).split("\n")
    assert labels.startswith("The labels of ")
    assert spoils == "Evaluator Awful changes the signals or masks that it is given; let it work on a copy."
    assert company.startswith("Evaluator Awful lets the other records of a batch change its answer")


def test_an_evaluator_that_breaks_down_is_a_complaint(records: Records) -> None:
    class Broken(Good):
        def probabilities(self, _signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
            raise RuntimeError("out of\nmemory.")

    refused(Broken(), records, r"^Evaluator Broken fails with RuntimeError: out of memory\.$")


def test_shortcuts_that_differ(records: Records) -> None:
    refused(
        Prepared(differ=True), records, r"^Evaluator Prepared answers differently from prepared records and from sig"
    )
    refused(
        Prepared(differ_at_once=True), records, r"^Evaluator Prepared answers differently for all lead sets at once"
    )


@pytest.mark.parametrize("what", ["signals", "masks"])
@pytest.mark.parametrize("rate", [100, 200])
def test_changing_what_it_is_given(records: Records, what: str, rate: float) -> None:
    class Careless(Good):
        sampling_rate = rate

        def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
            answer = super().probabilities(signals, masks)
            if what == "signals":
                signals -= 0.5
            else:
                masks[:] = True
            return answer

    refused(
        Careless(), records, r"^Evaluator Careless changes the signals or masks that it is given; let it work on a c"
    )


@pytest.mark.usefixtures("unchecked")
def test_missing_members(records: Records) -> None:
    class NoLabels:
        def probabilities(self, signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
            return np.full((len(signals), 5), 0.5)

    class NoProbabilities:
        labels = LABELS

    class Named:
        name = "mine"

    for evaluator, name in ((NoLabels(), "NoLabels"), (NoProbabilities(), "NoProbabilities"), (Named(), "mine")):
        refused(evaluator, records, rf"^Evaluator {name} needs an attribute 'labels' and a method 'probabilities\(sig")


@pytest.mark.usefixtures("unchecked")
def test_an_evaluator_that_was_not_fitted(records: Records) -> None:
    from leadwise.evaluators.logistic import LogisticEvaluator

    masks, empty = np.ones((len(records), 12), dtype=bool), LogisticEvaluator()
    for ask in (
        lambda: check_evaluator(empty, records),
        lambda: score(empty, records, masks),
        lambda: empty.probabilities(records.signals.millivolts(slice(0, 2)), masks[:2]),
        lambda: recalibrate(empty, records, "mine"),
        lambda: empty.sha256,
    ):
        with pytest.raises(
            InputError, match=r"^LogisticEvaluator has no '\w+' before it is fitted; call its fit first\.$"
        ):
            ask()
    assert not hasattr(empty, "depth"), "other attributes are absent as ever"
    for nothing in ("controlled", None, Good.probabilities):
        with pytest.raises(InputError, match=r"^Evaluator \w+ has no 'labels'; give an evaluator that is fitted\.$"):
            score(nothing, records, masks)


def test_sealed_records_are_not_looked_at(cohort: Cohort) -> None:
    with pytest.raises(SealedRole):
        check_evaluator(Good(), cohort["evaluation"])


# names and hashes ----------------------------------------------------------------------------------------------------


def test_names() -> None:
    assert evaluator_name(Good()) == "Good"
    named = Good()
    named.name = "good"  # type: ignore[attr-defined]
    assert evaluator_name(named) == "good"


def test_hashes(made: dict[str, Any]) -> None:
    assert evaluator_sha256(Good()) is None
    one, other = made["logistic"], made["recalibrated"]
    assert evaluator_sha256(one) == one.sha256 != evaluator_sha256(other)


def test_no_file_is_written(records: Records, tmp_path: Path) -> None:
    """A check must not leave statistics of its noise in anybody's cache."""
    own = replace(records.cohort, cache=tmp_path / "kept")
    check_evaluator(Prepared(), own["validation"])
    assert not (tmp_path / "kept").exists()
