"""The exported file, read by onnxruntime, says what we say."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leadwise.cohort.cohort import Cohort, Records
from leadwise.errors import InputError
from leadwise.evaluators import onnx as module
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.onnx import export_onnx
from leadwise.evaluators.scoring import score
from networks import tiny_evaluator


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Several would only wait for each other on networks this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def evaluator() -> NetworkEvaluator:
    return tiny_evaluator(device="cpu")


@pytest.fixture(scope="module")
def exported(evaluator: NetworkEvaluator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (leadwise[fast] brings it)")
    path = tmp_path_factory.mktemp("onnx") / "made" / "tiny.onnx"
    export_onnx(evaluator, path)
    return path


@pytest.fixture(scope="module")
def session(exported: Path) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def records(small_cohort: Cohort) -> Records:
    return small_cohort["validation"]


def ask(session: Any, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
    given = {"signals": signals.astype(np.float32), "masks": masks.astype(np.float32)}
    return np.asarray(session.run(["probabilities"], given)[0])


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
def test_agrees_with_scoring(session: Any, evaluator: NetworkEvaluator, records: Records, n: int) -> None:
    """Unobserved leads may hold whatever they hold."""
    some, masks = records.select(slice(0, n)), frozen_masks(n)
    expected = score(evaluator, some, masks)
    np.testing.assert_allclose(ask(session, some.signals.millivolts(slice(None)), masks), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [64, 250, 999, 1001, 5000])
def test_agrees_at_other_lengths(session: Any, evaluator: NetworkEvaluator, length: int) -> None:
    masks = frozen_masks(4)
    signals = np.random.default_rng(length).normal(0, 0.3, (4, 12, length)).astype(np.float32)
    expected = evaluator.probabilities(signals, masks)
    np.testing.assert_allclose(ask(session, signals, masks), expected, rtol=0, atol=1e-5)
    assert expected.std() > 0.01, "and they say something"


@pytest.mark.parametrize("held", [np.nan, np.inf, -1e30, 1234.5])
def test_unobserved_leads_do_not_matter(session: Any, records: Records, held: float) -> None:
    signals, masks = records.signals.millivolts(slice(0, 6)), frozen_masks(6)
    other = np.where(masks[..., None], signals, np.float32(held))
    assert not masks.all()
    np.testing.assert_array_equal(ask(session, other, masks), ask(session, signals, masks))


def test_what_the_file_says_about_itself(session: Any, evaluator: NetworkEvaluator) -> None:
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["labels"] == "CD HYP MI NORM STTC"
    assert float(facts["sampling_rate"]) == 100
    assert facts["sha256"] == evaluator.sha256
    assert [each.name for each in session.get_inputs()] == ["signals", "masks"]
    assert [each.name for each in session.get_outputs()] == ["probabilities"]
    (n, leads, t), (same, also) = (each.shape for each in session.get_inputs())
    assert (leads, also) == (12, 12)
    assert n == same
    assert isinstance(n, str)
    assert isinstance(t, str), "any number of records, of any length"


def test_the_file_stands_alone(exported: Path) -> None:
    assert [path.name for path in exported.parent.iterdir()] == ["tiny.onnx"]


def test_a_file_that_disagrees_is_not_written(
    exported: Path, evaluator: NetworkEvaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export itself is replaced by its own earlier result, of which onnxruntime reads something else."""
    import onnx

    class Program:
        model_proto = onnx.load(exported)

    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: Program)
    export_onnx(evaluator, tmp_path / "same.onnx")
    (bias,) = (each for each in Program.model_proto.graph.initializer if each.name.endswith("last.bias"))
    bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + np.float32(0.01), bias.name))
    with pytest.raises(
        InputError, match=r"^onnxruntime reads tiny differently from torch, by 0\.00\d+; nothing written"
    ):
        export_onnx(evaluator, tmp_path / "other.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["same.onnx"]


def test_answers_that_are_no_numbers_do_not_agree(
    exported: Path, evaluator: NetworkEvaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx
    import onnxruntime

    class Program:
        model_proto = onnx.load(exported)

    class Lost:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def run(self, _: Any, given: dict[str, np.ndarray]) -> list[np.ndarray]:
            return [np.full((len(given["signals"]), 5), np.nan, dtype=np.float32)]

    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: Program)
    monkeypatch.setattr(onnxruntime, "InferenceSession", Lost)
    with pytest.raises(InputError, match="differently from torch, by nan; nothing written"):
        export_onnx(evaluator, tmp_path / "lost.onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_tolerance() -> None:
    assert module.TOLERANCE == 1e-5


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "onnxscript"])
def test_what_exporting_needs(
    evaluator: NetworkEvaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        InputError, match=rf"^{missing} is not installed, which exporting needs; install leadwise\[fast\]"
    ):
        export_onnx(evaluator, tmp_path / "a.onnx")
    assert list(tmp_path.iterdir()) == []
