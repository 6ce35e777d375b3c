"""Verdicts on the plan's hypotheses, which were frozen before anybody looked."""

from collections.abc import Mapping

import pandas as pd

from leadwise.cohort.roles import SCORED
from leadwise.findings.estimates import MISSING, Findings
from leadwise.findings.statements import Statement
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, NOT_ANSWERABLE, joint_verdict
from leadwise.run.plan import Plan
from leadwise.run.plan_parts import Hypothesis
from leadwise.run.results import TABLES


def hypotheses_frame(plan: Plan, results: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """``hypotheses.csv``: one row for each hypothesis of the plan and role that was scored.

    A cell (policy, budget and metric) holds when its whole interval lies on the expected side of zero, and contradicts
    the hypothesis when it lies wholly on the other; an expected equivalence holds within the plan's margin.
    `leadwise.findings.verdicts` says how cells decide together. A hypothesis of a single cell has that cell's estimate
    beside it, with the interval that decides: that of equivalence is of 90%.
    """
    findings = Findings(results, plan.roles)
    rows = [
        {"number": number, "role": role, **_in_words(hypothesis), **_answer(findings, role, hypothesis)}
        for number, hypothesis in enumerate(plan.hypotheses, 1)
        for role in SCORED
        if findings.scored(role)
    ]
    return TABLES["hypotheses"].frame(rows)


def _in_words(hypothesis: Hypothesis) -> dict[str, str]:
    """The hypothesis as text, several of a kind with blanks between."""
    facts = hypothesis.model_dump().items()
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value or "" for name, value in facts}


def _answer(findings: Findings, role: str, hypothesis: Hypothesis) -> dict[str, object]:
    """Counts, verdict and estimate of a hypothesis in one role."""
    statement = Statement(**hypothesis.model_dump(exclude={"level"}))
    cells = [statement.decide(findings, role, place) for place in statement.places]
    verdicts = [cell.verdict for cell in cells]
    single = cells[0].estimates[0][1] if len(cells) == 1 else MISSING
    return {
        "cells": len(cells),
        "present": len(verdicts) - verdicts.count(NOT_ANSWERABLE),
        "holding": verdicts.count(HOLDS),
        "contradicted": verdicts.count(CONTRADICTED),
        "verdict": joint_verdict(verdicts),
        **single._asdict(),
    }
