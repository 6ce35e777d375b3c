"""leadwise report and run --dry-run: what is said, what is made, and what is left alone."""

import json
import shutil
from pathlib import Path

import pytest

from cli.answers import Verb, said
from leadwise.run.ledger import Ledger
from leadwise.run.verify import verify
from leadwise.store import file_sha256
from runs import PLAN


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_lost_report_is_made_again(leadwise: Verb, run: Path) -> None:
    made = [*run.glob("figures/*"), *run.glob("tables/*"), run / "report.html"]
    before = {file: file_sha256(file) for file in made}
    for file in made:
        file.unlink()
    assert verify(run) != []
    code, out, err = leadwise("report", run)
    assert (code, out, err) == (0, f"The report is {run / 'report.html'}.\n", "")
    assert {file: file_sha256(file) for file in made} == before
    assert verify(run) == []


def test_a_run_without_results_has_no_report(leadwise: Verb, tmp_path: Path) -> None:
    said(leadwise("report", tmp_path), f"{tmp_path} is no run: it has no ledger.jsonl.")
    assert list(tmp_path.iterdir()) == []
    Ledger(tmp_path / "ledger.jsonl").add("begin", stage="cohort", key="a" * 64, inputs={})
    said(leadwise("report", tmp_path), f"{tmp_path} has no results yet; let the run come to its end first.")


def test_results_that_are_gone_or_cut(leadwise: Verb, run: Path) -> None:
    table, page = run / "results" / "contrasts.parquet", (run / "report.html").read_bytes()
    table.write_bytes(table.read_bytes()[:500])
    said(leadwise("report", run), f"{table} cannot be read (")
    table.unlink()
    said(leadwise("report", run), f"{table} is missing; run the plan again, which gathers the results anew")
    assert (run / "report.html").read_bytes() == page


def test_scoring_writes_over_no_bundle_and_no_run(leadwise: Verb, run: Path, tmp_path: Path) -> None:
    before = {file: file_sha256(file) for file in run.rglob("*") if file.is_file()}
    for out in (run, run / "bundle", run / "bundle" / "below"):
        words = ("evaluate", run / "bundle", "--cohort", run / "cohort-160-3", "--out", out)
        said(leadwise(*words), f"{out} holds the bundle or another run; name a new directory")
    elsewhere = shutil.copytree(run / "bundle", tmp_path / "elsewhere")
    said(leadwise("evaluate", elsewhere, "--cohort", run / "cohort-160-3", "--out", run), f"{run} holds the bundle or")
    assert {file: file_sha256(file) for file in run.rglob("*") if file.is_file()} == before


def test_a_changed_bundle_is_refused_before_anything_is_written(leadwise: Verb, run: Path, tmp_path: Path) -> None:
    gone = run / "bundle" / "policies" / "mga.safetensors"
    gone.unlink()
    words = ("evaluate", run / "bundle", "--cohort", run / "cohort-160-3", "--out", tmp_path / "out")
    said(leadwise(*words), f"The bundle does not open the seal: {gone} is missing.")
    assert not (tmp_path / "out").exists()


def test_a_missing_manifest_is_named(leadwise: Verb, run: Path) -> None:
    (run / "manifest.json").unlink()
    said(leadwise("verify", run), f"{run / 'manifest.json'} is missing, though the run has results; if it was")
    said(leadwise("status", run / "bundle"), "is a frozen bundle, not a run")


def test_a_forecast_for_a_file(leadwise: Verb, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said(leadwise("run", "demo", "--out", tmp_path / "file", "--dry-run"), "is a file; name a directory for the run.")


def test_a_forecast_for_people(leadwise: Verb, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    code, out, err = leadwise("run", tmp_path / "plan.toml", "--out", tmp_path / "run", "--dry-run")
    assert (code, err) == (0, "")
    for stage in ("recordings", "references/strong/2", "evaluator/mask-robust", "freeze", "score/evaluation", "report"):
        assert f" {stage} " in out
    assert out.splitlines()[-1].startswith("About ")
    assert not (tmp_path / "run").exists()


def test_a_forecast_for_programs(leadwise: Verb, run: Path) -> None:
    code, out, _ = leadwise("run", run / "plan.toml", "--out", run, "--dry-run", "--json")
    assert (code, json.loads(out)) == (0, [])


def test_shipped_plans_go_by_their_names(leadwise: Verb, tmp_path: Path) -> None:
    said(
        leadwise("run", "ptbxl", "--out", tmp_path / "run"),
        "The plan reads a cohort ('ptbxl'); say where it is with --cohort",
    )
    said(
        leadwise("run", "ptbxxl", "--out", tmp_path / "run"),
        "There is no plan 'ptbxxl'; name a TOML file, or demo or ptbxl",
    )


def test_the_shipped_bundle_goes_by_a_switch(leadwise: Verb, tmp_path: Path) -> None:
    code, out, err = leadwise("verify", "--pretrained")
    assert (code, err) == (0, "")
    assert out.endswith("pretrained is what it says it is.\n")
    said(leadwise("verify"), "Name a run or a bundle, or say --pretrained for the bundle that ships; one of the two.")
    said(leadwise("verify", tmp_path, "--pretrained"), "one of the two.")
    both = leadwise("evaluate", tmp_path, "--pretrained", "--cohort", tmp_path, "--out", tmp_path / "run")
    said(both, "one of the two.")
