"""A study of kinds that this file defines, and a study by other names: the same lines carry out both."""

import html
import importlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
from pydantic import Field

from leadwise.cli.references import find
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.contract import COHORTS, register_cohort
from leadwise.cohort.roles import Roles
from leadwise.evaluators.contract import EVALUATORS, Evaluator, check_evaluator, register_evaluator
from leadwise.evaluators.contract import Material as EvaluatorMaterial
from leadwise.policies.contract import POLICIES, Policy, check_policy, register_policy
from leadwise.policies.contract import Material as PolicyMaterial
from leadwise.policies.observation import Observation
from leadwise.registry import Settings
from leadwise.run.directory import RunDirectory
from leadwise.run.results import KEYS
from leadwise.run.verify import verify
from leadwise.study.execute import evaluate_bundle, report_run, run_study
from leadwise.study.forecast import forecast
from leadwise.study.status import run_status
from runs import PLAN, events, hashes

# kinds of a stranger -------------------------------------------------------------------------------------------------


class Ward:
    """Recordings of somebody's own, in a file of their own."""

    class Settings(Settings):
        file: str

    @classmethod
    def read(cls, settings: Settings, directory: Path, roles: Roles) -> Cohort:
        with np.load(directory / settings.file) as arrays:  # type: ignore[attr-defined]
            n, signals, labels = len(arrays["signals"]), arrays["signals"], arrays["labels"]
        return Cohort(
            source=str(directory / settings.file),  # type: ignore[attr-defined]
            ids=np.arange(n) + 1,
            patients=np.arange(n) // 2,
            folds=np.arange(n) // 2 % 10 + 1,
            age=np.full(n, np.nan),
            sex=np.full(n, -1),
            quality=np.zeros((n, 6), dtype=bool),
            missing=np.zeros((n, 12), dtype=int),
            label_names=("SHORT", "TALL"),
            sampling_rate=50.0,
            roles=roles,
            _signals=signals,
            _labels=labels,
        )


class Loudness:
    """Knows nothing but how far the observed leads swing."""

    class Settings(Settings):
        slope: Annotated[float, Field(gt=0)] = 1.0

    def __init__(self, name: str, slope: float, middle: float, labels: list[str]) -> None:
        self.name, self.slope, self.middle, self.labels = name, slope, middle, labels

    @classmethod
    def make(cls, settings: Settings, material: EvaluatorMaterial) -> "Loudness":
        swing = material.train.signals.millivolts(slice(None)).std(axis=2, dtype=float).mean()
        return cls(material.name, settings.slope, float(swing), list(material.train.label_names))  # type: ignore[attr-defined]

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        swing = signals.std(axis=2, dtype=float).sum(axis=1) / masks.sum(axis=1) / self.middle
        odds = swing[:, None] ** (self.slope * np.array([-1, 1]))
        return odds / (1 + odds)

    @property
    def sha256(self) -> str:
        return f"{self.slope}-{self.middle}-{self.labels}"

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self)))

    @classmethod
    def load(cls, path: Path, _evaluators: Mapping[str, Evaluator]) -> "Loudness":
        return cls(**json.loads(path.read_text()))


class Loudest:
    """Takes the lead that swings most among the neighbours of the loudest one so far; begins with the ranking's."""

    class Settings(Settings):
        step: Annotated[int, Field(ge=1)] = 1

    state_evaluator = None

    def __init__(self, name: str, step: int, first_lead: list[str]) -> None:
        self.name, self.step, self.first_lead = name, step, first_lead

    @classmethod
    def make(cls, settings: Settings, material: PolicyMaterial) -> "Loudest":
        return cls(material.name, settings.step, list(material.ranking))  # type: ignore[attr-defined]

    def choose(self, observation: Observation) -> np.ndarray:
        loudest = np.where(observation.mask, observation.statistics[..., 1], -np.inf).argmax(axis=1)
        distance = (np.arange(12) - loudest[:, None] - self.step) % 12
        return np.where(observation.candidates, distance, 99).argmin(axis=1)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self)))

    @classmethod
    def load(cls, path: Path, _evaluators: Mapping[str, Evaluator], _policies: Mapping[str, Policy]) -> "Loudest":
        return cls(**json.loads(path.read_text()))


KINDS = {"ward": Ward, "loudness": Loudness, "loudest": Loudest}
GROUPS = {"ward": "cohorts", "loudness": "evaluators", "loudest": "policies"}


@pytest.fixture(params=["name", "module:object", "entry point"])
def said(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """How a plan names the kinds of this file, each in every way that there is."""
    if request.param == "name":
        registers = {COHORTS: register_cohort, EVALUATORS: register_evaluator, POLICIES: register_policy}
        for (registry, register), (name, kind) in zip(registers.items(), KINDS.items(), strict=True):
            registry.names()  # ours are registered for good
            monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
            register(name)(kind)
        return {name: name for name in KINDS}
    assert importlib.import_module(__name__) is sys.modules[__name__]
    if request.param == "module:object":
        return {name: f"{__name__}:{kind.__name__}" for name, kind in KINDS.items()}
    lines = [f"[leadwise.{GROUPS[name]}]\nother-{name} = {__name__}:{kind.__name__}\n" for name, kind in KINDS.items()]
    package = tmp_path / "installed" / "other-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("".join(lines))
    monkeypatch.syspath_prepend(package.parent)
    return {name: f"other-{name}" for name in KINDS}


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    """200 records of one second, whose lead III tells whether they are tall."""
    rng = np.random.default_rng(4)
    tall = rng.random(200) < 0.5
    signals = rng.normal(0, 300, (200, 12, 50)) * rng.uniform(0.5, 2, (200, 12, 1))
    signals[:, 2] *= np.where(tall, 1.6, 0.6)[:, None]
    (tmp_path / "ward").mkdir()
    labels = np.stack([~tall, tall], axis=1)
    np.savez(tmp_path / "ward" / "ward.npz", signals=signals.round().astype(np.int16), labels=labels)
    return tmp_path / "ward"


SMALL = """
title = "Does it pay to listen?"
budgets = [2, 3]
first_lead = "III"
bootstrap = {{replicates = 20}}

[cohort]
kind = "{ward}"
file = "ward.npz"

[evaluators.swing]
kind = "{loudness}"
slope = 1.5
references = [2, 3]

[policies.follow-the-noise]
kind = "{loudest}"
step = 2
"""
LARGER = """
[evaluators.swing-more]
kind = "{loudness}"
slope = 3
references = [2, 3]

[policies.follow-it-back]
kind = "{loudest}"
step = 11

[[interactions]]
policies = ["follow-the-noise", "follow-it-back"]
evaluator = "swing-more"
baseline = "swing"

[[pairs]]
policies = ["follow-the-noise", "follow-it-back"]
evaluators = ["swing"]

[[hypotheses]]
level = "primary"
quantity = "interaction"
policies = ["follow-the-noise"]
evaluator = "swing-more"
baseline = "swing"
budgets = [3]
metrics = ["nll"]
expected = "above zero"
"""


def written(tmp_path: Path, content: str) -> Path:
    (tmp_path / "plan.toml").write_text(content)
    return tmp_path / "plan.toml"


def text_of(page: Path) -> str:
    """What a report says, without its marks, styles and drawings."""
    body = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_kinds_of_somebody_else_keep_the_contracts(ward: Path) -> None:
    cohort = Ward.read(Ward.Settings(file="ward.npz"), ward, Roles({"train": (1, 2, 3, 4, 5), "validation": (6,)}))
    train, validation = cohort["train"], cohort["validation"]
    check_evaluator(Loudness.make(Loudness.Settings(), EvaluatorMaterial("swing", train, validation)), train)
    policy = Loudest.make(Loudest.Settings(), PolicyMaterial("loud", train, validation, [2], ["III"]))
    check_policy(policy, train)


def test_references_are_searched_on_a_cohort_of_somebody_else_s(
    said: dict[str, str], ward: Path, tmp_path: Path
) -> None:
    found = find(ward, 2, "swing", written(tmp_path, SMALL.format(**said)))
    assert (found["candidates"], found["records"], found["shipped"]) == (66, 20, False)


def test_a_study_of_kinds_that_are_somebody_else_s(said: dict[str, str], ward: Path, tmp_path: Path) -> None:
    """From the cohort to the report; again, which redoes nothing; verified; and its bundle scored elsewhere."""
    plan, out = written(tmp_path, (SMALL + LARGER).format(**said)), tmp_path / "run"
    rows = forecast(plan, out, ward)
    run_study(plan, out, ward)
    assert [row["stage"] for row in rows if row["stage"].startswith(("evaluator/", "policy/"))] == [
        *("evaluator/swing", "evaluator/swing-more", "policy/follow-the-noise", "policy/follow-it-back")
    ]
    assert {row["state"] for row in run_status(out)} == {"done"}
    assert verify(out) == []
    before, ended = hashes(out), [event for event in events(out) if event[0] in ("begin", "end")]
    run_study(plan, out, ward)
    assert hashes(out) == before
    assert [event for event in events(out) if event[0] in ("begin", "end")] == ended
    assert verify(out) == []
    assert forecast(plan, out, ward) == []

    results = {file.stem: pd.read_parquet(file) for file in (out / "results").glob("*.parquet")}
    contrasts = results["contrasts"]
    assert len(contrasts) == 2 * 2 * 2 * 2 * 3, "roles, policies, evaluators, budgets, metrics"
    assert (contrasts["lo"] <= contrasts["hi"]).all()
    assert set(results["interactions"]["policy"]) == {"follow-the-noise", "follow-it-back"}
    assert set(results["hypotheses"]["verdict"]) <= {"holds", "contradicted", "inconclusive"}
    assert all(leads.startswith("III ") for leads in results["allocations"]["leads"])
    said_there = text_of(RunDirectory(out).report)
    for name in ("follow-the-noise", "follow-it-back", "swing", "swing-more", "SHORT", "TALL"):
        assert name in said_there, name

    (tmp_path / "elsewhere").mkdir()
    (ward / "ward.npz").rename(tmp_path / "elsewhere" / "ward.npz")
    directory, role = evaluate_bundle(out, tmp_path / "elsewhere", tmp_path / "again", "audit")
    assert (role, verify(directory.path)) == ("audit", [])
    again = pd.read_parquet(directory.results / "contrasts.parquet")
    pd.testing.assert_frame_equal(again, contrasts[contrasts["role"] == "audit"].reset_index(drop=True))


def test_a_study_of_one_evaluator_and_one_policy_is_whole(ward: Path, tmp_path: Path) -> None:
    named = {name: f"{__name__}:{kind.__name__}" for name, kind in KINDS.items()}
    out = run_study(written(tmp_path, SMALL.format(**named)), tmp_path / "run", ward).path
    assert verify(out) == []
    results = {file.stem: pd.read_parquet(file) for file in (out / "results").glob("*.parquet")}
    assert len(results["contrasts"]) == 2 * 2 * 3
    assert results["interactions"].empty
    assert results["paired"].empty
    assert results["hypotheses"].empty
    assert len(pd.read_csv(out / "results" / "interactions.csv").columns) > 5, "what has no rows has its columns"
    there = text_of(report_run(out))
    for sentence in (
        "The plan compares no evaluators, so whether that would be so under another is not known.",
        "Hypotheses The plan names none.",
        "The plan compares no two evaluators, so it does not tell whether an advantage survives a change of evaluator.",
        "The plan compares no two policies with each other.",
        "The plan has no second evaluator, interactions, pairs of policies or hypotheses.",
        f"Evaluator swing is of the kind {__name__}:Loudness; its settings are",
    ):
        assert sentence in there, sentence
    assert not re.search(r"(?<![\w-])(nan|None|inf|Traceback)(?![\w-])|\[\]|[{}]", there)


# other names ---------------------------------------------------------------------------------------------------------

OTHER_NAMES = {
    "strong-mga-controlled-state": "p-of-two",
    "strong-mga": "p-of-b",
    "controlled-recalibrated": "a-with-lines",
    "controlled-unbalanced": "a-unweighted",
    "controlled-1": "a-unweighted-again",
    "strong-recalibrated": "b-with-lines",
    "strong-2": "b-again",
    "mask-robust": "c",
    "controlled": "a",
    "strong": "b",
}


def renamed(text: str) -> str:
    """Names of the tiny study by other names, the longest first."""
    return re.sub("|".join(OTHER_NAMES), lambda match: OTHER_NAMES[match[0]], text)


@pytest.mark.long
def test_other_names_give_the_same_numbers_and_a_report_that_knows_no_others(finished: Path, tmp_path: Path) -> None:
    out = run_study(written(tmp_path, renamed(PLAN)), tmp_path / "run").path
    assert verify(out) == []
    files = sorted((finished / "results").glob("*.parquet"))
    assert files == sorted(finished / "results" / file.name for file in (out / "results").glob("*.parquet"))
    for file in files:
        before, after = pd.read_parquet(file), pd.read_parquet(out / "results" / file.name)
        if file.stem in ("published", "claims", "claim_cells"):
            continue  # they look for the names of the published study
        texts = [column for column in before if before[column].map(type).eq(str).any()]
        before = before.assign(**{column: before[column].map(_known) for column in texts})
        key = [column for column in before if column in KEYS or column in ("id", "patient", "bin", "rank", "replicate")]
        one, other = (each.sort_values(key, ignore_index=True) if key else each for each in (before, after))
        pd.testing.assert_frame_equal(one, other, check_exact=True, obj=file.stem)
    there = text_of(RunDirectory(out).report)
    # what the paper says stands there in its words, whatever a plan calls what it has
    start, end = (there.rindex(words) for words in ("The paper's claims", "Cells that decide the claims"))
    there = there[:start] + there[end:]
    assert not re.search("[Cc]ontrolled|[Ss]trong|[Mm]ask-[Rr]obust", there)
    names = [name for name in OTHER_NAMES.values() if not re.search(rf"(?<![\w-]){name}(?![\w-])", there)]
    assert names == []


def _known(value: object) -> object:
    return OTHER_NAMES.get(value, value) if isinstance(value, str) else value
