"""A trained network as an ONNX file, for programs that are not Python."""

import logging
import warnings
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from leadwise.errors import InputError
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator
from leadwise.store import atomic_file

TOLERANCE = 1e-5
"""Largest difference between probabilities from the file and torch's."""


class _Whole(nn.Module):
    """From leads in mV, whatever unobserved ones hold, and a mask of zeros and ones to probabilities."""

    def __init__(self, evaluator: NetworkEvaluator) -> None:
        super().__init__()
        self.network = evaluator.network().fold()
        self.mean, self.scale = (
            nn.Parameter(torch.tensor(array, dtype=torch.float32)[:, None], requires_grad=False)
            for array in (evaluator.mean, evaluator.scale)
        )

    def forward(self, signals: Float[Tensor, "n 12 t"], masks: Float[Tensor, "n 12"]) -> Float[Tensor, "n l"]:
        standardised = (signals - self.mean) / self.scale
        return torch.sigmoid(self.network(torch.where(masks[..., None] > 0, standardised, 0.0), masks))


def export_onnx(evaluator: NetworkEvaluator, path: str | Path) -> None:
    """Write ``signals`` (n, 12, t) in mV and ``masks`` (n, 12) → ``probabilities`` (n, labels), n and t open.

    Standardisation, masking and the sigmoid are inside. Before the file is kept, onnxruntime reads it and must agree
    with torch within `TOLERANCE`; the labels' names and the sampling rate stand in its metadata.
    """
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
    except ImportError as error:
        raise InputError(f"{error.name} is not installed, which exporting needs; install leadwise[fast].") from None
    whole, rng = _Whole(evaluator).eval(), np.random.default_rng(0)
    samples = round(10 * evaluator.sampling_rate)
    signals = torch.tensor(rng.standard_normal((3, 12, samples)), dtype=torch.float32)
    masks = torch.tensor(rng.random((3, 12)) < 0.5, dtype=torch.float32)
    n, t = torch.export.Dim("n"), torch.export.Dim("t", min=64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's exporter speaks to its own developers, here and in its log
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            whole,
            (signals, masks),
            input_names=["signals", "masks"],
            output_names=["probabilities"],
            dynamic_shapes={"signals": {0: n, 2: t}, "masks": {0: n}},
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    facts = {"labels": " ".join(evaluator.labels), "sampling_rate": str(evaluator.sampling_rate)}
    onnx.helper.set_model_props(model, facts | {"sha256": evaluator.sha256})
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for size in (slice(0, 3), slice(0, 1)):
        said = session.run(None, {"signals": signals[size].numpy(), "masks": masks[size].numpy()})[0]
        with torch.inference_mode():
            off = float(np.abs(said - whole(signals[size], masks[size]).numpy()).max())
        if not off <= TOLERANCE:
            raise InputError(
                f"onnxruntime reads {evaluator.name} differently from torch, by {off:.2g}; nothing written."
            )
    with atomic_file(Path(path)) as draft:
        draft.write_bytes(content)
