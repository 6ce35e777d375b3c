"""Complaints about a bundle that lacks something its plan makes, or has it made otherwise, before scoring."""

from collections.abc import Iterator, Mapping
from typing import Any

from leadwise.errors import InputError, one_line
from leadwise.run.bundle import Bundle
from leadwise.run.results import TABLES
from leadwise.study.graph import seeds


def check_complete(bundle: Bundle) -> None:
    """Raise `InputError` unless all is there, readable and made as the plan says: results would silently lack rows."""
    problem = next(_problems(bundle), None)
    if problem:
        raise InputError(f"{bundle.path} {problem}; take the bundle from its run again.")


def _problems(bundle: Bundle) -> Iterator[str]:
    plan = bundle.plan
    yield from _lacking("evaluator", plan.evaluators, bundle.files_of("evaluators"))
    yield from _lacking("policy", plan.policies, bundle.files_of("policies"))
    tables = ["splits", "evaluator_quality", *(["headroom"] if plan.readers else [])]
    tables += ["seeds"] if any(seeds(plan, name) for name in plan.evaluators) else []
    yield from _lacking("table", tables, bundle.files_of("tables"))
    for name in tables:
        yield from TABLES[name].problems(bundle.tables[name])
        strange = set(bundle.tables[name]["role"]) - plan.roles.keys()
        if strange:
            yield f"has the {one_line(min(strange))} role in its table {name}, which its plan has not"
    for name, entry in plan.evaluators.items():
        there = bundle.references.get(name)
        lacking = set(entry.references) - set(there.budgets if there and there.evaluator == name else [])
        if lacking:
            budgets = ", ".join(map(str, sorted(lacking)))
            yield f"lacks references of the {name} evaluator for k = {budgets}, which its plan searches"
    for name, evaluator in bundle.evaluators.items():
        yield from _differences("evaluator", name, evaluator, plan.evaluators[name].settings.model_dump())
        if seeds(plan, name):
            tried = bundle.tables["seeds"]
            made_with = sorted(tried["seed"][tried["evaluator"] == name].unique().tolist())
            yield from _another(f"the {name} evaluator", "seeds", made_with, sorted(seeds(plan, name)))
    for name, policy in bundle.policies.items():
        wanted = plan.policies[name].settings.model_dump() | {"budgets": plan.budgets}
        yield from _differences("policy", name, policy, wanted)


def _lacking(what: str, wanted: Mapping[str, Any] | list[str], there: Mapping[str, Any]) -> Iterator[str]:
    """Names that the plan asks for and the bundle lacks."""
    return (f"lacks the {what} {name}, which its plan makes" for name in wanted if name not in there)


def _differences(what: str, name: str, made: Any, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Another name, and settings of the plan that what was made knows under the same name and has otherwise."""
    if getattr(made, "name", name) != name:
        yield f"has {made.name} in the place of the {what} {name}"
    for setting, value in wanted.items():
        there = getattr(made, setting, value)
        there = getattr(there, "name", there)  # an evaluator, where the plan has its name
        there = list(there) if isinstance(there, tuple) else "none" if there is None else there
        if value is not None and isinstance(there, int | float | str | list):
            yield from _another(name, setting, there, value)


def _another(name: str, setting: str, there: Any, wanted: Any) -> Iterator[str]:
    if there != wanted:
        yield f"has a plan that is not its own: {name} was made with {setting} {there}, and the plan says {wanted}"
