"""Stages: done once, done again when something they depend on has changed, and never because of a kill."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import Ledger
from leadwise.run.stage import OUTPUTS, Artifact, Runner, Stage, Work, in_order, read_artifact
from leadwise.store import changed_files
from receipts import receipt_facts


@dataclass
class Kitchen:
    """Four stages: water and flour make dough, dough is baked. It notes which were done."""

    path: Path
    roles: dict[str, str] = field(default_factory=lambda: {"train": "a", "audit": "b"})
    settings: dict[str, object] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def stage(self, name: str, needs: tuple[str, ...]) -> Stage:
        def make(work: Work) -> None:
            self.done.append(name)
            parts = [(work.inputs[need] / "out.txt").read_text() for need in needs if not need.startswith("role:")]
            setting = self.settings.get(name, "")
            # water does not care how warm it is
            (work.out / "out.txt").write_text(f"{name}({','.join(parts)})" + ("" if name == "water" else str(setting)))

        return Stage(name, make, needs, self.settings.get(name), self.versions.get(name, 1))

    def run(self) -> tuple[list[str], dict[str, Artifact]]:
        """What was done, and all artifacts."""
        self.done.clear()
        runner = self.runner()
        stages = [
            self.stage("bread", ("dough",)),
            self.stage("dough", ("water", "flour")),
            self.stage("water", ()),
            self.stage("flour", ("role:train",)),
        ]
        for stage in in_order(stages):
            runner.run(stage)
        return list(self.done), dict(runner.done)

    def runner(self) -> Runner:
        return Runner(RunDirectory(self.path), Ledger(self.path / "ledger.jsonl"), self.roles, None)

    def receipts(self) -> list[tuple[str, str]]:
        return [(each["event"], each["stage"]) for each in receipt_facts(self.path / "ledger.jsonl")]


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


def test_done_once(kitchen: Kitchen) -> None:
    done, first = kitchen.run()
    assert sorted(done) == ["bread", "dough", "flour", "water"]
    assert kitchen.receipts() == [(event, name) for name in done for event in ("begin", "end")]
    before = (kitchen.path / "ledger.jsonl").read_bytes()
    again, second = kitchen.run()
    assert again == []
    assert second == first
    assert (kitchen.path / "ledger.jsonl").read_bytes() == before
    assert (first["bread"].path / "out.txt").read_text() == "bread(dough(water(),flour()))"


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        ({"settings": {"bread": {"crust": 1}}}, ["bread"]),
        ({"settings": {"dough": "salt"}}, ["dough", "bread"]),
        ({"settings": {"flour": [1, 2]}}, ["flour", "dough", "bread"]),
        ({"settings": {"water": "warm"}}, ["water"]),  # comes out the same, so nothing else is done
        ({"versions": {"flour": 2}}, ["flour"]),
        ({"versions": {"bread": 2}}, ["bread"]),
        ({"roles": {"train": "other", "audit": "b"}}, ["flour"]),
        ({"roles": {"train": "a", "audit": "other"}}, []),
    ],
)
def test_what_depends_on_a_change_is_done_again_and_nothing_else(
    kitchen: Kitchen, change: dict[str, dict[str, object]], redone: list[str]
) -> None:
    _, before = kitchen.run()
    changed = replace(kitchen, done=[], **change)  # type: ignore[arg-type]
    done, after = changed.run()
    assert done == redone
    assert {name for name in after if after[name].key != before[name].key} == set(redone)
    for artifact in before.values():
        assert changed_files(artifact.path, artifact.outputs, OUTPUTS) == [], "the old ones stay"
    assert replace(kitchen, done=[]).run() == ([], before), "and are found when the change is taken back"


def test_receipts_say_from_what_and_what(kitchen: Kitchen) -> None:
    _, artifacts = kitchen.run()
    for receipt in receipt_facts(kitchen.path / "ledger.jsonl"):
        artifact = artifacts[receipt["stage"]]
        assert receipt["key"] == artifact.key
        if receipt["event"] == "end":
            assert receipt["outputs"] == artifact.outputs == {"out.txt": artifact.outputs["out.txt"]}
        elif receipt["stage"] == "dough":
            assert receipt["inputs"] == {name: artifacts[name].sha256 for name in ("water", "flour")}
        elif receipt["stage"] == "flour":
            assert receipt["inputs"] == {"role:train": "a"}


def test_killed_between_artifact_and_receipt_it_is_not_done_again(kitchen: Kitchen) -> None:
    kitchen.run()
    ledger = kitchen.path / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-1]))
    before = kitchen.receipts()
    done, _ = kitchen.run()
    assert done == []
    assert kitchen.receipts() == [*before, ("end", "bread")]
    last, lost = receipt_facts(ledger)[-1], json.loads(lines[-1])
    assert (last["key"], last["outputs"]) == (lost["key"], lost["outputs"])


class Killed(BaseException):
    """Stands in for a kill: nothing of ours catches it."""


def test_what_a_stage_keeps_in_scratch_survives_a_kill_and_goes_when_it_is_done(kitchen: Kitchen) -> None:
    seen = []

    def make(work: Work) -> None:
        notes = work.scratch / "notes"
        seen.append(notes.read_text() if notes.exists() else "")
        assert list(work.out.iterdir()) == []
        (work.out / "half").write_text("half")
        notes.write_text(f"{seen[-1]}x")
        if len(seen) < 3:
            raise Killed
        (work.out / "half").rename(work.out / "whole")

    stage = Stage("long", make)
    for _ in range(2):
        with pytest.raises(Killed):
            kitchen.runner().run(stage)
        assert kitchen.runner().find(stage) is None
    artifact = kitchen.runner().run(stage)
    assert seen == ["", "x", "xx"]
    assert list(artifact.outputs) == ["whole"]
    assert [path.name for path in artifact.path.parent.iterdir()] == [artifact.path.name], "nothing else is left"
    assert kitchen.receipts() == [("begin", "long")] * 3 + [("end", "long")]


def test_other_settings_have_a_scratch_of_their_own(kitchen: Kitchen) -> None:
    def make(work: Work) -> None:
        assert list(work.scratch.iterdir()) == []
        (work.scratch / "notes").write_text("")
        raise Killed

    for setting in (1, 2):
        with pytest.raises(Killed):
            kitchen.runner().run(Stage("long", make, settings=setting))


def test_folders_within_an_artifact_are_hashed_too(kitchen: Kitchen) -> None:
    def make(work: Work) -> None:
        (work.out / "deep").mkdir()
        (work.out / "deep" / "file").write_text("1")

    artifact = kitchen.runner().run(Stage("deep", make))
    assert list(artifact.outputs) == ["deep/file"]
    (artifact.path / "deep" / "file").write_text("2")
    (artifact.path / "deep" / "more").write_text("3")
    assert changed_files(artifact.path, artifact.outputs, OUTPUTS) == [
        f"{artifact.path / 'deep' / 'file'} was changed after it was made.",
        f"{artifact.path / 'deep' / 'more'} was added later.",
    ]
    (artifact.path / "deep" / "file").unlink()
    assert f"{artifact.path / 'deep' / 'file'} is missing." in changed_files(artifact.path, artifact.outputs, OUTPUTS)


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '{"key": "a"}'])
def test_a_damaged_list_of_outputs_is_named(kitchen: Kitchen, content: str) -> None:
    _, artifacts = kitchen.run()
    place = artifacts["bread"].path
    (place / "outputs.json").write_text(content)
    with pytest.raises(InputError, match=r"outputs\.json is damaged; remove .*, and the stage will be done again"):
        read_artifact(place)


def test_an_artifact_without_its_list_of_outputs_is_made_again(kitchen: Kitchen) -> None:
    _, artifacts = kitchen.run()
    bread = artifacts["bread"]
    for file in bread.path.iterdir():
        file.unlink() if file.name == OUTPUTS else file.write_text("mould")
    _, again = kitchen.run()
    assert again == artifacts
    assert changed_files(bread.path, bread.outputs, OUTPUTS) == []


def test_what_a_stage_needs_and_is_not_there_is_named(kitchen: Kitchen) -> None:
    def nothing(_work: Work) -> None: ...

    runner = kitchen.runner()
    with pytest.raises(InputError, match=r"^The cohort has no validation role, which the stage tasting needs\.$"):
        runner.run(Stage("tasting", nothing, ("role:train", "role:validation")))
    with pytest.raises(InputError, match=r"^The stage tasting needs bread, which is not done\.$"):
        runner.run(Stage("tasting", nothing, ("bread",)))
    assert kitchen.receipts() == []


def test_stages_come_after_what_they_need() -> None:
    def nothing(_work: Work) -> None: ...

    needs = {"a": ("b", "role:train"), "b": ("c",), "c": (), "d": ("a", "c", "made before")}
    ordered = [stage.name for stage in in_order([Stage(name, nothing, each) for name, each in needs.items()])]
    assert ordered == ["c", "b", "a", "d"]
    with pytest.raises(InputError, match="in a circle: e, f"):
        in_order([Stage("e", nothing, ("f",)), Stage("f", nothing, ("e",)), Stage("g", nothing)])
