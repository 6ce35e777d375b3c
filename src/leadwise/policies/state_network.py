"""The small network that learned policies share: from a state to one number for each lead."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from leadwise.evaluators.contract import Fitted
from leadwise.evaluators.statistics import STATISTICS, lead_moments
from leadwise.progress import progress

if TYPE_CHECKING:
    import torch

CLIP = 3.0
"""Standardised statistics are clipped to ±CLIP, logits to ±2·CLIP."""


WEIGHTS = tuple(f"{layer}_{what}" for layer in (0, 3, 6) for what in ("weight", "bias"))
"""Names of the tensors that a trained network has; between the layers lie ReLU and dropout."""


class StateNetwork(Fitted):
    """Two hidden layers over standardised statistics × mask, mask, logits of the current probabilities and the budget.

    Trained in torch, then rounded to half precision, in which it is kept; asked in NumPy with float64, so that a choice
    does not depend on the company of other records.

    Both hidden layers are ``hidden`` wide. AdamW with a one-cycle learning rate trains them; the weights of the epoch
    with the lowest validation loss are kept.
    """

    def __init__(
        self,
        hidden: int = 256,
        epochs: int = 20,
        batch: int = 1024,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.05,
        dropout: float = 0.3,
    ) -> None:
        self.hidden, self.epochs, self.batch = hidden, epochs, batch
        self.learning_rate, self.weight_decay, self.dropout = learning_rate, weight_decay, dropout
        self.mean_: Float64[np.ndarray, "12 10"]
        self.scale_: Float64[np.ndarray, "12 10"]
        self.weights_: dict[str, Float[np.ndarray, "..."]]

    def standardise(self, statistics: Float64[np.ndarray, "n 12 10"], available: Bool[np.ndarray, "n 12"]) -> None:
        """Take mean and deviation of the training role's statistics, of each lead over the records that have it."""
        self.mean_, deviation = lead_moments(statistics, available)
        self.scale_ = np.maximum(deviation, 1e-9)

    def tensors_due(self, width: int, kept: str) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of all tensors of a trained network with so many inputs and weights of the type ``kept``."""
        outputs = {"0": (self.hidden, width), "3": (self.hidden, self.hidden), "6": (12, self.hidden)}
        due: dict[str, tuple[str, tuple[int, ...]]] = dict.fromkeys(("mean", "scale"), ("<f8", (12, len(STATISTICS))))
        due |= {f"{layer}_weight": (kept, shape) for layer, shape in outputs.items()}
        return due | {f"{layer}_bias": (kept, shape[:1]) for layer, shape in outputs.items()}

    def inputs(
        self,
        statistics: Float64[np.ndarray, "n 12 10"],
        mask: Bool[np.ndarray, "n 12"],
        probabilities: Float64[np.ndarray, "n l"] | None,
        remaining: Int[np.ndarray, " n"] | None,
    ) -> Float64[np.ndarray, "n d"]:
        """The network's view of a state; without ``remaining`` it does not know the budget."""
        z = np.clip((statistics - self.mean_) / self.scale_, -CLIP, CLIP) * mask[..., None]
        parts = [z.reshape(len(mask), -1), mask.astype(np.float64)]
        if probabilities is not None:
            parts.append(np.clip(logits(probabilities), -2 * CLIP, 2 * CLIP))
        if remaining is not None:
            parts.append(remaining[:, None] / 4.0)
        return np.concatenate(parts, axis=1)

    def fit(
        self,
        inputs: Float64[np.ndarray, "m d"],
        targets: Float64[np.ndarray, "m 12"],
        loss: Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"],
        validation: tuple[Float64[np.ndarray, "v d"], Float64[np.ndarray, "v 12"]],
        seed: int,
        what: str,
    ) -> list[float]:
        """Minimise ``loss(outputs, targets)``; returns the validation loss of each epoch."""
        import torch

        from leadwise.evaluators.devices import one_thread

        generator = torch.Generator().manual_seed(seed)
        x, y = torch.tensor(inputs, dtype=torch.float32), torch.tensor(targets, dtype=torch.float32)
        x_validation, y_validation = (torch.tensor(array, dtype=torch.float32) for array in validation)
        # a seed of its own, so that training neither depends on nor disturbs the caller's random numbers; layers are so
        # small that several threads would wait for each other longer than they work
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(seed)
            model = torch.nn.Sequential()
            for width in (x.shape[1], self.hidden):
                model.extend([torch.nn.Linear(width, self.hidden), torch.nn.ReLU(), torch.nn.Dropout(self.dropout)])
            model.append(torch.nn.Linear(self.hidden, 12))
            weights, decay = model.parameters(), self.weight_decay
            optimiser = torch.optim.AdamW(weights, self.learning_rate, weight_decay=decay, fused=True)
            steps = -(-len(x) // self.batch)
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, self.learning_rate, self.epochs * steps)
            losses: list[float] = []
            best: dict[str, Any] = {}
            with progress(what, self.epochs) as advance:
                for _ in range(self.epochs):
                    model.train()
                    order = torch.randperm(len(x), generator=generator)
                    for part in order.split(self.batch):  # type: ignore[no-untyped-call]
                        optimiser.zero_grad()
                        loss(model(x[part]), y[part]).backward()  # type: ignore[no-untyped-call]
                        optimiser.step()
                        schedule.step()
                    model.eval()
                    with torch.no_grad():
                        losses.append(float(loss(model(x_validation), y_validation)))
                    if losses[-1] == min(losses):
                        best = {name: value.numpy().astype(np.float16) for name, value in model.state_dict().items()}
                    advance(1)
        self.weights_ = {name.replace(".", "_"): value for name, value in best.items()}
        return losses

    def __call__(self, inputs: Float[np.ndarray, "n d"]) -> Float64[np.ndarray, "n 12"]:
        """One number for each lead."""
        for layer in ("0", "3", "6"):
            weight, bias = self.weights_[f"{layer}_weight"], self.weights_[f"{layer}_bias"]
            inputs = inputs @ weight.astype(np.float64).T + bias.astype(np.float64)
            if layer != "6":
                inputs = np.maximum(inputs, 0)
        return inputs


def logits(probabilities: Float64[np.ndarray, "n l"]) -> Float64[np.ndarray, "n l"]:
    """log(p / (1 − p)), with p clipped at 1e-6 on both sides."""
    p = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))
