"""The primary cell once more, from the readings, allocations and replicates among the results."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Float64

from leadwise.analysis.bootstrap import LEVEL
from leadwise.analysis.contrasts import OWN
from leadwise.errors import InputError
from leadwise.findings.estimates import Findings, Found
from leadwise.findings.question import Question
from leadwise.leads import LeadSet
from leadwise.metrics import METRICS
from leadwise.run.contents import RunContents

TOLERANCE = 1e-9


def recomputed_cell(contents: RunContents) -> tuple[str, list[str]] | None:
    """The primary cell and a sentence for each of its numbers that does not come out again; None if it is not there.

    A study that compares no evaluators has a single contrast there.
    """
    role, findings = contents.role, Findings(contents.results, contents.plan.roles)
    question = Question.of(contents.plan, findings, role)
    family, cell = question.family, question.cell(findings, role)
    compared = bool(family.baseline)
    expected = ({family.baseline: cell.before} if compared else {}) | {family.evaluator: cell.after}
    if any(found.missing for found in expected.values()) or (compared and cell.change.missing):
        return None
    again = {name: _contrast(contents, findings, question, name) for name in expected}
    problems = [
        sentence
        for name, found in again.items()
        for sentence in _differing(f"D under the {name} evaluator", expected[name], *found)
    ]
    if compared:
        (before, before_replicates), (after, after_replicates) = again.values()
        problems += _differing("I", cell.change, after - before, after_replicates - before_replicates)
    return f"{cell.policy} in {cell.metric} at k = {cell.k}, {role} role", problems


def _differing(name: str, said: Found, value: float, replicates: Float64[np.ndarray, " r"]) -> Iterator[str]:
    """Sentences for a value or an interval that is not what the results say."""
    again = (value, *np.percentile(replicates, LEVEL)) if len(replicates) else (value, np.nan, np.nan)
    for part, old, new in zip(("", "lower bound of ", "upper bound of "), said, again, strict=True):
        if not abs(old - new) <= TOLERANCE:  # a missing bound is no agreement
            yield f"The {part}{name} comes out as {new:.6f}, not {old:.6f}."


def _contrast(
    contents: RunContents, findings: Findings, question: Question, evaluator: str
) -> tuple[float, Float64[np.ndarray, " r"]]:
    """A contrast from the readings of each record, and its replicates."""
    role, policy, k, metric = contents.role, question.policy, question.k, question.metric
    owner = evaluator if question.family.reference == OWN else question.family.reference
    allocation = findings.rows("allocations", role=role, policy=policy, k=k)
    allocation = allocation[~allocation["id"].isin(findings.rows("left_out", role=role, k=k).get("id", ()))]
    fixed = findings.find("references", "leads", evaluator=owner, metric=metric, k=k)
    readings = _read(contents, "records", role=role, evaluator=evaluator).set_index(["id", "leads"])
    chosen = [str(LeadSet.parse(leads)) for leads in allocation["leads"]]
    values = []
    for leads in (chosen, [fixed.value] * len(allocation)):
        rows = readings.reindex(pd.MultiIndex.from_arrays([allocation["id"], leads]))
        labels, probabilities = (rows.filter(regex=f"^{kind}_") for kind in "yp")
        if probabilities.isna().any(axis=None):
            lacking = f"readings by the {evaluator} evaluator that the primary cell needs"
            raise InputError(f"records.parquet lacks {lacking}.")
        values.append(METRICS[metric](labels.to_numpy(dtype=bool), probabilities.to_numpy(dtype=float), None))
    facts = {"role": role, "policy": policy, "evaluator": evaluator, "reference_evaluator": owner, "k": k}
    replicates = _read(contents, "replicates", metric=metric, reference_metric=metric, **facts)
    return values[0] - values[1], replicates.sort_values("replicate")["delta"].to_numpy()


def _read(contents: RunContents, name: str, **facts: object) -> pd.DataFrame:
    """The rows of a large table that have these values; whole, it would fill the memory."""
    filters = [(column, "==", value) for column, value in facts.items()]
    return pd.read_parquet(contents.directory.results / f"{name}.parquet", filters=filters)
