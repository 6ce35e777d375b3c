"""Masked training of the strong evaluator's network. A kill costs minutes, and changes nothing.

Every step draws its randomness from (seed, epoch, step). A checkpoint is therefore weights, averaged weights, the
optimiser's moments and two integers; a training that goes on from it ends with the same weights, to the bit, on the
same machine with the same number of threads.
"""

import copy
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, update_bn

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator
from leadwise.evaluators.devices import find_device, keep_freed_memory
from leadwise.evaluators.masked_resnet.augmentation import AugmentedRecords
from leadwise.evaluators.masked_resnet.checkpoint import Checkpoints, machine
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator, half_precision
from leadwise.evaluators.masked_resnet.network import WIDTHS, MaskedResNet1D
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.schedule import Schedule
from leadwise.evaluators.masks import check_allocations, frozen_masks, possible_masks
from leadwise.evaluators.scoring import score
from leadwise.metrics import nll
from leadwise.progress import Bar, progress

Tensors = tuple[Tensor, ...] | list[Tensor]
_MOMENTS = ("exp_avg", "exp_avg_sq")


def train_network(
    train: Records, validation: Records, *, checkpoint_seconds: float = 180.0, **settings: Any
) -> NetworkEvaluator:
    """Train on a role under random masks; keep the epoch with the lowest random-mask NLL on the validation role.

    ``settings`` are those of `Training`. A checkpoint is written that often, and after every epoch.
    """
    return Training(train, validation, **settings).run(checkpoint_seconds)


class Training:
    """One training, from wherever it stands to its end.

    - ``train``, ``validation``: roles to learn from, and to compare epochs on: by the NLL under the frozen masks;
    - ``allocations``: for each policy, its masks of the training records at several budgets: half of the training masks
      then come from there, which makes a mask-robust evaluator;
    - ``directory``: where checkpoints, the best weights and ``history.jsonl`` are kept, and looked for to go on;
    - ``device``: ``auto`` takes an accelerator if there is one.
    """

    def __init__(
        self,
        train: Records,
        validation: Records,
        *,
        name: str = "strong",
        seed: int = 20060928,
        recipe: Recipe = Recipe(),  # noqa: B008  frozen
        widths: tuple[int, ...] = WIDTHS,
        allocations: Mapping[str, Bool[np.ndarray, "budgets n 12"]] | None = None,
        directory: Path | None = None,
        device: str = "auto",
    ) -> None:
        allocations = dict(sorted((allocations or {}).items()))  # their order decides who gets whose mask
        check_allocations(allocations, train)
        if len(train) < recipe.batch:
            few = f"{train.name} has {len(train)} records, fewer than one batch of {recipe.batch}"
            raise InputError(f"{few}; take a smaller batch.")
        self.train, self.validation, self.recipe, self.seed, self.name = train, validation, recipe, seed, name
        self.widths, self.directory, self.device = widths, directory, find_device(device)
        self.steps = len(train) // recipe.batch  # a short last batch would give poor batch statistics
        self.schedule = Schedule(recipe, self.steps, train.length)
        self.augmented = AugmentedRecords(train, recipe, list(allocations.values()))
        compared = "batch statistics of their own" if recipe.norm_batches else "averaged batch statistics"
        hashes = {policy: sha256(np.packbits(masks).tobytes()).hexdigest() for policy, masks in allocations.items()}
        self.facts: dict[str, Any] = {"name": name, "seed": seed, "recipe": recipe.model_dump()}
        self.facts |= {"epochs_compared_with": compared, "widths": list(widths), "labels": list(train.label_names)}
        self.facts |= {"train": train.labels_sha256, "validation": validation.labels_sha256, "allocations": hashes}
        self.checkpoints = Checkpoints(directory, self.facts) if directory else None
        # a seed of its own, so that training neither depends on nor disturbs the caller's random numbers
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = MaskedResNet1D(len(train.label_names), widths, recipe.dropout)
        self.network.to(self.device)
        self.averaging = AveragedModel(self.network, multi_avg_fn=self._average, use_buffers=True)
        self.averaging.n_averaged.fill_(1)  # the initial weights; of none, torch would begin with those after a step
        self.averaged = cast(MaskedResNet1D, self.averaging.module)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.epoch = self.step = 0  # what comes next
        self.loss = self.seconds = 0.0  # mean loss of this epoch so far; time spent on whole epochs
        self.best: NetworkEvaluator | None = None

    def made(self, evaluator: NetworkEvaluator) -> bool:
        """True if an evaluator says of itself that it came out of just this training.

        Weights that do not say how their epochs were compared are not known to have: those that ship as ``strong`` are
        of the right recipe, but their epochs were compared with other batch statistics than they have.
        """
        return {name: evaluator.facts.get(name) for name in self.facts} == self.facts

    def run(self, checkpoint_seconds: float = 180.0) -> NetworkEvaluator:
        """Train to the end; returns the best epoch's weights, rounded to half precision, as an evaluator."""
        keep_freed_memory()
        self._resume()
        lengths = [self.schedule.length(epoch) for epoch in range(self.recipe.epochs)]
        with torch.random.fork_rng(devices=[]), progress(f"Training {self.name}", self.steps * sum(lengths)) as advance:
            advance(self.steps * sum(lengths[: self.epoch]) + self.step * self.schedule.length(self.epoch))
            started = saved = time.monotonic()
            while self.epoch < self.recipe.epochs:
                order = np.random.default_rng([self.seed, self.epoch, 0]).permutation(len(self.train))
                while self.step < self.steps:
                    rows = order[self.step * self.recipe.batch : (self.step + 1) * self.recipe.batch]
                    self.loss += self.learn(rows) / self.steps
                    self.step += 1
                    advance(lengths[self.epoch])
                    if time.monotonic() - saved > checkpoint_seconds:
                        self._save_checkpoint()
                        saved = time.monotonic()
                measured, now = self._measure(), time.monotonic()
                self.seconds, started = self.seconds + now - started, now
                self._note(measured, advance)
                self.epoch, self.step, self.loss = self.epoch + 1, 0, 0.0
                self._save_checkpoint()
                saved = time.monotonic()
        assert self.best is not None  # the last epoch is always measured
        return self.best.on("auto", str(self.device))

    def learn(self, rows: Int[np.ndarray, " b"]) -> float:
        """One step of the optimiser, on these records of the training role; returns the loss."""
        rng = np.random.default_rng([self.seed, self.epoch, self.step + 1])  # a trailing 0 would be the epoch's own
        x, masks, y = self._batch(rows, self.schedule.length(self.epoch), rng)
        torch.manual_seed(int(rng.integers(2**63)))  # dropout draws from here
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.learning_rate(self.done)
        self.network.train()
        self.optimiser.zero_grad()
        with _autocast(self.device):
            loss = functional.binary_cross_entropy_with_logits(self.network(x, masks).float(), y)
        value = float(loss.detach())
        if not np.isfinite(value):
            ids = ", ".join(map(str, self.train.ids[rows[:5]]))
            kept = f"; the last good checkpoint is in {self.directory}" if self.directory else ""
            raise InputError(
                f"The loss of {self.name} is {value} in epoch {self.epoch + 1}, batch {self.step + 1} of {self.steps} "
                f"(records {ids}, …){kept}. Look at these records, or lower the learning rate."
            )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.averaging.update_parameters(self.network)
        return value

    @property
    def done(self) -> int:
        """Steps since the beginning."""
        return self.epoch * self.steps + self.step

    def evaluator(self) -> NetworkEvaluator:
        """The averaged weights, rounded to half precision, as an evaluator."""
        about = self.name, self.train.label_names, self.train.sampling_rate, self.widths
        weights, facts = half_precision(self.name, self._settled()), self.facts | {"machine": machine()}
        scales = self.augmented.mean, self.augmented.scale
        return NetworkEvaluator(*about, *scales, weights, facts, engine="torch", device=str(self.device))

    def _average(self, averaged: Tensors, current: Tensors, _count: Tensor | int) -> None:
        """Move the averaged tensors of one type a step towards the network's; nothing reads the counters of batches."""
        if averaged[0].is_floating_point():
            torch._foreach_lerp_(averaged, current, 1 - self.schedule.decay(self.done))

    def _settled(self) -> MaskedResNet1D:
        """The averaged network with batch statistics of its own, from whole training records as they are read.

        An average of weights is a network that no step has seen: what its layers put out is not what the steps'
        statistics describe.
        """
        network = copy.deepcopy(self.averaged)
        if self.recipe.norm_batches:
            network.register_forward_pre_hook(lambda _, given: given[0])  # update_bn hands over one thing: the pair
            with _autocast(self.device):
                update_bn(([self._whole_batch(number)] for number in range(self.recipe.norm_batches)), network)
        return network

    def _whole_batch(self, number: int) -> tuple[Tensor, Tensor]:
        """Signals and masks of whole training records, drawn as for a step that comes after the epoch's own."""
        rng = np.random.default_rng([self.seed, self.epoch, self.steps + 1 + number])
        x, masks, _ = self._batch(rng.permutation(len(self.train))[: self.recipe.batch], self.train.length, rng)
        return x, masks

    def _batch(self, rows: Int[np.ndarray, " b"], length: int, rng: np.random.Generator) -> list[Tensor]:
        """Augmented signals, masks and labels on the device."""
        return [torch.from_numpy(array).to(self.device) for array in self.augmented.batch(rows, length, rng)]

    def _measure(self) -> float | None:
        """Random-mask NLL of the averaged weights on the validation role's frozen draw; the best are kept."""
        if not self.schedule.measures(self.epoch):
            return None
        candidate = self.evaluator()
        value = random_mask_nll(candidate, self.validation)
        if self.best is None or value < self.best.facts["nll"]:
            candidate.facts |= {"epoch": self.epoch + 1, "nll": value}
            self.best = candidate
            if self.checkpoints:
                candidate.save(self.checkpoints.best)
        return value

    def _note(self, measured: float | None, advance: Bar) -> None:
        """Tell people and the history that an epoch is finished."""
        row: dict[str, Any] = {"epoch": self.epoch + 1, "samples": self.schedule.length(self.epoch)}
        row |= {"learning_rate": self.schedule.learning_rate(self.done), "train_loss": self.loss}
        row |= {"nll": measured, "seconds": round(self.seconds, 1)}
        best = " *" if self.best and self.best.facts["epoch"] == self.epoch + 1 else ""
        value = "" if measured is None else f"{measured:.4f}{best}"
        advance.say(
            f"epoch {row['epoch']:3d} of {self.recipe.epochs}  samples {row['samples']:5d}  loss {self.loss:.4f}  "
            f"random-mask NLL {value:8s}  {row['seconds']:7.0f} s"
        )
        if self.checkpoints:
            self.checkpoints.write_history(row)

    def _save_checkpoint(self) -> None:
        if not self.checkpoints:
            return
        facts: dict[str, Any] = {"epoch": self.epoch, "step": self.step, "loss": self.loss, "seconds": self.seconds}
        facts |= {"machine": machine(), "best": None if self.best is None else self.best.facts["epoch"]}
        self.checkpoints.write({name: tensor.cpu().numpy() for name, tensor in self._tensors().items()}, facts)

    def _tensors(self) -> dict[str, Tensor]:
        """All tensors of a checkpoint, as they stand; before the first step there are no moments yet, but zeros."""
        moments = {
            f"{moment}.{key}": self.optimiser.state.get(weight, {}).get(moment, torch.zeros_like(weight))
            for key, weight in self.network.named_parameters()
            for moment in _MOMENTS
        }
        tensors = {f"network.{key}": value for key, value in self.network.weights().items()} | moments
        return tensors | {f"averaged.{key}": value for key, value in self.averaged.weights().items()}

    def _resume(self) -> None:
        """Go on from the newest checkpoint that is whole."""
        if not self.checkpoints:
            return
        found = self.checkpoints.newest({key: ("<f4", tuple(value.shape)) for key, value in self._tensors().items()})
        if found is None:
            return
        tensors, facts = found
        if facts["best"] is not None:
            self.best = NetworkEvaluator.load(self.checkpoints.best, engine="torch", device=str(self.device))
        self.epoch, self.step = facts["epoch"], facts["step"]
        self.loss, self.seconds = facts["loss"], facts["seconds"]
        for weight in self.network.parameters():
            moments = {moment: torch.zeros_like(weight) for moment in _MOMENTS}
            self.optimiser.state[weight] = {"step": torch.tensor(float(self.done), device=self.device), **moments}
        with torch.no_grad():
            for key, value in self._tensors().items():
                value.copy_(torch.from_numpy(tensors[key]))


def random_mask_nll(evaluator: Evaluator, records: Records) -> float:
    """NLL under the frozen draw of random masks: on the validation role it compares epochs and recipes, on the
    selection role seeds."""
    masks = possible_masks(frozen_masks(len(records)), records.available)
    return nll(records.labels, score(evaluator, records, masks))


def _autocast(device: torch.device) -> torch.autocast:
    """Half the digits where the device is built for them; a CPU keeps float32, so that a training can be repeated."""
    return torch.autocast(device.type, enabled=device.type != "cpu")
