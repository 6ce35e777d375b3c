"""The documents: what their code looks at, and that the numbers in their sentences are those of the tables."""

import ast
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.contract import COHORTS
from leadwise.evaluators.contract import EVALUATORS
from leadwise.policies.contract import POLICIES, Material, check_policy
from leadwise.registry import Registry
from leadwise.run.plan import read_plan
from leadwise.run.results import TABLES, Table

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RESULTS = ROOT / "docs" / "results"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.stem)
def test_no_example_looks_at_the_audit_role(document: Path) -> None:
    """Only a run looks at it, and leaves a receipt; nobody should learn otherwise from an example."""
    examples = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
    assert not [line for example in examples for line in example.splitlines() if "audit" in line]


def told(number: float) -> str:
    return f"{number:.4f}".replace("-", "−")


@pytest.mark.parametrize("other", ["random-subset", "cohort-state"])
def test_results_tell_what_the_controls_show(other: str) -> None:
    text = " ".join((ROOT / "docs" / "results.md").read_text().split())
    paired = pd.read_csv(RESULTS / "paired.csv")
    same = paired.query("evaluator == 'strong' and policy_a == 'ecg-on-demand' and policy_b == @other")
    assert sorted(same["k"].unique()) == [2, 3, 4, 6, 8]
    for row in same.query("metric == 'nll'").itertuples():
        assert f"[{told(row.lo)}, {told(row.hi)}]" in text  # type: ignore[arg-type]
        assert told(row.delta) in text  # type: ignore[arg-type]
    if other == "random-subset":
        apart = same[(same["lo"] > 0) | (same["hi"] < 0)]
        assert apart[["metric", "k"]].to_numpy().tolist() == [["ece", 2]], "the sentence names this one cell"


def test_results_tell_that_four_adaptive_leads_beat_twelve() -> None:
    text = " ".join((ROOT / "docs" / "results.md").read_text().split())
    contrasts, quality = pd.read_csv(RESULTS / "contrasts.csv"), pd.read_csv(RESULTS / "evaluator_quality.csv")
    of_four = contrasts.query("policy == 'ecg-on-demand' and evaluator == 'controlled' and k == 4 and metric == 'nll'")
    of_all = quality.query("role == 'audit' and evaluator == 'controlled' and metric == 'nll'")
    (four,) = of_four["adaptive"].unique()
    (twelve,) = of_all.loc[of_all["leads"].str.count(" ") == 11, "value"]
    assert four < twelve
    assert f"NLL {told(four)} with ECG-on-Demand's four against {told(twelve)}" in text


# the architecture ----------------------------------------------------------------------------------------------------

PACKAGE = ROOT / "src" / "leadwise"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_architecture_names_every_file_once_and_no_other() -> None:
    named = re.findall(r"^\| `([\w/]+\.py)` \|", ARCHITECTURE, re.MULTILINE)
    assert sorted(named) == sorted(str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`([\w/]+\.py:[\w.]+)`", ARCHITECTURE))))
def test_the_way_of_a_record_goes_over_functions_that_exist(place: str) -> None:
    file, _, name = place.partition(":")
    body = ast.parse((PACKAGE / file).read_text()).body
    for step in name.split("."):
        (found,) = [each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == step]
        body = found.body


# runs ----------------------------------------------------------------------------------------------------------------

RUNS = (ROOT / "docs" / "runs.md").read_text()


@pytest.mark.parametrize("registry", [COHORTS, EVALUATORS, POLICIES], ids=lambda registry: registry.what)
def test_runs_name_every_kind_and_its_settings(registry: Registry[Any]) -> None:
    for name in registry.names():
        (row,) = re.findall(rf"^\| `{name}` \|(.*)\|", RUNS, re.MULTILINE)
        as_before = "the same" in row or "as above" in row
        assert [each for each in registry.find(name).Settings.model_fields if f"`{each}`" not in row] == [] or as_before


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_runs_name_every_table_and_its_columns(table: Table) -> None:
    if table.large:
        assert f"`{table.name}` (" in RUNS
        return
    row = next(line for line in RUNS.splitlines() if line.startswith("| `") and f"`{table.name}`" in line.split("|")[1])
    told = RUNS if table.name == "published" else row
    assert not [column for column in table.columns if not re.search(rf"\b{column}\b", told)]


def test_runs_show_a_plan_and_a_kind_that_work(
    small_cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest, further, _ = re.findall(r"```toml\n(.*?)```", RUNS, re.DOTALL)
    (module,) = re.findall(r"```python\n(.*?)```", RUNS, re.DOTALL)
    (tmp_path / "mymodule.py").write_text(module)
    (tmp_path / "plan.toml").write_text(smallest + further)
    monkeypatch.syspath_prepend(tmp_path)
    plan = read_plan(tmp_path / "plan.toml")
    assert list(plan.policies) == ["greedy", "last"]
    train, validation = small_cohort["train"], small_cohort["validation"]
    material = Material("last", train, validation, plan.budgets, ["aVR"])
    policy = POLICIES.find(plan.policies["last"].kind).make(plan.policies["last"].settings, material)
    check_policy(policy, train)
    policy.save(tmp_path / "last")
    assert vars(POLICIES.find("mymodule:LastFirst").load(tmp_path / "last", {}, {})) == vars(policy)
