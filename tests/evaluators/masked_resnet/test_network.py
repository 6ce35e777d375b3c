"""The strong network against the same network out of torch's own layers, and against torch's own gradients."""

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from leadwise.bench.plain import PlainResNet
from leadwise.evaluators.masked_resnet import network as network_module
from leadwise.evaluators.masked_resnet.network import WIDTHS, Convolution, MaskedResNet1D
from networks import tiny_network

TINY = (4, 6, 8, 10)
LENGTHS = (64, 97, 100, 131)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Several would only wait for each other on networks this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some_input(n: int, length: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    masks = rng.random((n, 12)) < 0.5
    signals = rng.normal(size=(n, 12, length)) * masks[..., None]
    return torch.tensor(signals, dtype=torch.float32), torch.tensor(masks, dtype=torch.float32)


def test_the_published_number_of_parameters() -> None:
    assert WIDTHS == (64, 96, 160, 256)
    assert sum(weight.numel() for weight in MaskedResNet1D(5).parameters()) == 2_774_685


# against torch's own layers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("training", [False, True], ids=["reading", "training"])
def test_equals_plain_layers(length: int, training: bool) -> None:
    """Logits, every gradient, and the batch statistics that a step leaves behind."""
    ours = tiny_network(TINY).train(training)
    plain = PlainResNet(5, TINY).load(ours).train(training)
    plain.head[3].p = 0.0  # type: ignore[union-attr, assignment]
    (signals, masks), weighing = some_input(6, length), torch.randn(6, 5)
    answers, gradients = [], []
    for network in (ours, plain):
        x = signals.clone().requires_grad_(True)
        answers.append(network(x, masks))
        (answers[-1] * weighing).sum().backward()
        gradients.append([x.grad, *(weight.grad for weight in network.parameters())])
    torch.testing.assert_close(answers[0], answers[1], rtol=1e-4, atol=1e-5)
    assert answers[0].std() > 0.1, "and they say something"
    for mine, theirs in zip(*gradients, strict=True):
        assert mine is not None
        assert theirs is not None
        assert theirs.abs().max() > 1e-6, "no gradient is nothing"
        torch.testing.assert_close(mine.reshape(theirs.shape), theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))
    for mine, theirs in zip(ours.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_the_published_widths_equal_plain_layers() -> None:
    network = tiny_network(WIDTHS).eval()
    plain = PlainResNet(5).load(network).eval()
    with torch.inference_mode():
        signals, masks = some_input(2, 250)
        torch.testing.assert_close(network(signals, masks), plain(signals, masks), rtol=1e-4, atol=1e-4)


def test_dropout_is_between_the_last_two_layers() -> None:
    """With everything dropped, nothing but the last bias is left, and only while it learns."""
    network = tiny_network(TINY)
    network.dropout.p = 1.0
    signals, masks = some_input(4, 64)
    torch.testing.assert_close(network.train()(signals, masks), network.last.bias.expand(4, 5))
    assert network.eval()(signals, masks).std(dim=0).min() > 0


# the gradient of our own ---------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([1, 3, 7, 15]),
    st.integers(1, 3),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
)
def test_gradients_equal_autograd(
    n: int, channels: int, out: int, width: int, stride: int, length: int, last: bool, unfolds: bool
) -> None:
    """In double precision nothing but a wrong formula can be seen."""
    with patch.object(network_module, "UNFOLDS", unfolds):
        _check_gradients(n, channels, out, width, stride, length, last)


def _check_gradients(n: int, channels: int, out: int, width: int, stride: int, length: int, last: bool) -> None:
    torch.manual_seed(n + length)
    layer = Convolution(channels, out, width, stride).double()
    x = torch.randn(n, channels, 1, length, dtype=torch.float64)
    x = (x.contiguous(memory_format=torch.channels_last) if last else x).requires_grad_(True)
    weight, signal = layer.weight.detach()[:, :, 0].requires_grad_(True), x.detach()[:, :, 0].requires_grad_(True)
    mine = layer(x)
    theirs = functional.conv1d(signal, weight, stride=stride, padding=width // 2)
    torch.testing.assert_close(mine[:, :, 0], theirs, rtol=1e-12, atol=1e-12)
    passed = torch.randn_like(theirs)
    mine.backward(passed[:, :, None])
    theirs.backward(passed)
    for own, expected in ((x.grad, signal.grad), (layer.weight.grad, weight.grad)):
        assert own is not None
        assert expected is not None
        torch.testing.assert_close(own[:, :, 0], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("unfolds", [True, False])
def test_the_gradient_that_is_fast_here_is_used(monkeypatch: pytest.MonkeyPatch, unfolds: bool) -> None:
    monkeypatch.setattr(network_module, "UNFOLDS", unfolds)
    made = Convolution(3, 4, 7)(torch.zeros(1, 3, 1, 20, requires_grad=True)).grad_fn
    assert (type(made).__name__ == "_UnfoldedGradientBackward") == unfolds


def test_both_gradients_train_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of a whole network, whose batch normalisations and strides the layers' own test leaves out."""
    signals, masks = some_input(6, 96)
    found = []
    for unfolds in (True, False):
        monkeypatch.setattr(network_module, "UNFOLDS", unfolds)
        network = tiny_network(TINY).double().train()
        network(signals.double(), masks.double()).square().sum().backward()
        found.append([weight.grad for weight in network.parameters()])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-11)


# folding -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", LENGTHS)
def test_folding_changes_nothing(length: int) -> None:
    network, (signals, masks) = tiny_network(TINY), some_input(5, length)
    with torch.inference_mode():
        before = network.eval()(signals, masks)
        folded = network.train().fold()
        assert folded is network
        once = folded(signals, masks)
        twice = folded.fold()(signals, masks)
    torch.testing.assert_close(once, before, rtol=1e-4, atol=1e-5)
    assert torch.equal(twice, once)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    assert not network.training
    assert not any(weight.requires_grad for weight in network.parameters())


# what matters to an answer -------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(0, 6), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 1e3]))
def test_an_answer_does_not_depend_on_the_company(others: int, seed: int, loudness: float) -> None:
    network, (signals, masks) = tiny_network(TINY).eval(), some_input(1, 80)
    company, their_masks = some_input(others, 80, seed)
    with torch.inference_mode():
        alone = network(signals, masks)
        among = network(torch.cat([company * loudness, signals]), torch.cat([their_masks, masks]))[-1:]
    torch.testing.assert_close(among, alone, rtol=1e-5, atol=1e-6)


def test_the_mask_matters_even_when_all_is_silent() -> None:
    network, silence = tiny_network(TINY).eval(), torch.zeros(12, 12, 64)
    with torch.inference_mode():
        answers = network(silence, torch.eye(12))
    assert len(torch.unique(answers, dim=0)) == 12, "one answer for each lead, though none has a signal"


@pytest.mark.parametrize("lead", range(12))
def test_every_lead_matters(lead: int) -> None:
    network, (signals, masks) = tiny_network(TINY).eval(), some_input(3, 64)
    louder = signals.clone()
    louder[:, lead] += torch.randn(64)
    with torch.inference_mode():
        assert (network(louder, masks) - network(signals, masks)).abs().max() > 1e-4
