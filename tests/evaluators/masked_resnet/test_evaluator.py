"""An evaluator around a network: what it reads, what it does not see, and what comes back from a file."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from leadwise.bench.plain import PlainResNet
from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Material, check_evaluator
from leadwise.evaluators.masked_resnet import evaluator as module
from leadwise.evaluators.masked_resnet import kind
from leadwise.evaluators.masked_resnet.evaluator import FORMAT, NetworkEvaluator, shipped_evaluator
from leadwise.evaluators.masked_resnet.kind import MaskedResNet
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.training import Training
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.scoring import Scorer, score
from leadwise.store import read_tensors, write_tensors
from networks import LABELS, tiny_evaluator


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Several would only wait for each other on networks this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user meets, for whom shapes are not checked at the door."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def records(small_cohort: Cohort) -> Records:
    return small_cohort["validation"]


@pytest.fixture
def evaluator() -> NetworkEvaluator:
    return tiny_evaluator()


def by_hand(evaluator: NetworkEvaluator, millivolts: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Standardise, zero, read with torch's own layers, one record after the other."""
    plain = PlainResNet(len(evaluator.labels), evaluator.widths).load(evaluator.network()).eval()
    answers = []
    for one, mask in zip(millivolts, masks, strict=True):
        z = (one - evaluator.mean[:, None]) / evaluator.scale[:, None]
        z[~mask] = 0
        with torch.inference_mode():
            logits = plain(torch.tensor(z[None], dtype=torch.float32), torch.tensor(mask[None], dtype=torch.float32))
        answers.append(expit(logits.numpy().astype(np.float64))[0])
    return np.array(answers)


def test_reads_as_plain_layers_would(records: Records, evaluator: NetworkEvaluator) -> None:
    masks = frozen_masks(len(records))
    answer, expected = (
        score(evaluator, records, masks),
        by_hand(evaluator, records.signals.millivolts(slice(None)), masks),
    )
    assert answer.dtype == np.float64
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-5)
    assert answer.std(axis=0).min() > 1e-3, "and it says something"


def test_keeps_the_contract(records: Records, evaluator: NetworkEvaluator) -> None:
    check_evaluator(evaluator, records)


@pytest.mark.parametrize("rate", [50, 250])
def test_keeps_the_contract_at_another_rate(records: Records, rate: float) -> None:
    check_evaluator(tiny_evaluator(sampling_rate=rate), records.select(slice(0, 6)))


# unobserved leads ----------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_unobserved_samples_do_not_matter(records: Records, seed: int) -> None:
    evaluator, rng = tiny_evaluator(), np.random.default_rng(seed)
    some = records.select(rng.permutation(len(records))[:6])
    masks = rng.random((6, 12)) < 0.4
    masks[:, rng.integers(12)] = True
    other = np.where(masks[..., None], some.signals[:], rng.integers(-32768, 32768, some.signals.shape, dtype=np.int16))
    np.testing.assert_array_equal(
        score(evaluator, Cohort.of(some, other).records, masks), score(evaluator, some, masks)
    )


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_unobserved_samples_do_not_matter_to_the_reading_itself(seed: int) -> None:
    """Scoring is not what hides them from a prepared network."""
    evaluator, rng = tiny_evaluator(), np.random.default_rng(seed)
    masks = rng.random((5, 12)) < 0.5
    z = rng.normal(size=(5, 12, 70)).astype(np.float32)
    other = np.where(masks[..., None], z, rng.normal(0, 100, z.shape).astype(np.float32))
    np.testing.assert_array_equal(evaluator._read(other, masks), evaluator._read(z.copy(), masks))
    np.testing.assert_allclose(
        evaluator._read(z.copy(), masks), evaluator._read(z * masks[..., None], masks), rtol=0, atol=0
    )


def test_observed_samples_do_matter(records: Records, evaluator: NetworkEvaluator) -> None:
    masks = frozen_masks(len(records))
    louder = np.where(masks[..., None], records.signals[:] // 2, records.signals[:])
    assert (
        (score(evaluator, Cohort.of(records, louder).records, masks) != score(evaluator, records, masks))
        .any(axis=1)
        .all()
    )


def test_the_mask_matters_where_all_is_silent(evaluator: NetworkEvaluator) -> None:
    """A lead exactly at its mean standardises to zero, as an unobserved one is: still they are told apart."""
    answers = evaluator._read(np.zeros((12, 12, 64), dtype=np.float32), np.eye(12, dtype=bool))
    assert len(np.unique(answers, axis=0)) == 12


def test_one_reading_leaves_the_next_as_it_was(records: Records, evaluator: NetworkEvaluator) -> None:
    """What is kept for later masks is not spoilt by earlier ones, which zero leads."""
    scorer = Scorer(evaluator, records)
    narrow, wide = np.zeros((len(records), 12), dtype=bool), np.ones((len(records), 12), dtype=bool)
    narrow[:, 4] = True
    before = scorer.masks(wide)
    scorer.masks(narrow)
    np.testing.assert_array_equal(scorer.masks(wide), before)


def test_bounded_memory_changes_nothing(
    records: Records, evaluator: NetworkEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = frozen_masks(len(records))
    kept = evaluator.prepare(records)
    assert kept.z is not None
    expected = score(evaluator, records, masks)
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    assert evaluator.prepare(records).z is None
    np.testing.assert_array_equal(score(evaluator, records, masks), expected)
    check_evaluator(evaluator, records)


def test_the_bound_is_what_the_signals_take(
    records: Records, evaluator: NetworkEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = evaluator.prepare(records).z
    assert z is not None
    for bound, keep in ((z.nbytes, True), (z.nbytes - 1, False)):
        monkeypatch.setattr(module, "KEPT_BYTES", bound)
        assert (evaluator.prepare(records).z is not None) == keep


# on disk -------------------------------------------------------------------------------------------------------------


def test_a_file_brings_back_the_same_evaluator(records: Records, evaluator: NetworkEvaluator, tmp_path: Path) -> None:
    evaluator.save(tmp_path / "a.safetensors")
    again = NetworkEvaluator.load(tmp_path / "a.safetensors", engine="torch")
    assert again.sha256 == evaluator.sha256
    for name in ("name", "labels", "sampling_rate", "widths", "facts"):
        assert getattr(again, name) == getattr(evaluator, name)
    assert {value.dtype for value in again.weights.values()} == {np.dtype(np.float16)}
    masks = frozen_masks(len(records))
    np.testing.assert_array_equal(score(again, records, masks), score(evaluator, records, masks))
    again.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


@pytest.mark.parametrize(
    "other",
    [
        {"labels": LABELS[::-1]},
        {"sampling_rate": 101},
        {"mean": np.arange(12.0)},
        {"scale": np.arange(1.0, 13.0)},
        {"weights": tiny_evaluator(1).weights},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_hash_is_of_all_that_decides_an_answer(other: dict[str, Any]) -> None:
    assert tiny_evaluator(**other).sha256 != tiny_evaluator().sha256


def test_the_hash_is_of_nothing_else() -> None:
    assert tiny_evaluator(name="x", facts={}, engine="auto").sha256 == tiny_evaluator().sha256


def test_a_single_weight_changes_the_hash(evaluator: NetworkEvaluator) -> None:
    before = evaluator.sha256
    for name in evaluator.weights:
        other = {**evaluator.weights, name: evaluator.weights[name].copy()}
        other[name].flat[-1] += 1
        assert tiny_evaluator(weights=other).sha256 != before


def damaged(path: Path, **changes: Any) -> None:
    """The file with other tensors or facts; None takes one away."""
    tensors, facts = read_tensors(path, FORMAT)
    for name, value in changes.items():
        where: dict[str, Any] = facts if name in facts else tensors
        name = name if name in where else f"weights.{name.replace('__', '.')}"
        where[name] = value
        if value is None:
            del where[name]
    facts.pop("format")
    write_tensors(path, tensors, FORMAT, facts)


@pytest.mark.parametrize(
    "changes",
    [
        {"last__bias": None},
        {"blocks__3__first__weight": None},
        {"stem_norm__running_var": None},
        {"mean": None},
        {"scale": None},
        {"last__bias": np.zeros(4, dtype=np.float16)},
        {"stem__weight": np.zeros((4, 12, 15), dtype=np.float16)},
        {"more": np.zeros(4, dtype=np.float16)},
        {"labels": ["CD", "HYP"]},
        {"labels": None},
        {"widths": [4, 4, 8, 16]},
        {"widths": None},
        {"widths": []},
        {"mean": np.zeros(11)},
        {"scale": np.ones((12, 1))},
        {"sampling_rate": None},
    ],
    ids=lambda changes: " ".join(
        f"{name}{'' if value is not None else ' is missing'}" for name, value in changes.items()
    ),
)
@pytest.mark.usefixtures("unchecked")
def test_a_file_that_is_not_whole(evaluator: NetworkEvaluator, tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "a.safetensors"
    evaluator.save(path)
    damaged(path, **changes)
    with pytest.raises(InputError, match=rf"^{path} is not a whole network evaluator \(.*\); save it again\.$"):
        NetworkEvaluator.load(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_file(evaluator: NetworkEvaluator, tmp_path: Path, share: float) -> None:
    path = tmp_path / "a.safetensors"
    evaluator.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=rf"^{path} is not a readable {FORMAT}"):
        NetworkEvaluator.load(path)


def test_a_file_of_another_format(evaluator: NetworkEvaluator, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    evaluator.save(path)
    tensors, facts = read_tensors(path, FORMAT)
    facts.pop("format")
    write_tensors(path, tensors, "leadwise training checkpoint 1", facts)
    with pytest.raises(InputError, match=rf"^{path} holds 'leadwise training checkpoint 1', not '{FORMAT}'"):
        NetworkEvaluator.load(path)
    with pytest.raises(InputError, match=r"nowhere\.safetensors is not a readable"):
        NetworkEvaluator.load(tmp_path / "nowhere.safetensors")


# the shipped one -----------------------------------------------------------------------------------------------------


def test_a_network_that_does_not_ship() -> None:
    for name, remedy in (("stronk", "did you mean 'strong'?"), ("nonsense", "there are mask-robust, strong.")):
        with pytest.raises(InputError) as refusal:
            shipped_evaluator(name)
        assert str(refusal.value) == f"No network ships under the name '{name}'; {remedy}"
    with pytest.raises(InputError, match="No network ships under the name 'controlled'"):
        shipped_evaluator("controlled")


def test_a_network_that_ships(evaluator: NetworkEvaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator.save(tmp_path / "pretrained" / "evaluators" / "tiny.safetensors")
    monkeypatch.setattr(module, "files", lambda package: tmp_path if package == "leadwise" else None)
    assert shipped_evaluator("tiny").sha256 == evaluator.sha256


@pytest.mark.parametrize("other", [None, "train", "validation", "seed", "recipe", "widths", "name"])
def test_what_ships_is_taken_where_it_was_made_just_so_and_else_there_is_a_training(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch, other: str | None
) -> None:
    chosen = MaskedResNet.Settings(seeds=[7], widths=[4, 4, 8, 8], recipe=Recipe(epochs=2, full_epochs=1))
    material = Material("mine", small_cohort["train"], small_cohort["validation"])
    facts = json.loads(json.dumps(MaskedResNet._training(chosen, material).facts)) | (
        {other: "another"} if other else {}
    )
    shipped, trained, asked = tiny_evaluator(facts=facts), tiny_evaluator(1), list[Training]()
    monkeypatch.setattr(kind, "shipped_networks", lambda: iter([tiny_evaluator(2), shipped]))
    monkeypatch.setattr(Training, "run", lambda training: asked.append(training) or trained)
    assert MaskedResNet.shipped(chosen, material) is (None if other else shipped)
    assert MaskedResNet.make(chosen, material) is (trained if other else shipped)
    assert [(each.train, each.validation, each.seed) for each in asked] == (
        [(material.train, material.validation, 7)] if other else []
    )


@pytest.mark.parametrize(
    "other", [None, "name", "seed", "recipe", "epochs_compared_with", "widths", "labels", "train", "validation"]
)
def test_a_training_knows_what_it_would_make(small_cohort: Cohort, other: str | None) -> None:
    """Only if nothing differs, and nothing is left unsaid."""
    training = Training(small_cohort["train"], small_cohort["validation"])
    facts = json.loads(json.dumps(training.facts)) | {"epoch": 47, "nll": 0.3}
    assert training.made(tiny_evaluator(facts=facts | ({other: "another"} if other else {}))) == (other is None)
    unsaid = {name: value for name, value in facts.items() if name != other}
    assert training.made(tiny_evaluator(facts=unsaid)) == (other is None)


def test_epochs_are_compared_as_the_recipe_has_it(small_cohort: Cohort) -> None:
    for batches, said in ((16, "batch statistics of their own"), (0, "averaged batch statistics")):
        training = Training(small_cohort["train"], small_cohort["validation"], recipe=Recipe(norm_batches=batches))
        assert training.facts["epochs_compared_with"] == said


@pytest.mark.parametrize("name", ["strong", "mask-robust"])
def test_what_ships_does_not_say_how_its_epochs_were_compared(name: str) -> None:
    """So no run may take it as its own training's."""
    assert "epochs_compared_with" not in shipped_evaluator(name).facts


def test_records_of_another_cohort(records: Records, evaluator: NetworkEvaluator) -> None:
    other = replace(records.cohort, label_names=("A", "B", "C", "D", "E"))["validation"]
    with pytest.raises(InputError, match="Evaluator tiny answers for CD, HYP, MI, NORM, STTC; the cohort has A, B"):
        score(evaluator, other, frozen_masks(len(other)))
