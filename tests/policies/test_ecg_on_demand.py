"""ECG-on-Demand: completions by brute force, the listwise loss, redundancy, and the use it makes of the budget."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import log_softmax, softmax

from analysis.coverage import Reader, records_of, varied_records
from leadwise.cohort.cohort import Cohort, Records
from leadwise.policies.ecg_on_demand import ECGOnDemand, completions, lead_correlation
from leadwise.policies.rollout import Rollout, allocate
from leadwise.policies.state_network import StateNetwork


@pytest.fixture(scope="module")
def train() -> Records:
    return varied_records(120, seed=5)


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(40, seed=7)


def fitted(train: Records, **settings: float) -> ECGOnDemand:
    policy = ECGOnDemand(
        Reader("first"), ["V3"], states=1500, budgets=(2, 3, 4), network=StateNetwork(hidden=32, epochs=6), **settings
    )
    policy.fit(train, varied_records(30, seed=6))
    return policy


@pytest.fixture(scope="module")
def policy(train: Records) -> ECGOnDemand:
    return fitted(train)


@given(
    hnp.arrays(np.float64, (3, 12), elements=st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0, 7.0])),
    hnp.arrays(np.bool_, (3, 12)),
    hnp.arrays(np.int64, 3, elements=st.integers(0, 12)),
)
def test_completions_are_the_most_preferred_others(
    preference: np.ndarray, candidates: np.ndarray, further: np.ndarray
) -> None:
    found = completions(preference, candidates, further)
    for row in range(3):
        for candidate in np.flatnonzero(candidates[row]):
            others = [lead for lead in range(12) if candidates[row, lead] and lead != candidate]
            others.sort(key=lambda lead: (-preference[row, lead], lead))
            assert np.flatnonzero(found[row, candidate]).tolist() == sorted(others[: further[row]])
        assert not (found[row] & ~candidates[row]).any()
        assert not found[row].diagonal().any()


def test_the_loss_is_listnet(policy: ECGOnDemand) -> None:
    rng = np.random.default_rng(1)
    outputs, worths = rng.standard_normal((6, 12)), rng.standard_normal((6, 12))
    worths[rng.random((6, 12)) < 0.4] = np.nan
    expected = []
    for s, u in zip(outputs, worths, strict=True):
        known = ~np.isnan(u)
        expected.append(-(softmax(u[known] / policy.temperature) * log_softmax(s[known])).sum())
    loss = policy._loss(torch.tensor(outputs), torch.tensor(worths))
    assert float(loss) == pytest.approx(np.mean(expected), rel=1e-9)


def test_what_cannot_come_next_teaches_nothing(policy: ECGOnDemand) -> None:
    outputs = torch.randn((4, 12), generator=torch.Generator().manual_seed(0), requires_grad=True)
    worths = torch.zeros((4, 12))
    worths[:, 5] = torch.nan
    policy._loss(outputs, worths).backward()
    assert outputs.grad is not None
    assert not outputs.grad[:, 5].any()
    assert outputs.grad.isfinite().all()
    assert outputs.grad[:, :5].any()


def test_choices_change_with_the_remaining_budget(policy: ECGOnDemand, records: Records) -> None:
    everyone, rng = np.arange(len(records)), np.random.default_rng(2)
    rollout = Rollout(policy, records)
    mask = rng.random((len(records), 12)).argsort(axis=1) < 2
    mask[:, 8] = True
    choices = np.array([policy.choose(rollout.observe(everyone, mask, remaining)) for remaining in (1, 2, 3)])
    changed = (choices != choices[0]).any(axis=0)
    assert changed.any()
    scores = [policy.scores(rollout.observe(everyone, mask, remaining)) for remaining in (1, 3)]
    assert (np.abs(scores[0] - scores[1]).max(axis=1) > 1e-6).all()


def test_correlation_over_all_samples(train: Records) -> None:
    signals = train.signals[:].astype(np.float64)
    expected = np.abs(np.corrcoef(signals.transpose(1, 0, 2).reshape(12, -1)))
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(lead_correlation(train), expected, atol=1e-9)


def test_correlation_is_over_records_that_have_both_leads(train: Records) -> None:
    rng, mixed = np.random.default_rng(1), mixture(train)
    missing = 3 * (rng.random((len(train), 12)) < 0.2)
    missing[:, 3] = 3
    signals = np.where(missing[..., None] > 0, rng.integers(-9000, 9000, mixed.signals.shape), mixed.signals[:])
    gapped = records_of(train.patients, train.labels, signals.astype(np.int16), missing)
    correlation, has = lead_correlation(gapped), missing == 0
    assert np.isfinite(correlation).all()
    assert not correlation[3].any()
    for a in (0, 5, 8):
        for b in (1, 6, 11):
            rows = has[:, a] & has[:, b]
            expected = np.corrcoef(signals[rows, a].ravel(), signals[rows, b].ravel())[0, 1]
            assert correlation[a, b] == correlation[b, a] == pytest.approx(abs(expected), abs=1e-9)


def test_redundancy_lowers_scores_by_the_largest_correlation(train: Records, records: Records) -> None:
    policy, mixed = fitted(train, redundancy=0.5), mixture(train)
    policy.correlation_ = lead_correlation(mixed)
    rollout, rng = Rollout(policy, records), np.random.default_rng(2)
    mask = rng.random((len(records), 12)) < 0.3
    mask[:, 8] = True
    seen = rollout.observe(np.arange(len(records)), mask, 2)
    with_it = policy.scores(seen)
    policy.redundancy = 0.0
    without = policy.scores(seen)
    for row in range(len(records)):
        for lead in range(12):
            nearest = max(policy.correlation_[lead, other] for other in np.flatnonzero(mask[row]))
            assert without[row, lead] - with_it[row, lead] == pytest.approx(0.5 * nearest, abs=1e-9)


def test_redundancy_changes_choices_and_alone_decides_when_it_is_huge(train: Records, records: Records) -> None:
    """The policies differ in λ alone, so what is learned is the same; the leads of these recordings overlap."""
    overlapping, held_out = mixture(train), mixture(records)
    none, some, huge = (fitted(overlapping, redundancy=weight) for weight in (0.0, 1.0, 1e6))
    correlation = lead_correlation(overlapping)
    np.testing.assert_array_equal(huge.correlation_, correlation)
    orders = [allocate(policy, held_out, 4).order for policy in (none, some, huge)]
    assert (orders[0] != orders[1]).any()
    for order in orders[2].tolist():
        acquired = [8]
        while len(acquired) < 4:
            others = [lead for lead in range(12) if lead not in acquired]
            acquired.append(min(others, key=lambda lead: max(correlation[lead, other] for other in acquired)))
        assert order == acquired


def mixture(records: Records) -> Records:
    """The same records, their leads mixed so that some are nearly the same."""
    weights = np.random.default_rng(9).standard_normal((12, 5)) @ np.random.default_rng(8).standard_normal((5, 12))
    mixed = np.einsum("ij,njt->nit", weights / 6, records.signals[:].astype(np.float64))
    return Cohort.of(records, np.clip(mixed, -32767, 32767).astype(np.int16)).records
