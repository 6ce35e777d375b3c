"""Claims and numbers of the paper, with their verdicts and our numbers."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from leadwise.report.numbers import Estimate
from leadwise.report.tables.published import COUNTS
from leadwise.report.tables.view import INTERVAL, ReportTable, View, column_of, intervals, same

PLACE = 200
NAMES = ("claims", "claim-cells", "published")
"""Its tables have a section of the page of their own."""
_ELSEWHERE = " The paper is about PTB-XL and models that were made on it, and this is something else, so"


def tables(view: View) -> Iterator[ReportTable]:
    yield _claims(view)
    yield _cells(view)
    yield _published(view)


def _of_others(view: View, consequence: str) -> str:
    return "" if view.about_paper else f"{_ELSEWHERE} {consequence}."


def _claims(view: View) -> ReportTable:
    rows = view.rows("claims")
    counts = [column_of(rows, f"orientation_{name}") for name in ("role", "cells", "holding", "contradicted")]
    rows = rows.assign(orientation=[_orientation(*each) for each in zip(*counts, strict=True)])
    return view.table(
        "claims",
        "The paper's claims",
        "What the paper says in words, and what this run says to it; a claim is put to the fold that it is about. "
        "Where that fold was not scored, the cells of the audit role stand beside it for orientation: they are of "
        f"other patients and decide nothing.{_of_others(view, 'no verdict says anything about it')}",
        ["claims"],
        rows,
        same("claim", "where", "role", "cells", "holding", "contradicted", "verdict")
        | {"orientation": "for orientation"},
    )


def _orientation(role: Any, cells: Any, holding: Any, contradicted: Any) -> str:
    """Counts of the cells of another role, for orientation."""
    if pd.isna(cells) or not cells:
        return ""
    return f"{role}: {int(holding)} of {int(cells)} hold, {int(contradicted)} contradict"


def _cells(view: View) -> ReportTable:
    columns = same("claim", "cell", "role", "decides", "policy") | {"versus": "minus policy", "evaluator": "evaluator"}
    columns |= {"baseline": "minus evaluator", "reference": "references", "k": "k", "metric": "metric"}
    return view.table(
        "claim-cells",
        "Cells that decide the claims",
        "The estimates behind the verdicts, and those of the audit role that stand there for orientation only; rows "
        "with the same claim, role and cell belong together. Negative contrasts favour adaptation, negative "
        f"differences the policy that is named first.{_of_others(view, 'no cell says anything about it')}",
        ["claim_cells"],
        view.cells(view.rows("claim_cells")),
        columns | same("value", INTERVAL, "verdict"),
    )


def _published(view: View) -> ReportTable:
    rows = view.rows("published").iloc[: None if view.about_paper else 0]
    for arm in ("published", "ours"):
        said = zip(*(column_of(rows, name) for name in (arm, f"{arm}_leads", "column", "unit")), strict=True)
        shown = [_value(*each) for each in said]
        rows = rows.assign(**{arm: pd.Series(shown, index=rows.index, dtype=object)})
        rows = rows.assign(**{f"{arm}_interval": intervals(rows, f"{arm}_lo", f"{arm}_hi")})
    columns = same("quantity", "where") | {"published": "paper", "published_interval": f"paper, {INTERVAL}"}
    columns |= {"ours": "ours", "ours_interval": f"ours, {INTERVAL}", "beside": "for orientation"}
    columns |= {"difference": "ours − paper", "patients": "patients", "z": "z", "same_sign": "same sign"}
    return view.table(
        "published",
        "Every number of the paper beside ours",
        "Every number that the paper gives, by its name and place there, ours of the same fold, and, where that was "
        "not scored, the audit role's for orientation. Where both are of the same patients their errors are shared, so "
        "the difference has no test; where they are of other patients, z is the difference over its standard error."
        f"{_of_others(view, 'there is nothing to compare')}",
        ["published"],
        rows.assign(beside=_beside(rows)),
        columns,
    )


def _value(value: float, leads: Any, column: str, unit: Any) -> Any:
    """A number or lead names; things are counted without decimals, and a seed counts nothing."""
    if pd.isna(value):
        return leads if isinstance(leads, str) else value
    if column == "seed":
        return str(int(value))
    return int(value) if column in COUNTS or unit == "patients" else value


def _beside(rows: pd.DataFrame) -> list[str]:
    """Our number of another role, with its interval."""
    names = ("orientation_role", "orientation", "orientation_leads", "column", "unit")
    bounds = ("orientation_lo", "orientation_hi")
    said = zip(*(column_of(rows, name) for name in (*names, *bounds)), strict=True)
    return [
        f"{role}: {Estimate(_value(*each), lo, hi)}" if isinstance(role, str) and role else ""
        for role, *each, lo, hi in said
    ]
