"""Recordings a second that a network reads: ours with torch and with OpenVINO, beside plain eager torch.

``torch`` is our torch engine, ``exact`` the engine that ``auto`` takes here (OpenVINO where it is installed). Shares
are of the machine's peak, as the best of a large matrix product and a large convolution shows it in the same run.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leadwise.bench import row
from leadwise.bench.plain import PlainResNet, operations, peak, shares, shortest
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator, half_precision
from leadwise.evaluators.masked_resnet.network import WIDTHS, MaskedResNet1D
from leadwise.evaluators.masks import random_masks
from leadwise.evaluators.scoring import Scorer

RECORDS = 1024
ROUNDS = 3
EAGER_BATCH = 32
"""The batch, of 16, 32, 64 and 256, with which eager torch is fastest on two AVX2 cores."""


def measure(cohort: Path) -> list[dict[str, Any]]:
    records = read_ptbxl(cohort)["validation"]
    positions = np.resize(np.arange(len(records)), RECORDS)
    masks = random_masks(RECORDS, np.random.default_rng(0))
    distinct = len(np.unique(np.concatenate([positions[:, None], masks], axis=1), axis=0))
    torch.manual_seed(0)
    weights = half_precision("", MaskedResNet1D(len(records.label_names)))

    shared: dict[str, Any] = {"labels": records.label_names, "sampling_rate": records.sampling_rate, "widths": WIDTHS}
    shared |= {"mean": np.zeros(12), "scale": np.ones(12), "weights": weights, "facts": {}}
    engines = {"torch": "torch", "exact": "auto"}
    networks = {name: NetworkEvaluator(name=engine, engine=engine, **shared) for name, engine in engines.items()}
    readers = {name: Scorer(each, records) for name, each in networks.items()}
    plain = PlainResNet(len(records.label_names)).load(networks["torch"].network()).eval()
    z = torch.from_numpy(records.signals.millivolts(positions)) * torch.from_numpy(masks)[..., None]
    m = torch.from_numpy(masks.astype(np.float32))

    def eager() -> np.ndarray:
        with torch.inference_mode():
            parts = [slice(start, start + EAGER_BATCH) for start in range(0, RECORDS, EAGER_BATCH)]
            return torch.sigmoid(torch.cat([plain(z[part], m[part]) for part in parts]).double()).numpy()

    works = {name: partial(reader.pairs, positions, masks) for name, reader in readers.items()} | {"eager": eager}
    expected = eager()
    for name, work in works.items():
        if not np.abs(work() - expected).max() <= 1e-5:
            raise LeadwiseError(f"The engine '{name}' and eager torch disagree; this is a bug, please report it.")
    # in turn, so that a busy moment of the machine meets all of them; the best of each counts
    rounds = [(peak(), {name: shortest(work, 1) for name, work in works.items()}) for _ in range(ROUNDS)]
    best, cost = max(each for each, _ in rounds), operations(records.length)
    seconds = {name: min(times[name] for _, times in rounds) for name in works}
    other = RECORDS / seconds["eager"]
    rows = []
    for name in readers:
        ours = distinct / seconds[name]
        what = f"{type(networks[name]._engine).__name__} against eager torch, {records.length} samples each"
        rows.append(row(name, "recordings/s", ours, other, what, **shares(ours, other, cost, best)))
    return rows
