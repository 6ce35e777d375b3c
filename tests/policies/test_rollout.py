"""Rollouts, and what a policy sees in them, against stepping record by record."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from analysis.coverage import Reader, records_of, varied_records
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, LeadwiseError
from leadwise.evaluators.scoring import score
from leadwise.evaluators.statistics import lead_statistics
from leadwise.leads import LEADS, lead_index
from leadwise.policies.ccga import CCGA
from leadwise.policies.cohort_state import CohortState
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.mga import MGA
from leadwise.policies.observation import Observation
from leadwise.policies.rollout import Rollout, allocate, allocate_budgets, first_available


class Following:
    """Looks at everything: statistics, waveforms, probabilities, mask, remaining budget."""

    name = "following"
    needs_ids = True

    def __init__(self, first_lead: Sequence[str] | None = ("V2", *LEADS), budget_agnostic: bool = False) -> None:
        self.first_lead, self.budget_agnostic = first_lead, budget_agnostic
        self.state_evaluator = self.target = Reader("first")
        self.seen: list[Observation] = []

    def choose(self, observation: Observation) -> np.ndarray:
        self.seen.append(observation)
        told = observation.statistics.sum(axis=(1, 2)) + observation.waveforms().sum(axis=(1, 2), dtype=np.float64)
        if observation.probabilities is not None:
            told = told + 10 * observation.probabilities.sum(axis=1)
        if not self.budget_agnostic:
            told = told + observation.remaining
        preference = np.cos(told[:, None] * (1 + np.arange(12)))
        return np.where(observation.candidates, preference, -2).argmax(axis=1)


class Saying:
    """Says what it is told to say."""

    state_evaluator = None
    first_lead = ("aVR", *LEADS)

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def choose(self, _observation: Observation) -> Any:
        return self.answer


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(40, seed=4)


@pytest.fixture(scope="module")
def poor() -> Records:
    """Records that lack up to eleven leads."""
    whole, rng = varied_records(40, seed=5), np.random.default_rng(6)
    lacking = rng.random((len(whole), 12)).argsort(axis=1) < rng.integers(0, 12, len(whole))[:, None]
    lacking[0], lacking[1] = False, np.arange(12) > 0
    missing = np.where(lacking, whole.length, rng.integers(0, whole.length, lacking.shape))
    return records_of(whole.patients, whole.labels, whole.signals[:], missing)


def by_hand(policy: Following, records: Records, at: int, budget: int) -> list[int]:
    """One record, one lead after the other, from the contract's words alone."""
    record = records[at]
    available = record.available[0]
    order: list[int] = []
    if policy.first_lead is not None:
        order.append(next(lead_index(lead) for lead in policy.first_lead if available[lead_index(lead)]))
    while len(order) < budget:
        mask = np.isin(np.arange(12), order)
        statistics, waveforms = lead_statistics(record).copy(), record.signals.millivolts(slice(None)).copy()
        statistics[0, ~mask], waveforms[0, ~mask] = 0, 0
        seen = Observation(
            ids=record.ids,
            statistics=statistics,
            mask=mask[None],
            available=available[None],
            probabilities=score(policy.state_evaluator, record, mask[None]) if order else None,
            remaining=budget - len(order),
            waveforms=lambda waveforms=waveforms: waveforms,
        )
        order.append(int(policy.choose(seen)[0]))
    return order


@pytest.mark.parametrize("first_lead", [("V2", *LEADS), None], ids=["anchored", "free"])
@pytest.mark.parametrize("which", ["records", "poor"])
def test_all_together_is_one_by_one(
    which: str, first_lead: Sequence[str] | None, request: pytest.FixtureRequest
) -> None:
    records, policy = request.getfixturevalue(which).select(slice(0, 16)), Following(first_lead)
    for budget in (1, 2, 5, 12):
        enough = np.flatnonzero(records.available.sum(axis=1) >= budget)
        expected = [by_hand(policy, records, at, budget) for at in enough]
        allocation = allocate(policy, records, budget)
        assert allocation.order.tolist() == expected
        assert allocation.records.ids.tolist() == records.ids[enough].tolist()
        assert (allocation.policy, allocation.trained_on) == ("following", "first")
    assert len({tuple(order) for order in expected}) > 1


def test_records_with_too_few_leads_are_left_out(poor: Records) -> None:
    leads = poor.available.sum(axis=1)
    assert set(leads) >= {1, 12}
    for k in range(1, 13):
        allocation = allocate(Following(), poor, k)
        assert allocation.records.ids.tolist() == poor.ids[leads >= k].tolist()
        assert not (allocation.masks & ~allocation.records.available).any()
    with pytest.raises(InputError) as refusal:
        allocate(Following(), poor.select(leads < 3), 3)
    assert str(refusal.value) == "No record of a selection of the whole cohort has 3 leads; take a smaller budget."


def test_absent_leads_are_never_offered(poor: Records) -> None:
    policy = Following(None)
    allocate(policy, poor, 4)
    assert [seen.remaining for seen in policy.seen] == [4, 3, 2, 1]
    for step, seen in enumerate(policy.seen):
        of = poor.select(np.isin(poor.ids, seen.ids))
        np.testing.assert_array_equal(seen.available, of.available)
        np.testing.assert_array_equal(seen.candidates, of.available & ~seen.mask)
        assert (seen.mask.sum(axis=1) == step).all()


def test_the_first_lead_is_the_first_of_the_ranking_that_there_is(poor: Records) -> None:
    ranking = ("V5", "aVR", "I", *(lead for lead in LEADS if lead not in ("V5", "aVR", "I")))
    first = allocate(Following(ranking), poor, 1).order[:, 0]
    for lead, has in zip(first, poor.available, strict=True):
        assert LEADS[lead] == next(name for name in ranking if has[LEADS.index(name)])
    assert len(set(first)) > 2
    indices = [lead_index(lead) for lead in ranking]
    np.testing.assert_array_equal(first_available(indices, poor.available), first)


def test_a_plan_may_name_another_first_lead(records: Records) -> None:
    for lead in ("V2", "aVF"):
        rest = [other for other in LEADS if other != lead]
        assert (allocate(Following((lead, *rest)), records, 2).order[:, 0] == lead_index(lead)).all()


def test_an_observation_holds_acquired_leads_and_zeros(records: Records) -> None:
    policy = Following()
    rollout, rng = Rollout(policy, records), np.random.default_rng(0)
    positions = rng.permutation(len(records))[:20]
    mask = rng.random((20, 12)) < 0.4
    mask[:, 2] = True
    seen = rollout.observe(positions, mask, 3)
    assert len(seen) == 20
    assert seen.remaining == 3
    np.testing.assert_array_equal(seen.ids, records.ids[positions])
    np.testing.assert_array_equal(seen.mask, mask)
    statistics, waveforms = lead_statistics(records)[positions], records.signals[positions] / 1000
    np.testing.assert_array_equal(seen.statistics[mask], statistics[mask])
    np.testing.assert_allclose(seen.waveforms()[mask], waveforms[mask], rtol=1e-6)
    assert not seen.statistics[~mask].any()
    assert not seen.waveforms()[~mask].any()
    assert statistics[~mask].any()  # there was something to hide
    assert waveforms[~mask].any()
    whole = np.zeros((len(records), 12), dtype=bool)
    whole[positions] = mask
    whole[:, 2] = True
    np.testing.assert_allclose(seen.probabilities, score(Reader("first"), records, whole)[positions], rtol=1e-12)


def test_nothing_in_an_observation_can_be_widened(records: Records) -> None:
    rng = np.random.default_rng(1)
    mask = rng.random((len(records), 12)) < 0.4
    mask[:, 5] = True
    before = mask.copy()
    seen = Rollout(Following(), records).observe(np.arange(len(records)), mask, 3)
    waveforms = seen.waveforms()
    for field in fields(seen):
        array = getattr(seen, field.name)
        if isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 1
            for each in (array, array.base, array[:1]):
                if isinstance(each, np.ndarray):
                    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                        each.flags.writeable = True
    waveforms_again = seen.waveforms()
    waveforms_again[:] = 7  # their own copy
    mask[:] = True  # the caller's mask, whoever may hold it
    object.__setattr__(seen, "mask", mask)
    np.testing.assert_array_equal(seen.waveforms(), waveforms)
    np.testing.assert_array_equal(replace(seen, mask=mask).waveforms(), waveforms)
    assert not waveforms[~before].any()


def test_ids_are_for_those_who_need_them(records: Records) -> None:
    class Learning(Following):
        needs_ids = False

    for policy in (Learning(), Saying(0)):
        assert Rollout(policy, records).observe(np.array([1, 0]), np.ones((2, 12), dtype=bool), 1).ids is None
    seen = Rollout(Following(), records).observe(np.array([1, 0]), np.ones((2, 12), dtype=bool), 1)
    assert seen.ids is not None
    assert seen.ids.tolist() == records.ids[[1, 0]].tolist()


def test_no_probabilities_without_a_state_evaluator_or_a_lead(records: Records) -> None:
    rollout = Rollout(Saying(0), records)
    assert rollout.observe(np.array([0]), np.ones((1, 12), dtype=bool), 1).probabilities is None
    assert Rollout(Following(), records).observe(np.array([0]), np.zeros((1, 12), dtype=bool), 1).probabilities is None


@pytest.mark.parametrize("budget_agnostic", [False, True])
@pytest.mark.parametrize("which", ["records", "poor"])
def test_several_budgets_at_once(which: str, budget_agnostic: bool, request: pytest.FixtureRequest) -> None:
    records, policy = request.getfixturevalue(which), Following(budget_agnostic=budget_agnostic)
    budgets = [4, 1, 12, 2]
    for budget, together in zip(budgets, allocate_budgets(policy, records, budgets), strict=True):
        alone = allocate(policy, records, budget)
        np.testing.assert_array_equal(together.order, alone.order)
        np.testing.assert_array_equal(together.records.ids, alone.records.ids)
        assert (together.policy, together.trained_on) == (alone.policy, alone.trained_on)


def test_one_rollout_serves_a_policy_that_does_not_look_at_the_budget(records: Records) -> None:
    agnostic, aware = Following(budget_agnostic=True), Following()
    for policy in (agnostic, aware):
        allocate_budgets(policy, records, [2, 3, 4])
    assert len(agnostic.seen) == 3
    assert len(aware.seen) == 1 + 2 + 3


@pytest.mark.parametrize("budget_agnostic", [False, True])
@pytest.mark.parametrize("budget", [-1, 0, 13])
def test_impossible_budgets(records: Records, budget: int, budget_agnostic: bool) -> None:
    policy = Following(budget_agnostic=budget_agnostic)
    for ask in (lambda: allocate(policy, records, budget), lambda: allocate_budgets(policy, records, [3, budget, 4])):
        with pytest.raises(InputError) as refusal:
            ask()
        assert str(refusal.value) == f"A budget of {budget} leads is impossible; it lies between 1 and 12."


def test_no_records(records: Records) -> None:
    nobody = records.select(slice(0, 0))
    for ask in (lambda: allocate(Following(), nobody, 2), lambda: allocate_budgets(Following(), nobody, [2])):
        with pytest.raises(InputError) as refusal:
            ask()
        assert str(refusal.value) == "There are no records in a selection of the whole cohort to choose leads for."


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (np.array([0, 3, 1]), "Policy Saying chose aVR for record 2, which is acquired already."),
        (np.array([0, 7, 7]), "Policy Saying chose V2 for record 2, which was not recorded."),
        (np.array([0, 12, 1]), "Policy Saying chose lead 12; leads are numbered 0 to 11."),
        (np.array([0, -1, 1]), "Policy Saying chose lead -1; leads are numbered 0 to 11."),
        (np.array([0.0, 2.0, 1.0]), "Policy Saying must choose one lead index for each of 3 records."),
        (np.array([True, False, True]), "Policy Saying must choose one lead index for each of 3 records."),
        (np.array([0, 1]), "Policy Saying must choose one lead index for each of 3 records."),
        (np.array([[0, 1, 2]]), "Policy Saying must choose one lead index for each of 3 records."),
        (4, "Policy Saying must choose one lead index for each of 3 records."),
        (["I", "II", "V1"], "Policy Saying answered with an object of type list, which holds no numbers."),
        (None, "Policy Saying answered with an object of type NoneType, which holds no numbers."),
        (
            torch.ones(3, requires_grad=True),
            "Policy Saying answered with an object of type Tensor, which is no NumPy array (Can't call numpy() on "
            "Tensor that requires grad. Use tensor.detach().numpy() instead).",
        ),
    ],
)
def test_choices_that_are_none(answer: Any, sentence: str) -> None:
    missing = np.zeros((3, 12), dtype=int)
    missing[1, 7] = 3
    records = records_of(np.arange(3), np.ones((3, 2), dtype=bool), missing=missing)
    with pytest.raises(InputError) as refusal:
        allocate(Saying(answer), records, 2)
    assert str(refusal.value) == sentence


def test_a_list_of_indices_is_a_choice(records: Records) -> None:
    allocation = allocate(Saying([0] * len(records)), records, 2)
    assert allocation.order.tolist() == [[3, 0]] * len(records)
    assert allocation.trained_on == ""


def test_a_lead_alone_is_a_ranking_of_one(records: Records, poor: Records) -> None:
    for first in ("aVF", ["aVF"], "aVF V1", [5]):
        assert (allocate(Following(first), records, 2).order[:, 0] == lead_index("aVF")).all()
        # a record that lacks it begins with another
        order = allocate(Following(first), poor, 1)
        assert (order.order[:, 0] == lead_index("aVF")).tolist() == order.records.available[:, 5].tolist()
    assert MGA(Reader("first"), "aVF").first_lead == MGA(Reader("first"), ["aVF"]).first_lead
    assert CCGA(Reader("first"), "V3 V1").first_lead[:3] == ("V3", "V1", "I")
    with pytest.raises(LeadwiseError, match="'aVX' is not a lead"):
        MGA(Reader("first"), "aVX")


@pytest.mark.parametrize("policy", ["mga", None, MGA, Reader("first")], ids=["name", "nothing", "class", "evaluator"])
def test_what_is_no_policy(records: Records, policy: Any) -> None:
    with pytest.raises(
        InputError, match=r"^Policy \w+ needs 'choose\(observation\)', 'state_evaluator' and 'first_lead'\.$"
    ):
        allocate(policy, records, 2)


def test_policies_that_were_not_fitted(records: Records) -> None:
    reader = Reader("first")
    for policy in (MGA(reader, "V3"), ECGOnDemand(reader, "V3"), CCGA(reader, "V3"), CohortState(MGA(reader, "V3"))):
        with pytest.raises(InputError, match=r"^\w+ has no '\w+_' before it is fitted; call its fit first\.$"):
            allocate(policy, records, 2)


def test_a_first_lead_that_is_none(records: Records) -> None:
    with pytest.raises(LeadwiseError, match="'aVX' is not a lead"):
        allocate(Following(("aVX",)), records, 2)


def test_a_state_evaluator_for_other_labels() -> None:
    records = records_of(np.arange(3), np.ones((3, 3), dtype=bool))
    with pytest.raises(InputError) as refusal:
        allocate(Following(), records, 2)
    assert str(refusal.value) == "Evaluator first answers for A, B; the cohort has A, B, C."


def test_what_a_policy_sees_and_chooses_prints_on_one_line(records: Records) -> None:
    policy = Following()
    allocation = allocate(policy, records, 3)
    assert [repr(seen) for seen in policy.seen] == [
        f"<Observation of {len(records)} records: {step} leads acquired, {3 - step} to go>" for step in (1, 2)
    ]
    sets = [str(leads) for leads in allocation.lead_sets]
    often = max(sets.count(leads) for leads in sets)
    said = repr(allocation)
    assert said.startswith(f"<Allocation of following trained on first, k = 3: {len(records)} records, ")
    assert said.removesuffix(f" for {often} of them>").split(", ")[-1] in {s for s in sets if sets.count(s) == often}
    assert repr(allocate(Saying([0] * len(records)), records, 2)) == (
        f"<Allocation of Saying, k = 2: {len(records)} records, I aVR for {len(records)} of them>"
    )
