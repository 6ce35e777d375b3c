"""Every registered policy keeps the contract, and `check_policy` finds each way of breaking it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.coverage import Reader, varied_records
from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import InputError, LeadwiseError, SealedRole
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.statistics import STATISTICS
from leadwise.leads import LEADS, lead_index
from leadwise.policies import contract
from leadwise.policies.contract import (
    POLICIES,
    Material,
    Policy,
    check_policy,
    list_oracles,
    list_policies,
    register_oracle,
)
from leadwise.policies.observation import Observation
from leadwise.policies.rollout import Rollout, allocate
from leadwise.policies.saved import load_policy

LEARNED = {"states": 1500, "hidden": 32, "epochs": 4}
REGISTERED: dict[str, dict[str, Any]] = {
    "mga": LEARNED,
    "ecg-on-demand": LEARNED,
    "ccga": {"states": 1500, "neighbours": 40},
    "cohort-state": {"of": "ecg-on-demand"},
    "random-subset": {},
}
"""Settings with which a policy of every registered kind is made in a second, to be checked below; a new one is named
here, so that somebody has thought of it."""

ORACLES = {"exhaustive", "greedy"}

FIRST = "aVR"


def build(
    name: str,
    evaluator: Any,
    train: Records,
    validation: Records,
    seed: int = 5,
    ranking: Sequence[str] = (FIRST,),
    policies: Mapping[str, Any] | None = None,
) -> Any:
    """A policy of a kind, called as the kind is; cohort-state is of another one, which is built if it is not given."""
    settings, kind = dict(REGISTERED[name]), POLICIES.find(name)
    if "of" in settings and policies is None:
        policies = {settings["of"]: build(settings["of"], evaluator, train, validation, seed, ranking)}
    settings |= {"seed": seed} if "seed" in kind.Settings.model_fields else {}
    settings |= {"target": "reader"} if "target" in kind.Settings.model_fields else {}
    material = Material(name, train, validation, (2, 3, 4, 6, 8), ranking, {"reader": evaluator}, policies or {})
    return kind.make(kind.Settings(**settings), material)


@pytest.fixture(scope="module")
def cohort(small_cohort: Cohort) -> Cohort:
    return small_cohort


@pytest.fixture(scope="module")
def policies(cohort: Cohort, controlled: LogisticEvaluator) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in REGISTERED:
        made[name] = build(name, controlled, cohort["train"], cohort["validation"], policies=made)
    return made


@pytest.fixture
def records(cohort: Cohort) -> Records:
    """Records that no policy has met: the 80 of the selection and audit roles."""
    return cohort.records.select(np.isin(cohort.folds, (9, 10)))


# registered policies -------------------------------------------------------------------------------------------------


def test_every_registered_policy_and_oracle_has_a_case() -> None:
    assert set(list_policies()) == set(REGISTERED)
    assert set(list_oracles()) == ORACLES
    assert list_policies() == sorted(REGISTERED)
    assert list_oracles() == sorted(ORACLES)


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_policies_keep_the_contract(policies: dict[str, Any], cohort: Cohort, name: str) -> None:
    assert isinstance(policies[name], Policy)
    assert policies[name].name == name
    check_policy(policies[name], cohort["selection"], budgets=(2, 4, 12))


@pytest.mark.parametrize("name", REGISTERED)
def test_what_was_not_acquired_changes_no_choice(policies: dict[str, Any], records: Records, name: str) -> None:
    rng = np.random.default_rng(7)
    for budget in (1, 2, 4, 8):
        chosen = allocate(policies[name], records, budget)
        # the last lead is chosen without having been seen, so what it holds does not matter either
        for seen in (chosen.order, chosen.order[:, :-1]):
            acquired = np.zeros((len(records), 12), dtype=bool)
            np.put_along_axis(acquired, seen, True, axis=1)
            noise = rng.integers(-5000, 5000, records.signals.shape).astype(np.int16)
            changed = Cohort.of(records, np.where(acquired[..., None], records.signals[:], noise)).records
            np.testing.assert_array_equal(allocate(policies[name], changed, budget).order, chosen.order)


@pytest.mark.parametrize("name", ["ccga", "ecg-on-demand", "mga"])
def test_what_was_acquired_does_change_choices(policies: dict[str, Any], records: Records, name: str) -> None:
    """Without this the test above would be passed by a policy that looks at nothing."""
    chosen = allocate(policies[name], records, 4)
    noise = np.random.default_rng(7).integers(-5000, 5000, records.signals.shape).astype(np.int16)
    changed = Cohort.of(records, noise).records
    assert (allocate(policies[name], changed, 4).masks != chosen.masks).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("name", REGISTERED)
def test_the_other_records_change_no_choice(policies: dict[str, Any], records: Records, name: str) -> None:
    rng = np.random.default_rng(3)
    for budget in (2, 5):
        together = allocate(policies[name], records, budget).order
        order = rng.permutation(len(records))
        np.testing.assert_array_equal(
            allocate(policies[name], records.select(order), budget).order, together[order], err_msg="in another order"
        )
        some = np.sort(rng.choice(len(records), 7, replace=False))
        np.testing.assert_array_equal(allocate(policies[name], records.select(some), budget).order, together[some])
        np.testing.assert_array_equal(
            np.concatenate([allocate(policies[name], record, budget).order for record in records.select(some)]),
            together[some],
            err_msg="one by one",
        )


@pytest.mark.parametrize("name", REGISTERED)
def test_exactly_k_different_leads(policies: dict[str, Any], records: Records, name: str) -> None:
    for k in range(1, 13):
        allocation = allocate(policies[name], records, k)
        assert allocation.order.shape == (len(records), k)
        assert (np.sort(allocation.order, axis=1) == np.sort(allocation.order, axis=1).clip(0, 11)).all()
        assert all(len(set(row)) == k for row in allocation.order.tolist())
        assert allocation.policy == name
        if name == "random-subset":
            assert allocation.trained_on == ""
        else:
            assert allocation.trained_on == "controlled"
            assert (allocation.order[:, 0] == lead_index(FIRST)).all()


@pytest.mark.parametrize("name", REGISTERED)
def test_the_same_seed_chooses_the_same(
    policies: dict[str, Any], cohort: Cohort, controlled: LogisticEvaluator, records: Records, name: str
) -> None:
    train, validation = cohort["train"], cohort["validation"]
    np.random.seed(1)  # noqa: NPY002  a global seed must not matter
    again = build(name, controlled, train, validation)
    for k in (2, 3, 8):
        np.testing.assert_array_equal(allocate(again, records, k).order, allocate(policies[name], records, k).order)


@pytest.mark.parametrize("name", ["ccga", "ecg-on-demand", "mga", "random-subset"])
def test_another_seed_chooses_otherwise(
    policies: dict[str, Any], cohort: Cohort, controlled: LogisticEvaluator, records: Records, name: str
) -> None:
    other = build(name, controlled, cohort["train"], cohort["validation"], 6)
    assert (allocate(other, records, 6).order != allocate(policies[name], records, 6).order).any()


@pytest.mark.parametrize("name", ["ccga", "mga", "random-subset"])
def test_allocations_without_a_budget_in_sight_are_nested(
    policies: dict[str, Any], records: Records, name: str
) -> None:
    longest = allocate(policies[name], records, 12).order
    for k in range(1, 12):
        np.testing.assert_array_equal(allocate(policies[name], records, k).order, longest[:, :k])


@pytest.mark.parametrize(("name", "share"), [("ccga", 0.5), ("ecg-on-demand", 0.5), ("mga", 0.5)])
def test_learned_choices_follow_the_state(policies: dict[str, Any], records: Records, name: str, share: float) -> None:
    """Give each record the state of another: for most, another lead is chosen somewhere along the way."""
    policy, rng = policies[name], np.random.default_rng(2)
    rollout, everyone = Rollout(policy, records), np.arange(len(records))
    order = rollout.allocate_at(everyone, 8)
    changed = np.zeros(len(records), dtype=bool)
    for step in range(1, 8):
        mask = np.zeros((len(records), 12), dtype=bool)
        np.put_along_axis(mask, order[:, :step], True, axis=1)
        seen = rollout.observe(everyone, mask, 8 - step)
        other = rng.permutation(len(records))
        # the other record's leads under this record's mask, so that only what they hold is exchanged
        theirs = rollout.observe(other, mask, 8 - step)
        exchanged = replace(seen, statistics=theirs.statistics, probabilities=theirs.probabilities)
        changed |= policy.choose(exchanged) != policy.choose(seen)
    assert changed.mean() > share


# other policies ------------------------------------------------------------------------------------------------------


class Good:
    """As little as a policy can be: it inherits nothing and has three members."""

    state_evaluator = None
    first_lead = LEADS

    def choose(self, observation: Observation) -> np.ndarray:
        loudest = observation.statistics[..., STATISTICS.index("deviation")].max(axis=1)
        preference = (np.arange(12) * (1 + (loudest * 1e4).astype(int)[:, None])) % 13
        return np.where(observation.candidates, preference, -1).argmax(axis=1)


class Company(Good):
    """Looks at the mean of the batch."""

    def choose(self, observation: Observation) -> np.ndarray:
        level = observation.statistics.sum(axis=(1, 2))
        order = np.where((level > level.mean())[:, None], np.arange(12), -np.arange(12))
        return np.where(observation.candidates, order, -99).argmax(axis=1)


class Dice(Good):
    """Throws dice that nobody else can throw again."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def choose(self, observation: Observation) -> np.ndarray:
        return np.where(observation.candidates, self.rng.random(observation.mask.shape), -1).argmax(axis=1)


class Peeking(Good):
    """Takes the loudest lead before it is acquired, from records that its state evaluator was prepared for."""

    needs_ids = True

    def __init__(self) -> None:
        self.state_evaluator, peeking = Watching(), self

        def look(records: Records) -> Any:
            peeking.loudness = dict(zip(records.ids.tolist(), records.signals[:].std(axis=2), strict=True))
            return SimpleNamespace(probabilities=lambda positions, _masks: np.full((len(positions), 5), 0.5))

        self.state_evaluator.prepare = look

    def choose(self, observation: Observation) -> np.ndarray:
        loudness = np.array([self.loudness[number] for number in observation.ids.tolist()])
        return np.where(observation.candidates, loudness, -1).argmax(axis=1)


class Widening(Good):
    """Sets its mask, asks for the waveforms again, and takes the loudest lead."""

    def __init__(self, how: str) -> None:
        self.how = how

    def choose(self, observation: Observation) -> np.ndarray:
        candidates = observation.candidates
        try:
            if self.how == "replaces":
                object.__setattr__(observation, "mask", np.ones_like(observation.mask))
            if self.how == "opens":
                observation.mask.flags.writeable = True
            if self.how in ("writes", "tries"):
                observation.mask[:] = True
        except ValueError:
            if self.how != "tries":
                raise
        return np.where(candidates, observation.waveforms().std(axis=2), -1).argmax(axis=1)


class Both(Company, Peeking):
    """Looks at the mean of the batch, and at leads that it has not acquired."""

    def choose(self, observation: Observation) -> np.ndarray:
        alone = Peeking.choose(self, observation)
        together = Company.choose(self, observation)
        return np.where(observation.ids % 2, alone, together)


class Watching:
    """An evaluator that has no opinion."""

    labels = ("CD", "HYP", "MI", "NORM", "STTC")
    prepare: Any

    def probabilities(self, signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
        return np.full((len(signals), 5), 0.5)


def test_a_policy_of_three_members_keeps_the_contract(records: Records) -> None:
    check_policy(Good(), records)
    for n in (1, 2, 5):
        check_policy(Good(), records.select(slice(0, n)))
    assert len({str(leads) for leads in allocate(Good(), records, 3).lead_sets}) > 5  # it does look
    assert allocate(Good(), records, 3).policy == "Good"


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Company(), "Policy Company lets the other records of a batch change its choice."),
        (Dice(), "Policy Dice is not deterministic: asked twice, it chooses differently."),
        (Peeking(), "Policy Peeking lets leads that it has not acquired change its choice."),
        (object(), "Policy object needs 'choose(observation)', 'state_evaluator' and 'first_lead'."),
        (Widening("writes"), "Policy Widening fails with ValueError: assignment destination is read-only."),
        (Widening("opens"), "Policy Widening fails with ValueError: cannot set WRITEABLE flag to True of this array."),
        (
            Both(),
            "Policy Both lets the other records of a batch change its choice.\n"
            "Policy Both lets leads that it has not acquired change its choice.",
        ),
    ],
    ids=["company", "dice", "peeking", "nothing", "writing", "opening", "both"],
)
@pytest.mark.usefixtures("unchecked")
def test_what_check_policy_finds(records: Records, policy: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        check_policy(policy, records)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize("how", ["tries", "replaces"])
def test_a_policy_that_sets_its_mask_sees_nothing_new(records: Records, how: str) -> None:
    honest, widening = Widening("does not"), Widening(how)
    np.testing.assert_array_equal(allocate(widening, records, 5).order, allocate(honest, records, 5).order)
    check_policy(widening, records)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("absent", ["choose", "state_evaluator", "first_lead"])
def test_every_member_is_needed(records: Records, absent: str) -> None:
    members = {name: getattr(Good, name) for name in ("choose", "state_evaluator", "first_lead") if name != absent}
    with pytest.raises(InputError, match="Policy Lacking needs 'choose"):
        check_policy(type("Lacking", (), members)(), records)


def test_check_policy_leaves_out_records_with_too_few_leads(policies: dict[str, Any], records: Records) -> None:
    missing = np.zeros((len(records), 12), dtype=int)
    missing[1, 1:] = records.length  # one lead
    missing[2, :9] = records.length  # three
    poor = replace(Cohort.of(records), missing=missing).records
    for policy in (Good(), policies["mga"], policies["random-subset"]):
        check_policy(policy, poor, budgets=(1, 4))
    with pytest.raises(InputError, match="lets leads that it has not acquired"):
        check_policy(Peeking(), poor, budgets=(2, 4))


def test_a_sealed_role_is_not_looked_at(
    policies: dict[str, Any], cohort: Cohort, controlled: LogisticEvaluator
) -> None:
    for policy in (Good(), *policies.values()):
        with pytest.raises(SealedRole):
            check_policy(policy, cohort["evaluation"])
        with pytest.raises(SealedRole):
            allocate(policy, cohort["evaluation"], 3)
    for name in sorted(REGISTERED.keys() - {"random-subset"}):
        with pytest.raises(SealedRole):
            build(name, controlled, cohort["evaluation"], cohort["validation"])


# the registry --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_policies_are_kept_and_found_again(
    policies: dict[str, Any],
    controlled: LogisticEvaluator,
    records: Records,
    tmp_path: Path,
    name: str,
) -> None:
    """By the kind that a plan names, and by what the file says of itself."""
    file = tmp_path / "any-name.safetensors"
    policies[name].save(file)
    given = ({"controlled": controlled}, policies)
    for loaded in (POLICIES.find(name).load(file, *given), load_policy(file, *given)):
        assert loaded.name == name
        np.testing.assert_array_equal(allocate(loaded, records, 4).order, allocate(policies[name], records, 4).order)


@pytest.mark.parametrize("name", ["mga", "ecg-on-demand", "ccga"])
def test_the_state_of_a_policy_may_be_another_evaluator_s(name: str) -> None:
    kind = POLICIES.find(name)
    assert kind.Settings(target="a").evaluators == ["a"]  # type: ignore[call-arg]
    assert kind.Settings(target="a", state="b").evaluators == ["a", "b"]  # type: ignore[call-arg]
    records, few = varied_records(60, 1), {key: value for key, value in REGISTERED[name].items() if key != "states"}
    readers = {each: Reader(each) for each in ("first", "second")}
    settings = kind.Settings(target="first", state="second", states=300, **few)  # type: ignore[call-arg]
    made: Any = kind.make(settings, Material("mine", records, records, [2, 3], ["V3"], readers))
    assert (made.target, made.state_evaluator, made.name) == (readers["first"], readers["second"], "mine")
    assert (made.budgets, made.first_lead[0]) == ((2, 3), "V3")


def test_anyone_may_register_an_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    list_oracles()
    monkeypatch.setattr(contract, "_ORACLES", dict(contract._ORACLES))

    @register_oracle("all-knowing")
    def oracle(evaluator: Any, records: Records, budget: int) -> Any:
        raise NotImplementedError

    assert "all-knowing" in list_oracles()
    assert "all-knowing" not in list_policies()
    assert callable(oracle)


@pytest.mark.parametrize("name", sorted(REGISTERED.keys() - {"random-subset"}))
def test_an_empty_training_role_is_refused(name: str) -> None:
    records = varied_records(20, 1)
    nobody = records.select(slice(0, 0))
    with pytest.raises(InputError, match=r"There are no records .*in a selection of the whole cohort"):
        build(name, Reader("first"), nobody, records)


@pytest.mark.parametrize("name", ["ecg-on-demand", "mga"])
def test_an_empty_validation_role_is_refused(name: str) -> None:
    records = varied_records(20, 1)
    with pytest.raises(InputError, match=r"There are no records .*in a selection of the whole cohort"):
        build(name, Reader("first"), records, records.select(slice(0, 0)))


@pytest.mark.parametrize("name", sorted(REGISTERED.keys() - {"random-subset"}))
def test_an_evaluator_for_other_labels_is_refused(cohort: Cohort, name: str) -> None:
    with pytest.raises(InputError) as refusal:
        build(name, Reader("first"), cohort["train"], cohort["validation"])
    assert str(refusal.value) == "Evaluator first answers for A, B; the cohort has CD, HYP, MI, NORM, STTC."


@pytest.mark.parametrize("name", sorted(REGISTERED.keys() - {"random-subset"}))
@pytest.mark.parametrize(
    ("first_lead", "sentence"),
    [
        (["aVX"], "'aVX' is not a lead; the twelve leads are"),
        (["V1", "avr", "v1"], "The first lead is given as 'V1 avr v1'; name one or more different leads."),
        ([], "The first lead is given as ''; name one or more different leads."),
    ],
)
def test_a_first_lead_that_is_none(name: str, first_lead: list[str], sentence: str) -> None:
    records = varied_records(20, 1)
    with pytest.raises(LeadwiseError, match=sentence):
        build(name, Reader("first"), records, records, ranking=first_lead)
