"""A plan is read as it was meant, or one sentence says which key is wrong and what was perhaps meant."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest
import rfc8785
from leadwise.study.stages import STRONG_MGA, search_stage, stages
from pydantic import BaseModel

from leadwise.cohort.roles import PTBXL_ROLES
from leadwise.errors import PlanError
from leadwise.references import MATCHED_METRICS
from leadwise.run.plan import EvaluatorName, MetricName, Plan, PolicyName, ReferenceName, read_plan

STUDIES = Path(str(files("leadwise") / "studies"))
HYPOTHESIS = """
[[hypotheses]]
level = "primary"
quantity = "interaction"
policies = ["ecg-on-demand"]
evaluator = "strong"
baseline = "controlled"
budgets = [4]
metrics = ["nll"]
expected = "above zero"
"""


def hypothesis(**changes: str) -> str:
    """A sound hypothesis and, after it, the same with some lines written otherwise, or left out."""
    lines = dict(line.split(" = ", 1) for line in HYPOTHESIS.split("\n") if " = " in line) | changes
    return f"{HYPOTHESIS}\n[[hypotheses]]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items() if value)


def test_default_and_shipped_plan_are_the_published_protocol() -> None:
    assert Plan().cohort_roles() == PTBXL_ROLES
    assert read_plan(STUDIES / "ptbxl.toml").model_copy(update={"hypotheses": []}) == Plan()


@pytest.mark.parametrize("name", [path.name for path in STUDIES.glob("*.toml")])
def test_what_ships_is_sound(name: str) -> None:
    assert read_plan(STUDIES / name).hypotheses


def test_hypotheses_are_about_what_a_study_makes() -> None:
    made = {stage.name for stage in stages(Plan(), [])} | set(STRONG_MGA)
    assert {*get_args(PolicyName), *get_args(EvaluatorName)} <= made
    assert {search_stage(name, 4) for name in get_args(ReferenceName) if name != "own"} <= made
    assert get_args(MetricName) == MATCHED_METRICS


WRONG = {
    # keys
    "[rolls]\ntrain = [1]": "'rolls' is not part of a plan; did you mean 'roles'?",
    "zebra = 1": "'zebra' is not part of a plan; there are title, cohort, roles, unsealed, budgets, controlled, "
    "strong, mask_robust, policies, bootstrap, hypotheses.",
    "[strong]\nseed = [1]": "'strong.seed' is not part of a plan; did you mean 'seeds'?",
    "[strong.recipe]\nepoch = 3": "'strong.recipe.epoch' is not part of a plan; did you mean 'epochs'?",
    "[bootstrap]\nzebra = 3": "'bootstrap.zebra' is not part of a plan; there are replicates, seed.",
    "[cohort.records]\nzebra = 3": "'cohort.records' is a table; it should be a whole number.",
    # kinds
    "roles = 3": "'roles' is 3; it should be a table.",
    "[roles]\ntrain = 1": "'roles.train' is 1; it should be a list.",
    "[roles]\ntrain = [1, '2']": "'roles.train.2' is '2'; it should be a whole number.",
    "budgets = 3": "'budgets' is 3; it should be a list.",
    "budgets = ['2']": "'budgets.1' is '2'; it should be a whole number.",
    "budgets = [2, 3.0]": "'budgets.2' is 3.0; it should be a whole number.",
    "budgets = [true]": "'budgets.1' is true; it should be a whole number.",
    "title = 3": "'title' is 3; it should be text.",
    "strong = [1]": "'strong' is a list; it should be a table.",
    "[[strong]]\nseeds = [1]": "'strong' is a list; it should be a table.",
    "[strong]\nrecipe = 'long'": "'strong.recipe' is 'long'; it should be a table.",
    "[strong]\nseeds = 3": "'strong.seeds' is 3; it should be a list.",
    "[strong]\nsearch = [1, '2']": "'strong.search.2' is '2'; it should be a whole number.",
    "[strong.recipe]\nshift = 1": "'strong.recipe.shift' is 1; it should be true or false.",
    "[strong.recipe]\nepochs = '3'": "'strong.recipe.epochs' is '3'; it should be a whole number.",
    "[strong.recipe]\nlearning_rate = '2e-3'": "'strong.recipe.learning_rate' is '2e-3'; it should be a number.",
    "[policies]\nown = 'half'": "'policies.own' is 'half'; it should be a number.",
    "[policies]\nseed = 2027-09-09": "'policies.seed' is 2027-09-09; it should be a whole number.",
    "[hypotheses]\nlevel = 'primary'": "'hypotheses' is a table; it should be a list.",
    "hypotheses = ['it works']": "'hypotheses.1' is 'it works'; it should be a table.",
    # values
    "budgets = []": "'budgets' is a list: list should have at least 1 item, not 0.",
    "budgets = [2, 13]": "'budgets.2' is 13: it should be less than or equal to 12.",
    "[strong.recipe]\nepochs = 0": "'strong.recipe.epochs' is 0: it should be greater than or equal to 1.",
    "[strong.recipe]\ndropout = 1.0": "'strong.recipe.dropout' is 1.0: it should be less than 1.",
    "[strong.recipe]\nlearning_rate = inf": "'strong.recipe.learning_rate' is inf: it should be a finite number.",
    "[controlled]\nstrength = nan": "'controlled.strength' is nan: it should be a finite number.",
    "[strong]\nwidths = [1, 2, 3]": "'strong.widths' is a list: list should have at least 4 items, not 3.",
    "[strong]\nseeds = [1, -1]": "'strong.seeds.2' is -1: it should be greater than or equal to 0.",
    "[strong]\nseeds = [3, 4, 3]": "'strong.seeds' names 3 twice; give every network a seed of its own.",
    "budgets = [1]": "'budgets' has none of two leads or more, so no policy would have a choice; add some.",
    "[policies]\nstates = 1": "'policies.states': With 1 states a round of training learns from 0; it needs 10 or "
    "more, so that the validation has one. Take more states.",
    "[policies]\nstates = 100\nown = 0.05": "'policies.states': With 100 states a round of training learns from 5; it "
    "needs 10 or more, so that the validation has one. Take more states.",
    f"title = {10**70}": f"'title' is {'1' + 56 * '0'}…; it should be text.",
    f"budgets = '{70 * 'x'}'": f"'budgets' is '{57 * 'x'}…'; it should be a list.",
    '[roles]\n"a\\nb" = [1]': "'a b' is not a role; there are train, validation, selection, audit, evaluation.",
    "[strong]\nsearch = [1]": "'strong.search' has none of the study's 'budgets', so nothing could be compared; add "
    "some.",
    "[cohort]\nkind = 'synthetik'": "'cohort.kind' is 'synthetik'; did you mean 'synthetic'?",
    "[cohort]\nkind = 'mimic'": "'cohort.kind' is 'mimic'; there are ptbxl, synthetic.",
    "[cohort]\nkind = 3": "'cohort.kind' is 3; there are ptbxl, synthetic.",
    "[cohort]\nkind = 'synthetic'": "A synthetic cohort needs 'cohort.records'; say how many.",
    "[policies]\nfirst_lead = 'AVR'": "'policies.first_lead' is 'AVR', which is no lead; did you mean 'aVR'?",
    # roles
    "[roles]\ntrain = [1, 11]": "The train role names fold 11; folds are numbered 1 to 10.",
    "[roles]\ntrian = [1]": "'trian' is not a role; did you mean 'train'?",
    "[roles]\nzebra = [1]": "'zebra' is not a role; there are train, validation, selection, audit, evaluation.",
    "[roles]\ntrain = [1]\naudit = [1]": "Fold 1 is named twice, by train and by audit; give it one role.",
    "[roles]\ntrain = []": "The train role names no fold; give it at least one, or leave the role out.",
    "[roles]": "The plan names no role; a cohort needs at least one.",
    # hypotheses
    hypothesis(evaluater="'strong'", evaluator=""): "'hypotheses.2.evaluater' is not part of a plan; did you mean "
    "'evaluator'?",
    hypothesis(why="'because'"): "'hypotheses.2.why' is not part of a plan; there are level, quantity, policies, "
    "evaluator, baseline, reference, budgets, metrics, expected.",
    hypothesis(level=""): "'hypotheses.2.level' is missing; add it.",
    hypothesis(level="'primery'"): "'hypotheses.2.level' is 'primery'; did you mean 'primary'?",
    hypothesis(quantity="'D'"): "'hypotheses.2.quantity' is 'D'; there are interaction, contrast, paired.",
    hypothesis(policies="['mga', 'strong-mg']"): "'hypotheses.2.policies.2' is 'strong-mg'; did you mean 'strong-mga'?",
    hypothesis(policies="'mga'"): "'hypotheses.2.policies' is 'mga'; it should be a list.",
    hypothesis(policies="[]"): "'hypotheses.2.policies' is a list: list should have at least 1 item, not 0.",
    hypothesis(policies="[['mga']]"): "'hypotheses.2.policies.1' is a list; did you mean 'mga'?",
    hypothesis(policies="['oracle']"): "'hypotheses.2.policies.1' is 'oracle'; there are ecg-on-demand, mga, ccga, "
    "strong-mga, strong-mga-controlled-state, cohort-state, random-subset.",
    hypothesis(evaluator="'stronk'"): "'hypotheses.2.evaluator' is 'stronk'; did you mean 'strong'?",
    hypothesis(baseline="'controled'"): "'hypotheses.2.baseline' is 'controled'; did you mean 'controlled'?",
    hypothesis(reference="'mask-robust'"): "'hypotheses.2.reference' is 'mask-robust'; there are own, controlled, "
    "controlled-unbalanced, controlled-recalibrated, strong.",
    hypothesis(metrics="['nll', 'bries']"): "'hypotheses.2.metrics.2' is 'bries'; did you mean 'brier'?",
    hypothesis(metrics="['auroc']"): "'hypotheses.2.metrics.1' is 'auroc'; there are nll, brier, ece.",
    hypothesis(expected="'above'"): "'hypotheses.2.expected' is 'above'; did you mean 'above zero'?",
    hypothesis(budgets="[4, 5]"): "'hypotheses.2.budgets' has 5, which is none of the study's 'budgets'; take 2, 3, 4, "
    "6, 8.",
    hypothesis(budgets="[0]"): "'hypotheses.2.budgets.1' is 0: it should be greater than or equal to 1.",
    hypothesis(budgets="['4']"): "'hypotheses.2.budgets.1' is '4'; it should be a whole number.",
    hypothesis(baseline=""): "'hypotheses.2.baseline' belongs to an interaction, to no other quantity; name the "
    "evaluator to compare with.",
    hypothesis(quantity="'contrast'"): "'hypotheses.2.baseline' belongs to an interaction, to no other quantity; leave "
    "it out.",
    hypothesis(quantity="'paired'", baseline=""): "'hypotheses.2.policies' has 1, but a paired comparison is of two; "
    "name two.",
    hypothesis(quantity="'paired'", baseline="", policies="['mga', 'ccga', 'cohort-state']"): "'hypotheses.2.policies' "
    "has 3, but a paired comparison is of two; name two.",
    hypothesis(quantity="'paired'", baseline="", policies="['mga', 'mga']"): "'hypotheses.2.policies' names a policy "
    "twice; name each once.",
    hypothesis(
        baseline="'strong'"
    ): "'hypotheses.2.baseline' is the evaluator itself, so the interaction is zero; name "
    "the evaluator to compare with.",
}


@pytest.mark.parametrize("content", WRONG)
def test_wrong_plans_name_what_is_wrong(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(content)
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    assert str(caught.value) == f"{path}: {WRONG[content]}"


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
        if inner and name != "hypotheses":
            yield from whole_numbers(inner[0], (*path, name))
        elif int in kinds or any(int in get_args(kind) for kind in kinds if get_args(kind)):
            yield (*path, name)


@pytest.mark.parametrize("path", [p for p in whole_numbers(Plan) if len(p) > 1], ids=".".join)
def test_every_number_that_a_plan_takes_fits_into_a_receipt(tmp_path: Path, path: tuple[str, ...]) -> None:
    """Receipts are canonical JSON, which has no whole number of 2^53 or more: such a plan is refused as it is read."""
    file, [*tables, key] = tmp_path / "plan.toml", path
    several = 4 if key == "widths" else 1
    for number in (2**53, 2**63 - 1, 2**64):
        value = [number] * several if key in ("seeds", "widths", "search") else number
        file.write_text(f"[{'.'.join(tables)}]\n{key} = {value}\n")
        with pytest.raises(PlanError, match="it should be less than or equal to"):
            read_plan(file)


def test_the_largest_seeds_that_a_plan_takes_are_kept_by_receipts(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(f"[strong]\nseeds = [{2**53 - 1}]\n[bootstrap]\nseed = {2**53 - 1}\n")
    settings = read_plan(file).model_dump()
    assert json.loads(rfc8785.dumps(settings)) == json.loads(json.dumps(settings))


def test_budgets_are_sorted_and_named_once(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text("budgets = [4, 2, 4]\n[strong]\nsearch = [2, 2, 1]\n")
    plan = read_plan(file)
    assert (plan.budgets, plan.strong.search) == ([2, 4], [1, 2])
    names = [stage.name for stage in stages(plan, [])]
    assert len(names) == len(set(names))


def test_missing_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(PlanError, match="cannot be read: Is a directory"):
        read_plan(tmp_path)
