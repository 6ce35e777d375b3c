"""Parameters and memory of a network and its training, without making one."""

from collections.abc import Sequence


def activation_bytes(widths: Sequence[int], samples: int) -> int:
    """Bytes that a training keeps for one record until its gradient is taken: the outputs of all layers."""
    kept, length = 3 * widths[0] * samples // 2, samples / 4
    for width in widths:
        kept += int(10 * width * length)
        length /= 2
    return 4 * kept


def network_parameters(widths: Sequence[int], labels: int) -> int:
    """Number of parameters of a `MaskedResNet1D`, without making one."""
    stem = 12 * 15 * widths[0] + 2 * widths[0]
    blocks = 0
    for stage, (before, width) in enumerate(zip((widths[0], *widths[:-1]), widths, strict=True)):
        blocks += 7 * before * width + 3 * 7 * width**2 + 8 * width
        if stage or before != width:
            blocks += before * width + 2 * width
    head = widths[-1] + 12
    return stem + blocks + 2 * head + 128 * head + 128 + 128 * labels + labels
