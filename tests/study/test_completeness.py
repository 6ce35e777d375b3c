"""A bundle that lacks something, or has another study's plan, is not scored: one sentence says why."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from leadwise.errors import InputError, LeadwiseError
from leadwise.run.bundle import Bundle, pretrained_bundle
from leadwise.store import file_sha256, read_tensors, write_tensors
from leadwise.study.completeness import check_complete
from leadwise.study.execute import evaluate_bundle
from runs import PLAN

POLICY = "leadwise policy 1"
TABLES = ("splits", "evaluator_quality", "headroom", "seeds")


@pytest.fixture
def bundle(finished: Path, tmp_path: Path) -> Path:
    """A copy to be broken."""
    return Path(shutil.copytree(finished / "bundle", tmp_path / "bundle"))


def listed(bundle: Path) -> Bundle:
    """The bundle with a list of contents that fits what lies there now."""
    contents = json.loads((bundle / "bundle.json").read_text())
    there = {str(file.relative_to(bundle)): file for file in sorted(bundle.rglob("*.*")) if file.is_file()}
    files = {name: file_sha256(file) for name, file in there.items() if "/" in name or name == "plan.toml"}
    (bundle / "bundle.json").write_text(json.dumps(contents | {"files": files}))
    (bundle / "freeze.json").unlink(missing_ok=True)
    return Bundle(bundle)


def test_what_a_run_freezes_is_complete(finished: Path) -> None:
    check_complete(Bundle(finished / "bundle"))


def test_what_ships_is_complete() -> None:
    check_complete(Bundle(pretrained_bundle()))


@pytest.mark.parametrize(
    "name",
    [
        *(f"tables/{name}" for name in ("splits", "evaluator_quality", "headroom", "seeds")),
        "policies/cohort-state",
        "policies/ccga",
        "evaluators/mask-robust",
    ],
)
def test_a_missing_part_is_named(bundle: Path, name: str) -> None:
    (file,) = bundle.glob(f"{name}.*")
    file.unlink()
    kind = {"tables": "table", "policies": "policy", "evaluators": "evaluator"}[name.split("/")[0]]
    with pytest.raises(InputError, match=f"^{bundle} lacks the {kind} {file.stem}, which its plan makes; take the "):
        check_complete(listed(bundle))


def test_a_missing_column_is_named(bundle: Path) -> None:
    file = bundle / "tables" / "splits.parquet"
    pd.read_parquet(file).drop(columns="patients").to_parquet(file)
    with pytest.raises(InputError, match=r"lacks the column 'patients' of its table splits; take the bundle from its"):
        check_complete(listed(bundle))


NUMBERS, FINITE = "has something else than finite numbers in the column", [float("nan"), float("inf"), "0.5", "x", None]
WRONG = {
    **{("seeds", column, value): NUMBERS for column in ("epoch", "value") for value in ("x", float("inf"))},
    **{("evaluator_quality", "value", value): NUMBERS for value in FINITE},
    **{("headroom", column, value): NUMBERS for column in ("value", "k") for value in FINITE},
    ("splits", "records", "x"): NUMBERS,
    ("splits", "records", 1.5): NUMBERS,
    ("splits", "prevalence_MI", "x"): NUMBERS,
    ("seeds", "chosen", "x"): "has something else than true and false in the column",
    ("headroom", "evaluator", 3): "has something else than text in the column",
    **{(name, "role", "x"): "has the x role in its table" for name in TABLES},
}


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_does_not_belong_into_a_table_is_named(bundle: Path, wrong: tuple[str, str, Any]) -> None:
    name, column, value = wrong
    (file,) = (bundle / "tables").glob(f"{name}.*")
    if file.suffix == ".csv":
        frame = pd.read_csv(file).astype({column: object})
        frame.loc[0, column] = value
        frame.to_csv(file, index=False)
    else:
        pd.read_parquet(file).assign(**{column: value}).to_parquet(file)
    with pytest.raises(InputError, match=f"^{bundle} {WRONG[wrong]}.*{name}.*; take the bundle from its run again"):
        check_complete(listed(bundle))


def test_a_file_that_holds_another_evaluator_is_named(bundle: Path) -> None:
    evaluators = bundle / "evaluators"
    shutil.copyfile(evaluators / "controlled.safetensors", evaluators / "controlled-unbalanced.safetensors")
    with pytest.raises(InputError, match="has controlled in the place of the evaluator controlled-unbalanced; take"):
        check_complete(listed(bundle))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("repeats = 2", "repeats = 3", "made with repeats 2, and the plan says 3"),
        (
            "widths = [4, 4, 8, 8]",
            "widths = [4, 4, 8, 16]",
            r"with widths \[4, 4, 8, 8\], and the plan says \[4, 4, 8, 16\]",
        ),
        (
            "seeds = [1, 2]",
            "seeds = [2]",
            r"the strong evaluator was made with seeds \[1, 2\], and the plan says \[2\]",
        ),
        ("budgets = [2, 4]", "budgets = [2]", r"with budgets \[2, 4\], and the plan says \[2\]"),
        ("states = 120", "states = 130", "with states 120, and the plan says 130"),
        (
            "references = [1, 2, 4]",
            "references = [1, 2, 4, 6]",
            "lacks references of the controlled evaluator for k = 6",
        ),
    ],
)
def test_another_plan_is_named(bundle: Path, before: str, after: str, said: str) -> None:
    (bundle / "plan.toml").write_text(PLAN.replace(before, after))
    with pytest.raises(InputError, match=said):
        check_complete(listed(bundle))


def test_a_damaged_table_is_named(bundle: Path) -> None:
    file = bundle / "tables" / "splits.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InputError, match=rf"^{file} cannot be read \(.*\); take the bundle from its run again\.$"):
        check_complete(listed(bundle))


def test_a_table_that_would_not_fit_into_memory_is_named(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", lambda _: 2**10)
    file = bundle / "tables" / "headroom.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"k": pyarrow.array([4] * 200_000)}), file)
    assert file.stat().st_size < 2**13
    with pytest.raises(InputError, match=rf"{file} with 200,000 rows would take about .* of memory"):
        _ = listed(bundle).tables


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, _: facts.pop("target"),
        lambda facts, _: facts.update(target=None),
        lambda facts, _: facts.update(state_evaluator=[]),
        lambda facts, _: facts.update(target={"name": ["strong"], "sha256": ""}),
        lambda facts, _: facts.update(settings=None),
        lambda _, tensors: tensors.clear(),
        lambda _, tensors: tensors.update({name: tensor[:0] for name, tensor in tensors.items()}),
    ],
)
@pytest.mark.parametrize("name", ["ccga", "mga"])
def test_a_policy_that_is_not_whole_is_named(bundle: Path, name: str, change: Callable[..., object]) -> None:
    file = bundle / "policies" / f"{name}.safetensors"
    tensors, facts = read_tensors(file, POLICY)
    change(facts, tensors)
    write_tensors(file, tensors, facts.pop("format"), facts)
    with pytest.raises(LeadwiseError, match=str(file)):
        check_complete(listed(bundle))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (PLAN + "\n[roles]\ntrain = [1]\nholdout = [2]\n", "'holdout' is not a role"),
        (PLAN.replace("replicates = 20", "replicates = 9_000_000_000"), "would take about .* of memory"),
    ],
    ids=["unknown role", "too much memory"],
)
def test_a_plan_that_cannot_be_is_refused_before_anything_is_written(
    finished: Path, bundle: Path, tmp_path: Path, plan: str, said: str
) -> None:
    (bundle / "plan.toml").write_text(plan)
    listed(bundle)
    with pytest.raises(LeadwiseError, match=said):
        evaluate_bundle(bundle, finished / "cohort-160-3", tmp_path / "out", "audit")
    assert not (tmp_path / "out").exists()
