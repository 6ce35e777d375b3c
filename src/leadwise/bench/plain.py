"""The same network as anybody would write it, to measure ours against, and the machine's peak."""

from collections.abc import Callable, Sequence
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from leadwise.evaluators.masked_resnet.network import WIDTHS, MaskedResNet1D


class PlainResNet(nn.Module):
    """`MaskedResNet1D` out of torch's own one-dimensional layers, and nothing else; `load` takes its weights."""

    def __init__(self, labels: int, widths: Sequence[int] = WIDTHS) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv1d(12, widths[0], 15, 2, 7, bias=False), nn.BatchNorm1d(widths[0]), nn.ReLU(), nn.MaxPool1d(3, 2, 1)
        )
        stages = list(zip((widths[0], *widths[:-1]), widths, strict=True))
        self.blocks = nn.Sequential(
            *(
                _PlainBlock(*channels, stride)
                for stage, (before, width) in enumerate(stages)
                for channels, stride in (((before, width), 2 if stage else 1), ((width, width), 1))
            )
        )
        features = widths[-1] + 12
        self.head = nn.Sequential(
            nn.LayerNorm(features), nn.Linear(features, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, labels)
        )

    def forward(self, signals: Tensor, masks: Tensor) -> Tensor:
        return self.head(torch.cat([self.blocks(self.stem(signals)).mean(dim=2), masks], dim=1))

    def load(self, network: MaskedResNet1D) -> "PlainResNet":
        """Take over weights: both have the same tensors in the same order, but for an axis of length 1."""
        theirs = network.state_dict().values()
        with torch.no_grad():
            for mine, other in zip(self.state_dict().values(), theirs, strict=True):
                mine.copy_(other.reshape(mine.shape))
        return self


class _PlainBlock(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(before, width, 7, stride, 3, bias=False)
        self.second = nn.Conv1d(width, width, 7, 1, 3, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.shortcut: nn.Module = nn.Identity()
        if before != width or stride > 1:
            self.shortcut = nn.Sequential(nn.Conv1d(before, width, 1, stride, bias=False), nn.BatchNorm1d(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.second_norm(self.second(functional.relu(self.first_norm(self.first(x)))))
        return functional.relu(y + self.shortcut(x))


def operations(length: int) -> float:
    """Floating-point operations of reading one record of so many samples, a multiplication and an addition each one."""
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        PlainResNet(5).eval()(torch.zeros(1, 12, length), torch.ones(1, 12))
    return float(counter.get_total_flops())


def peak() -> float:
    """Operations a second of this machine: the best of a large matrix product and a large convolution."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    x, w = torch.randn(64, 128, 1000), torch.randn(128, 128, 7)
    with torch.inference_mode():
        product = 2 * 2048**3 / shortest(lambda: a @ b, 10)
        convolution = 2 * 64 * 994 * 128 * 128 * 7 / shortest(lambda: functional.conv1d(x, w), 5)
    return max(product, convolution)


def shares(ours: float, other: float, cost: float, best: float) -> dict[str, float]:
    """Shares of the machine's best speed that two rates of so costly a work come to, and that speed."""
    return {"share_of_peak": ours * cost / best, "other_share_of_peak": other * cost / best, "peak_gflops": best / 1e9}


def shortest(work: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of several attempts, after one that does not count."""
    work()
    seconds = []
    for _ in range(times):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return min(seconds)
