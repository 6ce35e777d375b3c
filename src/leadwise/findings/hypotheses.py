"""What the plan expected, frozen before anybody looked, and whether it came out so."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pandas as pd

from leadwise.cohort.roles import SCORED
from leadwise.findings.estimates import Findings, Found
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, NOT_ANSWERABLE, cell_verdict, joint_verdict
from leadwise.run.plan import Hypothesis, Plan

COLUMNS = (
    *("number", "role", "level", "quantity", "policies", "evaluator", "baseline", "reference", "budgets", "metrics"),
    *("expected", "cells", "present", "holding", "contradicted", "verdict", "value", "lo", "hi"),
)


def hypotheses_frame(plan: Plan, results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """``hypotheses.csv``: one row for each hypothesis of the plan and role that was scored.

    A cell (policy, budget and metric) holds when its whole interval lies on the expected side of zero, and contradicts
    the hypothesis when it lies wholly on the other; `leadwise.findings.verdicts` says how cells decide together. A
    hypothesis of a single cell has that cell's estimate beside it.
    """
    findings = Findings(results, plan.roles)
    rows = [
        (number, role, *_said(hypothesis), *_answer(list(hypothesis_cells(findings, role, hypothesis)), hypothesis))
        for number, hypothesis in enumerate(plan.hypotheses, 1)
        for role in SCORED
        if findings.scored(role)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def hypothesis_cells(findings: Findings, role: str, hypothesis: Hypothesis) -> Iterator[Found]:
    """The estimate of every cell that a hypothesis is about, missing where it is not among the results."""
    if hypothesis.quantity == "paired":
        first, second = hypothesis.policies
        for k, metric in product(hypothesis.budgets, hypothesis.metrics):
            yield findings.paired(role, first, second, hypothesis.evaluator, k, metric)
        return
    against, baseline = hypothesis.reference, hypothesis.baseline or ""
    for policy, k, metric in product(hypothesis.policies, hypothesis.budgets, hypothesis.metrics):
        if hypothesis.quantity == "interaction":
            yield findings.interaction(role, policy, hypothesis.evaluator, baseline, against, k, metric)
        else:
            yield findings.contrast(role, policy, hypothesis.evaluator, k, metric, against)


def _said(hypothesis: Hypothesis) -> tuple[str, ...]:
    """The hypothesis in words, several of a kind with blanks between."""
    return (
        hypothesis.level,
        hypothesis.quantity,
        " ".join(hypothesis.policies),
        hypothesis.evaluator,
        hypothesis.baseline or "",
        hypothesis.reference,
        " ".join(map(str, hypothesis.budgets)),
        " ".join(hypothesis.metrics),
        hypothesis.expected,
    )


def _answer(cells: Sequence[Found], hypothesis: Hypothesis) -> tuple[int, int, int, int, str, float, float, float]:
    verdicts = [cell_verdict(found, hypothesis.expected) for found in cells]
    present = len(verdicts) - verdicts.count(NOT_ANSWERABLE)
    counts = len(cells), present, verdicts.count(HOLDS), verdicts.count(CONTRADICTED)
    single = cells[0] if len(cells) == 1 else Found(float("nan"))
    return *counts, joint_verdict(verdicts), *single
