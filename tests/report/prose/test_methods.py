"""The methods follow the plan and the run: another setting, another sentence."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leadwise.cohort.identity import Identity
from leadwise.report.prose.methods import describe_methods
from leadwise.run.contents import RunContents
from leadwise.run.history import History
from leadwise.run.ledger import End, Receipt
from leadwise.run.plan import Plan
from runs import PLAN


@pytest.fixture(scope="module")
def contents(finished: Path) -> RunContents:
    return RunContents.read(finished)


def with_plan(contents: RunContents, changed: Mapping[str, Any]) -> RunContents:
    """The run, as if some settings had been others; keys are paths such as "evaluators.strong.recipe.crop"."""
    said = tomllib.loads(PLAN)
    for path, value in changed.items():
        *parts, last = path.split(".")
        part = said
        for name in parts:
            part = part.setdefault(name, {})
        part[last] = value
    return replace(contents, plan=Plan.model_validate(said))


def section(contents: RunContents, heading: str) -> str:
    return dict(describe_methods(contents))[heading]


def test_every_section_is_prose(contents: RunContents) -> None:
    found = describe_methods(contents)
    assert len(dict(found)) == len(found) == 8 + len(contents.plan.evaluators) - 1
    for heading, text in found:
        assert heading
        assert text.endswith(".")
        assert text == " ".join(text.split())
        for sign in ("nan", "None", "{", "  ", "..", ", ,", "( "):
            assert sign not in text, heading


@pytest.mark.parametrize(
    ("heading", "setting", "value", "said"),
    [
        ("Controlled evaluator", "evaluators.controlled.repeats", 1, "under 1 random mask (seed"),
        ("Controlled evaluator", "evaluators.controlled.strength", 0.25, "inverse penalty 0.25"),
        ("Controlled evaluator", "evaluators.controlled.clip", 2.5, "±2.5 deviations"),
        ("Controlled evaluator", "evaluators.controlled.seed", 99, "(seed 99)"),
        ("Strong evaluator", "evaluators.strong.seeds", [5, 6, 7], "3 seeds (5, 6 and 7)"),
        ("Strong evaluator", "evaluators.strong.seeds", [5], "trained once (seed 5)"),
        ("Strong evaluator", "evaluators.strong.widths", [1, 2, 3, 4], "widths 1, 2, 3 and 4"),
        ("Strong evaluator", "evaluators.strong.recipe.epochs", 31, "31 epochs"),
        ("Strong evaluator", "evaluators.strong.recipe.crop", 333, "333 samples"),
        ("Strong evaluator", "evaluators.strong.recipe.learning_rate", 0.5, "up to 0.5"),
        ("Strong evaluator", "evaluators.strong.recipe.mixing", 0.4, "blending of records (α = 0.4)"),
        ("Mask-robust evaluator", "evaluators.mask-robust.seeds", [44], "(seed 44)"),
        ("Mask-robust evaluator", "evaluators.mask-robust.recipe.batch", 17, "batches of 17"),
        ("Fixed references", "evaluators.strong.references", [1, 4], "strong evaluator were not searched at k = 2, so"),
        ("Policies", "policies.mga.states", 54321, "54,321 states"),
        ("Policies", "policies.ccga.neighbours", 33, "33 train states"),
        ("Policies", "policies.ecg-on-demand.hidden", 19, "19 units"),
        ("Policies", "policies.mga.own", 0.25, "25% come from"),
        ("Policies", "first_lead", "V3", "begin with V3, as the plan has it"),
        ("Policies", "budgets", [2, 3], "k = 2 or 3"),
        ("Inference", "bootstrap.replicates", 4321, "4,321 times"),
        ("Inference", "bootstrap.seed", 5, "seed 5)"),
    ],
)
def test_a_setting_of_the_plan_is_told(
    contents: RunContents, heading: str, setting: str, value: object, said: str
) -> None:
    assert said not in section(contents, heading)
    assert said in section(with_plan(contents, {setting: value}), heading)


@pytest.mark.parametrize(
    ("setting", "off", "said"),
    [
        ("shift", False, "rotation"),
        ("scaling", 0.0, "amplitude"),
        ("noise", 0.0, "noise"),
        ("averaging", 0.0, "running average"),
    ],
)
def test_what_a_recipe_does_not_do_is_not_told(contents: RunContents, setting: str, off: object, said: str) -> None:
    assert said in section(contents, "Strong evaluator")
    changed = with_plan(contents, {f"evaluators.strong.recipe.{setting}": off})
    assert said not in section(changed, "Strong evaluator")


def test_the_run_is_told(contents: RunContents) -> None:
    results = contents.results
    splits = results["splits"].set_index("role")
    cohort = section(contents, "Cohort")
    assert "a program made the recordings up (leadwise's dipole model 1, 160 records, seed 3)" in cohort
    assert "say nothing about patients" in cohort
    assert f"train (folds 1–6) {splits['records']['train']:.0f} records of" in cohort
    assert "CD, HYP, MI, NORM and STTC" in cohort
    seeds = results["seeds"]
    chosen = seeds[seeds["chosen"] & (seeds["role"] == "selection")].iloc[0]
    assert f"seed {chosen['seed']}, after epoch {chosen['epoch']}" in section(contents, "Strong evaluator")
    assert "The recipe is the same." in section(contents, "Mask-robust evaluator")
    assert "12 sets at k = 1, 66 sets at k = 2 and 495 sets at k = 4" in section(contents, "Fixed references")
    references = results["references"]
    best = references[
        (references["evaluator"] == "controlled") & (references["k"] == 1) & (references["metric"] == "nll")
    ]
    begins = f"begin with {best['leads'].iloc[0]}, the best single lead of the controlled evaluator"
    assert begins in section(contents, "Policies")
    for sha256 in results["resamples"]["sha256"]:
        assert sha256 in section(contents, "Inference")
    freeze = section(contents, "What was frozen, and when")
    assert contents.bundle.sha256 in freeze
    assert contents.history.head in freeze
    assert freeze.index("It was frozen at") < freeze.index("Scoring of the audit role")
    assert freeze.count("Computed with leadwise") == 1


def test_several_machines_are_all_told(contents: RunContents) -> None:
    *others, last = contents.history.receipts
    moved = last.model_copy(update={"software": last.software.model_copy(update={"threads": 64})})
    both = replace(contents, history=History([*others, moved]))
    assert section(both, "What was frozen, and when").count("Computed with leadwise") == 2


def test_real_recordings(contents: RunContents) -> None:
    ptbxl = Identity("ptbxl", None, {})
    real = replace(contents, cohort=ptbxl, made_on=ptbxl)
    assert section(real, "Cohort").startswith("The cohort is PTB-XL v1.0.3, twelve leads")
    assert "synthetic" not in " ".join(text for _, text in describe_methods(real))
    assert "(the publication's was aVR)" in section(real, "Policies"), "the tiny cohort has another best lead"
    assert "(the publication's was aVR)" not in section(contents, "Policies"), "nothing was published about this one"
    same = with_plan(real, {"first_lead": "aVR"})
    assert "publication's was" not in section(same, "Policies")


def test_shipped_weights_are_told(contents: RunContents) -> None:
    def without_history(receipt: Receipt) -> Receipt:
        if isinstance(receipt, End) and receipt.stage.startswith("evaluator/strong/seed-"):
            return receipt.model_copy(update={"outputs": {"evaluators.strong.safetensors": ""}})
        return receipt

    said = "It was not trained in this run"
    assert said not in section(contents, "Strong evaluator")
    taken = replace(contents, history=History(map(without_history, contents.history.receipts)))
    assert said in section(taken, "Strong evaluator")


def test_missing_tables_are_left_out(contents: RunContents) -> None:
    found = describe_methods(replace(contents, results={"contrasts": contents.results["contrasts"]}))
    text = " ".join(paragraph for _, paragraph in found)
    assert "nan" not in text
    assert "begin with the best single lead of the controlled evaluator" in text
    assert "Tried were" not in text
    assert "SHA-256 of" not in text
    partly = pd.DataFrame({"role": ["train"], "records": [5.0], "patients": [float("nan")]})
    assert "Its folds" not in section(replace(contents, results={"splits": partly}), "Cohort")


def test_what_is_made_alike_is_told_by_what_differs(contents: RunContents) -> None:
    assert section(contents, "Unbalanced controlled evaluator") == (
        "The unbalanced controlled evaluator is made like the controlled evaluator, but without class weights."
    )
    assert "the other half is what ECG-on-Demand and MGA chose" in section(contents, "Mask-robust evaluator")
    assert "Strong-MGA is made like MGA, but learns the NLL of the strong evaluator" in section(contents, "Policies")


def test_a_kind_that_nobody_knows_is_told_by_its_settings(contents: RunContents) -> None:
    entry = contents.plan.policies["mga"]
    stranger = entry.model_copy(update={"kind": "mine:Policy"})
    plan = contents.plan.model_copy(update={"policies": {"mine": stranger}})
    text = section(replace(contents, plan=plan), "Policies")
    assert "mine is of the kind mine:Policy, which this program did not bring along; its settings are target" in text
