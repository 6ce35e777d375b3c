"""The documents: what their code looks at, and that the numbers in their sentences are those of the tables."""

import ast
import re
from pathlib import Path

import pandas as pd
import pytest

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
