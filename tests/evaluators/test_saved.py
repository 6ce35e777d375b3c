"""Any evaluator's file is read by what it holds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from damage import damaged_files, with_facts
from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators import logistic
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.masked_resnet.evaluator import FORMAT, NetworkEvaluator
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.training import Training
from leadwise.evaluators.saved import load_evaluator
from leadwise.evaluators.scoring import score
from leadwise.store import write_tensors
from networks import tiny_evaluator


def test_each_kind_comes_back_as_it_was(small_cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    recipe = Recipe(epochs=1, full_epochs=1, batch=64, norm_batches=0)
    train, validation = (small_cohort[role] for role in ("train", "validation"))
    trained = Training(train, validation, name="mine", recipe=recipe, widths=(4, 4, 8, 8)).run()
    masks = np.tile(np.arange(12) < 3, (len(validation), 1))
    for kind, evaluator in ((LogisticEvaluator, controlled), (NetworkEvaluator, trained)):
        path = tmp_path / "any-name.safetensors"
        evaluator.save(path)
        loaded = load_evaluator(path)
        assert isinstance(loaded, kind)
        assert (loaded.name, loaded.sha256) == (evaluator.name, evaluator.sha256)
        np.testing.assert_array_equal(score(loaded, validation, masks), score(evaluator, validation, masks))
        loaded.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_what_is_no_evaluator_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    write_tensors(path, {"a": np.zeros(2)}, "something else 1", {})
    with pytest.raises(InputError, match=r"file\.safetensors is no evaluator of leadwise; it holds 'something else 1'"):
        load_evaluator(path)
    path.write_text("nothing of the kind")
    for each in (path, tmp_path / "none.safetensors"):
        with pytest.raises(InputError, match=r"is no evaluator of leadwise; it holds 'None'"):
            load_evaluator(each)


@pytest.fixture(params=["logistic", "network"])
def saved(request: pytest.FixtureRequest, controlled: LogisticEvaluator, tmp_path: Path) -> tuple[Path, str]:
    """A file of each kind, and its format."""
    evaluator, format = {
        "logistic": (controlled, logistic.FORMAT),
        "network": (tiny_evaluator(), FORMAT),
    }[request.param]
    evaluator.save(tmp_path / "whole.safetensors")
    return tmp_path / "whole.safetensors", format


def test_every_tensor_is_checked_when_it_is_loaded(saved: tuple[Path, str]) -> None:
    files = list(damaged_files(*saved))
    assert len(files) > 5 * 5
    for path, name in files:
        with pytest.raises(InputError) as refusal:
            load_evaluator(path)
        said = str(refusal.value)
        assert said.startswith(f"{path} is not a whole "), said
        assert f"tensor '{name}' " in said or "is due" in said, "of two lengths that differ, either may be wrong"
        assert said.endswith("; save it again.")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"labels": []}, "where different names are due"),
        ({"labels": ["CD", "CD", "MI", "NORM", "STTC"]}, "where different names are due"),
        ({"labels": "abcde"}, "where different names are due"),
        ({"labels": [1, 2, 3, 4, 5]}, "where different names are due"),
        ({"sampling_rate": 0}, "the sampling rate is 0,"),
        ({"sampling_rate": "100"}, "the sampling rate is 100,"),
        ({"sampling_rate": True}, "the sampling rate is True,"),
    ],
)
def test_facts_are_checked_too(saved: tuple[Path, str], facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=rf"facts.safetensors is not a whole .* evaluator \(.*{reason}"):
        load_evaluator(with_facts(*saved, **facts))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_facts_that_are_no_numbers(saved: tuple[Path, str], value: float) -> None:
    with pytest.raises(
        InputError, match=r"facts.safetensors has (NaN|Infinity) among its facts, where only finite num"
    ):
        load_evaluator(with_facts(*saved, sampling_rate=value))


@pytest.mark.parametrize(
    "widths", [[10**9, 4, 8, 8], [4, 4, 8, 0], [4, 4, 8, -8], [], "abcd", ["4", "4", "8", "8"], None, 4]
)
def test_widths_that_are_not_the_network_s(widths: Any, tmp_path: Path) -> None:
    """Not even the memory for them is asked for."""
    tiny_evaluator().save(tmp_path / "tiny.safetensors")
    with pytest.raises(InputError, match=r"facts.safetensors is not a whole network evaluator \("):
        load_evaluator(with_facts(tmp_path / "tiny.safetensors", FORMAT, widths=widths))


@pytest.mark.parametrize("name", ["stem_norm.running_var", "scale"])
def test_what_cannot_be_negative(name: str, tmp_path: Path) -> None:
    evaluator = tiny_evaluator()
    tensor = evaluator.scale if name == "scale" else evaluator.weights[name]
    tensor[1] = -1
    evaluator.save(tmp_path / "tiny.safetensors")
    with pytest.raises(InputError, match=rf"tensor '(weights\.)?{name}' holds -1\.0"):
        load_evaluator(tmp_path / "tiny.safetensors")


def test_evaluators_print_on_one_line(controlled: LogisticEvaluator) -> None:
    assert repr(controlled) == "<LogisticEvaluator controlled: CD HYP MI NORM STTC>"
    assert repr(LogisticEvaluator("mine")) == "<LogisticEvaluator mine: not fitted>"
    assert repr(tiny_evaluator()) == "<NetworkEvaluator tiny: CD HYP MI NORM STTC>"
    assert repr(tiny_evaluator(facts={"seed": 7})) == "<NetworkEvaluator tiny: CD HYP MI NORM STTC, seed 7>"
