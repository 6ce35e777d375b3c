"""Every number that was published, beside ours.

The published numbers ship with the package, as tables and as `scalars.csv` for what stands in no table. Where our run
has no such number (a role that was not scored, a budget that was not run), ours is empty; what another scored role says
stands beside it for orientation.

Intervals that overlap show little agreement, so the difference is given too. Where both numbers are of the same
patients their errors are shared, and no test is made of it. Where they are of other patients,
z = difference / sqrt(s² + s²'), each s the width of a 95% interval over 2 × 1.96.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from leadwise.analysis.contrasts import OWN
from leadwise.analysis.tidy import REFERENCE
from leadwise.findings.estimates import Findings, Found
from leadwise.findings.scalars import scalar

COLUMNS = (
    *("quantity", "where", "fold", "published", "published_lo", "published_hi"),
    *("ours", "ours_lo", "ours_hi", "same_sign", "intervals_overlap"),
    *("orientation_role", "orientation", "orientation_lo", "orientation_hi", "patients", "difference", "z"),
)

_DTYPES: dict[str, Any] = {
    "published": object,  # lead names among numbers
    "ours": object,
    "fold": "Int64",
    "orientation": object,
    **dict.fromkeys(("published_lo", "published_hi", "ours_lo", "ours_hi"), float),
    **dict.fromkeys(("orientation_lo", "orientation_hi", "difference", "z"), float),
    **dict.fromkeys(("same_sign", "intervals_overlap"), "boolean"),  # true, false or empty
}

AUDIT = "audit"
SCORED_FOLDS = (8, 9)
"""The paper's own evaluation and audit."""
SAME, OTHERS = "the same", "others"
"""Whether our number is of the patients that the published one is of."""

Row = dict[str, Any]
Cells = dict[str, str]
"""A line of a published table."""


def published_frame(
    results: Mapping[str, pd.DataFrame],
    roles: Mapping[str, Sequence[int]],
    facts: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """``published.csv``: one row a published number; an interval stands in the row of its number.

    ``difference`` is ours minus the published number; of the number that stands there for orientation where there is
    no other. ``z`` is empty where the patients are the same, or an interval is missing.

    Parameters
    ----------
    results
        Frames by the stem of their file. Any may be missing or lack rows.
    roles
        The folds of each role; a published fold is compared with the role that has it.
    facts
        Numbers that are no results, by their published name, such as "strong parameters".
    """
    findings = Findings(results, roles)
    rows = _rows(findings, facts or {})
    unscored = {fold for fold in SCORED_FOLDS if not findings.scored(findings.role(fold))}
    if unscored and findings.scored(AUDIT):
        beside = Findings(results, {AUDIT: sorted(unscored)})
        rows = [
            _oriented(row, other) if row["fold"] in unscored else row
            for row, other in zip(rows, _rows(beside, {}), strict=True)
        ]
    frame = pd.DataFrame(_with_unique_names([_compared(row) for row in rows]), columns=list(COLUMNS))
    return frame.astype(_DTYPES)


def _rows(findings: Findings, facts: Mapping[str, float]) -> list[Row]:
    """All published numbers beside ours of the same fold."""
    rows = [row for name in _TABLES for row in _table_rows(findings, name)]
    return rows + [_scalar_row(findings, cells, facts) for cells in read_published("scalars")]


def _oriented(row: Row, other: Row) -> Row:
    """A number that this run does not have, with that of the audit role beside it."""
    if pd.isna(other["ours"]) or not pd.isna(row["ours"]):
        return row
    bounds = {f"orientation_{bound}": other[f"ours_{bound}"] for bound in ("lo", "hi")}
    return row | {"orientation_role": AUDIT, "orientation": other["ours"], "patients": OTHERS} | bounds


def _compared(row: Row) -> Row:
    """How far our number is from the published one."""
    if row["fold"] is not None and not pd.isna(row["ours"]):
        row = row | {"patients": SAME}
    whose = "orientation" if row.get("patients") == OTHERS else "ours"
    published, ours = (Found(row[each], row[f"{each}_lo"], row[f"{each}_hi"]) for each in ("published", whose))
    if ours.missing or isinstance(published.value, str):
        return row
    row = row | {"difference": ours.value - published.value}
    if whose == "ours":
        return row
    first, second = ((each.hi - each.lo) / (2 * 1.96) for each in (published, ours))
    return row | {"z": row["difference"] / np.hypot(first, second)}


@cache
def read_published(name: str) -> tuple[Cells, ...]:
    """The lines of a table that ships with the package."""
    text = (files("leadwise") / "published" / f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def _table_rows(findings: Findings, name: str) -> Iterator[Row]:
    """The rows of one table, whose name says of which fold and budget it is, unless its lines do."""
    where, rows_of = _TABLES[name]
    fold, k = (int(found[1]) if (found := re.search(rf"_{key}(\d+)", name)) else None for key in ("fold", "k"))
    for cells in read_published(name):
        if "k" in cells:
            k = int(cells["k"])
        for row in rows_of(findings, cells, fold, k):
            yield row | {"where": where, "fold": fold}


def _scalar_row(findings: Findings, cells: Cells, facts: Mapping[str, float]) -> Row:
    quantity, found, signed = scalar(findings, cells["name"], facts)
    fold = int(there[1]) if (there := re.search(r" fold(\d+)", cells["name"])) else None
    return _row(quantity, _numbers(cells, "value"), found, signed) | {"where": cells["where"], "fold": fold}


def _row(quantity: str, published: Found, ours: Found, signed: bool = False) -> Row:
    """``signed``: whether the number is a difference or a correlation, so that its sign says something."""
    if isinstance(published.value, int) and not ours.missing and float(ours.value).is_integer():
        ours = ours._replace(value=int(ours.value))  # a count is read as a count
    same_sign: object = pd.NA
    if signed and not ours.missing:
        same_sign = bool(np.sign(ours.value) == np.sign(published.value))
    overlap: object = pd.NA
    if not np.isnan([published.lo, published.hi, ours.lo, ours.hi]).any():
        overlap = bool(published.lo <= ours.hi and ours.lo <= published.hi)
    return {
        "quantity": quantity,
        "published": published.value,
        "published_lo": published.lo,
        "published_hi": published.hi,
        "ours": ours.value,
        "ours_lo": ours.lo,
        "ours_hi": ours.hi,
        "same_sign": same_sign,
        "intervals_overlap": overlap,
    }


def _with_unique_names(rows: Sequence[Row]) -> list[Row]:
    """The paper gives some numbers in several places; there the place becomes part of the name."""
    names = [row["quantity"] for row in rows]
    return [
        row | {"quantity": f"{row['quantity']} ({row['where']})"} if names.count(row["quantity"]) > 1 else row
        for row in rows
    ]


def _numbers(cells: Cells, column: str, interval: bool = True) -> Found:
    """A published number, an int where it was written as one, with the interval of its line if that is its own."""
    lo, hi = (float(cells.get(bound) or np.nan) if interval else np.nan for bound in ("lo", "hi"))
    text = cells[column]
    return Found(int(text) if text.isdigit() else float(text), lo, hi)


def _name(text: str) -> str:
    """What results call a policy or a metric of a table: "MGA (C-trained)" is mga."""
    return text.split(" (")[0].lower()


def _splits(findings: Findings, cells: Cells, _fold: int | None, _k: int | None) -> Iterator[Row]:
    first, *last = (int(fold) for fold in cells["folds"].split("-"))
    folds = range(first, (last or [first])[0] + 1)
    for column, counted in (
        ("records", "records"),
        ("patients", "patients"),
        ("all_zero", "records without any label"),
    ):
        title = f"{counted}, {cells['role'].lower()}, fold{'s' if last else ''} {cells['folds']}"
        yield _row(title, _numbers(cells, column), findings.count(column, folds))


def _adaptive_comparators(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    role, metric, other = findings.role(fold), _name(cells["metric"]), _name(cells["comparator"])
    at = f"k={k}, {metric}, fold {fold}"
    for column, arm, policy in (("ecg_on_demand", "a", "ecg-on-demand"), ("comparator_value", "b", other)):
        found = findings.paired(role, "ecg-on-demand", other, "controlled", k, metric, arm)
        title = f"controlled value, {policy} in the pair ecg-on-demand and {other}, {at}"
        yield _row(title, _numbers(cells, column, interval=False), found)
    found = findings.paired(role, "ecg-on-demand", other, "controlled", k, metric)
    yield _row(f"controlled difference, ecg-on-demand minus {other}, {at}", _numbers(cells, "delta"), found, True)


def _fixed_subsets(findings: Findings, cells: Cells, _fold: int | None, k: int | None) -> Iterator[Row]:
    metric = _name(cells["metric"])
    for evaluator in ("controlled", "strong"):
        found = findings.find("references", "leads", evaluator=evaluator, metric=metric, k=k)
        yield _row(f"{evaluator} reference, k={k}, {metric}", Found(cells[evaluator]), found)


def _controlled_deltas(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    metric = _name(cells["metric"])
    found = findings.contrast(findings.role(fold), "ecg-on-demand", "controlled", k, metric)
    title = f"controlled contrast, ecg-on-demand, k={k}, {metric}, fold {fold}"
    yield _row(title, _numbers(cells, "delta"), found, True)


_CALIBRATION = {
    "Macro mean |CITL|": "macro |intercept|",
    "Macro mean |slope-1|": "macro |slope - 1|",
    "Probability variance": "variance",
    "Predictive entropy": "entropy",
}
"""What results call the statistics of the calibration table; its metrics have their names."""


def _calibration_structure(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    statistic = _CALIBRATION.get(cells["quantity"], _name(cells["quantity"]))
    for column, arm, title in (
        ("ecg_on_demand", "ecg-on-demand", "ecg-on-demand"),
        ("mga", "mga", "mga"),
        ("ece_matched_fixed", REFERENCE, "ECE-matched set"),
    ):
        found = findings.calibration(findings.role(fold), arm, "controlled", k, statistic)
        yield _row(f"controlled {statistic}, {title}, k={k}, fold {fold}", _numbers(cells, column), found)


_PATIENTS = {
    "Mean delta NLL": "mean",
    "Median delta NLL": "median",
    "5% trimmed mean": "mean trimmed 5%",
    "10% trimmed mean": "mean trimmed 10%",
    "5% winsorized mean": "mean winsorised 5%",
    "Exclude largest 1% |delta|": "mean without largest 1%",
    "Fraction improved (percent)": "improved",
    "Fraction worsened (percent)": "worsened",
    "Fraction unchanged (percent)": "unchanged",
}
"""What results call the statistics of the patients' table."""


def _patient_effects(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    statistic = _PATIENTS[cells["statistic"]]
    found = findings.patients(findings.role(fold), "ecg-on-demand", "controlled", k, statistic)
    percent = "(percent)" in cells["statistic"]
    if percent:
        found = Found(*(100 * each for each in found))
    title = f"{'percent of patients' if percent else 'patient delta nll,'} {statistic}"
    yield _row(f"{title}, ecg-on-demand, k={k}, fold {fold}", _numbers(cells, "estimate"), found, not percent)


def _evaluator_quality(findings: Findings, cells: Cells, fold: int | None, _k: int | None) -> Iterator[Row]:
    evaluator = cells["evaluator"].split()[0].lower()
    for column in ("NLL", "Brier", "ECE", "AUROC", "AUPRC"):
        found = findings.quality(findings.role(fold), evaluator, _name(column))
        yield _row(
            f"{evaluator} evaluator with all leads, {_name(column)}, fold {fold}", _numbers(cells, column), found
        )


def _held_out_levels(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    for evaluator in ("controlled", "strong"):
        yield from _levels(findings, cells, evaluator, "ecg-on-demand", fold, k, prefix=f"{evaluator}_")


def _levels(
    findings: Findings, cells: Cells, evaluator: str, policy: str, fold: int | None, k: int | None, prefix: str = ""
) -> Iterator[Row]:
    """The two arms of a contrast."""
    metric = _name(cells["metric"])
    for arm, title in (("adaptive", policy), ("fixed", f"reference of {policy}'s contrast")):
        found = findings.contrast(findings.role(fold), policy, evaluator, k, metric, column=arm)
        title = f"{evaluator} value, {title}, k={k}, {metric}, fold {fold}"
        yield _row(title, _numbers(cells, prefix + arm, interval=False), found)


def _interactions(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    yield from _interaction_rows(findings, cells, _name(cells["policy"]), _name(cells["metric"]), OWN, fold, k)


_REFERENCES = {"Evaluator-specific": OWN, "Common F_C": "controlled", "Common F_S": "strong"}


def _common_reference(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    reference = _REFERENCES[cells["reference"]]
    yield from _interaction_rows(findings, cells, "ecg-on-demand", "nll", reference, fold, k)


def _interaction_rows(
    findings: Findings, cells: Cells, policy: str, metric: str, reference: str, fold: int | None, k: int | None
) -> Iterator[Row]:
    """Both contrasts, whose intervals the line does not give, and their interaction."""
    role, against = findings.role(fold), "" if reference == OWN else f" against the {reference} reference"
    at = f"{policy}, k={k}, {metric}, fold {fold}"
    for evaluator in ("controlled", "strong"):
        found = findings.contrast(role, policy, evaluator, k, metric, reference)
        published = _numbers(cells, f"d_{evaluator}", interval=False)
        yield _row(f"{evaluator} contrast{against}, {at}", published, found, True)
    found = findings.interaction(role, policy, "strong", "controlled", reference, k, metric)
    yield _row(f"strong minus controlled interaction{against}, {at}", _numbers(cells, "interaction"), found, True)


def _mask_robust_interactions(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    policy, metric = _name(cells["policy"]), _name(cells["metric"])
    found = findings.interaction(findings.role(fold), policy, "mask-robust", "controlled", "controlled", k, metric)
    title = f"mask-robust minus controlled interaction, {policy}, k={k}, {metric}, fold {fold}"
    yield _row(title, _numbers(cells, "interaction"), found, True)


def _strong_mga(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    policy, metric = _name(cells["method"]), _name(cells["metric"])
    yield from _levels(findings, cells, "strong", policy, fold, k)
    found = findings.contrast(findings.role(fold), policy, "strong", k, metric)
    yield _row(f"strong contrast, {policy}, k={k}, {metric}, fold {fold}", _numbers(cells, "delta"), found, True)


def _strong_mga_minus_mga(findings: Findings, cells: Cells, fold: int | None, k: int | None) -> Iterator[Row]:
    metric = _name(cells["metric"])
    found = findings.paired(findings.role(fold), "strong-mga", "mga", "strong", k, metric)
    title = f"strong difference, strong-mga minus mga, k={k}, {metric}, fold {fold}"
    yield _row(title, _numbers(cells, "delta"), found, True)


_TABLES: dict[str, tuple[str, Callable[[Findings, Cells, int | None, int | None], Iterator[Row]]]] = {
    "splits": ("S1", _splits),
    "adaptive_comparators_fold9_k4": ("S3", _adaptive_comparators),
    "fixed_subsets": ("S4", _fixed_subsets),
    "controlled_deltas_fold9": ("S5", _controlled_deltas),
    "calibration_structure_fold9_k4": ("S6", _calibration_structure),
    "patient_effects_fold9_k4": ("S7", _patient_effects),
    "evaluator_quality_fold9_full12": ("S8", _evaluator_quality),
    "held_out_levels_fold8_k4": ("S9", _held_out_levels),
    "interactions_fold8": ("S9", _interactions),
    "common_reference_fold8_k4_nll": ("S11", _common_reference),
    "mask_robust_interactions_fold8": ("S12", _mask_robust_interactions),
    "strong_mga_fold8_k4": ("S13", _strong_mga),
    "strong_mga_minus_mga_fold8_k4": ("S13", _strong_mga_minus_mga),
}
"""Where each table stands in the paper, and how a line of it becomes rows."""
