"""Engines that compute a network's logits: torch on any device, or OpenVINO on a CPU.

Both are given the same folded weights, compute in float32, and agree within 1e-5 in probability. On a CPU both read
`BATCH` recordings at a time on one thread for each core: a recording's activations then stay in that core's cache, and
no core waits for another within a layer.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from leadwise.errors import InputError

if TYPE_CHECKING:
    import torch

    from leadwise.evaluators.masked_resnet.network import Convolution, MaskedResNet1D

BATCH = 32
"""Recordings read together: of 8, 16, 32 and 64, the fastest with both engines on two AVX2 cores."""

ENGINES = ("auto", "torch", "openvino")

Engine = Callable[[Float32[np.ndarray, "n 12 t"], Float32[np.ndarray, "n 12"]], Float32[np.ndarray, "n l"]]
"""Logits from standardised signals with unobserved leads zero, and masks of zeros and ones."""


def build_engine(network: "MaskedResNet1D", engine: str = "auto", device: str = "auto") -> Engine:
    """An engine for a network; ``auto`` takes an accelerator, else OpenVINO where it is installed, else torch."""
    from leadwise.evaluators.devices import find_device

    if engine not in ENGINES:
        raise InputError(f"There is no engine '{engine}'; there are {', '.join(ENGINES)}.")
    where = find_device(device)
    if engine == "auto":
        engine = "openvino" if where.type == "cpu" and has_openvino() else "torch"
    if engine == "torch":
        return TorchEngine(network, where)
    if where.type != "cpu":
        raise InputError(f"OpenVINO computes on the CPU here, not on '{where}'; use the torch engine there.")
    if not has_openvino():
        raise InputError("OpenVINO is not installed; install leadwise[fast], or use the torch engine.")
    return OpenVINOEngine(network)


@cache
def has_openvino() -> bool:
    return find_spec("openvino") is not None


def import_openvino() -> Any:
    """OpenVINO without its telemetry, which would otherwise report the very import."""
    nothing: Any = None  # an entry of None says: not to be imported
    sys.modules.setdefault("openvino_telemetry", nothing)
    import openvino

    return openvino


@cache
def openvino_core() -> Any:
    """The one core of this process, never dropped.

    Each core moves the stack that signals are handled on. Two that are dropped in the order in which they were made
    leave it at memory that is gone, and Ctrl-C then ends in a segmentation fault.
    """
    return import_openvino().Core()


class TorchEngine:
    """Folded weights, channels last; on a CPU one batch for each core at a time."""

    def __init__(self, network: "MaskedResNet1D", device: "torch.device") -> None:
        self.network, self.device = network.fold().to(device), device

    def __call__(
        self, signals: Float32[np.ndarray, "n 12 t"], masks: Float32[np.ndarray, "n 12"]
    ) -> Float32[np.ndarray, "n l"]:
        import torch

        from leadwise.evaluators.devices import one_thread

        def read(start: int) -> Float32[np.ndarray, "m l"]:
            part = slice(start, start + BATCH)
            with torch.inference_mode():
                here = (torch.from_numpy(array[part]).to(self.device) for array in (signals, masks))
                return self.network(*here).float().cpu().numpy()

        starts = range(0, len(signals), BATCH)
        if self.device.type != "cpu" or torch.get_num_threads() == 1 or len(starts) == 1:
            return np.concatenate([read(start) for start in starts])
        # a thread for each batch instead of several within one; each worker of the pool must be told, too
        with one_thread() as cores, ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return np.concatenate(list(pool.map(read, starts)))


class OpenVINOEngine:
    """The same network as a graph of OpenVINO's, one asynchronous stream for each core.

    Graphs are compiled for a fixed batch and length, which is a tenth faster than leaving them open: one for whole
    batches, one for single recordings, with which a remainder is read.
    """

    def __init__(self, network: "MaskedResNet1D") -> None:
        self.network = network.fold()
        self._queues: dict[tuple[int, int], Any] = {}

    def __call__(
        self, signals: Float32[np.ndarray, "n 12 t"], masks: Float32[np.ndarray, "n 12"]
    ) -> Float32[np.ndarray, "n l"]:
        whole = len(signals) // BATCH * BATCH
        logits = np.empty((len(signals), self.network.last.out_features), dtype=np.float32)

        def store(request: Any, here: slice) -> None:
            logits[here] = request.get_output_tensor(0).data

        for size, part in ((BATCH, range(0, whole, BATCH)), (1, range(whole, len(signals)))):
            if part:
                queue = self._queue(size, signals.shape[2])
                queue.set_callback(store)
                for start in part:
                    here = slice(start, start + size)
                    queue.start_async({0: signals[here], 1: masks[here]}, here)
                queue.wait_all()
        return logits

    def _queue(self, size: int, length: int) -> Any:
        openvino = import_openvino()
        if (size, length) not in self._queues:
            cores = os.cpu_count() or 1
            settings = {"PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": cores, "INFERENCE_NUM_THREADS": cores}
            settings["INFERENCE_PRECISION_HINT"] = "f32"  # by itself, OpenVINO takes bfloat16 where the processor can
            compiled = openvino_core().compile_model(openvino_graph(self.network, size, length), "CPU", settings)
            self._queues[size, length] = openvino.AsyncInferQueue(compiled, 2 * cores)
        return self._queues[size, length]


def openvino_graph(network: "MaskedResNet1D", size: int, length: int) -> Any:
    """A folded `MaskedResNet1D` as OpenVINO's graph. Built op by op: converters want onnx, or bring telemetry."""
    openvino = import_openvino()
    op = openvino.opset13

    def convolution(layer: "Convolution", x: Any) -> Any:
        stride, padding = layer.stride[1], layer.padding[1]
        y = op.convolution(x, layer.weight[:, :, 0].numpy(), [stride], [padding], [padding], [1])
        assert layer.bias is not None  # folded
        return op.add(y, layer.bias.numpy()[None, :, None])

    signals = op.parameter([size, 12, length], openvino.Type.f32)
    masks = op.parameter([size, 12], openvino.Type.f32)
    x = op.relu(convolution(network.stem, signals))
    x = op.max_pool(x, [2], [1], [1], [1], [3], "floor").output(0)
    for block in network.each_block():
        y = convolution(block.second, op.relu(convolution(block.first, x)))
        x = op.relu(op.add(y, x if block.shortcut is None else convolution(block.shortcut, x)))
    x = op.concat([op.reduce_mean(x, np.array([2])), masks], 1)
    norm, hidden, last = network.head_norm, network.hidden, network.last
    x = op.mvn(x, np.array([1]), normalize_variance=True, eps=norm.eps, eps_mode="INSIDE_SQRT")
    x = op.add(op.multiply(x, norm.weight.numpy()), norm.bias.numpy())
    x = op.relu(op.add(op.matmul(x, hidden.weight.numpy(), False, True), hidden.bias.numpy()))
    x = op.add(op.matmul(x, last.weight.numpy(), False, True), last.bias.numpy())
    return openvino.Model([x], [signals, masks], "MaskedResNet1D")
