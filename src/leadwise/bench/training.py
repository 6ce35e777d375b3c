"""Records a second that a network learns from, whole and cropped, beside the plainest loop over the same batches."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from leadwise.bench import row
from leadwise.bench.plain import PlainResNet, operations, peak, shares, shortest
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.devices import keep_freed_memory
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.training import Training


def measure(cohort: Path) -> list[dict[str, Any]]:
    whole = read_ptbxl(cohort)
    train, recipe, best = whole["train"], Recipe(), peak()
    keep_freed_memory()  # as a training does
    rows, order = [], np.arange(recipe.batch)
    for name, length in (("training", train.length), ("training on crops", recipe.crop)):
        training = Training(train, whole["validation"], recipe=recipe)
        training.epoch = 0 if length < train.length else recipe.epochs - 1
        ours = recipe.batch / shortest(partial(training.learn, order), 4)
        other = recipe.batch / shortest(_plain_loop(training, order, length), 4)
        # the gradients by signals and by weights cost as much as the reading, each
        facts = shares(ours, other, 3 * operations(length), best)
        what = f"batches of {recipe.batch} with {length} samples, against the plainest torch loop"
        rows.append(row(name, "records/s", ours, other, what, **facts))
    return rows


def _plain_loop(training: Training, order: np.ndarray, length: int) -> Callable[[], None]:
    """Forward, backward, step, on batches that a training makes."""
    recipe, rng = training.recipe, np.random.default_rng(0)
    network = PlainResNet(len(training.train.label_names)).train()
    optimiser = torch.optim.AdamW(network.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay)

    def step() -> None:
        x, masks, y = (torch.from_numpy(array) for array in training.augmented.batch(order, length, rng))
        optimiser.zero_grad()
        functional.binary_cross_entropy_with_logits(network(x, masks), y).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step
