"""What our network is measured against: how much work it is, and how time is taken."""

import pytest
import torch

from leadwise.bench import plain
from leadwise.bench.plain import PlainResNet, operations, peak, shortest
from leadwise.evaluators.masked_resnet.network import WIDTHS
from networks import WIDTHS as TINY
from networks import tiny_network


def by_hand(length: int) -> float:
    """Two operations for each weight and each place that it is applied at."""

    def convolution(before: int, after: int, width: int, places: int) -> int:
        return 2 * before * after * width * places

    places = -(-length // 2)
    total = convolution(12, WIDTHS[0], 15, places)
    places = -(-places // 2)
    before = WIDTHS[0]
    for stage, width in enumerate(WIDTHS):
        if stage:
            places = -(-places // 2)
            total += convolution(before, width, 1, places)
        total += convolution(before, width, 7, places) + 3 * convolution(width, width, 7, places)
        before = width
    return total + 2 * (before + 12) * 128 + 2 * 128 * 5


@pytest.mark.parametrize("length", [1000, 501])
def test_operations(length: int) -> None:
    assert operations(length) == by_hand(length)


def test_reading_ten_seconds_takes_what_the_design_says() -> None:
    assert operations(1000) == pytest.approx(0.316e9, rel=0.03)


def test_it_is_the_same_network() -> None:
    assert sum(weight.numel() for weight in PlainResNet(5).parameters()) == 2_774_685
    network = tiny_network()
    loaded = PlainResNet(5, TINY).load(network)
    for mine, theirs in zip(loaded.state_dict().values(), network.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs.reshape(mine.shape))


def test_the_shortest_of_several_attempts_but_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only the work moves."""
    clock, takes = [0.0], iter([1.0, 7.0, 3.0, 5.0])

    def work() -> None:
        clock[0] += next(takes)

    monkeypatch.setattr(plain, "perf_counter", lambda: clock[0])
    assert shortest(work, 3) == 3.0


def test_the_peak_is_the_better_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    product, convolution = 2 * 2048**3, 2 * 64 * 994 * 128 * 128 * 7
    for seconds in ((1.0, 100.0), (100.0, 1.0)):
        each = iter(seconds)
        monkeypatch.setattr(plain, "shortest", lambda _work, _times, each=each: next(each))
        assert peak() == max(product / seconds[0], convolution / seconds[1])
