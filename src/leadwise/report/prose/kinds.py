"""Paragraphs about evaluators and policies: a template for each kind, in ``kinds``, and a plan's settings.

A template begins in the middle of a sentence, after the name of what it tells of. It knows ``name``, ``settings``, the
``plan`` and, where something of the same kind has been told of before, the settings of that as ``like`` and its name as
``like_name``. A kind that has no template, such as a user's own, is told by its settings.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from leadwise.report.names import spoken, the_evaluator
from leadwise.report.numbers import listing
from leadwise.report.prose.templates import templates
from leadwise.run.plan import EvaluatorPlan, Plan, PolicyPlan


def evaluator_texts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Each evaluator of a plan with a paragraph about it."""
    return _texts(plan, "evaluators", plan.evaluators, the_evaluator)


def policy_texts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Each policy of a plan with a paragraph about it."""
    return _texts(plan, "policies", plan.policies, spoken)


def _texts(
    plan: Plan, what: str, planned: Mapping[str, EvaluatorPlan] | Mapping[str, PolicyPlan], called: Any
) -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for name, each in planned.items():
        first = seen.setdefault(each.kind, name)
        like = {} if first == name else {"like": planned[first].settings, "like_name": called(first)}
        facts = {"kind": each.kind, "plan": plan, "settings": each.settings, "name": called(name), **like}
        settings = each.settings.model_dump(mode="json")  # told as they are where nothing is known of the kind
        facts["said"] = listing(f"{key.replace('_', ' ')} {value}" for key, value in settings.items())
        template = templates().select_template([f"kinds/{what}/{each.kind}.j2", "kinds/other.j2"])
        text = " ".join(template.render(facts).split())
        yield name, f"{text[0].upper()}{text[1:]}" if called is the_evaluator else text  # a policy's name stays
