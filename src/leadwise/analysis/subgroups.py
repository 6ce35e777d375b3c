"""Contrasts and interactions in groups of records: by sex, age, diagnoses, signal quality and fold.

They describe, and answer no question that was asked in advance: all of them are exploratory. The patients are those
that everything else resamples; a replicate of a group is over the records of it that were drawn.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.contrasts import OWN, Contrast, estimate_contrasts
from leadwise.analysis.interactions import estimate_interactions
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import QUALITY_FLAGS, Records
from leadwise.policies.allocation import Allocation
from leadwise.references import References

METRICS = ("nll", "brier")
FEW = 20
"""A level of fewer patients has no interval."""

_DEFECTS = [
    QUALITY_FLAGS.index(flag) for flag in ("baseline_drift", "static_noise", "burst_noise", "electrodes_problems")
]
_BANDS = {"under 40": (-np.inf, 40), "40–59": (40, 60), "60–79": (60, 80), "80 and over": (80, np.inf)}


def levels_of(records: Records) -> dict[tuple[str, str], Bool[np.ndarray, " n"]]:
    """The records of each level of each group, by group and level; a level without records is left out."""
    number, flagged = records.labels.sum(axis=1), records.quality[:, _DEFECTS].any(axis=1)
    levels = {("sex", name): records.sex == code for name, code in (("female", 1), ("male", 0), ("unknown", -1))}
    levels |= {("age", band): (records.age >= low) & (records.age < high) for band, (low, high) in _BANDS.items()}
    levels["age", "unknown or over 89"] = np.isnan(records.age)
    levels |= {
        ("diagnoses", "none"): number == 0,
        ("diagnoses", "one"): number == 1,
        ("diagnoses", "several"): number > 1,
    }
    levels |= {("quality", "flagged"): flagged, ("quality", "not flagged"): ~flagged}
    folds = np.unique(records.folds)
    if len(folds) > 1:
        levels |= {("fold", f"fold {fold}"): records.folds == fold for fold in folds}
    return {key: members for key, members in levels.items() if members.any()}


def subgroups_frame(
    readings: Readings,
    allocations: Iterable[Allocation],
    references: Mapping[str, References],
    readers: Sequence[str],
    family: tuple[str, str, str] | None = None,
) -> pd.DataFrame:
    """``subgroups.csv``: D under each reader against its own references, and I of a family, in every level.

    ``family`` is an evaluator, its baseline, and ``"own"`` or the evaluator whose references both are compared with.
    The allocations of a budget are of the same records: those that are compared in the whole role.
    """
    budgets: dict[int, list[Allocation]] = {}
    for each in allocations:
        budgets.setdefault(each.k, []).append(each)
    rows: list[dict[str, Any]] = []
    for several in budgets.values():
        for (group, level), members in levels_of(several[0].records).items():
            parts = [each.select(members) for each in several]
            facts = {"group": group, "level": level, "records": int(members.sum())}
            facts["patients"] = len(np.unique(parts[0].records.patients))
            rows += [facts | row for row in _rows(readings, parts, references, readers, family)]
    frame = pd.DataFrame(rows)
    if len(frame):
        frame.loc[frame["patients"] < FEW, ["lo", "hi"]] = np.nan
    return frame


def _rows(
    readings: Readings,
    parts: Sequence[Allocation],
    references: Mapping[str, References],
    readers: Sequence[str],
    family: tuple[str, str, str] | None,
) -> Iterator[dict[str, Any]]:
    """Contrasts and interactions of the parts of allocations that are for one level's records."""
    own, owners = [(reader, reader) for reader in readers], list[tuple[str, str]]()
    if family is not None:
        evaluator, baseline, reference = family
        owners = [(name, name if reference == OWN else reference) for name in (evaluator, baseline)]
    found: list[Contrast] = []
    for name, owner in dict.fromkeys([*own, *owners]):
        if parts[0].k in references[owner].budgets:
            found += estimate_contrasts(readings, parts, references, owner, METRICS, evaluators=[name])
    for each in found:
        if (each.evaluator, each.reference_evaluator) in own:
            yield {"quantity": "contrast"} | _row(each.key._asdict(), each.delta)
    if family is not None:
        for one in estimate_interactions(found, evaluator, baseline, reference):
            yield {"quantity": "interaction"} | _row(one.facts, one.estimate)


def _row(facts: dict[str, Any], estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval
    return facts | {"value": estimate.value, "lo": low, "hi": high}
