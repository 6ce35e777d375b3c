"""Methods of a study, in prose written from its plan and its run; its sentences stand in ``methods.j2``."""

import re
from collections import Counter
from typing import Any

import pandas as pd

from leadwise.analysis.bootstrap import LEVEL
from leadwise.cohort.roles import SCORED
from leadwise.report.numbers import number
from leadwise.report.prose.kinds import evaluator_texts, policy_texts
from leadwise.report.prose.templates import templates
from leadwise.run.contents import RunContents

PUBLISHED_FIRST_LEAD = "aVR"


def describe_methods(contents: RunContents) -> list[tuple[str, str]]:
    """Headings with a paragraph each; what a run does not tell is left out."""
    text = templates().get_template("methods.j2").render(_facts(contents))
    _, *parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return [(heading, " ".join(paragraph.split())) for heading, paragraph in zip(parts[::2], parts[1::2], strict=True)]


def _facts(contents: RunContents) -> dict[str, Any]:
    """All that the sentences are about."""
    plan, results = contents.plan, contents.results

    def rows(name: str) -> list[Any]:
        return list(results[name].itertuples()) if name in results else []

    splits = {row.role: row for row in rows("splits") if not pd.isna([row.records, row.patients]).any()}
    labels = [str(name).removeprefix("prevalence_") for name in results.get("splits", ()) if "prevalence_" in str(name)]
    left_out = Counter((row.role, row.k) for row in rows("left_out"))
    sizes = {row.k: int(row.candidates) for row in rows("references") if not pd.isna(row.candidates)}
    unsearched: dict[tuple[int, ...], list[str]] = {}
    for name, each in plan.evaluators.items():
        unsearched.setdefault(tuple(k for k in plan.budgets if k not in each.references), []).append(name)
    first = plan.first_lead_of, "nll", 1
    best = [row.leads for row in rows("references") if (row.evaluator, row.metric, row.k) == first]
    return {
        "contents": contents,
        "plan": plan,
        "rows": rows,
        "history": contents.history,
        "chronology": contents.chronology,
        "scored": SCORED,
        "level": LEVEL,
        "roles": [(role, int(row.records), int(row.patients)) for role, row in splits.items() if role in plan.roles],
        "labels": labels,
        "evaluators": list(evaluator_texts(plan)),
        "parameters": {row.evaluator: int(row.parameters) for row in rows("evaluators") if not pd.isna(row.parameters)},
        "policies": list(policy_texts(plan)),
        "left_out": [f"{number(count)} of the {role} role at k = {k}" for (role, k), count in left_out.items()],
        "tried": [f"{number(sizes[k])} sets at k = {k}" for k in sorted(sizes)],
        "unsearched": list(unsearched.items()),
        "first_lead": plan.first_lead or "" if plan.first_lead_of is None else next(iter(best), ""),
        "published_first_lead": PUBLISHED_FIRST_LEAD,
        "headroom": "headroom" in results,
    }
