"""An evaluator around a trained network: its weights, on disk and in use."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Float16, Float32, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, right_one
from leadwise.evaluators.contract import check_facts
from leadwise.evaluators.masked_resnet.engines import BATCH, Engine, build_engine
from leadwise.evaluators.masked_resnet.standardisation import standardise
from leadwise.store import check_tensors, read_facts, read_tensors, whole_file, write_tensors

if TYPE_CHECKING:
    from leadwise.evaluators.masked_resnet.network import MaskedResNet1D

FORMAT = "leadwise network evaluator 1"

KEPT_BYTES = 2**30
"""Standardised signals are kept up to this size; larger ones are standardised batch by batch."""

Weights = dict[str, Float16[np.ndarray, "..."]]


@dataclass(eq=False, repr=False)
class NetworkEvaluator:
    """A `MaskedResNet1D` that reads standardised leads, on whatever engine this machine has.

    Weights are half precision, so that what ships is what was measured; arithmetic is in float32, the sigmoid in
    float64. `leadwise.evaluators.masked_resnet.training.train_network` makes one.
    """

    name: str
    labels: Sequence[str]
    sampling_rate: float
    """Like the labels, that of the cohort that it was trained on."""
    widths: Sequence[int]
    """Channels of the network's stages."""
    mean: Float64[np.ndarray, " 12"]
    scale: Float64[np.ndarray, " 12"]
    """Mean and deviation of each lead's samples in mV, over the training role."""
    weights: Weights
    facts: dict[str, Any]
    """Everything known about the training, kept with the weights."""
    engine: str = "auto"
    device: str = "auto"
    """Device that computes; the engine is one of those in `leadwise.evaluators.masked_resnet.engines`."""

    def __post_init__(self) -> None:
        self.labels, self.widths = tuple(self.labels), tuple(self.widths)

    @property
    def parameters(self) -> int:
        """Number of trained weights."""
        return sum(weight.numel() for weight in self.network().parameters())

    def network(self) -> "MaskedResNet1D":
        """The network itself, in float32, ready to read."""
        import torch

        from leadwise.evaluators.masked_resnet.network import MaskedResNet1D

        network = MaskedResNet1D(len(self.labels), self.widths)
        network.load_state_dict({name: torch.tensor(value.astype(np.float32)) for name, value in self.weights.items()})
        return network.eval()

    def probabilities(
        self, signals: Float[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]
    ) -> Float64[np.ndarray, "n l"]:
        """Probabilities from waveforms in mV."""
        return self._read(self.standardised(signals), masks)

    def prepare(self, records: Records) -> "_PreparedNetwork":
        """The records, standardised for many readings."""
        return _PreparedNetwork(self, records)

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        tensors = {"mean": self.mean, "scale": self.scale}
        tensors |= {f"weights.{name}": value for name, value in self.weights.items()}
        facts = {"kind": "masked-resnet"} | {name: getattr(self, name) for name in _SETTINGS}
        write_tensors(path, tensors, FORMAT, facts)

    @classmethod
    def load(cls, path: Path, engine: str = "auto", device: str = "auto") -> "NetworkEvaluator":
        """Read what `save` wrote."""
        import torch

        from leadwise.evaluators.masked_resnet.network import MaskedResNet1D

        tensors, facts = read_tensors(path, FORMAT)
        with whole_file(path, "network evaluator"):
            settings = {name: facts[name] for name in _SETTINGS}
            check_facts(settings["labels"], settings["sampling_rate"])
            if not all(isinstance(width, int) and width > 0 for width in settings["widths"]):
                raise ValueError(f"widths are {settings['widths']}, where numbers of channels are due")
            with torch.device("meta"):  # shapes without memory, however many channels a file claims
                state = MaskedResNet1D(len(settings["labels"]), settings["widths"]).weights()
            due: dict[str, tuple[str, tuple[int, ...]]] = {"mean": ("<f8", (12,)), "scale": ("<f8", (12,))}
            due |= {f"weights.{name}": ("<f2", tuple(value.shape)) for name, value in state.items()}
            check_tensors(tensors, due)
            for name, value in tensors.items():
                if name.endswith("running_var") and (value < 0).any():
                    raise ValueError(f"tensor '{name}' holds {value.min()}, where a variance is due")
            weights = {name[8:]: value for name, value in tensors.items() if name.startswith("weights.")}
            mean, scale = tensors["mean"], tensors["scale"]
            return cls(**settings, mean=mean, scale=scale, weights=weights, engine=engine, device=device)

    def on(self, engine: str = "auto", device: str = "auto") -> "NetworkEvaluator":
        """The same evaluator, computed by another engine."""
        return replace(self, engine=engine, device=device)

    @property
    def sha256(self) -> str:
        """Hash of everything that decides its answers."""
        digest = hashlib.sha256(json.dumps([self.labels, self.sampling_rate, self.widths]).encode())
        for name, value in sorted({"mean": self.mean, "scale": self.scale, **self.weights}.items()):
            digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        seed = f", seed {self.facts['seed']}" if "seed" in self.facts else ""
        return f"<NetworkEvaluator {self.name}: {' '.join(self.labels)}{seed}>"

    def standardised(self, signals: Float[np.ndarray, "n 12 t"]) -> Float32[np.ndarray, "n 12 t"]:
        """Signals in mV, in deviations from each lead's mean."""
        return standardise(signals, self.mean, self.scale)

    def _read(self, z: Float32[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]) -> Float64[np.ndarray, "n l"]:
        """Probabilities from standardised signals, which it overwrites."""
        observed = masks.astype(np.float32)
        z *= observed[..., None]
        from scipy.special import expit

        return expit(self._engine(z, observed).astype(np.float64))

    @cached_property
    def _engine(self) -> Engine:
        return build_engine(self.network(), self.engine, self.device)


def half_precision(name: str, network: "MaskedResNet1D") -> Weights:
    """The weights of a network, rounded to half precision as they are kept."""
    rounded = {}
    for key, tensor in network.weights().items():
        weight = tensor.cpu().numpy()
        with np.errstate(over="ignore"):
            rounded[key] = weight.astype(np.float16)
        if not np.isfinite(rounded[key]).all():
            come, end = f"has come to {np.abs(weight).max():g}", f"{np.finfo(np.float16).max:.0f}"
            lower = "train with a lower learning rate"
            raise InputError(f"The weight {key} of {name} {come}, where half precision ends at {end}; {lower}.")
    return rounded


_SETTINGS = ("name", "labels", "sampling_rate", "widths", "facts")


class _PreparedNetwork:
    """Records that a network is going to read under many masks.

    Memory: their standardised signals (48 kB for ten seconds at 100 Hz) up to `KEPT_BYTES`, beyond which each batch is
    standardised anew; and one batch.
    """

    batch = 64 * BATCH
    """Pairs asked for together: so many that the last few, when some cores have nothing left to do, do not matter."""
    together = BATCH
    """Pairs that an engine reads in one go; what is left over it reads in another way."""

    def __init__(self, evaluator: NetworkEvaluator, records: Records) -> None:
        self.evaluator, self.signals = evaluator, records.signals
        keep = 4 * np.prod(self.signals.shape) <= KEPT_BYTES
        self.z = evaluator.standardised(self.signals.millivolts(slice(None))) if keep else None

    def probabilities(
        self, positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]
    ) -> Float64[np.ndarray, "m l"]:
        if self.z is not None:
            return self.evaluator._read(self.z[positions], masks)
        return self.evaluator.probabilities(self.signals.millivolts(positions), masks)


def shipped_networks() -> Iterator[NetworkEvaluator]:
    """Every network that ships, trained on PTB-XL's folds 1 to 6: the frozen ones, and other seeds of the plan's."""
    seeds = sorted(Path(str(files("leadwise") / "networks")).glob("*.safetensors"))
    return (NetworkEvaluator.load(path) for path in (*_shipped_files().values(), *seeds))


def shipped_evaluator(name: str = "strong") -> NetworkEvaluator:
    """The network that ships under this name, trained on PTB-XL's folds 1 to 6."""
    networks = _shipped_files()
    if name not in networks:
        raise InputError(f"No network ships under the name '{name}'; {right_one(name, networks)}")
    return NetworkEvaluator.load(networks[name])


def _shipped_files() -> dict[str, Path]:
    paths = sorted(Path(str(files("leadwise") / "pretrained" / "evaluators")).glob("*.safetensors"))
    return {path.stem: path for path in paths if read_facts(path).get("format") == FORMAT}
