"""The policies' network: what it is told, and what torch makes of the same weights."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from leadwise.policies.state_network import CLIP, StateNetwork


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return ((outputs - targets) ** 2).mean()


def easy(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Twelve numbers that are kinks of ten others."""
    x = rng.standard_normal((n, 10))
    weights = np.cos(np.arange(120)).reshape(10, 12)
    return x, np.maximum(x @ weights, 0)


def trained(seed: int = 3, **settings: int) -> tuple[StateNetwork, list[float]]:
    rng = np.random.default_rng(0)
    network = StateNetwork(**({"hidden": 24, "epochs": 12, "batch": 64} | settings), dropout=0.1)
    x, y = easy(rng, 1500)
    return network, network.fit(x, y, squared, easy(rng, 300), seed, "Training")


def test_layout_of_the_inputs(rng: np.random.Generator) -> None:
    network, statistics = StateNetwork(), rng.standard_normal((200, 12, 10)) * 7 + 3
    network.standardise(statistics, np.ones(statistics.shape[:2], dtype=bool))
    n = 5
    mask = rng.random((n, 12)) < 0.5
    probabilities = rng.random((n, 4))
    x = network.inputs(statistics[:n] * mask[..., None], mask, probabilities, np.array([1, 2, 3, 4, 8]))
    assert x.shape == (n, 120 + 12 + 4 + 1)
    mean, deviation = statistics.mean(axis=0), statistics.std(axis=0)
    for record in range(n):
        for lead in range(12):
            z = (statistics[record, lead] - mean[lead]) / deviation[lead]
            expected = np.clip(z, -CLIP, CLIP) if mask[record, lead] else np.zeros(10)
            np.testing.assert_allclose(x[record, 10 * lead : 10 * lead + 10], expected, atol=1e-12)
        np.testing.assert_array_equal(x[record, 120:132], mask[record])
        p = probabilities[record]
        np.testing.assert_allclose(x[record, 132:136], np.log(p / (1 - p)), rtol=1e-12)
    np.testing.assert_allclose(x[:, 136] / x[0, 136], [1, 2, 3, 4, 8])


def test_inputs_without_probabilities_or_budget(rng: np.random.Generator) -> None:
    network, statistics = StateNetwork(), rng.standard_normal((20, 12, 10))
    network.standardise(statistics, np.ones(statistics.shape[:2], dtype=bool))
    mask, p, remaining = np.ones((20, 12), dtype=bool), rng.random((20, 3)), np.arange(20)
    whole = network.inputs(statistics, mask, p, remaining)
    np.testing.assert_array_equal(network.inputs(statistics, mask, p, None), whole[:, :-1])
    np.testing.assert_array_equal(network.inputs(statistics, mask, None, None), whole[:, :132])
    np.testing.assert_array_equal(
        network.inputs(statistics, mask, None, remaining), np.delete(whole, [132, 133, 134], 1)
    )


def test_inputs_are_bounded(rng: np.random.Generator) -> None:
    """A torn electrode or a certain evaluator must not decide alone."""
    network, statistics = StateNetwork(), rng.standard_normal((50, 12, 10))
    statistics[:, 4, 6] = 0.25  # a statistic that never varies
    network.standardise(statistics, np.ones(statistics.shape[:2], dtype=bool))
    wild = np.where(rng.random((4, 12, 10)) < 0.5, 1e9, -1e9)
    x = network.inputs(wild, np.ones((4, 12), dtype=bool), np.array([[0.0, 1.0]] * 4), None)
    np.testing.assert_array_equal(x[:, :120], CLIP * np.sign(wild).reshape(4, 120))
    np.testing.assert_array_equal(x[:, 132:], [[-2 * CLIP, 2 * CLIP]] * 4)
    usual = network.inputs(statistics, np.ones((50, 12), dtype=bool), None, None)
    np.testing.assert_allclose(usual[:, 46], 0, atol=1e-6)


def test_numpy_says_what_torch_says(rng: np.random.Generator) -> None:
    network, _ = trained()
    model = torch.nn.Sequential(
        torch.nn.Linear(10, 24),
        torch.nn.ReLU(),
        torch.nn.Identity(),
        torch.nn.Linear(24, 24),
        torch.nn.ReLU(),
        torch.nn.Identity(),
        torch.nn.Linear(24, 12),
    ).double()
    state = {f"{layer}.{what}": network.weights_[f"{layer}_{what}"] for layer in "036" for what in ("weight", "bias")}
    assert len(network.weights_) == len(state)
    model.load_state_dict({name: torch.tensor(value).double() for name, value in state.items()})
    x = rng.standard_normal((40, 10)) * 3
    with torch.no_grad():
        expected = model(torch.tensor(x)).numpy()
    np.testing.assert_allclose(network(x), expected, atol=1e-12)
    assert network(x).dtype == np.float64
    np.testing.assert_allclose(np.concatenate([network(row[None]) for row in x]), network(x), atol=1e-12)


def test_training_lowers_the_loss_of_records_not_seen(rng: np.random.Generator) -> None:
    network, losses = trained()
    assert len(losses) == 12
    x, y = easy(rng, 500)
    assert losses[-1] < 0.5 * losses[0]
    assert np.mean((network(x) - y) ** 2) < 0.5 * y.var()


def test_the_best_epoch_is_kept() -> None:
    """A target of noise is best met by an early epoch; the weights are of that one, not of the last."""
    rng = np.random.default_rng(5)
    x, held_out = rng.standard_normal((80, 10)), rng.standard_normal((400, 10))
    y, y_held_out = rng.standard_normal((80, 12)), rng.standard_normal((400, 12))
    network = StateNetwork(hidden=64, epochs=25, batch=16, learning_rate=1e-2, weight_decay=0.0, dropout=0.0)
    losses = network.fit(x, y, squared, (held_out, y_held_out), 1, "Training")
    assert min(losses) < losses[-1]
    assert np.mean((network(held_out) - y_held_out) ** 2) == pytest.approx(min(losses), rel=1e-5)


def test_the_same_seed_gives_the_same_weights() -> None:
    (one, losses), (same, same_losses), (other, _) = trained(3, epochs=2), trained(3, epochs=2), trained(4, epochs=2)
    assert losses == same_losses
    assert all(np.array_equal(one.weights_[name], same.weights_[name]) for name in one.weights_)
    assert not any(np.array_equal(one.weights_[name], other.weights_[name]) for name in one.weights_)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_callers_torch_is_left_as_it_was(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(77)
    before = torch.get_rng_state()
    first, _ = trained(epochs=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.manual_seed(78)  # nor does training depend on it
    second, _ = trained(epochs=1)
    assert all(np.array_equal(first.weights_[name], second.weights_[name]) for name in first.weights_)


def test_a_failure_leaves_them_too() -> None:
    def failing(_outputs: torch.Tensor, _targets: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no loss today")

    torch.set_num_threads(2)
    before = torch.get_rng_state()
    x, y = easy(np.random.default_rng(0), 10)
    with pytest.raises(RuntimeError, match="no loss today"):
        StateNetwork(hidden=4, epochs=1).fit(x, y, failing, (x, y), 0, "Training")
    assert torch.get_num_threads() == 2
    assert torch.equal(torch.get_rng_state(), before)
