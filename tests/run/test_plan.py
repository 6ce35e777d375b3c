"""A plan is read as it was meant, or one sentence says which key is wrong and what was perhaps meant."""

import json
import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
import rfc8785
from pydantic import BaseModel

from leadwise.cohort.contract import COHORTS
from leadwise.cohort.roles import PTBXL_ROLES
from leadwise.errors import PlanError
from leadwise.evaluators.contract import EVALUATORS
from leadwise.policies.contract import POLICIES
from leadwise.references import MATCHED_METRICS
from leadwise.registry import Registry
from leadwise.run.plan import Plan, read_plan
from leadwise.run.plan_parts import Metric
from leadwise.study.graph import stages

STUDIES = Path(str(files("leadwise") / "studies"))
SOUND = """
budgets = [2, 4]
cohort = {kind = "ptbxl"}
roles = {train = [1, 2], validation = [7], selection = [10], audit = [9]}
bootstrap = {replicates = 20}
evaluators.light = {kind = "logistic", references = [1, 2, 4]}
evaluators.lines = {kind = "recalibrated", of = "light", references = [2]}
evaluators.net = {kind = "masked-resnet", recipe = {epochs = 2}, references = [4]}
evaluators.bare = {kind = "logistic"}
policies.greedy = {kind = "mga", target = "light"}
policies.other = {kind = "ccga", target = "net", state = "light"}
policies.same = {kind = "cohort-state", of = "greedy"}
policies.any = {kind = "random-subset"}

[[interactions]]
policies = ["greedy"]
evaluator = "net"
baseline = "light"

[[pairs]]
policies = ["greedy", "any"]
evaluators = ["light", "net"]

[[hypotheses]]
level = "primary"
quantity = "interaction"
policies = ["greedy"]
evaluator = "net"
baseline = "light"
budgets = [4]
metrics = ["nll"]
expected = "above zero"
"""
REMOVE = object()
NET = {"evaluator": "net", "recalibrated_evaluator": "wide", "policies": ["greedy"]}
WITH = ("other", "any")
"""Policies that stand beside one that is named twice."""


def set_at(plan: dict[str, Any], where: str, value: Any) -> None:
    """Put a value at a path of keys and of positions, which count from one, or take away what is there."""
    part: Any = plan
    *steps, last = [int(step) - 1 if step.isdecimal() else step for step in where.split("/")]
    for step in steps:
        part = part[step] if isinstance(step, int) else part.setdefault(step, {})
    if value is REMOVE:
        del part[last]
    else:
        part[last] = value


def toml(value: Any) -> str:
    """A value as TOML has it, tables in line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


def plan_with(path: Path, changes: dict[str, Any]) -> Path:
    """The sound plan with some values otherwise, in a file."""
    plan = tomllib.loads(SOUND)
    for where, value in changes.items():
        set_at(plan, where, value)
    path.write_text("".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in plan.items()))
    return path


def test_the_shipped_plan_is_the_published_protocol() -> None:
    plan = read_plan(STUDIES / "ptbxl.toml")
    assert plan.cohort_roles() == PTBXL_ROLES
    assert (plan.readers, plan.studied) == (["controlled", "strong"], ["ecg-on-demand", "mga"])
    assert plan.first_lead_of == "controlled"
    published = {"controlled", "controlled-unbalanced", "controlled-recalibrated", "strong", "mask-robust"}
    assert published < plan.evaluators.keys() - plan.stand_ins
    published = {"ecg-on-demand", "mga", "ccga", "strong-mga", "cohort-state", "random-subset"}
    assert published < plan.policies.keys() - plan.stand_ins
    assert all(len(names) == 5 for each in plan.variance for names in each.stand_ins.values())


@pytest.mark.parametrize("name", [path.name for path in STUDIES.glob("*.toml")])
def test_what_ships_is_sound(name: str) -> None:
    assert read_plan(STUDIES / name).hypotheses


def test_what_is_sound_is_read(tmp_path: Path) -> None:
    plan = read_plan(plan_with(tmp_path / "plan.toml", {}))
    assert {name: each.kind for name, each in plan.policies.items()} == {
        "greedy": "mga",
        "other": "ccga",
        "same": "cohort-state",
        "any": "random-subset",
    }
    assert plan.evaluators["lines"].settings.evaluators == ["light"]
    assert list(plan.policies["other"].settings.evaluators) == ["net", "light"]
    assert Plan.model_validate(tomllib.loads(SOUND)) == plan
    assert get_args(Metric) == MATCHED_METRICS


def test_a_plan_may_be_small(tmp_path: Path) -> None:
    """One evaluator, one policy, nothing that is compared: what is looked at closely is all there is."""
    small = dict.fromkeys(("interactions", "pairs", "hypotheses", "roles", "bootstrap"), REMOVE)
    small |= {"evaluators": {"e": {"kind": "logistic"}}, "policies": {"p": {"kind": "random-subset"}}}
    plan = read_plan(plan_with(tmp_path / "plan.toml", small))
    assert (plan.readers, plan.studied, plan.interactions, plan.pairs) == ([], ["p"], [], [])
    assert plan.cohort_roles() == PTBXL_ROLES
    assert "freeze" in [stage.name for stage in stages(plan, [])]


def test_who_is_looked_at_closely(tmp_path: Path) -> None:
    plan = read_plan(plan_with(tmp_path / "plan.toml", {}))
    assert (plan.readers, plan.studied) == (["light", "net"], ["greedy"])
    plan = read_plan(plan_with(tmp_path / "plan.toml", {"interactions": REMOVE}))
    assert (plan.readers, plan.studied) == (["light", "lines"], ["greedy", "other", "same", "any"])
    changes = {"interactions/1/baseline": "bare", "interactions/1/reference": "light"}
    plan = read_plan(plan_with(tmp_path / "plan.toml", changes))
    assert plan.readers == ["net"], "one without references is not"


def test_a_variant_differs_in_what_it_says(tmp_path: Path) -> None:
    variants = {"greedy-1": {"seed": 1}, "greedy-net": {"target": "net"}}
    plan = read_plan(plan_with(tmp_path / "plan.toml", {"policies/greedy/variants": variants}))
    assert list(plan.policies)[:3] == ["greedy", "greedy-1", "greedy-net"]
    greedy, other_seed, other_target = (plan.policies[name].as_said() for name in list(plan.policies)[:3])
    assert other_seed == greedy | {"seed": 1}
    assert other_target == greedy | {"target": "net"}


def test_who_only_stands_in_for_others(tmp_path: Path) -> None:
    variance = [{"source": "seeds", "stand_ins": {"greedy": ["greedy", "other", "greedy-1"]}}]
    changes = {"policies/greedy/variants": {"greedy-1": {"seed": 1}}, "variance": variance}
    assert read_plan(plan_with(tmp_path / "plan.toml", changes)).stand_ins == {"other", "greedy-1"}
    read = {"transfer": {"policies": ["other"], "evaluators": ["light"]}}
    assert read_plan(plan_with(tmp_path / "plan.toml", changes | read)).stand_ins == {"greedy-1"}


def test_a_hypothesis_may_be_about_parts_of_an_interaction_and_about_equivalence(tmp_path: Path) -> None:
    about = {"decompositions": [DECOMPOSED], f"{HYPOTHESIS}/quantity": "removed"}
    assert read_plan(plan_with(tmp_path / "parts.toml", about)).hypotheses[0].quantity == "removed"
    equivalent = CONTRAST | {f"{HYPOTHESIS}/expected": "equivalent"}
    assert read_plan(plan_with(tmp_path / "margin.toml", equivalent)).hypotheses[0].expected == "equivalent"


@pytest.mark.parametrize(("said", "of"), [("V2", None), ("net", "net"), (REMOVE, "light")])
def test_where_policies_begin(tmp_path: Path, said: Any, of: str | None) -> None:
    changes = {"first_lead": said, "evaluators/net/references": [1, 4]}
    if said is REMOVE:
        del changes["first_lead"]
    assert read_plan(plan_with(tmp_path / "plan.toml", changes)).first_lead_of == of


def test_the_evaluator_of_the_first_lead_is_only_asked_where_a_policy_has_one(tmp_path: Path) -> None:
    changes = {"policies": {"any": {"kind": "random-subset"}}, "evaluators/light/references": [2, 4]}
    changes |= dict.fromkeys(("interactions", "pairs", "hypotheses"), REMOVE)
    assert read_plan(plan_with(tmp_path / "plan.toml", changes)).first_lead_of == "light"


EVALUATORS_KNOWN = "there are light, lines, net, bare."
POLICIES_KNOWN = "there are greedy, other, same, any."
NO_NAME = "is no name: take up to 80 letters, digits, '-', '_' and '.', and neither 'own' nor 'reference'."
HYPOTHESIS = "hypotheses/1"
CONTRAST = {f"{HYPOTHESIS}/quantity": "contrast", f"{HYPOTHESIS}/baseline": REMOVE}
DECOMPOSED = {"policies": ["any", "greedy"], "evaluator": "net", "baseline": "light"}
DECOMPOSED |= {"recalibrated_evaluator": "net", "recalibrated_baseline": "lines"}
WRONG: list[tuple[dict[str, Any], str]] = [
    # keys
    ({"rolls": {"train": [1]}}, "'rolls' is not part of a plan; did you mean 'roles'?"),
    (
        {"zebra": 1},
        "'zebra' is not part of a plan; there are title, budgets, first_lead, cohort, roles, unsealed, evaluators, "
        "policies, interactions, pairs, transfer, decompositions, variance, equivalence, bootstrap, hypotheses.",
    ),
    ({"bootstrap/zebra": 3}, "'bootstrap.zebra' is not part of a plan; there are replicates, own_replicates, seed."),
    ({"evaluators/net/seed": [1]}, "'evaluators.net.seed' is not part of a plan; did you mean 'seeds'?"),
    ({"evaluators/net/reference": [1]}, "'evaluators.net.reference' is not part of a plan; did you mean 'references'?"),
    ({"evaluators/net/kinds": "a"}, "'evaluators.net.kinds' is not part of a plan; did you mean 'kind'?"),
    ({"evaluators/net/recipe/epoch": 3}, "'evaluators.net.recipe.epoch' is not part of a plan; did you mean 'epochs'?"),
    ({"evaluators/lines/seed": 3}, "'evaluators.lines.seed' is not part of a plan; there are of, kind, references."),
    ({"policies/any/seeds": 3}, "'policies.any.seeds' is not part of a plan; did you mean 'seed'?"),
    ({"policies/any/target": "net"}, "'policies.any.target' is not part of a plan; there are seed, kind."),
    ({"policies/any/references": [1]}, "'policies.any.references' is not part of a plan; there are seed, kind."),
    ({"policies/other/neighbors": 3}, "'policies.other.neighbors' is not part of a plan; did you mean 'neighbours'?"),
    (
        {"cohort/record": 3, "cohort/kind": "synthetic"},
        "'cohort.record' is not part of a plan; did you mean 'records'?",
    ),
    ({"cohort/records": 3}, "'cohort.records' is not part of a plan; there are kind."),
    (
        {"interactions/1/versus": "a"},
        "'interactions.1.versus' is not part of a plan; there are policies, evaluator, baseline, reference.",
    ),
    # what is missing
    ({"budgets": REMOVE}, "'budgets' is missing; add it."),
    ({"cohort": REMOVE}, "'cohort' is missing; add it."),
    ({"evaluators": REMOVE}, "'evaluators' is missing; add it."),
    ({"policies": REMOVE}, "'policies' is missing; add it."),
    ({"evaluators": {}}, "'evaluators' is a table: dictionary should have at least 1 item, not 0."),
    ({"cohort/kind": "synthetic"}, "'cohort.records' is missing; add it."),
    ({"cohort": {}}, "'cohort.kind' is missing; add it."),
    ({"evaluators/net/kind": REMOVE}, "'evaluators.net.kind' is missing; add it."),
    ({"policies/greedy/target": REMOVE}, "'policies.greedy.target' is missing; add it."),
    ({"evaluators/lines/of": REMOVE}, "'evaluators.lines.of' is missing; add it."),
    # kinds
    ({"cohort/kind": "synthetik"}, "'cohort': 'synthetik' is no kind of cohort; did you mean 'synthetic'?"),
    ({"cohort/kind": "mimic"}, "'cohort': 'mimic' is no kind of cohort; there are ptbxl, synthetic."),
    (
        {"evaluators/net/kind": "logistics"},
        "'evaluators.net': 'logistics' is no kind of evaluator; did you mean 'logistic'?",
    ),
    ({"policies/any/kind": "random"}, "'policies.any': 'random' is no kind of policy; did you mean 'random-subset'?"),
    (
        {"policies/any/kind": "no_such_module:Policy"},
        "'policies.any': The policy no_such_module:Policy cannot be imported: No module named 'no_such_module'.",
    ),
    ({"cohort/kind": 3}, "'cohort.kind' is 3; it should be text."),
    ({"evaluators/net/kind": ["a"]}, "'evaluators.net.kind' is a list; it should be text."),
    # types
    ({"roles": 3}, "'roles' is 3; it should be a table."),
    ({"roles/train": 1}, "'roles.train' is 1; it should be a list."),
    ({"roles/train": [1, "2"]}, "'roles.train.2' is '2'; it should be a whole number."),
    ({"budgets": 3}, "'budgets' is 3; it should be a list."),
    ({"budgets": ["2"]}, "'budgets.1' is '2'; it should be a whole number."),
    ({"budgets": [2, 3.0]}, "'budgets.2' is 3.0; it should be a whole number."),
    ({"budgets": [True]}, "'budgets.1' is true; it should be a whole number."),
    ({"title": 3}, "'title' is 3; it should be text."),
    ({"evaluators": [1]}, "'evaluators' is a list; it should be a table."),
    ({"evaluators/net": 3}, "'evaluators.net' is 3; it should be a table."),
    ({"policies/any": "mga"}, "'policies.any' is 'mga'; it should be a table."),
    ({"cohort": "ptbxl"}, "'cohort' is 'ptbxl'; it should be a table."),
    ({"evaluators/net/recipe": "long"}, "'evaluators.net.recipe' is 'long'; it should be a table."),
    ({"evaluators/net/seeds": 3}, "'evaluators.net.seeds' is 3; it should be a list."),
    ({"evaluators/net/references": [1, "2"]}, "'evaluators.net.references.2' is '2'; it should be a whole number."),
    ({"evaluators/net/recipe/shift": 1}, "'evaluators.net.recipe.shift' is 1; it should be true or false."),
    ({"evaluators/net/recipe/epochs": "3"}, "'evaluators.net.recipe.epochs' is '3'; it should be a whole number."),
    ({"policies/greedy/own": "half"}, "'policies.greedy.own' is 'half'; it should be a number."),
    ({"policies/greedy/target": ["net"]}, "'policies.greedy.target' is a list; it should be text."),
    ({"interactions": {}}, "'interactions' is a table; it should be a list."),
    ({"interactions/1/policies": "greedy"}, "'interactions.1.policies' is 'greedy'; it should be a list."),
    ({"hypotheses": ["it works"]}, "'hypotheses.1' is 'it works'; it should be a table."),
    ({"title": 10**70}, f"'title' is {'1' + 56 * '0'}…; it should be text."),
    ({"budgets": 70 * "x"}, f"'budgets' is '{57 * 'x'}…'; it should be a list."),
    # values
    ({"budgets": []}, "'budgets' is a list: list should have at least 1 item, not 0."),
    ({"budgets": [2, 13]}, "'budgets.2' is 13: it should be less than or equal to 12."),
    ({"budgets": [1]}, "'budgets' has none of two leads or more, so no policy would have a choice; add some."),
    (
        {"evaluators/net/references": [0]},
        "'evaluators.net.references.1' is 0: it should be greater than or equal to 1.",
    ),
    (
        {"evaluators/net/recipe/epochs": 0},
        "'evaluators.net.recipe.epochs' is 0: it should be greater than or equal to 1.",
    ),
    ({"evaluators/net/recipe/dropout": 1.0}, "'evaluators.net.recipe.dropout' is 1.0: it should be less than 1."),
    (
        {"evaluators/net/widths": [1, 2, 3]},
        "'evaluators.net.widths' is a list: list should have at least 4 items, not 3.",
    ),
    ({"evaluators/net/seeds": [1, -1]}, "'evaluators.net.seeds.2' is -1: it should be greater than or equal to 0."),
    (
        {"evaluators/net/seeds": [3, 4, 3]},
        "'evaluators.net': 'seeds' names 3 twice; give every network a seed of its own.",
    ),
    (
        {"evaluators/light/class_weight": "balance"},
        "'evaluators.light.class_weight' is 'balance'; did you mean 'balanced'?",
    ),
    (
        {"policies/greedy/states": 1},
        "'policies.greedy': 'states': With 1 states a round of training learns from 0; it needs 10 or more, so that "
        "the validation has one. Take more states.",
    ),
    # roles
    ({"roles/train": [1, 11]}, "The train role names fold 11; folds are numbered 1 to 10."),
    ({"roles/trian": [3]}, "'trian' is not a role; did you mean 'train'?"),
    ({"roles/a\nb": [3]}, "'a b' is not a role; there are train, validation, selection, audit, evaluation."),
    ({"roles/train": [1, 9]}, "Fold 9 is named twice, by train and by audit; give it one role."),
    ({"roles/train": []}, "The train role names no fold; give it at least one, or leave the role out."),
    ({"roles": {}}, "The plan names no role; a cohort needs at least one."),
    # names
    *(
        ({f"{table}": {name: {"kind": kind}}}, f"'{table}.{shown}' {NO_NAME}")
        for table, kind in (("evaluators", "logistic"), ("policies", "random-subset"))
        for name, shown in {
            "own": "own",
            "reference": "reference",
            "": "",
            "..": "",
            "a b": "a b",
            "a/b": "a/b",
            ".hidden": ".hidden",
            "a\nb": "a b",
            "é": "é",
            81 * "x": 57 * "x" + "…",
        }.items()
    ),
    # what is made from what
    ({"evaluators/lines/of": "ligth"}, "'evaluators.lines' names the evaluator 'ligth'; did you mean 'light'?"),
    ({"evaluators/net/masks_of": ["zebra"]}, f"'evaluators.net' names the policy 'zebra'; {POLICIES_KNOWN}"),
    ({"policies/greedy/target": "zebra"}, f"'policies.greedy' names the evaluator 'zebra'; {EVALUATORS_KNOWN}"),
    ({"policies/other/state": "nett"}, "'policies.other' names the evaluator 'nett'; did you mean 'net'?"),
    ({"policies/same/of": "greedi"}, "'policies.same' names the policy 'greedi'; did you mean 'greedy'?"),
    ({"policies/same/of": "light"}, f"'policies.same' names the policy 'light'; {POLICIES_KNOWN}"),
    ({"evaluators/lines/of": "lines"}, "The evaluator 'lines' is made from itself, over others; name another one."),
    (
        {"evaluators/net/masks_of": ["other"]},
        "The evaluator 'net' is made from itself, over others; name another one.",
    ),
    ({"policies/same/of": "same"}, "The policy 'same' is made from itself, over others; name another one."),
    # where policies begin
    (
        {"first_lead": "AVR"},
        "'first_lead' is 'AVR', which is neither a lead nor an evaluator of the plan; did you mean 'aVR'?",
    ),
    (
        {"first_lead": "lihgt"},
        "'first_lead' is 'lihgt', which is neither a lead nor an evaluator of the plan; did you mean 'light'?",
    ),
    (
        {"first_lead": "net"},
        "Policies begin with the best single lead of the evaluator 'net', which is not searched; add 1 to "
        "'evaluators.net.references', or name a lead as 'first_lead'.",
    ),
    # interactions
    (
        {"interactions/1/policies": ["greedy", "greedy"]},
        "'interactions.1.policies' names a policy twice; name each once.",
    ),
    (
        {"interactions": [{"policies": ["greedy", name], "evaluator": "net", "baseline": "light"} for name in WITH]},
        "'interactions.2' is about greedy as one before it; leave it out of one of them.",
    ),
    ({"interactions/1/policies": ["gredy"]}, "'interactions.1' names the policy 'gredy'; did you mean 'greedy'?"),
    ({"interactions/1/policies": []}, "'interactions.1.policies' is a list: list should have at least 1 item, not 0."),
    ({"interactions/1/evaluator": "zebra"}, f"'interactions.1' names the evaluator 'zebra'; {EVALUATORS_KNOWN}"),
    ({"interactions/1/baseline": "ligth"}, "'interactions.1' names the evaluator 'ligth'; did you mean 'light'?"),
    (
        {"interactions/1/baseline": "net"},
        "'interactions.1.baseline' is the evaluator itself, so the interaction is zero; name the evaluator to compare "
        "with.",
    ),
    (
        {"interactions/1/reference": "zebra"},
        "'interactions.1.reference' is 'zebra'; there are own, light, lines, net, bare.",
    ),
    *(
        (
            changes,
            f"'interactions.1' needs references of the evaluator '{name}', but 'evaluators.{name}.references' has none "
            "of the study's 'budgets'; add some.",
        )
        for name, changes in {
            "bare": {"interactions/1/baseline": "bare"},
            "net": {"evaluators/net/references": [3], "hypotheses": []},
            "light": {"evaluators/light/references": [1], "interactions/1/reference": "light"},
        }.items()
    ),
    # pairs
    ({"pairs/1/policies": ["greedy", "anny"]}, "'pairs.1' names the policy 'anny'; did you mean 'any'?"),
    ({"pairs/1/evaluators": ["nett"]}, "'pairs.1' names the evaluator 'nett'; did you mean 'net'?"),
    ({"pairs/1/policies": ["any", "any"]}, "'pairs.1.policies' names a policy twice; name each once."),
    ({"pairs/1/policies": ["any"]}, "'pairs.1.policies' is a list: list should have at least 2 items, not 1."),
    # hypotheses
    ({f"{HYPOTHESIS}/evaluater": "net"}, "'hypotheses.1.evaluater' is not part of a plan; did you mean 'evaluator'?"),
    (
        {f"{HYPOTHESIS}/why": "because"},
        "'hypotheses.1.why' is not part of a plan; there are level, quantity, policies, evaluator, baseline, "
        "reference, budgets, metrics, expected.",
    ),
    ({f"{HYPOTHESIS}/level": REMOVE}, "'hypotheses.1.level' is missing; add it."),
    ({f"{HYPOTHESIS}/level": "primery"}, "'hypotheses.1.level' is 'primery'; did you mean 'primary'?"),
    (
        {f"{HYPOTHESIS}/quantity": "D"},
        "'hypotheses.1.quantity' is 'D'; there are interaction, contrast, paired, removed, remaining.",
    ),
    ({f"{HYPOTHESIS}/policies": ["gredy"]}, "'hypotheses.1' names the policy 'gredy'; did you mean 'greedy'?"),
    ({f"{HYPOTHESIS}/policies": ["oracle"]}, f"'hypotheses.1' names the policy 'oracle'; {POLICIES_KNOWN}"),
    ({f"{HYPOTHESIS}/policies": "any"}, "'hypotheses.1.policies' is 'any'; it should be a list."),
    ({f"{HYPOTHESIS}/policies": []}, "'hypotheses.1.policies' is a list: list should have at least 1 item, not 0."),
    ({f"{HYPOTHESIS}/policies": [["any"]]}, "'hypotheses.1.policies.1' is a list; it should be text."),
    ({f"{HYPOTHESIS}/evaluator": "nett"}, "'hypotheses.1' names the evaluator 'nett'; did you mean 'net'?"),
    ({f"{HYPOTHESIS}/baseline": "ligth"}, "'hypotheses.1' names the evaluator 'ligth'; did you mean 'light'?"),
    ({f"{HYPOTHESIS}/reference": "lihgt"}, "'hypotheses.1.reference' is 'lihgt'; did you mean 'light'?"),
    (
        {f"{HYPOTHESIS}/reference": "bare"},
        "'hypotheses.1' needs references of the evaluator 'bare', but 'evaluators.bare.references' has none of the "
        "study's 'budgets'; add some.",
    ),
    ({f"{HYPOTHESIS}/metrics": ["nll", "bries"]}, "'hypotheses.1.metrics.2' is 'bries'; did you mean 'brier'?"),
    ({f"{HYPOTHESIS}/metrics": ["auroc"]}, "'hypotheses.1.metrics.1' is 'auroc'; there are nll, brier, ece."),
    ({f"{HYPOTHESIS}/expected": "above"}, "'hypotheses.1.expected' is 'above'; did you mean 'above zero'?"),
    (
        {f"{HYPOTHESIS}/budgets": [4, 5]},
        "'hypotheses.1.budgets' has 5, which is none of the study's 'budgets'; take 2, 4.",
    ),
    ({f"{HYPOTHESIS}/budgets": [0]}, "'hypotheses.1.budgets.1' is 0: it should be greater than or equal to 1."),
    (
        {f"{HYPOTHESIS}/baseline": REMOVE},
        "'hypotheses.1.baseline' belongs to an interaction and its parts, to no other quantity; name the evaluator to "
        "compare with.",
    ),
    (
        {f"{HYPOTHESIS}/quantity": "contrast"},
        "'hypotheses.1.baseline' belongs to an interaction and its parts, to no other quantity; leave it out.",
    ),
    *(
        (
            {f"{HYPOTHESIS}/quantity": quantity, **changes},
            "'hypotheses.1' is about a part of an interaction, so 'decompositions' has to name its evaluator, its "
            f"baseline and its policies, and 'reference' is 'own'; {remedy}.",
        )
        for quantity, changes, remedy in [
            ("removed", {}, "add greedy there"),
            ("remaining", {"decompositions": [DECOMPOSED | {"policies": ["other"]}]}, "add greedy there"),
            ("removed", {"decompositions": [DECOMPOSED | {"evaluator": "lines"}]}, "add greedy there"),
            (
                "remaining",
                {"decompositions": [DECOMPOSED], f"{HYPOTHESIS}/reference": "light"},
                "leave 'reference' out",
            ),
        ]
    ),
    *(
        (
            {f"{HYPOTHESIS}/expected": "equivalent"} | changes,
            "'hypotheses.1.expected' is 'equivalent', but the margin is one of contrasts in nll against own "
            "references; expect 'above zero' or 'below zero'.",
        )
        for changes in [
            {},
            CONTRAST | {f"{HYPOTHESIS}/metrics": ["nll", "ece"]},
            CONTRAST | {f"{HYPOTHESIS}/reference": "light"},
        ]
    ),
    *(
        (
            {
                f"{HYPOTHESIS}/quantity": "paired",
                f"{HYPOTHESIS}/baseline": REMOVE,
                f"{HYPOTHESIS}/policies": policies,
            },
            f"'hypotheses.1.policies' {sentence}",
        )
        for policies, sentence in [
            (["any"], "has 1, but a paired comparison is of two; name two."),
            (["any", "same", "other"], "has 3, but a paired comparison is of two; name two."),
            (["any", "any"], "names a policy twice; name each once."),
        ]
    ),
    (
        {f"{HYPOTHESIS}/baseline": "net"},
        "'hypotheses.1.baseline' is the evaluator itself, so the interaction is zero; name the evaluator to compare "
        "with.",
    ),
    (
        {"policies/greedy/first_lead": "bare"},
        "Policies begin with the best single lead of the evaluator 'bare', which is not searched; add 1 to "
        "'evaluators.bare.references', or name a lead as 'policies.greedy.first_lead'.",
    ),
    (
        {"policies/greedy/first_lead": "V7"},
        "'policies.greedy.first_lead' is 'V7', which is neither a lead nor an evaluator of the plan; there are I, "
        "II, III, aVR, aVL, aVF, V1, V2, V3, V4, V5, V6, light, lines, net, bare.",
    ),
    (
        {"evaluators/one": {"kind": "seed", "of": "light", "seed": 1}},
        "'evaluators.one.of' is 'light', which is not trained with seeds; name one that is.",
    ),
    (
        {"policies/greedy/variants": {"again": 1}},
        "'policies.greedy.variants' should be tables by name; write NAME = { KEY = VALUE }.",
    ),
    (
        {"policies/greedy/variants": {"other": {"seed": 1}}},
        "'policies' names 'other' twice; give the variant a name of its own.",
    ),
    (
        {"policies/greedy/variants": {"again": {"seeds": 1}}},
        "'policies.again.seeds' is not part of a plan; did you mean 'seed'?",
    ),
    (
        {"transfer": {"policies": ["greedy", "gredy"], "evaluators": ["light"]}},
        "'transfer' names the policy 'gredy'; did you mean 'greedy'?",
    ),
    (
        {"transfer": {"policies": ["greedy"], "evaluators": ["bare"]}},
        "'transfer' needs references of the evaluator 'bare', but 'evaluators.bare.references' has none of the "
        "study's 'budgets'; add some.",
    ),
    (
        {"decompositions": [dict.fromkeys(["baseline", "recalibrated_baseline"], "light") | NET]},
        "'decompositions.1' names the evaluator 'wide'; there are light, lines, net, bare.",
    ),
    (
        {"variance": [{"source": "seeds", "stand_ins": {"greedy": ["other", "same"], "light": ["bare"]}}]},
        "'variance.1.stand_ins' needs two names or more for each member, and as many for one as for another.",
    ),
    (
        {"variance": [{"source": "seeds", "stand_ins": {"gredy": ["other", "same"]}}]},
        "'variance.1.stand_ins.gredy' is no evaluator or policy of the plan; did you mean 'greedy'?",
    ),
    (
        {"variance": [{"source": "seeds", "stand_ins": {"greedy": ["other", "light"]}}]},
        "'variance.1.stand_ins.greedy' names the policy 'light'; there are greedy, other, same, any.",
    ),
    (
        {"variance": [{"source": "seeds", "stand_ins": {"light": ["lines", "net"]}}]},
        "'variance.1.stand_ins' puts 'net' in the place of both evaluators of the first interactions; name another "
        "one.",
    ),
    ({"equivalence": {"margin": 0.0}}, "'equivalence.margin' is 0.0: it should be greater than 0."),
]


@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_wrong_plans_name_what_is_wrong(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = plan_with(tmp_path / "plan.toml", changes)
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    assert str(caught.value) == f"{path}: {sentence}"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("evaluators.light.strength = nan", "'evaluators.light.strength' is nan: it should be a finite number."),
        (
            "evaluators.net.recipe.dropout = inf",
            "'evaluators.net.recipe.dropout' is inf: it should be a finite number.",
        ),
        ("policies.any.seed = 2027-09-09", "'policies.any.seed' is 2027-09-09; it should be a whole number."),
    ],
)
def test_what_only_toml_can_say(tmp_path: Path, line: str, sentence: str) -> None:
    path, table = tmp_path / "plan.toml", line.split(".")[1]
    entry = re.search(rf"^\w+\.{table} = .*$", SOUND, re.MULTILINE)
    assert entry is not None
    key, value = line.split(" = ")
    inner = key.split(".", 2)[2]
    changed = (
        entry[0].replace("recipe = {", f"recipe = {{{inner.split('.')[-1]} = {value}, ")
        if "recipe" in inner
        else (entry[0].replace("{", f"{{{inner} = {value}, ", 1))
    )
    path.write_text(SOUND.replace(entry[0], changed))
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    assert str(caught.value) == f"{path}: {sentence}"


@pytest.mark.parametrize(
    "content", [b"[roles", b"budgets = [2", b"title = 'a'\ntitle = 'b'", b"\xff\xfe", b"title = '\xe9'", b"a = 2 = 3"]
)
def test_what_is_no_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(content)
    with pytest.raises(PlanError, match=rf"^The plan {path} is not valid TOML: .*\.$"):
        read_plan(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a = " + 5000 * "[" + 5000 * "]", "has lists or tables nested too deeply; a plan needs three levels."),
        ("a = " + 5000 * "{a=" + "1" + 5000 * "}", "has lists or tables nested too deeply; a plan needs three levels."),
        ("a = " + 5000 * "9", "has a number of thousands of digits; write one that a plan can mean."),
        ("[cohort]\nrecords = 0x" + 5000 * "f", "has a number of thousands of digits; write one that a plan can mean."),
    ],
    ids=["lists", "tables", "digits", "hexadecimal digits"],
)
def test_what_python_cannot_read_is_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(content)
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    assert str(caught.value) == f"The plan {path} {sentence}"


def whole_numbers(part: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all keys that take a whole number, or a list of them."""
    for name, field in part.model_fields.items():
        kinds = {field.annotation, *get_args(field.annotation)}
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if inner:
            yield from whole_numbers(inner[0], (*path, name))
        elif int in kinds or any(int in get_args(kind) for kind in kinds if get_args(kind)):
            yield (*path, name)


NEEDED: dict[str, dict[str, Any]] = {"synthetic": {"records": 200}, "recalibrated": {"of": "light"}}
NEEDED |= {"temperature": {"of": "light"}, "seed": {"of": "net"}}
NEEDED |= {kind: {"target": "light"} for kind in ("mga", "ecg-on-demand", "ccga")} | {"cohort-state": {"of": "greedy"}}
"""Settings that a kind cannot do without."""
REGISTRIES: dict[str, Registry[Any]] = {"cohort": COHORTS, "evaluators/e": EVALUATORS, "policies/p": POLICIES}
NUMBERS = [
    (table, kind, path)
    for table, registry in REGISTRIES.items()
    for kind in registry.names()
    for path in whole_numbers(registry.find(kind).Settings)
]


@pytest.mark.parametrize(("table", "kind", "path"), NUMBERS, ids=[" ".join([kind, *path]) for _, kind, path in NUMBERS])
def test_every_number_that_a_kind_takes_fits_into_a_receipt(
    tmp_path: Path, table: str, kind: str, path: tuple[str, ...]
) -> None:
    """Receipts are canonical JSON, which has no whole number of 2^53 or more: such a plan is refused as it is read."""
    several = {"widths": 4, "seeds": 1, "cardinalities": 1}.get(path[-1], 0)
    for number in (2**53, 2**63 - 1, 2**64):
        value = [number] * several if several else number
        file = plan_with(
            tmp_path / "plan.toml", {table: {"kind": kind} | NEEDED.get(kind, {}), "/".join((table, *path)): value}
        )
        with pytest.raises(PlanError, match="it should be less than or equal to"):
            read_plan(file)


@pytest.mark.parametrize("key", ["replicates", "seed"])
def test_so_does_every_number_of_the_resample(tmp_path: Path, key: str) -> None:
    with pytest.raises(PlanError, match="it should be less than or equal to"):
        read_plan(plan_with(tmp_path / "plan.toml", {f"bootstrap/{key}": 2**53}))


def test_the_largest_seeds_that_a_plan_takes_are_kept_by_receipts(tmp_path: Path) -> None:
    changes = {"evaluators/net/seeds": [2**53 - 1], "bootstrap/seed": 2**53 - 1, "policies/any/seed": 2**53 - 1}
    plan = read_plan(plan_with(tmp_path / "plan.toml", changes))
    settings = plan.model_dump(mode="json")
    assert settings["evaluators"]["net"]["settings"]["seeds"] == [2**53 - 1]
    assert json.loads(rfc8785.dumps(settings)) == json.loads(json.dumps(settings))


def test_budgets_are_sorted_and_named_once(tmp_path: Path) -> None:
    changes = {"budgets": [4, 2, 4], "evaluators/light/references": [2, 2, 1, 4]}
    plan = read_plan(plan_with(tmp_path / "plan.toml", changes))
    assert (plan.budgets, plan.evaluators["light"].references) == ([2, 4], [1, 2, 4])
    names = [stage.name for stage in stages(plan, [])]
    assert len(names) == len(set(names))


def test_missing_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(PlanError, match="cannot be read: Is a directory"):
        read_plan(tmp_path)
