"""Whatever was changed in a run, one sentence names it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import rfc8785

from leadwise.errors import InputError
from leadwise.run.ledger import read_receipts
from leadwise.run.verify import verify
from study.test_run import finished_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; every test puts back what it changes."""
    return Path(shutil.copytree(finished_run(tmp_path_factory), tmp_path_factory.mktemp("verify") / "run"))


def flip(file: Path, at: int = -2) -> bytes:
    """Change one byte; returns what was there."""
    whole = file.read_bytes()
    at %= len(whole)
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    return whole


KINDS = {
    "evaluator": "artifacts/controlled/*/controlled.safetensors",
    "network": "artifacts/strong/*/strong.safetensors",
    "policy": "artifacts/mga/*/mga.safetensors",
    "control": "artifacts/random-subset/*/random-subset.safetensors",
    "references": "artifacts/references-strong-2/*/strong.csv",
    "history": "artifacts/strong-seed-1/*/history.csv",
    "seeds": "artifacts/strong/*/seeds.csv",
    "splits": "artifacts/cohort/*/splits.parquet",
    "frozen list": "artifacts/freeze/*/bundle.json",
    "scores": "artifacts/evaluation/*/records.parquet",
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
    (file,) = run.glob("artifacts/mga/*/outputs.json")
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
    for stage in ("controlled", "freeze", "audit"):
        (place,) = (run / "artifacts" / stage).iterdir()
        shutil.move(place, tmp_path / "aside")
        problems = verify(run)
        shutil.move(tmp_path / "aside", place)
        assert problems == [f"{place} is missing, though its receipt is there."]
    assert verify(run) == []


def test_a_forged_artifact_needs_a_receipt(run: Path) -> None:
    (place,) = (run / "artifacts" / "mga").iterdir()
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
        assert verify(run) == [f"{file} is damaged."]
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
        assert problems == [f"{file} is damaged."]
    else:
        assert all(problem.startswith(f"{file} ") for problem in problems), "no innocent file is blamed"


def test_looking_before_the_freeze_is_named(tmp_path: Path) -> None:
    from leadwise.run.ledger import Ledger

    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.add("begin", stage="cohort", key="a" * 64)
    ledger.add("begin", stage="evaluation", key="b" * 64)
    assert verify(tmp_path) == [
        f"{tmp_path / 'ledger.jsonl'}, line 2: the evaluation role was scored before the freeze."
    ]


def test_what_a_kill_leaves_is_not_called_tampering(run: Path) -> None:
    """Scratch of an unfinished stage, and a torn line after the head."""
    scratch = run / "artifacts" / "mga" / f"{'1' * 16}.unfinished"
    scratch.mkdir()
    (scratch / "notes").write_text("")
    problems = ledger_without(run, lambda lines: [*lines, b'{"event":"be'])
    shutil.rmtree(scratch)
    assert problems == []


def test_a_draft_that_a_kill_left_is_not_called_tampering(run: Path) -> None:
    (place,) = (run / "artifacts" / "mga").iterdir()
    draft = Path(shutil.copytree(place, place.with_name(f".{'1' * 16}.abcdef")))
    facts = json.loads((draft / "outputs.json").read_text())
    (draft / "outputs.json").write_text(json.dumps(facts | {"key": "1" * 64}))
    problems = verify(run)
    shutil.rmtree(draft)
    assert problems == []


def test_neither_run_nor_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is neither a run nor a bundle: it has no ledger\.jsonl and no bundle\.json"):
        verify(tmp_path)
