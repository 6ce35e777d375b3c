"""Kinds are found by the name that they are registered under, by an entry point, and as ``module:object``."""

import sys
from pathlib import Path

import pytest

from leadwise.cohort.contract import COHORTS, CohortKind
from leadwise.errors import InputError, LeadwiseError, PlanError
from leadwise.evaluators.contract import EVALUATORS, EvaluatorKind
from leadwise.policies.contract import POLICIES, PolicyKind
from leadwise.registry import Registry, Settings

SORTS = {"cohort": COHORTS, "evaluator": EVALUATORS, "policy": POLICIES}
NEEDED = {"cohort": "'read'", "evaluator": "'make' and 'load'", "policy": "'make' and 'load'"}
MODULE = """
from pydantic import BaseModel

from leadwise.registry import Settings

class Mine:
    class Settings(Settings):
        loud: bool = False

    def read(self): ...

    def make(self): ...

    def load(self): ...

class Outer:
    class Inner(Mine):
        pass

class Bare:
    pass

class Deaf:
    Settings = Settings

class Odd(Mine):
    Settings = 3

class Foreign(Mine):
    class Settings(BaseModel):
        loud: bool = False

def function():
    pass
"""


@pytest.fixture(params=SORTS)
def registry(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Registry[type[CohortKind]] | Registry[type[EvaluatorKind]] | Registry[type[PolicyKind]]:
    """Each registry, which forgets afterwards what a test has registered."""
    chosen = SORTS[request.param]
    chosen.names()  # ours are registered for good
    monkeypatch.setattr(chosen, "_kinds", dict(chosen._kinds))
    return chosen


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that Python imports from, with a module ``of_a_stranger`` in it."""
    (tmp_path / "of_a_stranger.py").write_text(MODULE)
    (tmp_path / "broken_by_a_stranger.py").write_text("raise RuntimeError('no luck\\ntoday.')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "of_a_stranger", raising=False)
    return tmp_path


def install(home: Path, group: str, **kinds: str) -> None:
    """A distribution as pip leaves it, which adds kinds."""
    package = home / "strange-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    points = "".join(f"{name.replace('_', '-')} = {place}\n" for name, place in kinds.items())
    (package / "entry_points.txt").write_text(f"[{group}]\n{points}")


def test_by_the_name_that_it_is_registered_under(registry) -> None:
    class Mine:
        Settings = Settings
        read = make = load = classmethod(lambda _cls: None)

    assert registry.register("mine-own")(Mine) is Mine, "the decorator gives the class back"
    assert registry.find("mine-own") is Mine
    assert "mine-own" in registry.names()


@pytest.mark.usefixtures("home")
def test_as_module_and_object(registry) -> None:
    found = registry.find("of_a_stranger:Mine")
    assert found is sys.modules["of_a_stranger"].Mine
    assert found.Settings(loud=True).loud
    assert registry.find("of_a_stranger:Outer.Inner").__qualname__ == "Outer.Inner"
    assert "of_a_stranger:Mine" not in registry.names()


def test_by_the_entry_point_of_an_installed_package(registry, home: Path) -> None:
    install(home, registry.group, strange_kind="of_a_stranger:Mine", logistic="of_a_stranger:Bare")
    assert "strange-kind" in registry.names()
    assert "of_a_stranger" not in sys.modules, "what is only listed is not imported"
    assert registry.find("strange-kind") is sys.modules["of_a_stranger"].Mine
    others = [each for each in SORTS.values() if each is not registry]
    assert not any("strange-kind" in each.names() for each in others)


def test_ours_stay_ours(home: Path) -> None:
    install(home, EVALUATORS.group, logistic="of_a_stranger:Mine")
    assert EVALUATORS.find("logistic").__module__ == "leadwise.evaluators.logistic"
    assert EVALUATORS.names().count("logistic") == 1


def test_a_kind_is_found_without_the_others(registry) -> None:
    """Each lies in a module of its name, so a plan that names one does not wait for what all the others import."""
    found = registry.find({"cohort": "ptbxl", "evaluator": "logistic", "policy": "random-subset"}[registry.what])
    assert found.__module__.startswith(f"{registry.home}.")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module:Mine", "cannot be imported: No module named 'no_such_module'."),
        ("of_a_stranger:Yours", "cannot be imported: module 'of_a_stranger' has no attribute 'Yours'."),
        ("of_a_stranger:Mine.Inner", "cannot be imported: type object 'Mine' has no attribute 'Inner'."),
        ("of_a_stranger:", "cannot be imported: module 'of_a_stranger' has no attribute ''."),
        (":Mine", "cannot be imported: Empty module name."),
        ("broken_by_a_stranger:Mine", "cannot be imported: no luck today."),
    ],
)
def test_what_cannot_be_imported(registry, name: str, reason: str) -> None:
    with pytest.raises(InputError) as refusal:
        registry.find(name)
    assert str(refusal.value) == f"The {registry.what} {name} {reason}"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", ["Bare", "Deaf", "Odd", "Foreign", "function", "Settings", "__name__"])
def test_what_is_no_kind(registry, name: str) -> None:
    with pytest.raises(InputError) as refusal:
        registry.find(f"of_a_stranger:{name}")
    assert str(refusal.value) == (
        f"of_a_stranger:{name} is no kind of {registry.what}: it needs to be a class with 'Settings', which inherits "
        f"from leadwise.registry.Settings, and {NEEDED[registry.what]}."
    )


def test_entry_points_that_lead_nowhere(registry, home: Path) -> None:
    points = {"gone": "of_a_stranger:Gone", "broken": "broken_by_a_stranger:Mine", "bare": "of_a_stranger:Bare"}
    install(home, registry.group, **points)
    for name, sentence in {
        "gone": "gone of of_a_stranger:Gone cannot be imported: module 'of_a_stranger' has no attribute 'Gone'.",
        "broken": "broken of broken_by_a_stranger:Mine cannot be imported: no luck today.",
    }.items():
        with pytest.raises(InputError) as refusal:
            registry.find(name)
        assert str(refusal.value) == f"The {registry.what} {sentence}"
    with pytest.raises(InputError, match=f"^bare is no kind of {registry.what}: it needs to be a class with 'Set"):
        registry.find("bare")


def test_what_is_registered_must_be_a_kind_too(registry) -> None:
    registry.register("bare")(type("Bare", (), {}))
    with pytest.raises(InputError, match=f"^bare is no kind of {registry.what}: it needs to be a class with 'Set"):
        registry.find("bare")


@pytest.mark.parametrize(
    ("what", "name", "rest"),
    [
        ("cohort", "ptb-xl", "did you mean 'ptbxl'?"),
        ("cohort", "mimic", "there are ptbxl, synthetic."),
        ("evaluator", "logistik", "did you mean 'logistic'?"),
        ("evaluator", "masked_resnet", "did you mean 'masked-resnet'?"),
        ("evaluator", "controlled", "there are logistic, masked-resnet, recalibrated, seed, temperature."),
        ("policy", "mgaa", "did you mean 'mga'?"),
        ("policy", "oracle", "there are ccga, cohort-state, ecg-on-demand, mga, random-subset."),
        ("policy", "..\nmga", "did you mean 'mga'?"),
        ("policy", "", "there are ccga, cohort-state, ecg-on-demand, mga, random-subset."),
        ("policy", "contract", "there are ccga, cohort-state, ecg-on-demand, mga, random-subset."),
    ],
)
def test_an_unknown_name_says_which_was_perhaps_meant(what: str, name: str, rest: str) -> None:
    with pytest.raises(PlanError) as refusal:
        SORTS[what].find(name)
    assert str(refusal.value) == f"'{' '.join(name.split())}' is no kind of {what}; {rest}"


def test_strangers_are_among_those_that_are_named(home: Path) -> None:
    install(home, POLICIES.group, strange_kind="of_a_stranger:Mine")
    with pytest.raises(LeadwiseError, match="'strange-kin' is no kind of policy; did you mean 'strange-kind'"):
        POLICIES.find("strange-kin")
