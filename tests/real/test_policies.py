"""The policies on the real PTB-XL: adaptation pays under the evaluator it was trained on. Everything is of fold 7."""

from pathlib import Path

import pandas as pd
import pytest

from leadwise.analysis.contrasts import contrasts_frame, estimate_contrasts
from leadwise.analysis.paired import paired_frame
from leadwise.analysis.readings import Readings
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation
from leadwise.policies.contract import POLICIES, Material
from leadwise.policies.rollout import allocate_budgets
from leadwise.references import search_references

BUDGETS = (2, 3, 4, 6, 8)


@pytest.fixture(scope="module")
def study(
    ptbxl: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pd.DataFrame, dict[str, list[Allocation]], Readings]:
    """Contrasts of all policies on fold 7 against references of fold 10, their allocations, and the readings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        cohort = read_ptbxl(ptbxl)
    train, validation = cohort["train"], cohort["validation"]
    evaluator = LogisticEvaluator().fit(train)
    references = search_references(evaluator, cohort["selection"])
    first = [str(LeadSet(int(bits))) for bits in references.ranking("nll", 1)["bits"]]
    allocations = {}
    for name in ("ecg-on-demand", "mga", "ccga", "random-subset"):
        kind, settings = POLICIES.find(name), {} if name == "random-subset" else {"target": "controlled"}
        material = Material(name, train, validation, BUDGETS, first, {"controlled": evaluator})
        policy = kind.make(kind.Settings.model_validate(settings), material)
        allocations[name] = allocate_budgets(policy, validation, BUDGETS)
    readings = Readings(validation, [evaluator])
    every = [allocation for each in allocations.values() for allocation in each]
    return contrasts_frame(estimate_contrasts(readings, every, [references])), allocations, readings


@pytest.mark.parametrize("policy", ["ecg-on-demand", "mga"])
def test_learned_policies_beat_every_reference_of_their_evaluator(study, policy: str) -> None:
    frame = study[0][study[0]["policy"] == policy]
    assert len(frame) == 15
    assert (frame["hi"] < 0).all()


def test_ccga_is_behind_both_at_four_leads(study) -> None:
    _, allocations, readings = study
    at_four = {name: each[BUDGETS.index(4)] for name, each in allocations.items()}
    pairs = [(at_four[name], at_four["ccga"]) for name in ("ecg-on-demand", "mga")]
    frame = paired_frame(readings, pairs, ["nll"])
    assert (frame["hi"] < 0).all()


def test_random_leads_lose(study) -> None:
    frame = study[0][(study[0]["policy"] == "random-subset") & (study[0]["metric"] == "nll")]
    assert (frame["lo"] > 0).all()


def test_every_policy_begins_with_the_same_lead(study) -> None:
    firsts = {int(lead) for name in ("ecg-on-demand", "mga", "ccga") for a in study[1][name] for lead in a.order[:, 0]}
    assert firsts == {3}, "aVR, as published"
