"""The frozen bundle: what is in it, and whether it is still that."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.identity import Identity, fold_sizes
from leadwise.errors import InputError
from leadwise.run.bundle import CONTENTS, FORMAT, Bundle, pretrained_bundle, write_bundle
from leadwise.run.plan import read_plan
from leadwise.store import file_sha256
from leadwise.study.execute import find_plan

PLAN = """
title = "mine"
budgets = [2]
first_lead = "I"
cohort = {kind = "ptbxl"}
evaluators = {controlled = {kind = "logistic"}}
policies = {mga = {kind = "mga", target = "controlled"}}
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """Evaluators and references of a name, a table and the plan; for hashes it does not matter what they hold."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("controlled.safetensors", "mga.safetensors", "controlled.csv", "seeds.csv"):
        (source / name).write_text(name)
    (source / "mine.toml").write_text(PLAN)
    parts = {
        "evaluators": {"controlled": source / "controlled.safetensors"},
        "policies": {"mga": source / "mga.safetensors"},
        "references": {"controlled": source / "controlled.csv"},
        "tables": {"seeds": source / "seeds.csv"},
    }
    write_bundle(tmp_path / "bundle", source / "mine.toml", Identity("other", None, {"1": "0" * 64}), parts)
    shutil.rmtree(source)
    return Bundle(tmp_path / "bundle")


def test_a_bundle_lists_all_it_holds(bundle: Bundle) -> None:
    assert list(bundle.files) == [
        "evaluators/controlled.safetensors",
        "plan.toml",
        "policies/mga.safetensors",
        "references/controlled.csv",
        "tables/seeds.csv",
    ]
    assert bundle.problems() == []
    assert bundle.sha256 == file_sha256(bundle.path / CONTENTS)
    assert bundle.plan.title == "mine"


def test_it_can_travel(bundle: Bundle, tmp_path: Path) -> None:
    moved = Bundle(shutil.move(bundle.path, tmp_path / "elsewhere"))
    assert moved.problems() == []
    assert moved.plan.title == "mine"


def test_every_changed_missing_or_added_file_is_named(bundle: Bundle) -> None:
    for name in bundle.files:
        file = bundle.path / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert bundle.problems() == [f"{file} was changed after it was made."]
        file.unlink()
        assert bundle.problems() == [f"{file} is missing."]
        file.write_bytes(whole)
    (bundle.path / "policies" / "late.safetensors").write_text("")
    assert bundle.problems() == [f"{bundle.path / 'policies' / 'late.safetensors'} was added later."]


def test_its_hash_is_of_everything(bundle: Bundle) -> None:
    before = bundle.sha256
    facts = json.loads((bundle.path / CONTENTS).read_text())
    facts["files"]["tables/seeds.csv"] = "0" * 64
    (bundle.path / CONTENTS).write_text(json.dumps(facts))
    assert Bundle(bundle.path).sha256 != before


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": "leadwise bundle 0", "files": {}}', f'{{"format": "{FORMAT}"}}']
)
def test_damaged_contents_are_named(bundle: Bundle, content: str) -> None:
    (bundle.path / CONTENTS).write_text(content)
    with pytest.raises(InputError, match=r"bundle\.json is damaged: .*; take the bundle from the run again"):
        Bundle(bundle.path)


def test_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no frozen bundle: it has no bundle\.json\.$"):
        Bundle(tmp_path)


def test_the_bundle_that_ships_is_what_was_frozen() -> None:
    """Every file, and everything in it can be used: policies find the evaluators that they were trained with."""
    shipped = Bundle.pretrained()
    assert shipped.path == pretrained_bundle()
    assert repr(shipped) == f"<Bundle {shipped.path}: 5 evaluators, 7 policies, 4 references>"
    assert shipped.problems() == []
    plan = read_plan(find_plan("ptbxl"))  # it asks for more than what was frozen, and for nothing else of that
    for was, now in ((shipped.plan.evaluators, plan.evaluators), (shipped.plan.policies, plan.policies)):
        assert {name: each.as_said() | {"seeds": 0} for name, each in was.items()} == {
            name: now[name].as_said() | {"seeds": 0} for name in was
        }
    assert {"controlled", "strong", "mask-robust"} <= set(shipped.evaluators)
    assert {"ecg-on-demand", "mga", "ccga", "strong-mga", "cohort-state", "random-subset"} <= set(shipped.policies)
    assert sum(len(shipped.references[name].candidates) for name in ("controlled", "strong")) == 2 * 2_212


@pytest.mark.parametrize("name", ["/etc/hostname", "../outside.csv", "policies/../../outside.csv", "\0"])
def test_a_path_that_leads_out_is_refused(bundle: Bundle, name: str) -> None:
    (bundle.path.parent / "outside.csv").write_text("")
    facts = json.loads((bundle.path / CONTENTS).read_text())
    facts["files"][name] = facts["files"]["plan.toml"]
    (bundle.path / CONTENTS).write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"bundle\.json is damaged: .* leads out of the bundle; take the bundle from"):
        Bundle(bundle.path)


@pytest.mark.parametrize("name", ["tables/seeds.csv", "tables", CONTENTS])
def test_a_link_that_leads_out_is_refused(bundle: Bundle, name: str) -> None:
    outside = bundle.path.parent / "outside"
    (bundle.path / name).rename(outside)
    (bundle.path / name).symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the bundle"):
        Bundle(bundle.path)


def test_a_bundle_may_lie_behind_a_link(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(bundle.path)
    assert Bundle(tmp_path / "link").problems() == []


@pytest.mark.parametrize("kind", ["evaluators", "policies", "plan.toml"])
def test_an_empty_bundle_is_no_bundle(bundle: Bundle, kind: str) -> None:
    facts = json.loads((bundle.path / CONTENTS).read_text())
    for name in [each for each in facts["files"] if each.startswith(kind)]:
        (bundle.path / name).unlink()
        del facts["files"][name]
    (bundle.path / CONTENTS).write_text(json.dumps(facts))
    assert Bundle(bundle.path).problems() == [f"{bundle.path / CONTENTS} lists no {kind}, which every bundle has."]


def test_what_is_sealed_as_ptbxl_opens_only_for_what_was_frozen_on_it(
    bundle: Bundle, small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fold has as many records and patients as in PTB-XL; another was altered, so the whole is not PTB-XL."""
    sizes = fold_sizes(small_cohort.patients, small_cohort.folds)
    monkeypatch.setattr("leadwise.cohort.identity._SIZES", {8: sizes[8]})
    cohort = replace(small_cohort)
    assert cohort.identity.kind == "synthetic"
    with pytest.raises(InputError, match=r"was frozen on a cohort other than PTB-XL; the seal on .*, which has folds"):
        bundle.open(cohort, "evaluation")
    contents = json.loads((bundle.path / CONTENTS).read_text())
    without = {fold: each for fold, each in cohort.identity.folds.items() if fold != "8"}
    for known in ({"kind": "ptbxl", "generator": None}, cohort.identity.facts | {"folds": without}):
        (bundle.path / CONTENTS).write_text(json.dumps(contents | {"cohort": contents["cohort"] | known}))
        assert len(Bundle(bundle.path).open(cohort, "evaluation")["evaluation"].labels) == sizes[8][0]


def test_what_ships_does_not_say_when_it_was_frozen() -> None:
    assert Bundle.pretrained().freeze is None
