"""Checkpoints: the files that an interrupted training goes on from, to the bit."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leadwise.errors import InputError, LeadwiseWarning
from leadwise.evaluators.masked_resnet.network import UNFOLDS
from leadwise.store import (
    TensorsDue,
    atomic_file,
    check_tensors,
    read_tensors,
    remove_drafts,
    whole_file,
    write_tensors,
)

FORMAT = "leadwise training checkpoint 1"
CHECKPOINT, CHECKPOINT_BEFORE = "checkpoint.safetensors", "checkpoint.before.safetensors"
BEST, HISTORY = "best.safetensors", "history.jsonl"


def machine() -> str:
    """Everything that decides the last bits of a training: processor kind, threads, torch, the weights' gradient."""
    threads, gradient = torch.get_num_threads(), "unfolded" if UNFOLDS else "torch's"
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{capability}, {threads} threads, torch {torch.__version__}, {gradient} weight gradient"


class Checkpoints:
    """The directory of one training: its last two checkpoints, its best weights, and a row for each finished epoch.

    ``training`` is what the training says of itself; checkpoints of any other are refused.
    """

    def __init__(self, directory: Path, training: Mapping[str, Any]) -> None:
        self.directory, self.training, self.best = directory, dict(training), directory / BEST

    def write(self, tensors: dict[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Keep all that the next step needs; the checkpoint before it stays, in case this one comes to harm."""
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            return  # the next step will find that its loss is no number, and say so
        newest = self.directory / CHECKPOINT
        if newest.exists():
            newest.replace(self.directory / CHECKPOINT_BEFORE)
        write_tensors(newest, tensors, FORMAT, {"training": self.training, **facts})

    def write_history(self, row: Mapping[str, Any]) -> None:
        """Add the row of an epoch that is finished."""
        with (self.directory / HISTORY).open("a") as file:
            file.write(json.dumps(row) + "\n")

    def newest(self, due: TensorsDue) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Tensors and facts of the newest whole checkpoint, or None; later files and rows are removed.

        A damaged checkpoint is named in a warning and removed, so that it cannot take the place of the one before.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        damaged, found = dict[Path, str](), None
        for path in filter(Path.exists, (self.directory / CHECKPOINT, self.directory / CHECKPOINT_BEFORE)):
            try:
                tensors, facts = read_tensors(path, FORMAT)
                with whole_file(path, FORMAT):
                    if facts["training"] == self.training:
                        check_tensors(tensors, due)
            except InputError as error:
                damaged[path] = str(error)
            else:
                self._check(path, facts)
                found = tensors, facts
                break
        begins = "No whole checkpoint is left, so the training begins anew."
        outcome = begins if found is None else "Going on from the checkpoint before it."
        for path, problem in damaged.items():
            warnings.warn(f"{problem} {outcome}", LeadwiseWarning, stacklevel=5)
            path.unlink()
        for name in (CHECKPOINT, CHECKPOINT_BEFORE, BEST, HISTORY):
            remove_drafts(self.directory / name)
        history = self.directory / HISTORY
        if history.exists():
            lines = history.read_text().splitlines(keepends=True)[: found[1]["epoch"] if found else 0]
            with atomic_file(history) as draft:
                draft.write_text("".join(lines))
        return found

    def _check(self, path: Path, facts: dict[str, Any]) -> None:
        """Raise if a whole checkpoint is not to be gone on from; warn if it will not be to the bit."""
        theirs = facts["training"]
        if theirs != self.training:
            other = ", ".join(key for key in self.training if theirs.get(key) != self.training[key])
            another = f"{path} belongs to another training: {other} differ"
            raise InputError(f"{another}; name another directory, or remove this one.")
        if facts["best"] is not None and not self.best.exists():
            missing = f"{self.best} is missing, which the training wrote after epoch {facts['best']}"
            raise InputError(f"{missing}; put it back, or remove {self.directory} to train anew.")
        if facts["machine"] != machine():
            warnings.warn(
                f"{path} was written on another kind of machine ({facts['machine']}, here {machine()}): the training "
                "goes on, but its weights will differ in their last digits from an uninterrupted training's.",
                LeadwiseWarning,
                stacklevel=6,  # the caller of whoever lets the training run
            )
