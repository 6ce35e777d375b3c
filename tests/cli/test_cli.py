"""The command line: what is printed, where, and with which exit code."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from leadwise.cli import main, verbs
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.synthetic import _write_record
from leadwise.cohort.waveforms import MISSING
from leadwise.evaluators.contract import EVALUATORS, Material
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.leads import LEADS
from leadwise.registry import Settings
from leadwise.run import bundle
from leadwise.study.execute import find_plan


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, str, str]:
    """Run ``leadwise WORDS`` in this process; returns exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["leadwise", *map(str, words)])
    with pytest.raises(SystemExit) as exited:
        main()
    out, err = capsys.readouterr()
    code = exited.value.code
    return code if isinstance(code, int) else 0, out, err


@pytest.fixture
def leadwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    return lambda *words: run(capsys, monkeypatch, *words)


def test_version(leadwise) -> None:
    assert leadwise("--version") == (0, "leadwise 0.1.0\n", "")


def test_info(leadwise) -> None:
    code, out, _ = leadwise("info", "--json")
    facts = json.loads(out)
    assert code == 0
    assert {"versions", "cpu", "devices", "caches"} <= set(facts)
    assert facts["cpu"]["cores"] == os.cpu_count()
    assert "numpy" in leadwise("info")[1]


def test_synth_check_and_pictures(leadwise, tmp_path: Path) -> None:
    tree, out = tmp_path / "cohort", tmp_path / "out"
    assert leadwise("data", "synth", tree, "--records", 150, "--seed", 5)[0] == 0
    code, text, err = leadwise("data", "check", tree, "--out", out)
    assert code == 0
    assert err == ""
    assert "150 records" in text
    assert "validation" in text
    written = json.loads((out / "check.json").read_text())
    code, text, _ = leadwise("data", "check", tree, "--json")
    assert json.loads(text) == written
    assert {"folds", "records", "patients", "all_zero", "prevalence"} == set(written["roles"]["train"])
    assert written["roles"]["evaluation"]["folds"] == [8]
    pictures = sorted(path.name for path in out.glob("ecg-*.png"))
    assert pictures == [f"ecg-{label}.png" for label in ("CD", "HYP", "MI", "NORM", "STTC")]


def test_a_role_without_records_is_said(leadwise, tree: Path) -> None:
    table = tree / "ptbxl_database.csv"
    head, *rows = table.read_text().splitlines(keepends=True)
    table.write_text(head + "".join(row for row in rows if ",8,records100" not in row))
    code, text, _ = leadwise("data", "check", tree)
    assert code == 0
    assert "No record for the evaluation role: nothing here is in fold 8." in text


def test_roles_from_a_plan(leadwise, tree: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    whole = find_plan("demo").read_text()
    plan.write_text(f"roles = {{train = [1, 2], audit = [3]}}\n{whole}")
    _, text, _ = leadwise("data", "check", tree, "--plan", plan, "--json")
    assert list(json.loads(text)["roles"]) == ["train", "audit"]


def test_references(leadwise, pristine_tree: Path) -> None:
    code, text, _ = leadwise("references", "--cohort", pristine_tree, "--k", 3, "--json")
    found = json.loads(text)
    assert code == 0
    assert found["candidates"] == 220
    for rows in found["best"].values():
        assert len(rows) == 10
        assert rows[0]["margin"] == 0
        assert [row["margin"] for row in rows] == sorted(row["margin"] for row in rows)
    assert not found["shipped"]
    code, text, _ = leadwise("references", "--cohort", pristine_tree, "--k", 3)
    assert code == 0
    assert found["best"]["nll"][0]["leads"] in text
    assert "6-lead" in text


class Counting:
    """The controlled evaluator without its shortcut, so that every lead set is read; may give up after some."""

    name, read, patience = "counting", 0, 10**9

    def __init__(self, evaluator: LogisticEvaluator) -> None:
        self.evaluator = evaluator
        self.labels, self.sampling_rate, self.sha256 = evaluator.labels, evaluator.sampling_rate, evaluator.sha256

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        if self.read >= self.patience:
            raise KeyboardInterrupt
        Counting.read += 1
        return self.evaluator.probabilities(signals, masks)

    def save(self, path: Path) -> None:
        self.evaluator.save(path)


class CountingKind:
    """The kind of it."""

    Settings = Settings

    @classmethod
    def make(cls, _settings: Settings, material: Material) -> Counting:
        return Counting(LogisticEvaluator().fit(material.train))

    @classmethod
    def load(cls, path: Path, _evaluators: object) -> Counting:
        return Counting(LogisticEvaluator.load(path))


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    monkeypatch.setattr(EVALUATORS, "_kinds", EVALUATORS._kinds | {"counting": CountingKind})
    monkeypatch.setattr(Counting, "read", 0)
    return Counting


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """The published plan, with one evaluator more."""
    place = tmp_path / "plan.toml"
    place.write_text(find_plan("ptbxl").read_text() + '\n[evaluators.counting]\nkind = "counting"\n')
    return place


def test_references_are_searched_for_one_budget_and_an_interrupted_search_goes_on(
    leadwise, pristine_tree: Path, counting: type[Counting], plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("references", "--cohort", pristine_tree, "--k", 2, "--plan", plan, "--evaluator", "counting", "--json")
    monkeypatch.setattr(counting, "patience", 30)
    assert leadwise(*words)[0] == 130
    monkeypatch.setattr(counting, "patience", 10**9)
    code, text, _ = leadwise(*words)
    assert code == 0
    assert counting.read == 66, "every set of two leads is read once, and no other"
    assert leadwise(*words)[1] == text
    assert counting.read == 66, "what was searched is kept"
    whole = json.loads(leadwise(*words[:-2], "controlled", "--json")[1])
    found = json.loads(text)
    for metric, rows in found["best"].items():
        np.testing.assert_allclose([row["value"] for row in rows], [row["value"] for row in whole["best"][metric]])
    leadwise(*words[:4], 1, *words[5:])
    assert counting.read == 66 + 12, "another budget is searched in the same file"


@pytest.mark.parametrize("evaluator", ["controlled", "counting"])
def test_clinical_sets_of_other_sizes_have_no_rank_and_a_value_where_it_is_cheap(
    leadwise, pristine_tree: Path, counting: type[Counting], plan: Path, evaluator: str
) -> None:
    words = ("references", "--cohort", pristine_tree, "--k", 3, "--plan", plan, "--evaluator", evaluator)
    rows = json.loads(leadwise(*words, "--json")[1])["clinical"]
    assert [row["name"] for row in rows] == ["12-lead", "6-lead", "4-lead", "3-lead", "2-lead"]
    text = leadwise(*words)[1]
    for row in rows:
        searched = row["k"] == 3
        assert (row["nll_rank"] is not None, row["of"]) == ((True, 220) if searched else (False, None))
        assert (row["nll"] is not None) == (searched or evaluator == "controlled")
        k = row["k"]
        sentence = f"{row['name']} has no rank: sets of {k} leads were not searched (--k {k} does).\n"
        assert (sentence in text) == (not searched)
    assert counting.read <= 220


def altered(tree: Path, change: Callable[[np.ndarray], np.ndarray]) -> Path:
    """Rewrite every recording of a tree, (12, t), as ``change`` makes it."""
    for number, file in enumerate(sorted((tree / "records100").rglob("*.dat")), start=1):
        _write_record(tree, number, change(np.fromfile(file, "<i2").reshape(-1, 12).T.copy()))
    return tree


def without_avr(signal: np.ndarray) -> np.ndarray:
    signal[LEADS.index("aVR")] = MISSING
    return signal


def test_sets_are_found_where_no_record_has_avr(leadwise, tree: Path) -> None:
    words = ("references", "--cohort", altered(tree, without_avr), "--k")
    code, text, err = leadwise(*words, 3)
    assert (code, err) == (0, "")
    assert text.startswith("165 sets of 3 leads, read by controlled")
    for name in ("12-lead", "6-lead"):
        assert f"{name} has no rank: some records lack one of its leads.\n" in text
    assert "4-lead has no rank: sets of 4 leads were not searched (--k 4 does).\n" in text
    assert leadwise(*words, 12) == (
        2,
        "",
        "leadwise: No record of the selection role has 12 leads; take a smaller budget.\n",
    )


def test_check_says_that_there_is_no_wave_anywhere(leadwise, tree: Path) -> None:
    text = leadwise("data", "check", altered(tree, np.zeros_like))[1]
    assert "zero: 120 found (record 1 I II III aVR aVL aVF V1 V2 V3 V4 V5 V6 0 throughout;" in text
    assert text.endswith("No record has a wave in any lead: these are not recordings of hearts.\n")


def test_the_search_that_ships_is_used_for_its_records_and_weights_only(
    leadwise, pristine_tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here the synthetic selection role stands for fold 10, and its controlled evaluator for the shipped one."""
    words = ("references", "--cohort", pristine_tree, "--k", 2, "--json")
    ours = json.loads(leadwise(*words)[1])
    cohort = read_ptbxl(pristine_tree)
    controlled, selection = LogisticEvaluator().fit(cohort["train"]), cohort["selection"]
    shutil.copytree(bundle.pretrained_bundle() / "references", tmp_path / "references")
    controlled.save(tmp_path / "evaluators" / "controlled.safetensors")
    monkeypatch.setattr(bundle, "pretrained_bundle", lambda: tmp_path)
    assert not json.loads(leadwise(*words)[1])["shipped"], "other records"
    monkeypatch.setattr(bundle, "SHIPPED_SELECTION", selection.fingerprint())
    theirs = json.loads(leadwise(*words)[1])
    assert theirs["shipped"]
    assert theirs["best"] != ours["best"]
    assert {row["name"]: row["of"] for row in theirs["clinical"]} == {
        "12-lead": None,
        "6-lead": 924,
        "4-lead": 495,
        "3-lead": 220,
        "2-lead": 66,
    }
    assert "as searched for the bundle that ships" in leadwise(*words[:-1])[1]
    assert not json.loads(leadwise(*words[:4], 5, "--json")[1])["shipped"], "a budget that does not ship"
    LogisticEvaluator(repeats=1).fit(cohort["train"]).save(tmp_path / "evaluators" / "controlled.safetensors")
    assert json.loads(leadwise(*words)[1]) == ours, "other weights"


@pytest.mark.parametrize("words", [("--k", 0), ("--k", 13), ("--k", 3, "--evaluator", "nobody")])
def test_references_that_cannot_be(leadwise, pristine_tree: Path, words) -> None:
    assert leadwise("references", "--cohort", pristine_tree, *words)[0] == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("data", "check", "/nowhere"), "leadwise: There is no directory /nowhere; "),
        (("data", "check", ".", "--plan", "none.toml"), "leadwise: The plan none.toml cannot be read"),
        (("bench", "nothing"), "leadwise: There is no benchmark 'nothing'"),
        (("data", "fetch", "somewhere", "--source", "nonsense"), "leadwise: "),
    ],
)
def test_wrong_input_is_one_sentence_and_code_2(leadwise, tmp_path, monkeypatch, words, sentence: str) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = leadwise(*words)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device"), "No space left on device."),
        (OSError(28, "No space left on device", "a.csv"), "a.csv: No space left on device."),
        (OSError(28, "No space left on device", "source", None, "target"), "target: No space left on device."),
        (
            OSError(28, "Error writing bytes.\n  Detail: [errno 28] No space"),
            "Error writing bytes. Detail: [errno 28] No space.",
        ),
        (OSError("1250 requested and 400 written"), "No space left on device."),
        (shutil.Error([("a", "b", "[Errno 30] Read-only file system: 'a' -> 'b'")]), "Read-only file system."),
        (OSError("something else\nin two lines."), "something else in two lines."),
    ],
    ids=str,
)
def test_what_the_system_says_is_one_sentence(leadwise, monkeypatch, error: OSError, sentence: str) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(verbs, "app", fails)
    assert leadwise("info") == (2, "", f"leadwise: {sentence}\n")


@pytest.mark.parametrize(
    "words", [("--no-progress", "info"), ("info", "--no-progress"), ("info", "--json", "--no-progress")]
)
def test_no_progress_stands_anywhere(leadwise, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setattr(verbs.progress, "enabled", True)
    assert leadwise(*words)[0] == 0
    assert not verbs.progress.enabled
    assert leadwise("info")[0] == 0
    assert verbs.progress.enabled


def test_pictures_of_a_check_go_into_no_foreign_directory(leadwise, pristine_tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for content in (None, "[]", '{"mine": 1}'):
        (out / "notes.txt").write_text("mine")
        if content:
            (out / "check.json").write_text(content)
        before = {file.name: file.read_text() for file in out.iterdir()}
        code, text, err = leadwise("data", "check", pristine_tree, "--out", out)
        assert (code, text) == (2, "")
        assert f"{out} is neither empty nor of an earlier check; name a new or an empty directory" in err
        assert {file.name: file.read_text() for file in out.iterdir()} == before
    for _ in range(2):
        assert leadwise("data", "check", pristine_tree, "--out", tmp_path / "new")[0] == 0


def test_unknown_verbs_and_options(leadwise) -> None:
    assert leadwise("frobnicate")[0] == 2
    assert leadwise("data", "check", "x", "--frobnicate")[0] == 2


def test_a_directory_that_cannot_be_written(leadwise, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = leadwise("data", "check", tree, "--out", tmp_path / "file" / "out")
    assert code == 2
    assert "Not a directory" in err


def test_warnings_are_one_line(leadwise, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("LEADWISE_CACHE", str(tmp_path / "blocked"))
    code, _, err = leadwise("data", "check", tree)
    assert code == 0
    assert err.startswith("leadwise: warning: The cohort is not cached and will be read anew each time (")
    assert err.count("\n") == 1


def test_ctrl_c_exits_with_130(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leadwise", "data", "synth", str(tmp_path / "cohort"), "--records", "20000"]
    # a shell's background job, as these tests may be, hands down that Ctrl-C is ignored
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("cohort/.leadwise-draft-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(tmp_path.glob("*cohort*")) == []


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    \"\"\"Ctrl-C while one module is imported.\"\"\"

    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from leadwise.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "rich", "leadwise.store", "leadwise.cli.verify"])
def test_ctrl_c_while_python_still_imports_exits_with_130_too(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
