"""The oracles, against every set of leads and every record, one by one."""

from itertools import combinations

import numpy as np
import pytest

from analysis.coverage import Reader, records_of, varied_records
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, SealedRole
from leadwise.evaluators.scoring import score
from leadwise.leads import subsets
from leadwise.metrics import record_nll
from leadwise.policies.contract import list_oracles
from leadwise.policies.oracle import exhaustive_oracle, greedy_oracle

ORACLES = {"exhaustive": exhaustive_oracle, "greedy": greedy_oracle}


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(12, seed=3)


@pytest.fixture(scope="module")
def poor() -> Records:
    """Records that lack leads: one has a single one, one has two, the others all or nearly all."""
    whole, rng = varied_records(12, seed=4), np.random.default_rng(1)
    lacking = rng.random((len(whole), 12)) < 0.2
    lacking[0], lacking[1] = np.arange(12) != 9, ~np.isin(np.arange(12), [2, 7])
    lacking[2:, [1, 4, 6, 8, 10]] = False
    return records_of(whole.patients, whole.labels, whole.signals[:], np.where(lacking, whole.length, 0))


def losses(records: Records, masks: np.ndarray) -> np.ndarray:
    return record_nll(records.labels, score(Reader("first"), records, masks))


def loss_of(record: Records, leads: tuple[int, ...]) -> float:
    p = score(Reader("first"), record, np.isin(np.arange(12), leads)[None])[0]
    return float(-np.log(np.where(record.labels[0], p, 1 - p)).mean())


def test_every_registered_oracle_has_a_case() -> None:
    assert set(list_oracles()) == set(ORACLES)


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_exactly_k_different_leads(records: Records, name: str) -> None:
    for k in (1, 3, 11, 12):
        allocation = ORACLES[name](Reader("first"), records, k)
        assert allocation.order.shape == (len(records), k)
        assert all(len(set(row)) == k for row in allocation.order.tolist())
        assert (allocation.policy, allocation.trained_on) == ("oracle", "first")


@pytest.mark.parametrize("which", ["records", "poor"])
def test_greedy_takes_the_best_next_lead(which: str, request: pytest.FixtureRequest) -> None:
    records = request.getfixturevalue(which)
    allocation = greedy_oracle(Reader("first"), records, 3)
    for record, order in zip(allocation.records, allocation.order.tolist(), strict=True):
        acquired: tuple[int, ...] = ()
        for lead in order:
            others = [other for other in range(12) if record.available[0, other] and other not in acquired]
            best = min(loss_of(record, (*acquired, other)) for other in others)
            assert loss_of(record, (*acquired, lead)) == pytest.approx(best, abs=1e-12)
            acquired = (*acquired, lead)


def test_greedy_is_nested_and_not_anchored(records: Records) -> None:
    longest = greedy_oracle(Reader("first"), records, 12).order
    for k in (1, 2, 5):
        np.testing.assert_array_equal(greedy_oracle(Reader("first"), records, k).order, longest[:, :k])
    assert len(set(longest[:, 0])) > 2


@pytest.mark.parametrize("which", ["records", "poor"])
def test_exhaustive_takes_the_best_of_all_sets(which: str, request: pytest.FixtureRequest) -> None:
    records = request.getfixturevalue(which)
    allocation = exhaustive_oracle(Reader("first"), records, 2)
    for record, order in zip(allocation.records, allocation.order.tolist(), strict=True):
        pairs = combinations(np.flatnonzero(record.available[0]).tolist(), 2)
        best = min(loss_of(record, pair) for pair in pairs)
        assert loss_of(record, tuple(order)) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_nothing_beats_the_exhaustive_oracle(records: Records, k: int) -> None:
    best = losses(records, exhaustive_oracle(Reader("first"), records, k).masks)
    greedy = losses(records, greedy_oracle(Reader("first"), records, k).masks)
    assert (best <= greedy + 1e-12).all()
    if k == 1:
        np.testing.assert_allclose(greedy, best, atol=1e-12)
    for mask in subsets(k) if k < 4 else subsets(k)[::25]:
        assert (best <= losses(records, np.tile(mask, (len(records), 1))) + 1e-12).all()


def test_labels_decide(records: Records) -> None:
    """The same recordings with the opposite labels are served by other leads."""
    turned = records_of(records.patients, ~records.labels, records.signals[:])
    for oracle in ORACLES.values():
        ours, theirs = (oracle(Reader("first"), each, 3).masks for each in (records, turned))
        assert (ours != theirs).any(axis=1).mean() > 0.8


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_records_with_too_few_leads_are_left_out(poor: Records, name: str) -> None:
    enough = poor.available.sum(axis=1)
    for k in (1, 2, 3):
        allocation = ORACLES[name](Reader("first"), poor, k)
        assert allocation.records.ids.tolist() == poor.ids[enough >= k].tolist()
        assert not (allocation.masks & ~allocation.records.available).any()
    with pytest.raises(InputError) as refusal:
        ORACLES[name](Reader("first"), poor.select(slice(0, 2)), 3)
    assert str(refusal.value) == "No record of a selection of the whole cohort has 3 leads; take a smaller budget."


class Indifferent:
    """Reads nothing, so that nothing but the labels is left to refuse."""

    labels = ("A", "B")

    def prepare(self, _records: Records) -> "Indifferent":
        return self

    def probabilities(self, positions: np.ndarray, _masks: np.ndarray) -> np.ndarray:
        return np.full((len(positions), 2), 0.3)


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_a_sealed_role_is_not_looked_at(records: Records, name: str) -> None:
    sealed = records_of(records.patients, records.labels, records.signals[:], folds=np.full(len(records), 8))
    with pytest.raises(SealedRole):
        ORACLES[name](Reader("first"), sealed, 2)
    with pytest.raises(SealedRole, match="The labels of the whole cohort cannot be read"):
        ORACLES[name](Indifferent(), sealed, 2)


@pytest.mark.parametrize("name", sorted(ORACLES))
@pytest.mark.parametrize("budget", [0, 13])
def test_impossible_budgets(records: Records, name: str, budget: int) -> None:
    with pytest.raises(InputError) as refusal:
        ORACLES[name](Reader("first"), records, budget)
    assert str(refusal.value) == f"A budget of {budget} leads is impossible; it lies between 1 and 12."


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_an_evaluator_for_other_labels(records: Records, name: str) -> None:
    other = records_of(records.patients, np.ones((len(records), 3), dtype=bool), records.signals[:])
    with pytest.raises(InputError) as refusal:
        ORACLES[name](Reader("first"), other, 2)
    assert str(refusal.value) == "Evaluator first answers for A, B; the cohort has A, B, C."


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_no_records(records: Records, name: str) -> None:
    with pytest.raises(InputError, match="a selection of the whole cohort"):
        ORACLES[name](Reader("first"), records.select(slice(0, 0)), 2)
