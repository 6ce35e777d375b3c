"""What many tests stand on: a small cohort in PTB-XL's layout, and hypothesis without a clock."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from leadwise.cohort.cohort import Cohort
    from leadwise.evaluators.logistic import LogisticEvaluator

settings.register_profile("leadwise", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "leadwise")

os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(scope="session")
def pristine_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic cohort of 120 records; never change it, copy it."""
    from leadwise.cohort.synthetic import write_synthetic

    directory = tmp_path_factory.mktemp("pristine") / "cohort"
    write_synthetic(directory, records=120, seed=3)
    return directory


@pytest.fixture
def tree(pristine_tree: Path, tmp_path: Path) -> Path:
    """The same cohort, to be damaged as a test likes."""
    return Path(shutil.copytree(pristine_tree, tmp_path / "cohort"))


@pytest.fixture(scope="session")
def small_cohort(tmp_path_factory: pytest.TempPathFactory) -> "Cohort":
    """A synthetic cohort of 400 records, enough to fit small models on."""
    from leadwise.cohort.ptbxl import read_ptbxl
    from leadwise.cohort.synthetic import write_synthetic

    home = tmp_path_factory.mktemp("small")
    write_synthetic(home / "cohort", records=400, seed=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(home / "cache"))
        return read_ptbxl(home / "cohort")


@pytest.fixture(scope="session")
def controlled(small_cohort: "Cohort") -> "LogisticEvaluator":
    """The controlled evaluator of the small cohort."""
    from leadwise.evaluators.logistic import LogisticEvaluator

    return LogisticEvaluator().fit(small_cohort["train"])


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a finished run of `runs.PLAN`; never change it, copy it."""
    from leadwise.study.execute import run_study
    from runs import PLAN

    home = tmp_path_factory.mktemp("tiny-study")
    (home / "plan.toml").write_text(PLAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(home / "cache"))
        run_study(home / "plan.toml", home / "run")
    return home / "run"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("LEADWISE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user meets, for whom types and shapes are not checked at the door."""
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session")
def ptbxl() -> Path:
    """The real PTB-XL, where ``LEADWISE_PTBXL`` says it is."""
    where = os.environ.get("LEADWISE_PTBXL")
    if not where:
        pytest.skip("LEADWISE_PTBXL does not name a PTB-XL tree (leadwise data fetch makes one)")
    return Path(where)
