"""Whether a bundle has everything that its plan makes, made as the plan says: asked before anything is scored."""

from collections.abc import Iterator, Mapping
from typing import Any

from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.run.bundle import Bundle
from leadwise.study.stages import EVALUATORS, POLICIES, TABLES, searched_budgets


def check_complete(bundle: Bundle) -> None:
    """Raise `InputError` unless all is there, readable and made as the plan says: results would silently lack rows."""
    problem = next(_problems(bundle), None)
    if problem:
        raise InputError(f"{bundle.path} {problem}; take the bundle from its run again.")


def _problems(bundle: Bundle) -> Iterator[str]:
    yield from _lacking("evaluator", EVALUATORS, bundle.evaluators)
    yield from _lacking("policy", POLICIES, bundle.policies)
    yield from _lacking("table", TABLES, bundle.tables)
    for name, columns in TABLES.items():
        missing = sorted(set(columns) - set(bundle.tables[name].columns))
        if missing:
            yield f"lacks the column '{missing[0]}' of its table {name}"
    for name, budgets in searched_budgets(bundle.plan).items():
        there = bundle.references.get(name)
        lacking = set(budgets) - set(there.budgets if there and there.evaluator == name else [])
        if lacking:
            budgets_in_words = ", ".join(map(str, sorted(lacking)))
            yield f"lacks references of the {name} evaluator for k = {budgets_in_words}, which its plan searches"
    for name, what, there, wanted in _settings(bundle):
        if there != wanted:
            yield f"has a plan that is not its own: {name} was made with {what} {there}, and the plan says {wanted}"


def _lacking(kind: str, wanted: Mapping[str, Any] | tuple[str, ...], there: Mapping[str, Any]) -> Iterator[str]:
    """Names that the plan asks for and the bundle lacks, and files that hold something of another name."""
    for name in wanted:
        if name not in there:
            yield f"lacks the {kind} {name}, which its plan makes"
        elif getattr(there[name], "name", name) != name:
            yield f"has {there[name].name} in the place of the {kind} {name}"


def _settings(bundle: Bundle) -> Iterator[tuple[str, str, Any, Any]]:
    """Name, setting, its value in what was made, and its value in the plan."""
    plan = bundle.plan
    for name, evaluator in bundle.evaluators.items():
        if isinstance(evaluator, LogisticEvaluator):
            for setting, wanted in plan.controlled.model_dump().items():
                yield name, setting, getattr(evaluator, setting), wanted
        else:
            yield name, "widths", list(evaluator.widths), list(plan.strong.widths)
    seeds = bundle.tables["seeds"]["seed"]
    yield "the strong evaluator", "seeds", sorted(seeds.unique().tolist()), sorted(plan.strong.seeds)
    for name, policy in bundle.policies.items():
        for setting in ("budgets", "states", "seed"):
            wanted = plan.budgets if setting == "budgets" else getattr(plan.policies, setting)
            there = getattr(policy, setting, wanted)
            yield name, setting, list(there) if setting == "budgets" else there, wanted
