"""CCGA, against neighbours that are found and averaged one by one."""

import numpy as np
import pytest

from analysis.coverage import Reader, varied_records
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.scoring import Scorer
from leadwise.leads import LEADS, lead_index
from leadwise.policies.ccga import CCGA
from leadwise.policies.observation import Observation
from leadwise.policies.rollout import Rollout, allocate
from leadwise.policies.states import candidate_gains, random_states


@pytest.fixture(scope="module")
def train() -> Records:
    return varied_records(60, seed=1)


@pytest.fixture(scope="module")
def policy(train: Records) -> CCGA:
    return CCGA(Reader("first"), ["V3"], states=800, neighbours=25, budgets=(2, 4)).fit(train)


def seen_by(policy: CCGA, records: Records, mask: np.ndarray, remaining: int = 2) -> Observation:
    return Rollout(policy, records).observe(np.arange(len(records)), mask, remaining)


def logits(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


def test_what_it_remembers(policy: CCGA, train: Records) -> None:
    ranking = [lead_index("V3"), *(lead for lead in range(12) if LEADS[lead] != "V3")]
    scorer = Scorer(Reader("first"), train)
    states = random_states(train, ranking, 800, (2, 4), np.random.default_rng([0, 2]))
    np.testing.assert_array_equal(policy.sizes_, states.masks.sum(axis=1))
    np.testing.assert_allclose(policy.logits_, logits(scorer.pairs(states.positions, states.masks)), rtol=1e-6)
    np.testing.assert_array_equal(policy.gains_, candidate_gains(scorer, states).astype(np.float16))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_scores_are_mean_gains_of_the_nearest_states(policy: CCGA, size: int) -> None:
    records, rng = varied_records(15, seed=3), np.random.default_rng(size)
    mask = np.zeros((len(records), 12), dtype=bool)
    mask[:, 8] = True
    for row in mask:
        row[rng.choice([lead for lead in range(12) if lead != 8], size - 1, replace=False)] = True
    seen = seen_by(policy, records, mask)
    scores = policy.scores(seen)
    same_size = np.flatnonzero(policy.sizes_ == size)
    for row, state in enumerate(logits(seen.probabilities)):
        distance = ((policy.logits_[same_size] - state) ** 2).sum(axis=1)
        nearest = same_size[distance.argsort()[:25]]
        for lead in range(12):
            gains = [gain for gain in policy.gains_[nearest, lead].astype(float) if not np.isnan(gain)]
            if gains:
                assert scores[row, lead] == pytest.approx(np.mean(gains), abs=1e-12)
            else:
                assert scores[row, lead] < policy.gains_[~np.isnan(policy.gains_)].min()
    choice = policy.choose(seen)
    np.testing.assert_array_equal(choice, np.where(seen.candidates, scores, -np.inf).argmax(axis=1))
    assert len(set(choice)) > 1


def test_records_with_different_numbers_of_leads_may_stand_together(policy: CCGA) -> None:
    records, rng = varied_records(15, seed=3), np.random.default_rng(0)
    mask = rng.random((len(records), 12)) < 0.2
    mask[:, 8] = True
    together = policy.scores(seen_by(policy, records, mask))
    alone = [policy.scores(seen_by(policy, record, mask[at][None]))[0] for at, record in enumerate(records)]
    np.testing.assert_allclose(together, alone, atol=1e-12)
    assert len(set(mask.sum(axis=1))) > 2


def test_its_state_is_the_probabilities_and_nothing_else(policy: CCGA) -> None:
    records = varied_records(15, seed=3)
    mask = np.zeros((len(records), 12), dtype=bool)
    mask[:, 8] = True
    seen = seen_by(policy, records, mask)
    other = Observation(
        ids=np.arange(len(records)),
        statistics=seen.statistics + 1,
        mask=mask,
        available=seen.available,
        probabilities=seen.probabilities,
        remaining=5,
        waveforms=lambda: np.zeros((len(records), 12, 3)),
    )
    np.testing.assert_array_equal(policy.scores(other), policy.scores(seen))
    turned = np.random.default_rng(0).permutation(len(records))
    other = Observation(
        statistics=seen.statistics,
        mask=mask,
        available=seen.available,
        probabilities=seen.probabilities[turned],
        remaining=2,
        waveforms=seen.waveforms,
    )
    np.testing.assert_allclose(policy.scores(other), policy.scores(seen)[turned], atol=1e-12)


def test_more_leads_than_it_was_meant_for(policy: CCGA) -> None:
    """Its states have up to three leads; with more it goes by those of three, and still finishes."""
    assert policy.sizes_.max() == 3
    records = varied_records(15, seed=3)
    allocation = allocate(policy, records, 12)
    assert allocation.masks.all()
    mask = np.zeros((len(records), 12), dtype=bool)
    mask[:, [8, 1, 4, 5, 6]] = True
    seen = seen_by(policy, records, mask)
    state, three = logits(seen.probabilities)[0], np.flatnonzero(policy.sizes_ == 3)
    nearest = three[((policy.logits_[three] - state) ** 2).sum(axis=1).argsort()[:25]]
    np.testing.assert_allclose(
        policy.scores(seen)[0, 0], np.nanmean(policy.gains_[nearest, 0].astype(float)), atol=1e-12
    )


@pytest.mark.parametrize("neighbours", [1, 10_000])
def test_few_and_many_neighbours(train: Records, neighbours: int) -> None:
    policy = CCGA(Reader("first"), ["V3"], states=300, neighbours=neighbours, budgets=(2,)).fit(train)
    records = varied_records(30, seed=3)
    second = allocate(policy, records, 2).order[:, 1]
    if neighbours == 1:
        assert len(set(second)) > 4  # one state decides, and they differ
    else:
        means = np.nanmean(np.delete(policy.gains_.astype(float), 8, axis=1), axis=0)
        assert set(second) == {np.delete(np.arange(12), 8)[means.argmax()]}  # all states decide, for everyone


def test_without_a_lead_there_is_no_state(policy: CCGA) -> None:
    records = varied_records(5, seed=3)
    with pytest.raises(InputError) as refusal:
        policy.choose(seen_by(policy, records, np.zeros((len(records), 12), dtype=bool)))
    assert str(refusal.value) == "Policy ccga needs a first lead: without probabilities it has no state."
