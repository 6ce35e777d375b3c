"""The transfer matrix: what policies trained on one evaluator are worth to another that reads their leads."""

from collections.abc import Iterable, Sequence

import pandas as pd

from leadwise.analysis.contrasts import OWN, Contrast, contrasts_frame, estimate_contrasts
from leadwise.analysis.readings import Readings
from leadwise.policies.allocation import Allocation
from leadwise.references import Several

AUROC = "auroc"
AUROC_REFERENCE = "nll"
"""The metric of the references that AUROC, which none are searched for, is compared with."""


def estimate_areas(
    readings: Readings, allocations: Iterable[Allocation], references: Several, evaluator: str
) -> list[Contrast]:
    """Contrasts of AUROC under an evaluator, against its sets that are best for NLL; above zero, adaptive choice pays.

    Where a label has one value only there is no AUROC, and no contrast.
    """
    found = estimate_contrasts(readings, allocations, references, OWN, [AUROC], AUROC_REFERENCE, [evaluator])
    return [each for each in found if each.delta.value == each.delta.value]


def transfer_frame(found: Iterable[Contrast], policies: Sequence[str], evaluators: Sequence[str]) -> pd.DataFrame:
    """``transfer.csv``: contrasts of these policies under these evaluators, against each one's own references."""
    cells = [
        each
        for each in found
        if each.allocation.policy in policies and each.evaluator in evaluators
        if each.reference_evaluator == each.evaluator
    ]
    places = {cell: place for place, cell in enumerate((p, e) for p in policies for e in evaluators)}
    cells.sort(key=lambda each: (places[each.allocation.policy, each.evaluator], each.allocation.k))
    return contrasts_frame(cells)
