"""Engines agree, leave the threads of others alone, and call nobody."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import expit

from leadwise.bench.plain import PlainResNet
from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.contract import check_evaluator
from leadwise.evaluators.masked_resnet import engines
from leadwise.evaluators.masked_resnet import evaluator as evaluators
from leadwise.evaluators.masked_resnet.engines import BATCH, OpenVINOEngine, TorchEngine, build_engine, has_openvino
from leadwise.evaluators.masks import random_masks
from leadwise.evaluators.scoring import Scorer, score
from networks import WIDTHS, tiny_evaluator, tiny_network

SIZES = (1, 3, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 5)

needs_openvino = pytest.mark.skipif(not has_openvino(), reason="OpenVINO is not installed (leadwise[fast] brings it)")


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some_input(n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + length)
    masks = random_masks(n, rng).astype(np.float32)
    return rng.normal(size=(n, 12, length)).astype(np.float32) * masks[..., None], masks


def plain_probabilities(signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        logits = PlainResNet(5, WIDTHS).load(tiny_network()).eval()(torch.tensor(signals), torch.tensor(masks))
    return expit(logits.numpy().astype(np.float64))


# they agree ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("length", [64, 101])
def test_torch_agrees_with_plain_layers(threads: int, length: int) -> None:
    engine = build_engine(tiny_network().eval(), "torch", "cpu")
    for n in SIZES:
        signals, masks = some_input(n, length)
        expected = plain_probabilities(signals, masks)
        torch.set_num_threads(threads)
        np.testing.assert_allclose(expit(engine(signals, masks)), expected, rtol=0, atol=1e-5)
        assert torch.get_num_threads() == threads
        torch.set_num_threads(1)


@needs_openvino
@pytest.mark.parametrize("length", [64, 101])
def test_openvino_agrees_with_plain_layers(length: int) -> None:
    engine = build_engine(tiny_network().eval(), "openvino", "cpu")
    for n in SIZES:
        signals, masks = some_input(n, length)
        expected = plain_probabilities(signals, masks)
        np.testing.assert_allclose(expit(engine(signals, masks)), expected, rtol=0, atol=1e-5)
        assert expected.std() > 0.02, "and they say something"


@needs_openvino
def test_openvino_takes_lengths_as_they_come() -> None:
    engine = build_engine(tiny_network().eval(), "openvino", "cpu")
    for n, length in ((2, 64), (40, 80), (2, 80), (33, 64), (2, 64)):
        signals, masks = some_input(n, length)
        np.testing.assert_allclose(
            expit(engine(signals, masks)), plain_probabilities(signals, masks), rtol=0, atol=1e-5
        )


@needs_openvino
def test_openvino_computes_with_all_digits() -> None:
    """Asked for in so many words, whatever the processor could do with fewer."""
    engine = build_engine(tiny_network().eval(), "openvino", "cpu")
    engine(*some_input(1, 64))
    assert isinstance(engine, OpenVINOEngine)
    (queue,) = engine._queues.values()
    model = queue[0].get_compiled_model()
    assert model.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"
    assert model.get_property("NUM_STREAMS") == os.cpu_count()


ENGINES = ["torch", pytest.param("openvino", marks=needs_openvino)]


@pytest.mark.parametrize("engine", ENGINES)
def test_keeps_the_contract(small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    evaluator, records = tiny_evaluator(engine=engine), small_cohort["validation"].select(slice(0, 8))
    check_evaluator(evaluator, records)
    monkeypatch.setattr(evaluators, "KEPT_BYTES", 0)
    check_evaluator(evaluator, records)


@pytest.mark.parametrize("engine", ENGINES)
def test_scoring_agrees(small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """More pairs than a batch, in memory and out of it; on one thread with torch is what the others are held to."""
    records = small_cohort["validation"].select(slice(0, 12))
    masks = np.stack([random_masks(12, np.random.default_rng(seed)) for seed in range(4)])
    expected = score(tiny_evaluator(), records, masks)
    torch.set_num_threads(2)
    np.testing.assert_allclose(score(tiny_evaluator(engine=engine), records, masks), expected, rtol=0, atol=1e-5)
    monkeypatch.setattr(evaluators, "KEPT_BYTES", 0)
    np.testing.assert_allclose(score(tiny_evaluator(engine=engine), records, masks), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_asked_is_left_as_it_was(engine: str) -> None:
    signals, masks = some_input(BATCH + 2, 64)
    before = signals.copy(), masks.copy()
    build_engine(tiny_network().eval(), engine, "cpu")(signals, masks)
    np.testing.assert_array_equal(signals, before[0])
    np.testing.assert_array_equal(masks, before[1])


# threads -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3 * BATCH])
def test_threads_are_put_back(n: int) -> None:
    torch.set_num_threads(2)
    build_engine(tiny_network().eval(), "torch", "cpu")(*some_input(n, 64))
    assert torch.get_num_threads() == 2


def test_threads_are_put_back_after_an_error() -> None:
    torch.set_num_threads(2)
    engine = build_engine(tiny_network().eval(), "torch", "cpu")
    assert isinstance(engine, TorchEngine)
    seen = []

    def fail(*_inputs: object) -> None:
        seen.append(torch.get_num_threads())
        raise MemoryError

    engine.network.register_forward_pre_hook(fail)
    with pytest.raises(MemoryError):
        engine(*some_input(3 * BATCH, 64))
    assert set(seen) == {1}, "each core reads a batch of its own"
    assert torch.get_num_threads() == 2


# which one -----------------------------------------------------------------------------------------------------------


def test_auto_takes_openvino_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, kind in ((True, OpenVINOEngine), (False, TorchEngine)):
        monkeypatch.setattr(engines, "has_openvino", lambda there=there: there)
        assert type(build_engine(tiny_network().eval(), "auto", "cpu")) is kind
        assert type(build_engine(tiny_network().eval(), "torch", "cpu")) is TorchEngine


@needs_openvino
def test_an_evaluator_takes_what_it_is_told(small_cohort: Cohort) -> None:
    records = small_cohort["validation"].select(slice(0, 2))
    for engine, kind in (("auto", OpenVINOEngine), ("torch", TorchEngine)):
        evaluator = tiny_evaluator().on(engine, "cpu")
        Scorer(evaluator, records).masks(np.ones((2, 12), dtype=bool))
        assert type(evaluator._engine) is kind


def test_openvino_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "has_openvino", lambda: False)
    with pytest.raises(
        InputError, match=r"^OpenVINO is not installed; install leadwise\[fast\], or use the torch engine"
    ):
        build_engine(tiny_network().eval(), "openvino", "cpu")


def test_an_engine_that_nobody_has() -> None:
    with pytest.raises(InputError, match=r"^There is no engine 'steam'; there are auto, torch, openvino\.$"):
        build_engine(tiny_network().eval(), "steam", "cpu")


def test_a_device_that_nobody_has() -> None:
    with pytest.raises(InputError, match="no device 'gpu'"):
        build_engine(tiny_network().eval(), "auto", "gpu")


def test_openvino_is_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: torch.device("cuda"))
    with pytest.raises(InputError, match=r"^OpenVINO computes on the CPU here, not on 'cuda'; use the torch engine"):
        build_engine(tiny_network().eval(), "openvino", "auto")


# interrupted ---------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal
import numpy as np
from leadwise.evaluators.masked_resnet.engines import build_engine
from leadwise.evaluators.masked_resnet.network import MaskedResNet1D

engines = [build_engine(MaskedResNet1D(2, (4, 4, 4, 4)), "openvino", "cpu") for _ in range(2)]
for number in range(2):  # by number: a name would keep the last one
    engines[number](np.zeros((1, 12, 64), np.float32), np.ones((1, 12), np.float32))
while engines:
    engines.pop(0)
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("stopped")
"""


@needs_openvino
def test_ctrl_c_is_heeded_after_engines_are_dropped() -> None:
    """OpenVINO moves the stack that signals are handled on; what it leaves behind must be one."""
    heed = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    said = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, preexec_fn=heed)
    assert (said.returncode, said.stdout) == (0, "stopped\n"), said.stderr
