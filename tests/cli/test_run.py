"""leadwise run, status, verify and evaluate: what is said, and with which exit code."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cli.answers import Verb, said
from leadwise.run import stage
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import Ledger
from leadwise.run.plan import read_plan
from leadwise.run.stage import Runner
from leadwise.study.execute import find_plan
from leadwise.study.graph import stages
from runs import PLAN


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan for PTB-XL."""
    path = tmp_path / "plan.toml"
    path.write_text(find_plan("ptbxl").read_text().replace("batch = 128", "batch = 8"))
    return path


def test_ptbxl_must_be_somewhere(leadwise: Verb, plan: Path, tmp_path: Path) -> None:
    answer = leadwise("run", plan, "--out", tmp_path / "run")
    said(answer, "The plan reads a cohort ('ptbxl'); say where it is with --cohort DIR.")


def test_a_cohort_that_is_not_there(leadwise: Verb, plan: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    said(leadwise("run", plan, "--out", tmp_path / "run", "--cohort", nowhere), f"There is no directory {nowhere}; ")
    (tmp_path / "empty").mkdir()
    said(leadwise("run", plan, "--out", tmp_path / "run", "--cohort", tmp_path / "empty"), str(tmp_path / "empty"))


def test_wrong_input_leaves_nothing_behind(leadwise: Verb, plan: Path, tmp_path: Path) -> None:
    leadwise("run", plan, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_plan_that_makes_its_own_recordings_reads_no_others(
    leadwise: Verb, pristine_tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for more in ((), ("--dry-run",)):
        answer = leadwise("run", "demo", "--cohort", pristine_tree, "--out", tmp_path / "run", *more)
        said(answer, f"The plan makes its own recordings and would not read {pristine_tree}; leave --cohort out")
    asked: list[object] = []
    monkeypatch.setattr("leadwise.study.forecast.forecast", lambda *words: asked.append(words[2]) or [])
    monkeypatch.setenv("LEADWISE_PTBXL", str(pristine_tree))
    assert leadwise("run", "demo", "--out", tmp_path / "run", "--dry-run")[0] == 0
    assert leadwise("run", "ptbxl", "--out", tmp_path / "run", "--dry-run")[0] == 0
    assert asked == [None, pristine_tree], "the variable says where PTB-XL is, for plans that read it"


def test_a_plan_that_does_not_ship(leadwise: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = leadwise("run", "dmo", "--out", tmp_path / "run")
    said(answer, "There is no plan 'dmo'; name a TOML file, or demo or ptbxl, which ship by name.")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    assert find_plan("demo").name == "demo.toml", "a directory, as that of an earlier run, is no plan"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "demo", "--out", "run"),
        ("evaluate", "bundle", "--cohort", "c", "--out", "o"),
    ],
)
def test_ctrl_c_says_how_to_go_on(
    leadwise: Verb, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    for name in ("run_study", "evaluate_bundle"):
        monkeypatch.setattr(f"leadwise.study.execute.{name}", interrupted)
    assert leadwise(*words) == (130, "", "leadwise: Interrupted; the same command goes on where it was.\n")


def test_a_synthetic_cohort_without_a_size(leadwise: Verb, plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN.replace(", records = 160", ""))
    said(leadwise("run", plan, "--out", tmp_path / "run"), "'cohort.records' is missing; add it.")


def test_a_plan_that_is_wrong(leadwise: Verb, plan: Path, tmp_path: Path) -> None:
    said(leadwise("run", tmp_path / "none.toml", "--out", tmp_path / "run"), "cannot be read: No such file")
    plan.write_text("budget = [2]\n")
    said(leadwise("run", plan, "--out", tmp_path / "run"), "'budget' is not part of a plan; did you mean 'budgets'?")
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_being_written(leadwise: Verb, plan: Path, pristine_tree: Path, tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run").writing():
        said(
            leadwise("run", plan, "--cohort", pristine_tree, "--out", tmp_path / "run"),
            f"Another process is writing the run {tmp_path / 'run'};",
        )


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_directory_that_is_read_only(leadwise: Verb, plan: Path, pristine_tree: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    for run in (locked, locked / "run", locked / "deep" / "run"):
        answer = leadwise("run", plan, "--cohort", pristine_tree, "--out", run)
        said(answer, f"The run {run} cannot be written (Permission denied); make it writable, or name another direct")


def test_a_file_where_a_directory_should_be(leadwise: Verb, plan: Path, pristine_tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said(leadwise("run", plan, "--cohort", pristine_tree, "--out", tmp_path / "file"), "File exists.")
    said(leadwise("run", plan, "--cohort", pristine_tree, "--out", tmp_path / "file" / "run"), "Not a directory.")


def test_a_ledger_that_was_changed_stops_the_run(
    leadwise: Verb, plan: Path, pristine_tree: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "ledger.jsonl").write_text('{"event":"forged"}\n')
    said(leadwise("run", plan, "--out", run, "--cohort", pristine_tree), "ledger.jsonl, line 1: this is not a receipt")


def test_status(leadwise: Verb, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(plan, run / "plan.toml")
    clock = iter([0.0, 1234.5, 2000.0])
    monkeypatch.setattr(stage.time, "monotonic", lambda: next(clock))
    roles = {"train": "a", "validation": "b", "audit": "c"}
    runner = Runner(RunDirectory(run), Ledger(run / "ledger.jsonl"), roles, None)
    planned = {each.name: each for each in stages(read_plan(plan), list(roles))}
    runner.run(replace(planned["cohort"], make=lambda _work: None))
    with pytest.raises(ZeroDivisionError):
        runner.run(replace(planned["evaluator/controlled"], make=lambda _work: 1 / 0))
    code, out, err = leadwise("status", run, "--json")
    assert (code, err) == (0, "")
    rows = {row["stage"]: row for row in json.loads(out)}
    assert {name: rows[name]["state"] for name in ("cohort", "evaluator/controlled", "freeze", "score/audit")} == {
        "cohort": "done",
        "evaluator/controlled": "unfinished",
        "freeze": "to do",
        "score/audit": "to do",
    }
    assert "score/evaluation" not in rows
    assert rows["cohort"]["seconds"] == 1234.5
    code, out, _ = leadwise("status", run)
    assert code == 0
    assert "unfinished" in out
    assert "1,234.5" in out


def test_what_is_no_run(leadwise: Verb, tmp_path: Path) -> None:
    said(leadwise("status", tmp_path), "is no run: it has no plan.toml.")
    said(leadwise("verify", tmp_path), "is neither a run nor a bundle")
    answer = leadwise("evaluate", tmp_path, "--cohort", tmp_path, "--out", tmp_path / "out")
    said(answer, "is no frozen bundle: it has no bundle.json.")
    assert not (tmp_path / "out").exists()


def test_verify(leadwise: Verb, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for event in ("one", "two", "three"):
        ledger.add(event)
    assert leadwise("verify", tmp_path) == (0, f"{tmp_path} is what it says it is.\n", "")
    lines = (tmp_path / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "ledger.jsonl").write_bytes(lines[0] + lines[2])
    said(leadwise("verify", tmp_path), "ledger.jsonl, line 2: ")
