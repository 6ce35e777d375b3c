"""A table of what a search was answered stands in for the evaluator that answered."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.recalibrated import RecalibratedEvaluator
from leadwise.evaluators.scoring import score_subsets
from leadwise.evaluators.table import TableEvaluator, as_read, logits_of
from leadwise.leads import subsets
from leadwise.references import search_references
from leadwise.search_ledger import answers_of_search


class Slow:
    """A logistic evaluator that reads one lead set after the other, and gives up after so many readings."""

    name, sha256 = "slow", "of the slow evaluator"

    def __init__(self, inner: LogisticEvaluator, fail_after: float = np.inf) -> None:
        self.inner, self.labels, self.left = inner, inner.labels, fail_after

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        self.left -= len(signals)
        if self.left < 0:
            raise KeyboardInterrupt
        return self.inner.probabilities(signals, masks)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return {"ledger": tmp_path / "search.jsonl", "answers": tmp_path / "search.logits"}


def test_a_search_keeps_its_answers_through_a_kill(
    small_cohort: Cohort, controlled: LogisticEvaluator, places: dict[str, Path], tmp_path: Path
) -> None:
    selection = small_cohort["selection"].select(slice(0, 9))
    with pytest.raises(KeyboardInterrupt):
        search_references(Slow(controlled, 31 * 9), selection, [2], **places)
    with places["answers"].open("ab") as file:
        file.write(b"torn")
    whole = search_references(Slow(controlled, 35 * 9), selection, [2], **places)
    table = answers_of_search(Slow(controlled), selection, *places.values())
    assert table is not None
    table.save(tmp_path / "table.safetensors")
    loaded = TableEvaluator.load(tmp_path / "table.safetensors")
    assert (loaded.name, loaded.sha256) == ("slow", "of the slow evaluator")
    again = search_references(loaded, selection, [2])
    pd.testing.assert_frame_equal(again.candidates, whole.candidates, rtol=1e-6)
    truth = score_subsets(controlled, selection, subsets(2))
    np.testing.assert_allclose(score_subsets(loaded, selection, subsets(2)), truth, atol=1e-7)
    some = selection.select(np.array([5, 2]))
    np.testing.assert_allclose(score_subsets(loaded, some, subsets(2)), truth[:, [5, 2]], atol=1e-7)


def test_what_reads_many_lead_sets_at_once_keeps_nothing(
    small_cohort: Cohort, controlled: LogisticEvaluator, places: dict[str, Path]
) -> None:
    selection = small_cohort["selection"]
    search_references(controlled, selection, [1], **places)
    assert answers_of_search(controlled, selection, *places.values()) is None


def test_it_stands_in_for_its_evaluator_and_for_what_derives_from_it(
    small_cohort: Cohort, controlled: LogisticEvaluator, places: dict[str, Path]
) -> None:
    selection = small_cohort["selection"].select(slice(0, 9))
    slow: Any = Slow(controlled)
    search_references(slow, selection, [1], **places)
    table = answers_of_search(slow, selection, *places.values())
    assert table is not None
    slow.left = 0  # it reads no more
    derived = RecalibratedEvaluator(slow, "derived", np.ones(5), np.full(5, 0.5))
    same = Slow(controlled, 0)
    same.name = "same"
    for evaluator in (derived, same):
        read = as_read(evaluator, [table])
        found = search_references(read, selection, [1])
        assert found.evaluator == evaluator.name
    plain = RecalibratedEvaluator(Slow(controlled), "derived", np.ones(5), np.full(5, 0.5))
    one, other = (score_subsets(each, selection, subsets(1)) for each in (as_read(derived, [table]), plain))
    np.testing.assert_allclose(one, other, atol=1e-7)
    assert as_read(controlled, [table]) is controlled


def test_what_it_does_not_have(small_cohort: Cohort, controlled: LogisticEvaluator, places: dict[str, Path]) -> None:
    selection = small_cohort["selection"].select(slice(0, 9))
    search_references(Slow(controlled), selection, [1], **places)
    table: Any = answers_of_search(Slow(controlled), selection, *places.values())
    with pytest.raises(InputError, match=r"does not have the lead set 'I II'\.$"):
        score_subsets(table, selection, subsets(2))
    with pytest.raises(InputError, match=r"does not have record \d+ of the selection role"):
        score_subsets(table, small_cohort["selection"], subsets(1))


def test_logits_give_back_what_a_network_answered() -> None:
    logits = np.linspace(-15, 15, 1001).astype(np.float32)
    np.testing.assert_allclose(logits_of(expit(logits.astype(np.float64))), logits, rtol=3e-7, atol=1e-7)
    assert np.isfinite(logits_of(np.array([0.0, 1.0]))).all()
