"""Whatever was changed in a run, one sentence names it."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from leadwise.errors import InputError, LeadwiseError
from leadwise.findings.protocol import protocol_checks
from leadwise.report.page.provenance import hash_frames, software_frame
from leadwise.report.prose.methods import describe_methods
from leadwise.run.bundle import Bundle
from leadwise.run.contents import RunContents
from leadwise.run.ledger import End, Report, read_receipts
from leadwise.run.verify import verify
from leadwise.store import file_sha256
from leadwise.study.status import run_status
from receipts import chained, receipt_facts


@pytest.fixture(scope="module")
def run(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; every test puts back what it changes."""
    return Path(shutil.copytree(finished, tmp_path_factory.mktemp("verify") / "run"))


def flip(file: Path, at: int = -2) -> bytes:
    """Change one byte; returns what was there."""
    whole = file.read_bytes()
    at %= len(whole)
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    return whole


KINDS = {
    "evaluator": "artifacts/evaluator/controlled/*/controlled.safetensors",
    "network": "artifacts/evaluator/strong/*/strong.safetensors",
    "policy": "artifacts/policy/mga/*/mga.safetensors",
    "control": "artifacts/policy/random-subset/*/random-subset.safetensors",
    "references": "artifacts/references/strong/2/*/strong.csv",
    "history": "artifacts/evaluator/strong/seed-1/*/history.csv",
    "seeds": "artifacts/evaluator/strong/*/seeds.csv",
    "splits": "artifacts/cohort/*/splits.parquet",
    "frozen list": "artifacts/freeze/*/bundle.json",
    "scores": "artifacts/score/evaluation/*/records.parquet",
    "bundled evaluator": "bundle/evaluators/mask-robust.safetensors",
    "bundled policy": "bundle/policies/ccga.safetensors",
    "bundled references": "bundle/references/controlled.csv",
    "bundled plan": "bundle/plan.toml",
    "bundled table": "bundle/tables/headroom.parquet",
    "result": "results/contrasts.csv",
    "large result": "results/records.parquet",
    "figure": "figures/figure2.svg",
    "LaTeX table": "tables/interactions.tex",
    "report": "report.html",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["first", "middle", "last", "missing"])
def test_a_changed_byte_of_anything_is_named(run: Path, kind: str, how: str) -> None:
    (file,) = run.glob(KINDS[kind])
    assert verify(run) == []
    if how == "missing":
        whole = file.read_bytes()
        file.unlink()
    else:
        whole = flip(file, {"first": 0, "middle": file.stat().st_size // 2, "last": -1}[how])
    problems = verify(run)
    file.write_bytes(whole)
    assert len(problems) == 1
    assert problems[0].startswith(str(file))


def test_a_changed_list_of_the_bundle_is_named(run: Path) -> None:
    file = run / "bundle" / "bundle.json"
    whole = flip(file, file.read_bytes().index(b'"plan.toml": "') + 20)
    problems = verify(run)
    file.write_bytes(whole)
    assert f"{file} is not the one that was frozen." in problems


@pytest.mark.parametrize("field", ["key", "outputs", "inputs", "stage"])
def test_a_changed_list_of_outputs_is_named(run: Path, field: str) -> None:
    (file,) = run.glob("artifacts/policy/mga/*/outputs.json")
    whole = file.read_bytes()
    facts = json.loads(whole)
    if isinstance(facts[field], dict):
        facts[field] |= dict.fromkeys(list(facts[field])[:1], "0" * 64)
    else:
        facts[field] = "0" * 64
    file.write_text(json.dumps(facts, indent=1) + "\n")
    problems = verify(run)
    file.write_bytes(whole)
    assert any(problem.startswith(str(file.parent)) for problem in problems)


def ledger_without(run: Path, change: Callable[[list[bytes]], list[bytes]]) -> list[str]:
    """What is said about a run whose ledger's lines were changed."""
    file = run / "ledger.jsonl"
    whole = file.read_bytes()
    file.write_bytes(b"".join(change(whole.splitlines(keepends=True))))
    problems = verify(run)
    file.write_bytes(whole)
    return problems


def test_a_removed_receipt_is_named_the_last_one_included(run: Path) -> None:
    count = len(read_receipts(run / "ledger.jsonl"))
    for number in (0, 1, count // 2, count - 2):
        (problem,) = ledger_without(run, lambda lines, at=number: lines[:at] + lines[at + 1 :])
        assert f"line {number + 1}: " in problem
    problems = ledger_without(run, lambda lines: lines[:-1])
    said = f"has {count - 1} receipts, but the manifest knows {count}: the last were removed."
    assert any(said in problem for problem in problems)
    problems = ledger_without(run, lambda lines: [*lines[:-1], lines[-1][:-1]])
    assert any(said in problem for problem in problems), "a line without its end is no receipt"


def test_a_changed_receipt_is_named_the_last_one_included(run: Path) -> None:
    count = len(read_receipts(run / "ledger.jsonl"))

    def later(line: bytes) -> bytes:
        """The same receipt, an hour later, as canonical as before."""
        receipt = json.loads(line)
        return rfc8785.dumps(receipt | {"time": receipt["time"].replace("T0", "T1", 1) + "Z"}) + b"\n"

    for number in (0, count // 2, count - 2):
        (problem,) = ledger_without(run, lambda ls, at=number: [*ls[:at], later(ls[at]), *ls[at + 1 :]])
        assert f"line {number + 2}: the receipt before it was changed or removed" in problem
    problems = ledger_without(run, lambda lines: [*lines[:-1], later(lines[-1])])
    assert problems == [
        f"{run / 'manifest.json'} names a head that is not line {count} of {run / 'ledger.jsonl'}; one of the two was "
        "changed."
    ]


def test_a_last_receipt_without_an_event_is_named(run: Path) -> None:
    file = run / "ledger.jsonl"
    whole = file.read_bytes()
    *lines, last = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines) + last.replace(b'"event":', b'"evenu":'))
    try:
        assert any(f"line {len(lines) + 1}: " in problem for problem in verify(run))
    finally:
        file.write_bytes(whole)


def test_a_missing_artifact_is_named(run: Path, tmp_path: Path) -> None:
    for stage in ("evaluator/controlled", "freeze", "score/audit"):
        (place,) = (run / "artifacts" / stage).iterdir()
        shutil.move(place, tmp_path / "aside")
        problems = verify(run)
        shutil.move(tmp_path / "aside", place)
        assert problems == [f"{place} is missing, though its receipt is there."]
    assert verify(run) == []


def test_a_forged_artifact_needs_a_receipt(run: Path) -> None:
    (place,) = (run / "artifacts" / "policy" / "mga").iterdir()
    forged = Path(shutil.copytree(place, place.with_name("0" * 16)))
    facts = json.loads((forged / "outputs.json").read_text())
    (forged / "outputs.json").write_text(json.dumps(facts | {"key": "0" * 64}))
    problems = verify(run)
    shutil.rmtree(forged)
    assert problems == [f"{forged} has no receipt that says it was finished."]


@pytest.mark.parametrize("content", ["", "{", "{}", "[]"])
def test_a_damaged_manifest_is_named(run: Path, content: str) -> None:
    file = run / "manifest.json"
    whole = file.read_bytes()
    file.write_text(content)
    try:
        (problem,) = verify(run)
        assert problem.startswith(f"{file} is damaged (")
        assert problem.endswith("; leadwise report writes it again.")
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize("field", ["head", "bundle", "receipts", "results", "report"])
def test_a_manifest_that_says_something_else_is_named(run: Path, field: str) -> None:
    file = run / "manifest.json"
    whole = file.read_bytes()
    facts = json.loads(whole)
    other = {"receipts": 3, "results": facts["results"] | {"contrasts.csv": "0" * 64}}.get(field, "0" * 64)
    file.write_text(json.dumps(facts | {field: other}))
    problems = verify(run)
    file.write_bytes(whole)
    assert problems
    if field == "report":  # nothing else knows what the report was
        wrong = "'report' should be a valid dictionary"
        assert problems == [f"{file} is damaged ({wrong}); leadwise report writes it again."]
    else:
        assert all(problem.startswith(f"{file} ") for problem in problems), "no innocent file is blamed"


def test_looking_before_the_freeze_is_named(tmp_path: Path) -> None:
    from leadwise.run.ledger import Ledger

    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.add("begin", stage="cohort", key="a" * 64, inputs={})
    ledger.add("begin", stage="evaluation", key="b" * 64, inputs={})
    assert verify(tmp_path) == [
        f"{tmp_path / 'ledger.jsonl'}, line 2: the evaluation role was scored before the freeze."
    ]


def test_what_a_kill_leaves_is_not_called_tampering(run: Path) -> None:
    """Scratch of an unfinished stage, and a torn line after the head."""
    scratch = run / "artifacts" / "policy" / "mga" / f"{'1' * 16}.unfinished"
    scratch.mkdir()
    (scratch / "notes").write_text("")
    problems = ledger_without(run, lambda lines: [*lines, b'{"event":"be'])
    shutil.rmtree(scratch)
    assert problems == []


def test_a_draft_that_a_kill_left_is_not_called_tampering(run: Path) -> None:
    (place,) = (run / "artifacts" / "policy" / "mga").iterdir()
    draft = Path(shutil.copytree(place, place.with_name(f".{'1' * 16}.abcdef")))
    facts = json.loads((draft / "outputs.json").read_text())
    (draft / "outputs.json").write_text(json.dumps(facts | {"key": "1" * 64}))
    problems = verify(run)
    shutil.rmtree(draft)
    assert problems == []


def test_neither_run_nor_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is neither a run nor a bundle: it has no ledger\.jsonl and no bundle\.json"):
        verify(tmp_path)


# what an attacker may try -------------------------------------------------------------------------------------------


def kept(file: Path) -> Callable[[], None]:
    """Puts back what a file holds now."""
    whole = file.read_bytes()
    return lambda: file.write_bytes(whole) and None


def test_an_artifact_without_its_list_of_outputs_is_named(run: Path) -> None:
    (place,) = (run / "artifacts" / "policy" / "mga").iterdir()
    back = [kept(place / "outputs.json"), kept(place / "mga.safetensors")]
    (place / "outputs.json").unlink()
    (place / "mga.safetensors").write_text("something else")
    problems = verify(run)
    for each in back:
        each()
    assert problems == [f"{place / 'outputs.json'} is missing; run the plan again, and the stage will be done again."]


@pytest.mark.parametrize("other", ["references/controlled/4", "policy/mga"])
def test_artifacts_that_changed_places_are_named(run: Path, tmp_path: Path, other: str) -> None:
    """Between stages; a key alone changed is another place too."""
    (ours,), (theirs,) = ((run / "artifacts" / stage).iterdir() for stage in ("references/controlled/2", other))

    def swap() -> None:
        shutil.move(ours, tmp_path / "aside")
        shutil.move(theirs, ours)
        shutil.move(tmp_path / "aside", theirs)

    swap()
    problems = verify(run)
    swap()
    assert {f"{place / 'outputs.json'} is not what its receipt says." for place in (ours, theirs)} <= set(problems)
    moved = shutil.move(ours, ours.with_name("0" * 16))
    problems = verify(run)
    shutil.move(moved, ours)
    assert f"{moved} has no receipt that says it was finished." in problems
    assert f"{ours} is missing, though its receipt is there." in problems


def test_a_bundle_that_lists_nothing_is_named(run: Path, tmp_path: Path) -> None:
    facts = json.loads((run / "bundle" / "bundle.json").read_text())
    (tmp_path / "bundle.json").write_text(json.dumps(facts | {"files": {}}))
    problems = verify(tmp_path)
    assert [problem.split("lists no ")[1] for problem in problems] == [
        f"{kind}, which every bundle has." for kind in ("evaluators", "policies", "plan.toml")
    ]


def test_a_report_and_a_manifest_that_were_changed_together_are_named(run: Path) -> None:
    report, manifest = run / "report.html", run / "manifest.json"
    back = [kept(report), kept(manifest)]
    facts = json.loads(manifest.read_text())
    report.write_text(report.read_text().replace("0.", "1."))
    manifest.write_text(json.dumps(facts | {"report": facts["report"] | {"report.html": file_sha256(report)}}))
    problems = verify(run)
    for each in back:
        each()
    assert problems == [
        f"{manifest} does not say what the receipt about the report says.",
        f"{report} was changed after it was made.",
    ]


@pytest.mark.parametrize("name", ["figures/figure9.svg", "tables/deep/mine.tex", "results/more.csv", "notes.txt"])
def test_an_added_file_is_named(run: Path, name: str) -> None:
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("")
    problems = verify(run)
    (run / name).unlink()
    shutil.rmtree(run / "tables" / "deep", ignore_errors=True)
    assert len(problems) == 1
    assert problems[0].startswith(f"{run / name} ")
    assert verify(run) == []


@pytest.mark.parametrize("name", ["artifacts/x.txt", "artifacts/evil/", "artifacts/policy/evil/", "cohort-1-1/"])
def test_what_no_stage_has_made_is_named(run: Path, name: str) -> None:
    place = run / name
    place.mkdir() if name.endswith("/") else place.write_text("")
    problems = verify(run)
    place.rmdir() if name.endswith("/") else place.unlink()
    assert len(problems) == 1
    assert problems[0].startswith(f"{place} has no ")


LINKED = {
    "results/contrasts.csv": "cannot be read (Too many levels of symbolic links)",
    "bundle/tables/seeds.csv": "cannot be read (Too many levels of symbolic links)",
    "artifacts/policy/mga/*/mga.safetensors": "cannot be read (Too many levels of symbolic links)",
    "results/more": "was added later.",
    "bundle/more": "was added later.",
    "bundle/bundle.json": "is damaged: [Errno 40]",
}


@pytest.mark.parametrize("name", LINKED)
def test_a_link_to_itself_is_named(run: Path, tmp_path: Path, name: str) -> None:
    (file,) = run.glob(name) if "more" not in name else [run / name]
    if file.exists():
        shutil.move(file, tmp_path / "aside")
    file.symlink_to(file)
    problems = verify(run)
    file.unlink()
    if "more" not in name:
        shutil.move(tmp_path / "aside", file)
    assert len(problems) == 1
    assert problems[0].startswith(f"{file} {LINKED[name]}")


def test_missing_recordings_of_a_synthetic_run_are_named(run: Path, tmp_path: Path) -> None:
    shutil.move(run / "cohort-160-3", tmp_path / "aside")
    problems = verify(run)
    shutil.move(tmp_path / "aside", run / "cohort-160-3")
    assert len(problems) == 1
    assert problems[0].startswith(f"There is no directory {run / 'cohort-160-3'}")


def test_changed_recordings_of_a_synthetic_run_are_named(run: Path) -> None:
    recordings = run / "cohort-160-3"
    file = next((recordings / "records100").rglob("*.dat"))
    back = kept(recordings / "ptbxl_database.csv"), kept(file)
    (recordings / "ptbxl_database.csv").write_text(
        (recordings / "ptbxl_database.csv").read_text().replace("NORM", "IMI")
    )
    problems = verify(run)
    back[0]()
    assert problems == [f"{recordings} does not hold the recordings that a receipt says were read; they were changed."]
    flip(file, 0)
    problems = verify(run)
    back[1]()
    assert len(problems) == 1
    assert str(recordings) in problems[0]
    assert verify(run) == []


def test_verifying_leaves_nothing_behind(run: Path, tmp_path: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    assert verify(run) == []
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*")} == before
    assert not (tmp_path / "cache").exists()


def test_a_head_that_was_kept_elsewhere(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page prints a head that stands for all receipts but its own; another ledger does not have it."""
    receipts = read_receipts(run / "ledger.jsonl")
    (printed,) = re.findall(r'id="head">([0-9a-f]{64})<', (run / "report.html").read_text())
    assert printed == receipts[-2].sha256
    assert isinstance(receipts[-1], Report)
    assert json.loads((run / "manifest.json").read_text())["head"] == receipts[-1].sha256
    for head in (printed, printed.upper() + "\n", receipts[0].sha256):
        assert verify(run, head) == []
    assert verify(run, "0" * 64) == [
        f"{run / 'ledger.jsonl'} has no receipt of the hash {'0' * 64}; another ledger had this head."
    ]
    assert verify(run / "bundle", printed) == ["A bundle has no ledger, so there is no head to compare with."]
    from leadwise.cli.verify import verify as verb

    verb(run, False, printed)
    assert f"stands for its receipts 1 to {len(receipts) - 1} of {len(receipts)}." in capsys.readouterr().out


def test_a_bundle_carries_when_it_was_frozen(run: Path) -> None:
    receipts, file = read_receipts(run / "ledger.jsonl"), run / "bundle" / "freeze.json"
    (end,) = [each for each in receipts if isinstance(each, End) and each.stage == "freeze"]
    freeze = Bundle(run / "bundle").freeze
    assert freeze is not None
    assert (freeze.time, freeze.head) == (end.time, end.sha256)
    back = kept(file)
    for change in ({"time": "2020-01-01T00:00:00.000+00:00"}, {"bundle": "0" * 64}, {"time": 3}):
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        problems = verify(run)
        back()
        assert len(problems) == 1
        assert str(file.parent) in problems[0]
    file.unlink()
    problems = verify(run)
    back()
    assert problems == [f"{file.parent} does not say what the ledger says about when it was frozen."]


# values of the wrong type ------------------------------------------------------------------------------------------


WRONG: list[Any] = [None, 7, ["x"], "x", {"x": 1}]


def places(facts: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value lies in a JSON document; of tables of many files only the first."""
    for key in list(facts)[: None if path == () or len(facts) < 8 else 1] if isinstance(facts, dict) else ():
        yield (*path, key)
        yield from places(facts[key], (*path, key))


def changed(facts: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The same document with another value at a place."""
    first, *rest = path
    return facts | {first: changed(facts[first], tuple(rest), value) if rest else value}


@pytest.fixture(scope="module")
def slim(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without what would only take time to read."""
    stages = [place.name for place in (run / "artifacts").iterdir() if place.name not in ("cohort", "freeze")]
    ignored = shutil.ignore_patterns("cohort-160-3", "figures", *stages)
    return Path(shutil.copytree(run, tmp_path_factory.mktemp("slim") / "run", ignore=ignored))


def look_at(run: Path, page: bool) -> None:
    """Everything that reads a run says what is wrong in a sentence, or finds nothing."""
    with suppress(LeadwiseError):
        verify(run)
    with suppress(LeadwiseError):
        verify(run / "bundle")
    with suppress(LeadwiseError):
        run_status(run)
    with suppress(LeadwiseError):
        contents = RunContents.read(run)
        if page:
            protocol_checks(contents)
            describe_methods(contents)
            list(hash_frames(contents))
            software_frame(contents.history)


@pytest.mark.parametrize(
    "name", ["manifest.json", "bundle/bundle.json", "bundle/freeze.json", "artifacts/cohort/*/outputs.json"]
)
def test_wrong_values_in_a_list_are_no_traceback(slim: Path, name: str) -> None:
    (file,) = slim.glob(name)
    back, facts = kept(file), json.loads(file.read_text())
    for path in places(facts):
        for value in WRONG:
            file.write_text(json.dumps(changed(facts, path, value)))
            look_at(slim, page=False)
    file.write_text("[" * 100_000)
    look_at(slim, page=False)
    back()


@pytest.mark.parametrize("event", ["cohort", "begin", "end", "results", "report", "bundle"])
def test_wrong_values_in_a_receipt_are_no_traceback(slim: Path, event: str) -> None:
    """The chain is forged, so that it is sound but for what its receipts say."""
    ledger, manifest = slim / "ledger.jsonl", slim / "manifest.json"
    back = kept(ledger), kept(manifest)
    receipts, facts = receipt_facts(ledger), json.loads(manifest.read_text())
    if event == "bundle":
        receipts.insert(1, receipts[0] | {"event": "bundle", "sha256": "0" * 64, "frozen": {"time": "", "head": ""}})
    at = next(number for number, each in enumerate(receipts) if each["event"] == event)
    for path in places(receipts[at]):
        if path[0] in ("number", "previous"):
            continue  # the chain itself, which is tested elsewhere
        for value in WRONG:
            lines = chained([*receipts[:at], changed(receipts[at], path, value), *receipts[at + 1 :]])
            ledger.write_bytes(b"".join(line + b"\n" for line in lines))
            manifest.write_text(json.dumps(facts | {"head": sha256(lines[-1]).hexdigest(), "receipts": len(lines)}))
            look_at(slim, page=path[0] in ("cohort", "event", "inputs"))
    for each in back:
        each()
