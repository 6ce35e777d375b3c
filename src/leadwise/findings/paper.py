"""Every number that was published, beside ours.

``published/numbers.csv`` says of each number which of our tables has it, in which column, and by which key. Where our
run has no such number (a role that was not scored, a budget that was not run), ours is empty; what another scored role
says stands beside it for orientation.

Intervals that overlap show little agreement, so the difference is given too. Where both numbers are of the same
patients their errors are shared, and no test is made of it. Where they are of other patients,
z = difference / sqrt(s² + s²'), each s the width of a 95% interval over 2 × 1.96.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from leadwise.cohort.roles import AUDIT
from leadwise.findings.estimates import Findings, Found
from leadwise.run.results import KEYS, TABLES

SCORED_FOLDS = (8, 9)
"""The paper's own evaluation and audit."""
SAME, OTHERS = "the same", "others"
"""Words for the patients of our number, beside those of the published one."""
_WITH_INTERVAL = ("value", "delta", "interaction")
"""Columns that ``lo`` and ``hi`` belong to, in tables that have them."""


def published_frame(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """``published.csv``: one row a published number; an interval stands in the row of its number.

    ``difference`` is ours minus the published number; of the number that stands there for orientation where there is
    no other. ``z`` is empty where the patients are the same, or an interval is missing. A number is in the unit that
    was published: ``percent``, or a count of ``patients`` where our table has their share. It is compared with that of
    the role that has its fold and no other; any of the results may be missing or lack rows.
    """
    tables = dict(results)
    if "role" in tables.get("splits", pd.DataFrame()):
        tables["splits"] = _with_total(results["splits"], roles)
    findings, frame = Findings(tables, roles), published_numbers()
    frame["role"] = _roles(frame, roles)
    frame[["ours", "ours_leads", "ours_lo", "ours_hi"]] = _ours(findings, frame)
    missing = frame["ours"].isna() & frame["ours_leads"].isna()

    sealed = missing & frame["fold"].isin([fold for fold in SCORED_FOLDS if findings.orientation(fold)])
    columns = ["orientation", "orientation_leads", "orientation_lo", "orientation_hi"]
    frame[columns] = _ours(findings, frame.assign(role=AUDIT)).where(sealed)
    beside = frame["orientation"].notna()
    frame["orientation_role"] = pd.Series(AUDIT, frame.index).where(beside)
    frame["patients"] = pd.Series(OTHERS, frame.index).where(beside).mask(frame["fold"].notna() & ~missing, SAME)

    frame = frame.assign(role=frame["role"].fillna(""), **_compared(frame))
    return frame[list(TABLES["published"].columns)]


def published_numbers() -> pd.DataFrame:
    """The published numbers as they ship with the package; keys that are text are blank where there is none."""
    types = {"fold": "Int64", "k": "Int64", "chosen": "boolean", "signed": "boolean"}
    types |= dict.fromkeys(("published", "published_lo", "published_hi"), "float64")
    missing = {name: [""] for name in (*types, "published_leads")}
    with (files("leadwise") / "published" / "numbers.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=defaultdict(lambda: "str", types), keep_default_na=False, na_values=missing)


_TOTAL = "total"


def _with_total(splits: pd.DataFrame, roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """The counts of each role and of all roles together; no patient is in two roles, so roles add up."""
    every = splits.drop_duplicates("role").set_index("role").reindex(list(roles))
    counts = every.reindex(columns=["records", "patients", "all_zero"]).sum(skipna=False)
    return pd.concat([splits, pd.DataFrame([{"role": _TOTAL, **counts}])], ignore_index=True)


def _roles(numbers: pd.DataFrame, roles: Mapping[str, Sequence[int]]) -> list[str | None]:
    """The role of ours that has just the folds of each number; blank where it is of no fold."""
    of_folds = {tuple(sorted(own)): role for role, own in roles.items()}
    of_folds.setdefault(tuple(sorted(fold for own in roles.values() for fold in own)), _TOTAL)

    def role(fold: Any, folds: str) -> str | None:
        if folds:
            return of_folds.get(tuple(map(int, folds.split())))
        return "" if pd.isna(fold) else of_folds.get((fold,))

    return [role(fold, folds) for fold, folds in zip(numbers["fold"], numbers["folds"], strict=True)]


def _ours(findings: Findings, numbers: pd.DataFrame) -> pd.DataFrame:
    """Our number for each published one, or our lead set, and the bounds of its interval."""
    keys = numbers[list(KEYS)]
    of_a_role = numbers["fold"].notna() | numbers["folds"].ne("")
    used = (keys.notna() & ~keys.isin([""])).assign(role=of_a_role).groupby(numbers["table"]).any()
    rows = []
    for row in numbers.to_dict("records"):
        facts = {key: row[key] for key in used.columns[used.loc[row["table"]]]}
        found = findings.find(row["table"], row["column"], **facts)
        if row["column"] not in _WITH_INTERVAL:
            found = Found(found.value)
        if row["unit"] == "percent":
            found = Found(*(100 * each for each in found))
        elif row["unit"]:  # a share of the role's patients
            everyone = findings.find("splits", "patients", role=row["role"]).value
            found = Found(*(float(np.round(everyone * each)) for each in found))
        leads = found.value if isinstance(found.value, str) else None
        rows.append((np.nan if leads else found.value, leads, found.lo, found.hi))
    return pd.DataFrame(rows, numbers.index, ["value", "leads", "lo", "hi"]).astype({"leads": object})


def _compared(frame: pd.DataFrame) -> dict[str, "pd.Series[Any]"]:
    """Agreement of our numbers with the published ones; for orientation numbers, difference and z only."""
    said, ours, beside = (frame[each] for each in ("published", "ours", "orientation"))
    overlap = (frame["published_lo"] <= frame["ours_hi"]) & (frame["ours_lo"] <= frame["published_hi"])
    both = frame[["published_lo", "published_hi", "ours_lo", "ours_hi"]].notna().all(axis=1)
    first, second = ((frame[f"{arm}_hi"] - frame[f"{arm}_lo"]) / (2 * 1.96) for arm in ("published", "orientation"))
    difference = beside.fillna(ours) - said
    return {
        "same_sign": (np.sign(ours) == np.sign(said)).astype("boolean").where(frame["signed"].notna() & ours.notna()),
        "intervals_overlap": overlap.astype("boolean").where(both),
        "difference": difference,
        "z": difference / np.hypot(first, second),
    }
