"""The primary cell once more, from the readings, allocations and replicates among the results."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from leadwise.analysis.bootstrap import LEVEL
from leadwise.analysis.contrasts import OWN
from leadwise.errors import InputError
from leadwise.findings.estimates import Findings, Found
from leadwise.leads import LeadSet
from leadwise.metrics import METRICS
from leadwise.report.plots.drawing import rows_of
from leadwise.report.reading import Question, names
from leadwise.report.wording import number, spoken
from leadwise.run.contents import RunContents

TOLERANCE = 1e-9


def recomputed_cell(contents: RunContents) -> tuple[str, list[str]] | None:
    """The primary cell and a sentence for each of its numbers that does not come out again; None if it is not there."""
    role, results = contents.role, contents.results
    question = Question.of(contents.plan, rows_of(results["interactions"], role=role))
    family, cell = question.family, question.cell(Findings(results, contents.plan.roles), role)
    if cell.before.missing or cell.after.missing or cell.change.missing:
        return None
    again = [_contrast(contents, question, evaluator) for evaluator in (family.baseline, family.evaluator)]
    (before, before_replicates), (after, after_replicates) = again
    problems = [
        *_differing(f"D under the {spoken(family.baseline)} evaluator", cell.before, before, before_replicates),
        *_differing(f"D under the {spoken(family.evaluator)} evaluator", cell.after, after, after_replicates),
        *_differing("I", cell.change, after - before, after_replicates - before_replicates),
    ]
    return f"{names([cell])}, {role} role", problems


def _differing(name: str, said: Found, value: float, replicates: Float64[np.ndarray, " r"]) -> list[str]:
    """Sentences for a value or an interval that is not what the results say."""
    again = (value, *np.percentile(replicates, LEVEL)) if len(replicates) else (value, np.nan, np.nan)
    parts = zip(("", "lower bound of ", "upper bound of "), said, again, strict=True)
    return [
        f"The {part}{name} comes out as {number(new, 6)}, not {number(old, 6)}."
        for part, old, new in parts
        if not abs(old - new) <= TOLERANCE  # a missing bound is no agreement
    ]


def _contrast(contents: RunContents, question: Question, evaluator: str) -> tuple[float, Float64[np.ndarray, " r"]]:
    """A contrast from the readings of each record, and its replicates."""
    (_, _, reference), policy, k, metric, _ = question
    owner = evaluator if reference == OWN else reference
    role, results = contents.role, contents.results
    allocation = rows_of(results["allocations"], role=role, policy=policy, k=k)
    if "left_out" in results:
        left_out = rows_of(results["left_out"], role=role, k=k)
        allocation = allocation[~allocation["id"].isin(left_out["id"])]
    fixed = Findings(results, contents.plan.roles).find("references", "leads", evaluator=owner, metric=metric, k=k)
    readings = _read(contents, "records", role=role, evaluator=evaluator).set_index(["id", "leads"])
    chosen = [str(LeadSet.parse(leads)) for leads in allocation["leads"]]
    values = []
    for leads in (chosen, [fixed.value] * len(allocation)):
        rows = readings.reindex(pd.MultiIndex.from_arrays([allocation["id"], leads]))
        labels, probabilities = (rows.filter(regex=f"^{kind}_") for kind in "yp")
        if probabilities.isna().any(axis=None):
            raise InputError(
                f"records.parquet lacks readings by the {evaluator} evaluator that the primary cell needs."
            )
        values.append(METRICS[metric](labels.to_numpy(dtype=bool), probabilities.to_numpy(dtype=float), None))
    facts = {"role": role, "policy": policy, "evaluator": evaluator, "reference_evaluator": owner, "k": k}
    replicates = _read(contents, "replicates", metric=metric, reference_metric=metric, **facts)
    return values[0] - values[1], replicates.sort_values("replicate")["delta"].to_numpy()


def _read(contents: RunContents, name: str, **facts: Any) -> pd.DataFrame:
    """The rows of a large table that have these values; whole, it would fill the memory."""
    filters = [(column, "==", value) for column, value in facts.items()]
    return pd.read_parquet(contents.directory.results / f"{name}.parquet", filters=filters)
