"""States and their gains, against plain loops."""

import numpy as np
import pytest

from analysis.coverage import Reader, records_of, varied_records
from leadwise.cohort.cohort import Records
from leadwise.evaluators.scoring import Scorer, score
from leadwise.leads import lead_index
from leadwise.metrics import record_nll
from leadwise.policies.learned import _Role
from leadwise.policies.mga import MGA
from leadwise.policies.rollout import allocate
from leadwise.policies.state_network import StateNetwork
from leadwise.policies.states import States, candidate_gains, random_states

RANKING = [3, 6, *(lead for lead in range(12) if lead not in (3, 6))]


@pytest.fixture(scope="module")
def records() -> Records:
    """Some of them lack leads, the first one among them."""
    whole, rng = varied_records(30, seed=4), np.random.default_rng(6)
    lacking = rng.random((len(whole), 12)) < 0.2
    lacking[:5, 3], lacking[5], lacking[6] = True, np.arange(12) != 8, True
    return records_of(whole.patients, whole.labels, whole.signals[:], np.where(lacking, whole.length, 0))


def test_random_states(records: Records) -> None:
    budgets = (2, 4, 8)
    states = random_states(records, RANKING, 6000, budgets, np.random.default_rng(1))
    assert 4000 < len(states) < 6000  # those of records with too few leads are not there
    available, acquired = records.available[states.positions], states.masks.sum(axis=1)
    assert not (states.masks & ~available).any()
    assert (available & ~states.masks).any(axis=1).all()
    for mask, has in zip(states.masks, available, strict=True):
        assert mask[next(lead for lead in RANKING if has[lead])]
    assert set(acquired) == set(range(1, 8))
    assert set(acquired + states.remaining) == set(budgets)
    assert states.remaining.min() == 1
    assert 5 not in states.positions  # one lead, which leaves nothing to choose
    assert 6 not in states.positions  # none


def test_budgets_records_and_leads_are_drawn_evenly() -> None:
    records = varied_records(10, seed=4)
    states = random_states(records, RANKING, 60_000, (1, 2, 4, 8), np.random.default_rng(1))
    assert len(states) == 60_000
    acquired = states.masks.sum(axis=1)
    for k in (2, 4, 8):  # a budget of one leaves nothing to learn
        of_budget = acquired[acquired + states.remaining == k]
        assert len(of_budget) == pytest.approx(20_000, rel=0.05)
        np.testing.assert_allclose(np.bincount(of_budget)[1:], len(of_budget) / (k - 1), rtol=0.1)
    assert states.masks[:, 3].all()
    others = np.delete(states.masks, 3, axis=1)[acquired == 3].mean(axis=0)
    np.testing.assert_allclose(others, 2 / 11, rtol=0.15)
    np.testing.assert_allclose(np.bincount(states.positions), 60_000 / len(records), rtol=0.15)


def test_the_same_generator_draws_the_same(records: Records) -> None:
    one, same, other = (random_states(records, RANKING, 50, (2, 4), np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.masks, same.masks)
    np.testing.assert_array_equal(one.positions, same.positions)
    np.testing.assert_array_equal(one.remaining, same.remaining)
    assert not np.array_equal(one.positions, other.positions)


def test_gains_are_differences_of_scores(records: Records) -> None:
    evaluator, rng = Reader("second"), np.random.default_rng(2)
    states = random_states(records, RANKING, 60, (2, 4, 8), rng)
    further = rng.random((len(states), 12, 12)) < 0.2
    further &= records.available[states.positions][:, None, :]
    gains = candidate_gains(Scorer(evaluator, records), states)
    with_more = candidate_gains(Scorer(evaluator, records), states, further)
    assert (np.abs(gains - with_more) > 1e-6).any()
    for at in range(len(states)):
        record, mask = records[states.positions[at]], states.masks[at]

        def loss(leads: np.ndarray, record: Records = record) -> float:
            p, y = score(evaluator, record, leads[None])[0], record.labels[0]
            return float(-np.log(np.where(y, p, 1 - p)).mean())

        for lead in range(12):
            if mask[lead] or not record.available[0, lead]:
                assert np.isnan(gains[at, lead])
                assert np.isnan(with_more[at, lead])
                continue
            after = mask | (np.arange(12) == lead)
            assert gains[at, lead] == pytest.approx(loss(mask) - loss(after), abs=1e-12)
            assert with_more[at, lead] == pytest.approx(loss(mask) - loss(after | further[at, lead]), abs=1e-12)


def test_with_every_lead_there_is_no_gain() -> None:
    records = varied_records(5, seed=1)
    masks = np.ones((2, 12), dtype=bool)
    masks[1, 4] = False
    gains = candidate_gains(Scorer(Reader("first"), records), States(np.array([2, 2]), masks, np.array([1, 1])))
    np.testing.assert_array_equal(~np.isnan(gains), ~masks)


def test_gains_add_up_along_a_path() -> None:
    """From one lead to twelve, the gains of single steps sum to the whole reduction in NLL."""
    records, evaluator = varied_records(8, seed=2), Reader("third")
    scorer, everyone = Scorer(evaluator, records), np.arange(len(records))
    path = np.random.default_rng(3).permutation(12)
    mask, total = np.zeros((len(records), 12), dtype=bool), np.zeros(len(records))
    mask[:, path[0]] = True
    first = record_nll(records.labels, scorer.masks(mask))
    for lead in path[1:]:
        total += candidate_gains(scorer, States(everyone, mask.copy(), np.ones(len(records), dtype=int)))[:, lead]
        mask[:, lead] = True
    np.testing.assert_allclose(total, first - record_nll(records.labels, scorer.masks(mask)), atol=1e-12)


def test_states_can_be_put_together(records: Records) -> None:
    rng = np.random.default_rng(1)
    one, two = (random_states(records, RANKING, 30, (2, 4), rng) for _ in range(2))
    both = one + two
    assert len(both) == len(one) + len(two)
    for name in ("positions", "masks", "remaining"):
        np.testing.assert_array_equal(getattr(both, name)[: len(one)], getattr(one, name))
        np.testing.assert_array_equal(getattr(both, name)[len(one) :], getattr(two, name))


def test_visited_states_lie_on_the_policys_own_ways() -> None:
    records = varied_records(40, seed=5)
    policy = MGA(Reader("first"), ["V3"], states=400, budgets=(2, 5), network=StateNetwork(hidden=8, epochs=2))
    policy.fit(records, varied_records(20, seed=6))
    states = _Role(policy, records, None).visited(200, np.random.default_rng(1))
    order = allocate(policy, records, 5).order
    assert len(states) == 200 // 5 * 5  # one state on the way to two leads, four on the way to five
    acquired = states.masks.sum(axis=1)
    assert (order[:, 0] == lead_index("V3")).all()
    assert set(zip(acquired.tolist(), states.remaining.tolist(), strict=True)) == {
        (1, 1),
        (1, 4),
        (2, 3),
        (3, 2),
        (4, 1),
    }
    for at, mask, size in zip(states.positions, states.masks, acquired, strict=True):
        assert set(np.flatnonzero(mask)) == set(order[at, :size].tolist())
    assert len({tuple(row) for row in order.tolist()}) > 1
