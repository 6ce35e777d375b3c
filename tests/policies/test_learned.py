"""MGA and ECG-on-Demand: in worlds where the best lead is known they find it, and a file keeps what they learned."""

from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from analysis.coverage import Reader, records_of, varied_records
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, LeadwiseError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.leads import LEADS, lead_index
from leadwise.policies.ccga import CCGA
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.learned import FORMAT, ranking_of_all
from leadwise.policies.mga import MGA
from leadwise.policies.rollout import Rollout, allocate
from leadwise.policies.state_network import StateNetwork
from leadwise.store import read_tensors, write_tensors

AVR, II, V1, V2, V6 = (lead_index(lead) for lead in ("aVR", "II", "V1", "V2", "V6"))


def network(epochs: int = 8) -> StateNetwork:
    return StateNetwork(hidden=32, epochs=epochs, batch=256, learning_rate=5e-3, dropout=0.1)


def settings(kind: type) -> dict[str, Any]:
    return {"neighbours": 30} if kind is CCGA else {"network": network()}


def recordings(levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Six samples about each lead's level in mV."""
    noise = 0.05 * rng.standard_normal((*levels.shape, 6))
    return np.round(1000 * (levels[..., None] + noise)).astype(np.int16)


class World:
    """One label; what an evaluator makes of it is ``toward``, the odds it gives the truth, set by the leads it has."""

    labels = ("A",)
    name = "world"

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        side, confidence = self.read(signals.mean(axis=2, dtype=np.float64), masks)
        return np.where(side > 0, confidence, 1 - confidence)[:, None]

    def read(self, levels: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class Pointing(World):
    """aVR points at V1 or at V6; the label is the sign of that lead, and the other one is noise."""

    def read(self, levels: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = np.where(levels[:, AVR] > 0, V1, V6)
        everyone = np.arange(len(levels))
        known = masks[:, AVR] & masks[everyone, at]
        return levels[everyone, at], np.where(known, 0.95, 0.5)

    @staticmethod
    def draw(n: int, seed: int) -> tuple[Records, np.ndarray]:
        rng = np.random.default_rng(seed)
        levels = rng.choice([-1.0, 1.0], (n, 12)) * rng.uniform(0.5, 1.5, (n, 12))
        best = np.where(levels[:, AVR] > 0, V1, V6)
        labels = levels[np.arange(n), best] > 0
        return records_of(np.arange(n), labels[:, None], recordings(levels, rng)), best


class Paired(World):
    """II tells a little about the label at once; V1 and V2 tell all of it, but only together."""

    def read(self, levels: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pair = masks[:, V1] & masks[:, V2]
        side = np.where(pair, levels[:, V1] * levels[:, V2], levels[:, II])
        return side, np.select([pair, masks[:, II]], [0.97, 0.52], 0.5)

    @staticmethod
    def draw(n: int, seed: int) -> Records:
        rng = np.random.default_rng(seed)
        levels = rng.choice([-1.0, 1.0], (n, 12))
        levels[:, II] = levels[:, V1] * levels[:, V2]
        return records_of(np.arange(n), levels[:, II][:, None] > 0, recordings(levels, rng))


# known worlds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand])
def test_the_lead_that_the_first_one_points_at_is_found(kind: Any) -> None:
    train, _ = Pointing.draw(600, seed=1)
    validation, _ = Pointing.draw(200, seed=2)
    test, best = Pointing.draw(400, seed=3)
    policy = kind(Pointing(), ["aVR"], states=4000, budgets=(2, 3), network=network()).fit(train, validation)
    second = allocate(policy, test, 2).order[:, 1]
    assert set(best) == {V1, V6}
    assert (second == best).mean() > 0.9
    both = allocate(policy, test, 3)
    assert both.masks[np.arange(len(test)), best].mean() > 0.9


def test_gains_are_predicted_in_nll() -> None:
    """In that world the lead that is pointed at gains log 2 − log(1/0.95), the others nothing."""
    train, _ = Pointing.draw(600, seed=1)
    validation, _ = Pointing.draw(200, seed=2)
    test, best = Pointing.draw(400, seed=3)
    policy = MGA(Pointing(), ["aVR"], states=4000, budgets=(2, 3), network=network(20)).fit(train, validation)
    mask = np.zeros((len(test), 12), dtype=bool)
    mask[:, AVR] = True
    scores = policy.scores(Rollout(policy, test).observe(np.arange(len(test)), mask, 1))
    assert policy.scores_are_gains
    gain = np.log(2 * 0.95)
    assert scores[np.arange(len(test)), best].mean() == pytest.approx(gain, abs=0.1)
    scores[np.arange(len(test)), best] = 0
    assert np.delete(scores, AVR, axis=1).mean() == pytest.approx(0, abs=0.05)


def test_what_pays_at_the_end_of_the_budget_is_found() -> None:
    """With one lead to go II is best; with two, V1 and V2 are, neither of which gains anything by itself."""
    policy = ECGOnDemand(Paired(), ["aVR"], temperature=2.0, states=6000, budgets=(2, 3), network=network(16))
    policy.fit(Paired.draw(600, seed=1), Paired.draw(200, seed=2))
    test = Paired.draw(300, seed=3)
    assert (allocate(policy, test, 2).order[:, 1] == II).mean() > 0.9
    assert allocate(policy, test, 3).masks[:, [V1, V2]].all(axis=1).mean() > 0.9


def test_a_myopic_policy_takes_what_pays_at_once() -> None:
    policy = MGA(Paired(), ["aVR"], states=6000, budgets=(2, 3), network=network(12))
    policy.fit(Paired.draw(600, seed=1), Paired.draw(200, seed=2))
    test = Paired.draw(300, seed=3)
    for k in (2, 3):
        assert (allocate(policy, test, k).order[:, 1] == II).mean() > 0.9


# what is learned from ------------------------------------------------------------------------------------------------


def test_the_loss_of_mga_is_the_squared_error_of_what_could_come_next() -> None:
    policy = MGA(Reader("first"), ["V1"])
    outputs, targets = torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[0.0, 5.0, torch.nan]])
    assert float(policy._loss(outputs, targets)) == pytest.approx((1 + 9) / 2)


class Silent:
    """An evaluator that never changes its mind."""

    labels = ("A", "B")

    def probabilities(self, signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
        return np.full((len(signals), 2), 0.3)


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand, CCGA])
def test_where_nothing_is_gained_leads_are_chosen_all_the_same(kind: Any) -> None:
    records = varied_records(20, seed=1)
    policy = kind(Silent(), ["V1"], states=100, **settings(kind)).fit(records, records)
    assert allocate(policy, records, 12).masks.all()


class Watched(MGA):
    """Tells where its training states come from."""

    def _targets(self, scorer: Any, states: Any, inputs: Any, number: int, rng: Any) -> Any:
        rounds = self.__dict__.setdefault("rounds", [])
        own = allocate(self, scorer.records, max(self.budgets)).order if number else None
        rounds.append((number, states, own))
        return super()._targets(scorer, states, inputs, number, rng)


def test_the_second_round_adds_states_that_the_first_led_to() -> None:
    train, validation = varied_records(60, seed=1), varied_records(30, seed=2)
    policy = Watched(Reader("first"), ["V1"], states=800, own=0.5, budgets=(2, 4), network=network())
    policy.fit(train, validation)
    assert [number for number, _, _ in policy.rounds] == [0, 0, 1, 1]
    for (_, random, _), (_, both, own) in zip(policy.rounds[:2], policy.rounds[2:], strict=True):
        np.testing.assert_array_equal(both.masks[: len(random)], random.masks)
        assert len(both) > 1.5 * len(random)

        def on_its_way(states: Any, part: slice, own: np.ndarray = own) -> np.ndarray:
            pairs = zip(states.positions[part], states.masks[part], strict=True)
            return np.array([set(np.flatnonzero(mask)) == set(own[at, : mask.sum()].tolist()) for at, mask in pairs])

        assert on_its_way(both, slice(len(random), None)).all()
        assert not on_its_way(random, slice(None)).all()


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand])
def test_without_rollouts_of_its_own_it_learns_in_one_round(kind: Any) -> None:
    records = varied_records(20, seed=1)
    policy = kind(Reader("first"), ["V1"], states=200, own=0.0, network=network(3)).fit(records, records)
    assert len(policy.history_) == 3
    assert allocate(policy, records, 3).k == 3


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand, CCGA])
def test_another_state_evaluator_is_what_it_sees(kind: Any) -> None:
    train, records = varied_records(60, seed=1), varied_records(30, seed=2)
    target, other = Reader("first"), Reader("second")
    policy = kind(target, ["V1"], state_evaluator=other, name="strong", states=400, **settings(kind)).fit(train, train)
    assert policy.state_evaluator is other
    allocation = allocate(policy, records, 3)
    assert (allocation.policy, allocation.trained_on) == ("strong", "first")
    own = kind(target, ["V1"], states=400, **settings(kind)).fit(train, train)
    assert (allocate(own, records, 6).order != allocate(policy, records, 6).order).any()


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand, CCGA])
def test_records_that_lack_leads_can_be_learned_from(kind: Any) -> None:
    whole, rng = varied_records(60, seed=1), np.random.default_rng(0)
    lacking = rng.random((len(whole), 12)) < 0.3
    lacking[:6] = True
    lacking[:6, [2, 3]] = False
    poor = records_of(whole.patients, whole.labels, whole.signals[:], np.where(lacking, whole.length, 0))
    policy = kind(Reader("first"), ["V1"], states=600, **settings(kind)).fit(poor, poor)
    allocation = allocate(policy, poor, 2)
    assert len(allocation.records) == len(poor)
    has_v1 = poor.available[:, V1]
    assert (allocation.order[has_v1, 0] == V1).all()
    assert (allocation.order[~has_v1 & poor.available[:, 0], 0] == 0).all()


def test_rankings_begin_with_what_is_named() -> None:
    assert ranking_of_all(["avr"]) == ("aVR", *(lead for lead in LEADS if lead != "aVR"))
    assert ranking_of_all(["V6", "II"])[:3] == ("V6", "II", "I")
    assert sorted(ranking_of_all(["V6", "II"])) == sorted(LEADS)
    assert ranking_of_all(LEADS[::-1]) == LEADS[::-1]


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand, CCGA])
def test_few_records_with_enough_leads_are_enough(kind: Any) -> None:
    """Nine records in ten have two leads; the policy's own states come from those that have as many as the budget."""
    whole = varied_records(60, seed=5)
    missing = np.where(np.arange(12) >= 2, whole.length, 0) * (np.arange(len(whole)) % 10 > 0)[:, None]
    poor = records_of(whole.patients, whole.labels, whole.signals[:], missing)
    policy = kind(Reader("first"), ["I"], states=40, budgets=[4], **settings(kind)).fit(poor, poor)
    assert allocate(policy, poor, 4).order.shape == (-(-len(whole) // 10), 4)


@pytest.mark.parametrize("kind", [MGA, ECGOnDemand, CCGA])
def test_records_of_one_lead_teach_nobody_to_choose(kind: Any) -> None:
    whole = varied_records(30, seed=5)
    missing = np.tile(np.where(np.arange(12) > 0, whole.length, 0), (len(whole), 1))
    poor = records_of(whole.patients, whole.labels, whole.signals[:], missing)
    with pytest.raises(InputError, match="its records have too few leads for a policy to learn from"):
        kind(Reader("first"), ["I"], states=40, **settings(kind)).fit(poor, poor)


@pytest.mark.parametrize(("states", "own"), [(0, 0.5), (1, 0.5), (19, 0.5), (9, 0.0), (100, 0.05)])
def test_too_few_states_are_refused_before_anything_is_read(states: int, own: float) -> None:
    with pytest.raises(InputError, match=r"With [\d,]+ states a round of training learns from"):
        MGA(Reader("first"), ["I"], states=states, own=own)


@pytest.mark.parametrize(
    ("first_lead", "sentence"),
    [
        (["V7"], "'V7' is not a lead; the twelve leads are I II III"),
        (["V1", "v1"], "The first lead is given as 'V1 v1'; name one or more different leads."),
        ([], "The first lead is given as ''; name one or more different leads."),
        (3, "The first lead is given as 3; name it, as in 'aVR'."),
        (None, "The first lead is given as None; name it, as in 'aVR'."),
    ],
)
@pytest.mark.parametrize("kind", [MGA, ECGOnDemand, CCGA])
def test_first_leads_that_are_none(kind: Any, first_lead: Any, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for a user, whose types nobody checks
    with pytest.raises(LeadwiseError, match=sentence):
        kind(Reader("first"), first_lead)


# files ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def train() -> Records:
    return varied_records(80, seed=1)


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(30, seed=2)


@pytest.fixture(scope="module")
def evaluators(train: Records) -> list[LogisticEvaluator]:
    return [LogisticEvaluator(name, seed=seed).fit(train) for seed, name in enumerate(("controlled", "strong"))]


@pytest.fixture(scope="module", params=[MGA, ECGOnDemand, CCGA], ids=lambda kind: kind.kind)
def policy(request: pytest.FixtureRequest, train: Records, evaluators: list[LogisticEvaluator]) -> Any:
    kind = request.param
    more = {"redundancy": 0.3, "temperature": 0.7} if kind is ECGOnDemand else {}
    policy = kind(evaluators[0], ["V5", "I"], name="mine", states=600, budgets=(2, 4), seed=4, **more, **settings(kind))
    return policy.fit(train, train)


@pytest.fixture
def path(policy: Any, tmp_path: Path) -> Path:
    policy.save(tmp_path / "policy.safetensors")
    return tmp_path / "policy.safetensors"


def named(*evaluators: Any) -> dict[str, Any]:
    """Evaluators by name, as files find them."""
    return {each.name: each for each in evaluators}


def test_a_file_keeps_the_policy(
    policy: Any, path: Path, evaluators: list[LogisticEvaluator], records: Records
) -> None:
    again = type(policy).load(path, named(evaluators[0]))
    for k in (1, 2, 4, 7, 12):
        np.testing.assert_array_equal(allocate(again, records, k).order, allocate(policy, records, k).order)
    assert len({tuple(row) for row in allocate(again, records, 7).order.tolist()}) > 1
    mask = np.zeros((len(records), 12), dtype=bool)
    mask[:, 10] = True
    seen = Rollout(policy, records).observe(np.arange(len(records)), mask, 3)
    np.testing.assert_array_equal(again.scores(seen), policy.scores(seen))
    for name in ("name", "first_lead", "states", "budgets", "seed"):
        assert getattr(again, name) == getattr(policy, name)
    assert again.first_lead[:3] == ("V5", "I", "II")
    if isinstance(policy, ECGOnDemand):
        assert (again.redundancy, again.temperature) == (0.3, 0.7)
    assert allocate(again, records, 2).trained_on == "controlled"


def test_a_file_is_the_same_every_time(
    policy: Any, path: Path, evaluators: list[LogisticEvaluator], tmp_path: Path
) -> None:
    type(policy).load(path, named(evaluators[0])).save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_two_evaluators_are_both_remembered(
    policy: Any, evaluators: list[LogisticEvaluator], train: Records, records: Records, tmp_path: Path
) -> None:
    kind, (seen, target) = type(policy), evaluators
    path = tmp_path / "policy.safetensors"
    mixed = kind(target, ["V5"], state_evaluator=seen, states=300, **settings(kind)).fit(train, train)
    mixed.save(path)
    again = kind.load(path, named(seen, target))
    assert allocate(again, records, 3).trained_on == "strong"
    np.testing.assert_array_equal(allocate(again, records, 3).order, allocate(mixed, records, 3).order)
    with pytest.raises(InputError, match=r"was trained with the target strong .*; this is controlled"):
        kind.load(path, named(seen) | {"strong": seen})
    with pytest.raises(InputError, match=r"was trained with the state evaluator controlled .*; this is strong"):
        kind.load(path, named(target) | {"controlled": target})
    with pytest.raises(InputError, match=r"needs 'strong', which is not here; there are controlled\.$"):
        kind.load(path, named(seen))  # results would say that it was trained on the wrong one


def test_another_evaluator_is_refused(policy: Any, path: Path, evaluators: list[LogisticEvaluator]) -> None:
    with pytest.raises(InputError) as refusal:
        type(policy).load(path, {"controlled": evaluators[1]})
    assert str(refusal.value) == (
        f"{path} was trained with the target controlled ({evaluators[0].sha256[:12]}); "
        f"this is strong ({evaluators[1].sha256[:12]})."
    )
    with pytest.raises(InputError, match=r"this is Silent \(no hash\)"):
        type(policy).load(path, {"controlled": Silent()})


def test_another_kind_is_refused(policy: Any, path: Path, evaluators: list[LogisticEvaluator]) -> None:
    for other in {MGA, ECGOnDemand, CCGA} - {type(policy)}:
        with pytest.raises(InputError) as refusal:
            other.load(path, named(evaluators[0]))
        assert str(refusal.value) == f"{path} holds a policy of kind '{policy.kind}', not '{other.kind}'."


@pytest.mark.parametrize("format", ["leadwise policy 0", "leadwise logistic evaluator 1"])
def test_another_format_is_refused(policy: Any, path: Path, evaluators: list[LogisticEvaluator], format: str) -> None:
    tensors, facts = read_tensors(path, FORMAT)
    write_tensors(path, tensors, format, {name: value for name, value in facts.items() if name != "format"})
    with pytest.raises(InputError) as refusal:
        type(policy).load(path, named(evaluators[0]))
    assert str(refusal.value) == f"{path} holds '{format}', not 'leadwise policy 1'; make the file again."


def test_files_that_are_none(policy: Any, path: Path, evaluators: list[LogisticEvaluator], tmp_path: Path) -> None:
    whole = path.read_bytes()
    other = tmp_path / "other.safetensors"
    for content in (b"", b"garbage" * 40, whole[:5], whole[:200], whole[: len(whole) // 2], whole[:-1]):
        other.write_bytes(content)
        with pytest.raises(InputError, match=r"other.safetensors is not a readable leadwise policy 1: "):
            type(policy).load(other, named(evaluators[0]))
    with pytest.raises(InputError, match=r"absent.safetensors is not a readable leadwise policy 1: "):
        type(policy).load(tmp_path / "absent.safetensors", named(evaluators[0]))
    save_file({"mean": np.zeros(2)}, other)
    with pytest.raises(InputError, match="holds 'None', not 'leadwise policy 1'"):
        type(policy).load(other, named(evaluators[0]))


def test_a_file_that_lacks_something_is_refused(policy: Any, path: Path, evaluators: list[LogisticEvaluator]) -> None:
    tensors, facts = read_tensors(path, FORMAT)
    del facts["format"]
    lacking = [({}, facts)]
    lacking += [({name: value for name, value in tensors.items() if name != left}, facts) for left in tensors]
    needed = facts.keys() - {"known_gains"}  # which files did not always have
    lacking += [(tensors, {name: value for name, value in facts.items() if name != left}) for left in needed]
    lacking += [(tensors, facts | {"settings": facts["settings"] | {"flavour": 3}})]
    for some_tensors, some_facts in lacking:
        write_tensors(path, some_tensors, FORMAT, some_facts)
        with pytest.raises(InputError, match="is not a whole policy"):
            type(policy).load(path, named(evaluators[0]))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"own": 1.0}, "A share of 1.0 of own states is impossible"),
        ({"own": -0.1}, "A share of -0.1 of own states is impossible"),
        ({"budgets": (1,)}, "give it a budget of two or more"),
        ({"budgets": ()}, "give it a budget of two or more"),
        ({"budgets": (2, 13)}, "A budget of 13 leads is impossible"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        MGA(Silent(), ["aVR"], **settings)
