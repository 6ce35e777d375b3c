"""The strong evaluator's network: a residual network over time that is told which leads it was given."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (64, 96, 160, 256)
"""Channels of the four stages of the published network."""

UNFOLDS = torch.backends.cpu.get_cpu_capability() == "AVX2"
"""True where the weights' gradient is computed by `_UnfoldedGradient`: against oneDNN's own kernel it makes a training
step a fifth faster on two AVX2 cores, and a third slower on two AVX-512 cores."""


class MaskedResNet1D(nn.Module):
    """From standardised leads, unobserved ones zero, and the mask to one logit a label.

    Stem: convolution 12 → widths[0] (15 wide, stride 2), batch normalisation, ReLU, max-pool (3 wide, stride 2). Then a
    stage of two `Block`s for each width, each stage but the first halving the length. The mean over time, with the
    mask appended, goes through layer normalisation, a hidden layer of 128 and dropout. With five labels and the
    published widths it has 2,774,685 parameters.

    Inside, activations are (n, channels, 1, t) with the channels last in memory: batch normalisation, pooling and the
    gradients of the signals are then two to four times faster on a CPU than with time last.
    """

    def __init__(self, labels: int, widths: Sequence[int] = WIDTHS, dropout: float = 0.0) -> None:
        super().__init__()
        self.stem = Convolution(12, widths[0], width=15, stride=2)
        self.stem_norm: nn.Module = nn.BatchNorm2d(widths[0])
        self.blocks = nn.Sequential()
        for stage, (before, channels) in enumerate(zip((widths[0], *widths[:-1]), widths, strict=True)):
            self.blocks.extend([Block(before, channels, stride=2 if stage else 1), Block(channels, channels)])
        self.head_norm = nn.LayerNorm(widths[-1] + 12)
        self.hidden = nn.Linear(widths[-1] + 12, 128)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(128, labels)

    def forward(self, signals: Float[Tensor, "n 12 t"], masks: Float[Tensor, "n 12"]) -> Float[Tensor, "n l"]:
        x = signals[:, :, None].contiguous(memory_format=torch.channels_last)
        x = functional.relu(self.stem_norm(self.stem(x)), inplace=True)
        x = self.blocks(functional.max_pool2d(x, (1, 3), (1, 2), (0, 1)))
        x = self.head_norm(torch.cat([x.mean(dim=(2, 3)), masks], dim=1))
        return self.last(self.dropout(functional.relu(self.hidden(x))))

    def fold(self) -> "MaskedResNet1D":
        """For reading only: convolutions absorb the batch normalisations, which saves a pass over every activation."""
        self.eval().requires_grad_(False)
        self.stem_norm = self.stem.absorb(self.stem_norm)
        for block in self.each_block():
            block.fold()
        return self

    def weights(self) -> dict[str, Tensor]:
        """Weights and batch statistics, by name: the state without the counters of batches."""
        return {name: value for name, value in self.state_dict().items() if value.is_floating_point()}

    def each_block(self) -> list["Block"]:
        """The residual blocks, in order."""
        return [block for block in self.blocks if isinstance(block, Block)]


class Block(nn.Module):
    """relu(x + norm(conv(relu(norm(conv(x)))))), with a 1-wide convolution of x where width or length change."""

    def __init__(self, channels_in: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.first, self.second = Convolution(channels_in, channels, 7, stride), Convolution(channels, channels, 7)
        self.first_norm: nn.Module = nn.BatchNorm2d(channels)
        self.second_norm: nn.Module = nn.BatchNorm2d(channels)
        changes = channels_in != channels or stride != 1
        self.shortcut: Convolution | None = Convolution(channels_in, channels, 1, stride) if changes else None
        self.shortcut_norm: nn.Module = nn.BatchNorm2d(channels) if changes else nn.Identity()

    def forward(self, x: Float[Tensor, "n c 1 t"]) -> Float[Tensor, "n d 1 s"]:
        y = functional.relu(self.first_norm(self.first(x)), inplace=True)
        y = self.second_norm(self.second(y))
        past = x if self.shortcut is None else self.shortcut_norm(self.shortcut(x))
        return functional.relu(y + past, inplace=True)

    def fold(self) -> None:
        self.first_norm = self.first.absorb(self.first_norm)
        self.second_norm = self.second.absorb(self.second_norm)
        if self.shortcut is not None:
            self.shortcut_norm = self.shortcut.absorb(self.shortcut_norm)


class Convolution(nn.Module):
    """Convolution over time without bias, padded so that the centre of the kernel visits every ``stride``-th sample."""

    def __init__(self, channels_in: int, channels: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.stride, self.padding = (1, stride), (0, width // 2)
        self.weight = nn.Parameter(nn.Conv1d(channels_in, channels, width, bias=False).weight.detach()[:, :, None])
        self.bias: Tensor | None = None

    def forward(self, x: Float[Tensor, "n c 1 t"]) -> Float[Tensor, "n d 1 s"]:
        if UNFOLDS and x.requires_grad and x.device.type == "cpu" and self.weight.shape[-1] > 1:
            return _UnfoldedGradient.apply(x, self.weight, self.stride, self.padding)  # type: ignore[no-untyped-call]
        return functional.conv2d(x, self.weight, self.bias, self.stride, self.padding)

    def absorb(self, norm: nn.Module) -> nn.Module:
        """Take over a batch normalisation that follows, γ (w∗x − μ) / √(σ² + ε) + β; what is left of it is nothing."""
        if not isinstance(norm, nn.BatchNorm2d):
            return norm  # absorbed before
        assert norm.running_mean is not None
        assert norm.running_var is not None
        gain = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
        self.bias = nn.Parameter((norm.bias - norm.running_mean.double() * gain).float(), requires_grad=False)
        self.weight = nn.Parameter((self.weight.double() * gain[:, None, None, None]).float(), requires_grad=False)
        return nn.Identity()


class _UnfoldedGradient(torch.autograd.Function):
    """The same convolution; its weights' gradient is one matrix product.

    With y[o, t] = Σ_c,j w[o, c, j] x[c, s·t + j], the gradient is ∂w[o, (j, c)] = Σ_t ∂y[t, o] · x[s·t + j, c]. Where
    channels lie last, the row x[s·t … s·t + width − 1, :] is already contiguous, so unfolding is a plain copy of
    overlapping rows. With AVX2, oneDNN's own kernel for this gradient reaches half of a core's peak, the product most
    of it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: tuple[int, int], padding: tuple[int, int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return functional.conv2d(x, weight, stride=stride, padding=padding)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, weight = ctx.saved_tensors
        dy = gradients[0].contiguous(memory_format=torch.channels_last)
        dx, _, _ = torch.ops.aten.convolution_backward(
            dy, x, weight, None, ctx.stride, ctx.padding, (1, 1), False, (0, 0), 1, (True, False, False)
        )
        (n, channels, _, _), (out, _, _, width) = x.shape, weight.shape
        rows = functional.pad(x.permute(0, 2, 3, 1), (0, 0, ctx.padding[1], ctx.padding[1])).contiguous()
        steps, padded = dy.shape[-1], rows.shape[2]
        strides = padded * channels, ctx.stride[1] * channels, 1
        unfolded = rows.as_strided((n, steps, width * channels), strides).reshape(n * steps, width * channels)
        dw = dy.permute(0, 2, 3, 1).reshape(n * steps, out).T @ unfolded
        return dx, dw.view(out, width, channels).permute(0, 2, 1)[:, :, None], None, None
