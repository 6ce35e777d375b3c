"""Masked training of the strong evaluator's network. A kill costs minutes, and changes nothing.

Every step draws its randomness from (seed, epoch, step). A checkpoint is therefore weights, averaged weights, the
optimiser's moments and two integers; a training that goes on from it ends with the same weights, to the bit, on the
same machine with the same number of threads.
"""

import json
import time
import warnings
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int, Int16
from torch import Tensor
from torch.nn import functional

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, LeadwiseWarning
from leadwise.evaluators.devices import find_device, keep_freed_memory
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator, half_precision
from leadwise.evaluators.masked_resnet.network import WIDTHS, MaskedResNet1D
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masks import check_allocations, frozen_masks, possible_masks, training_masks
from leadwise.evaluators.scoring import score
from leadwise.evaluators.statistics import STATISTICS, lead_statistics
from leadwise.metrics import nll
from leadwise.progress import Bar, progress
from leadwise.store import atomic_file, check_tensors, read_tensors, remove_drafts, whole_file, write_tensors

FORMAT = "leadwise training checkpoint 1"
CHECKPOINT, CHECKPOINT_BEFORE = "checkpoint.safetensors", "checkpoint.before.safetensors"
BEST, HISTORY = "best.safetensors", "history.jsonl"
OWN_STATISTICS, AVERAGED_STATISTICS = "batch statistics of their own", "averaged batch statistics"
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

    Parameters
    ----------
    train, validation
        Roles to learn from, and to compare epochs on: by the NLL under the frozen draw of random masks.
    name, seed, recipe, widths
        How the evaluator is called in results; for everything random; how to train; channels of the stages.
    allocations
        For each policy, its masks of the training records at several budgets: half of the training masks then come from
        there, which makes a mask-robust evaluator.
    directory
        Where checkpoints, the best weights and ``history.jsonl`` are kept, and looked for to go on.
    device
        ``auto`` takes an accelerator if there is one.
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
        keep_freed_memory()
        if len(train) < recipe.batch:
            raise InputError(
                f"{train.name} has {len(train)} records, fewer than one batch of {recipe.batch}; take a smaller batch."
            )
        self.train, self.validation, self.recipe, self.seed, self.name = train, validation, recipe, seed, name
        self.widths, self.directory, self.device = widths, directory, find_device(device)
        self.allocations = [np.asarray(masks) for masks in allocations.values()]
        self.available, self.labels = train.available, train.labels.astype(np.float32)
        self.steps = len(train) // recipe.batch  # a short last batch would give poor batch statistics
        self.mean, self.scale = _lead_scales(train)
        self.facts = {
            "name": name,
            "seed": seed,
            "recipe": recipe.model_dump(),
            "epochs_compared_with": OWN_STATISTICS if recipe.norm_batches else AVERAGED_STATISTICS,
            "widths": list(widths),
            "labels": list(train.label_names),
            "train": train.labels_sha256,
            "validation": validation.labels_sha256,
            "allocations": {
                policy: sha256(np.packbits(masks).tobytes()).hexdigest() for policy, masks in allocations.items()
            },
        }
        # a seed of its own, so that training neither depends on nor disturbs the caller's random numbers
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = MaskedResNet1D(len(train.label_names), widths, recipe.dropout)
        self.network.to(self.device)
        self.averaged = {key: value.detach().clone() for key, value in self._state().items()}
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.epoch = self.step = 0  # what comes next
        self.loss = self.seconds = 0.0  # mean loss of this epoch so far; time spent on whole epochs
        self.best: NetworkEvaluator | None = None

    def made(self, evaluator: NetworkEvaluator) -> bool:
        """Whether an evaluator says of itself that it came out of just this training.

        Weights that do not say how their epochs were compared are not known to have: those that ship as ``strong`` are
        of the right recipe, but their epochs were compared with other batch statistics than they have.
        """
        return {name: evaluator.facts.get(name) for name in self.facts} == json.loads(json.dumps(self.facts))

    def run(self, checkpoint_seconds: float = 180.0) -> NetworkEvaluator:
        """Train to the end; returns the best epoch's weights, rounded to half precision, as an evaluator."""
        recipe = self.recipe
        self._resume()
        lengths = [self._length(epoch) for epoch in range(recipe.epochs)]
        with (
            torch.random.fork_rng(devices=[]),
            progress(f"Training {self.name}", self.steps * sum(lengths)) as advance,
        ):
            advance(self.steps * sum(lengths[: self.epoch]) + self.step * self._length(self.epoch))
            started = saved = time.monotonic()
            while self.epoch < recipe.epochs:
                order = np.random.default_rng([self.seed, self.epoch, 0]).permutation(len(self.train))
                while self.step < self.steps:
                    rows = order[self.step * recipe.batch : (self.step + 1) * recipe.batch]
                    self.loss += self.learn(rows) / self.steps
                    self.step += 1
                    advance(self._length(self.epoch))
                    if time.monotonic() - saved > checkpoint_seconds:
                        self._save_checkpoint()
                        saved = time.monotonic()
                measured = self._measure()
                now = time.monotonic()
                self.seconds, started = self.seconds + now - started, now
                self._note(
                    {
                        "epoch": self.epoch + 1,
                        "samples": self._length(self.epoch),
                        "learning_rate": self._learning_rate(),
                        "train_loss": self.loss,
                        "nll": measured,
                        "seconds": round(self.seconds, 1),
                    },
                    advance,
                )
                self.epoch, self.step, self.loss = self.epoch + 1, 0, 0.0
                self._save_checkpoint()
                saved = time.monotonic()
        assert self.best is not None  # the last epoch is always measured
        return self.best.on("auto", str(self.device))

    def learn(self, rows: Int[np.ndarray, " b"]) -> float:
        """One step of the optimiser, on these records of the training role; returns the loss."""
        rng = np.random.default_rng([self.seed, self.epoch, self.step + 1])  # a trailing 0 would be the epoch's own
        length = self._length(self.epoch)
        x, masks, y = (torch.from_numpy(array).to(self.device) for array in self.batch(rows, length, rng))
        torch.manual_seed(int(rng.integers(2**63)))  # dropout draws from here
        for group in self.optimiser.param_groups:
            group["lr"] = self._learning_rate()
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
        seen = self.epoch * self.steps + self.step
        # a young average would hold mostly the random weights that training began with
        decay = min(self.recipe.averaging, (1 + seen) / (10 + seen))
        with torch.no_grad():
            state = self._state()
            torch._foreach_lerp_([self.averaged[key] for key in state], list(state.values()), 1 - decay)
        return value

    def batch(
        self, rows: Int[np.ndarray, " b"], length: int, rng: np.random.Generator
    ) -> tuple[Float32[np.ndarray, "b 12 s"], Float32[np.ndarray, "b 12"], Float32[np.ndarray, "b l"]]:
        """Augmented, standardised, masked signals; masks; labels."""
        recipe, n = self.recipe, len(rows)
        x = self._windows(rows, length, rng).astype(np.float32)
        scale = self.scale.astype(np.float32)[:, None] * 1000
        x = (x - self.mean.astype(np.float32)[:, None] * 1000) / scale
        x *= np.exp(recipe.scaling * rng.standard_normal((n, 1, 1), dtype=np.float32))
        x += recipe.noise * rng.standard_normal(x.shape, dtype=np.float32)
        y = self.labels[rows]
        if recipe.mixing:
            share = rng.beta(recipe.mixing, recipe.mixing, n).astype(np.float32)
            share, other = np.maximum(share, 1 - share), rng.permutation(n)
            x = share[:, None, None] * x + (1 - share)[:, None, None] * x[other]
            y = share[:, None] * y + (1 - share)[:, None] * y[other]
        masks = training_masks(rows, self.available, self.allocations, rng)[0].astype(np.float32)
        x *= masks[..., None]
        return x, masks, y

    def _windows(
        self, rows: Int[np.ndarray, " b"], length: int, rng: np.random.Generator
    ) -> Int16[np.ndarray, "b 12 s"]:
        """A random window of each record, or the whole record rotated."""
        signals = self.train.signals[rows]
        if length < signals.shape[2]:
            starts = rng.integers(signals.shape[2] - length + 1, size=len(rows))
            return np.stack([one[:, start : start + length] for one, start in zip(signals, starts, strict=True)])
        if not self.recipe.shift:
            return signals
        shifts = rng.integers(length, size=len(rows))
        return np.stack([np.roll(one, shift, axis=1) for one, shift in zip(signals, shifts, strict=True)])

    def _length(self, epoch: int) -> int:
        """Samples that a record is read with in an epoch."""
        whole = epoch >= self.recipe.epochs - self.recipe.full_epochs
        return self.train.length if whole else min(self.recipe.crop, self.train.length)

    def _learning_rate(self) -> float:
        """One cycle: up to the peak over the first 30% of all steps, then down to nothing, both along a half cosine."""
        peak, total = self.recipe.learning_rate, self.recipe.epochs * self.steps
        done, rise = self.epoch * self.steps + self.step, 0.3 * total
        if done < rise:
            return peak * (1 + 24 * (1 - np.cos(np.pi * done / rise)) / 2) / 25
        return peak * (1 + np.cos(np.pi * (done - rise) / (total - rise))) / 2

    def _measure(self) -> float | None:
        """Random-mask NLL of the averaged weights on the validation role's frozen draw; the best are kept."""
        last = self.epoch >= self.recipe.epochs - self.recipe.full_epochs
        if not (last or (self.epoch + 1) % self.recipe.validate_every == 0):
            return None
        candidate = self.evaluator()
        value = random_mask_nll(candidate, self.validation)
        if self.best is None or value < self.best.facts["nll"]:
            candidate.facts |= {"epoch": self.epoch + 1, "nll": value}
            self.best = candidate
            if self.directory:
                candidate.save(self.directory / BEST)
        return value

    def evaluator(self) -> NetworkEvaluator:
        """The averaged weights, rounded to half precision, as an evaluator."""
        return NetworkEvaluator(
            self.name,
            self.train.label_names,
            self.train.sampling_rate,
            self.widths,
            self.mean,
            self.scale,
            half_precision(self.name, {key: value.cpu().numpy() for key, value in self._settled().items()}),
            dict(self.facts),
            engine="torch",
            device=str(self.device),
        )

    def _settled(self) -> dict[str, Tensor]:
        """The averaged weights with batch statistics of their own, from whole training records as they are read.

        An average of weights is a network that no step has seen: what its layers put out is not what the steps'
        statistics describe.
        """
        if not self.recipe.norm_batches:
            return self.averaged
        network = MaskedResNet1D(len(self.train.label_names), self.widths).to(self.device)
        network.load_state_dict(self.averaged, strict=False)  # but for counters of batches
        for layer in network.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.reset_running_stats()
                layer.momentum = None  # all batches count alike
        network.train()
        for number in range(self.recipe.norm_batches):
            rng = np.random.default_rng([self.seed, self.epoch, self.steps + 1 + number])  # as steps that come after
            rows = rng.permutation(len(self.train))[: self.recipe.batch]
            x, masks, _ = self.batch(rows, self.train.length, rng)
            with torch.no_grad(), _autocast(self.device):
                network(torch.from_numpy(x).to(self.device), torch.from_numpy(masks).to(self.device))
        return {key: value for key, value in network.state_dict().items() if value.is_floating_point()}

    def _state(self) -> dict[str, Tensor]:
        """Weights and batch statistics of the network."""
        return {key: value for key, value in self.network.state_dict().items() if value.is_floating_point()}

    def _note(self, row: dict[str, Any], advance: Bar) -> None:
        """A finished epoch, for people and for the history."""
        measured = "" if row["nll"] is None else f"{row['nll']:.4f}" + (" *" if self._is_best() else "")
        advance.say(
            f"epoch {row['epoch']:3d} of {self.recipe.epochs}  samples {row['samples']:5d}  "
            f"loss {row['train_loss']:.4f}  random-mask NLL {measured:8s}  {row['seconds']:7.0f} s"
        )
        if self.directory:
            with (self.directory / HISTORY).open("a") as file:
                file.write(json.dumps(row) + "\n")

    def _is_best(self) -> bool:
        return self.best is not None and self.best.facts["epoch"] == self.epoch + 1

    def _save_checkpoint(self) -> None:
        """Keep all that the next step needs; the checkpoint before it stays, in case this one comes to harm."""
        if not self.directory:
            return
        tensors = self._kept()
        if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
            return  # the next step will find that its loss is no number, and say so
        newest = self.directory / CHECKPOINT
        if newest.exists():
            newest.replace(self.directory / CHECKPOINT_BEFORE)
        facts = {"training": self.facts, "epoch": self.epoch, "step": self.step, "loss": self.loss}
        best = None if self.best is None else self.best.facts["epoch"]
        facts |= {"seconds": self.seconds, "machine": machine(), "best": best}
        write_tensors(newest, {key: tensor.cpu().numpy() for key, tensor in tensors.items()}, FORMAT, facts)

    def _kept(self) -> dict[str, Tensor]:
        """All tensors of a checkpoint, as they stand; before the first step there are no moments yet, but zeros."""
        moments = {
            f"{moment}.{key}": self.optimiser.state.get(weight, {}).get(moment, torch.zeros_like(weight))
            for key, weight in self.network.named_parameters()
            for moment in _MOMENTS
        }
        tensors = {f"network.{key}": value for key, value in self._state().items()} | moments
        return tensors | {f"averaged.{key}": value for key, value in self.averaged.items()}

    def _resume(self) -> None:
        """Go on from the newest checkpoint that is whole."""
        if not self.directory:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        damaged, instead = dict[Path, str](), "No whole checkpoint is left, so the training begins anew."
        for path in (self.directory / CHECKPOINT, self.directory / CHECKPOINT_BEFORE):
            if not path.exists():
                continue
            try:
                tensors, facts = read_tensors(path, FORMAT)
                with whole_file(path, FORMAT):
                    if facts["training"] == json.loads(json.dumps(self.facts)):
                        check_tensors(
                            tensors, {key: ("<f4", tuple(value.shape)) for key, value in self._kept().items()}
                        )
            except InputError as error:
                damaged[path] = str(error)
                continue
            self._restore(path, tensors, facts)
            instead = "Going on from the checkpoint before it."
            break
        for path, problem in damaged.items():
            warnings.warn(f"{problem} {instead}", LeadwiseWarning, stacklevel=4)
            path.unlink()  # it must not take the place of the one before
        for name in (CHECKPOINT, CHECKPOINT_BEFORE, BEST, HISTORY):
            remove_drafts(self.directory / name)
        history = self.directory / HISTORY
        if history.exists():
            lines = history.read_text().splitlines(keepends=True)[: self.epoch]  # later epochs will be done again
            with atomic_file(history) as draft:
                draft.write_text("".join(lines))

    def _restore(self, path: Path, tensors: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        theirs, ours = facts["training"], json.loads(json.dumps(self.facts))
        if theirs != ours:
            other = ", ".join(key for key in ours if theirs.get(key) != ours[key])
            raise InputError(
                f"{path} belongs to another training: {other} differ; name another directory, or remove this one."
            )
        if facts["machine"] != machine():
            warnings.warn(
                f"{path} was written on another kind of machine ({facts['machine']}, here {machine()}): the training "
                "goes on, but its weights will differ in their last digits from an uninterrupted training's.",
                LeadwiseWarning,
                stacklevel=5,
            )
        best = path.with_name(BEST)
        if facts["best"] is not None:
            if not best.exists():
                raise InputError(
                    f"{best} is missing, which the training wrote after epoch {facts['best']}; put it back, or remove "
                    f"{best.parent} to train anew."
                )
            self.best = NetworkEvaluator.load(best, engine="torch", device=str(self.device))
        self.epoch, self.step = facts["epoch"], facts["step"]
        self.loss, self.seconds = facts["loss"], facts["seconds"]
        on_device = {key: torch.from_numpy(tensor).to(self.device) for key, tensor in tensors.items()}
        with torch.no_grad():
            for key, value in self._state().items():
                value.copy_(on_device[f"network.{key}"])
                self.averaged[key].copy_(on_device[f"averaged.{key}"])
        steps = float(self.epoch * self.steps + self.step)
        for key, weight in self.network.named_parameters():
            moments = {moment: torch.empty_like(weight).copy_(on_device[f"{moment}.{key}"]) for moment in _MOMENTS}
            self.optimiser.state[weight] = {"step": torch.tensor(steps, device=self.device), **moments}


def random_mask_nll(evaluator: Any, records: Records) -> float:
    """NLL under the frozen draw of random masks: on the validation role it compares epochs and recipes, on the
    selection role seeds."""
    masks = possible_masks(frozen_masks(len(records)), records.available)
    return nll(records.labels, score(evaluator, records, masks))


def machine() -> str:
    """What decides the last bits of a training: processor kind, threads, torch."""
    return f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _autocast(device: torch.device) -> torch.autocast:
    """Half the digits where the device is built for them; a CPU keeps float32, so that a training can be repeated."""
    return torch.autocast(device.type, enabled=device.type != "cpu")


def _lead_scales(records: Records) -> tuple[Float64[np.ndarray, " 12"], Float64[np.ndarray, " 12"]]:
    """Mean and deviation of each lead's samples in mV, over the records that have it."""
    statistics, weights = lead_statistics(records), records.available.astype(np.float64)
    means, deviations = (statistics[..., STATISTICS.index(name)] for name in ("mean", "deviation"))
    count = np.maximum(weights.sum(axis=0), 1)
    mean = (weights * means).sum(axis=0) / count
    square = (weights * (means**2 + deviations**2)).sum(axis=0) / count
    return mean, np.maximum(np.sqrt(square - mean**2), 1e-6)
