"""A plan that cannot work with a cohort is refused before anything is written, with all complaints at once."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.coverage import Reader, records_of
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.synthetic import write_synthetic
from leadwise.errors import CohortError, InputError, PlanError
from leadwise.evaluators.masked_resnet.network import MaskedResNet1D
from leadwise.evaluators.masked_resnet.sizes import network_parameters
from leadwise.references import search_references
from leadwise.run.bundle import Bundle
from leadwise.run.plan import Plan, read_plan
from leadwise.study.execute import evaluate_bundle, find_plan, run_study
from leadwise.study.feasibility import check_bundle, check_plan, plan_complaints
from leadwise.study.forecast import forecast
from runs import PLAN

PTBXL = PLAN.replace('{kind = "synthetic", records = 160, seed = 3}', '{kind = "ptbxl"}')
PLENTY = 2**53 - 1


def plan_of(tmp_path: Path, content: str = PTBXL) -> Plan:
    (tmp_path / "plan.toml").write_text(content)
    return read_plan(tmp_path / "plan.toml")


def cohort_of(
    each: int = 40,
    folds: tuple[int, ...] = tuple(range(1, 11)),
    change: Callable[[dict[str, np.ndarray]], object] = lambda _facts: None,
) -> Cohort:
    """So many records of as many patients in every fold, with two labels; ``change`` spoils it."""
    fold = np.repeat(folds, each)
    n = len(fold)
    facts = {
        "patients": np.arange(n),
        "labels": np.stack([np.arange(n) % 2 == 0, np.arange(n) % 3 == 0], axis=1),
        "missing": np.zeros((n, 12), dtype=int),
        "folds": fold,
    }
    change(facts)
    signals = np.random.default_rng(0).integers(-500, 500, (n, 12, 3)).astype(np.int16)
    signals[facts.get("silent", np.zeros(n, dtype=bool))] = 0
    return records_of(facts["patients"], facts["labels"], signals, facts["missing"], facts["folds"]).cohort


def lacking(which: object, *leads: int) -> Callable[[dict[str, np.ndarray]], object]:
    """Some records lack some leads: all three samples of each."""

    def change(facts: dict[str, np.ndarray]) -> None:
        rows = np.arange(len(facts["folds"])) if which is None else np.flatnonzero(np.isin(facts["folds"], which))
        facts["missing"][np.ix_(rows, leads)] = 3

    return change


def labelled(fold: int, value: bool) -> Callable[[dict[str, np.ndarray]], object]:
    return lambda facts: facts["labels"].__setitem__((facts["folds"] == fold, 1), value)


def one_patient(facts: dict[str, np.ndarray]) -> None:
    facts["patients"][facts["folds"] == 9] = 7_000


def one_without(facts: dict[str, np.ndarray]) -> None:
    facts["missing"][np.flatnonzero(facts["folds"] == 7)[4]] = 3


def no_lead_in_common(facts: dict[str, np.ndarray]) -> None:
    rows = np.flatnonzero(facts["folds"] == 10)
    facts["missing"][rows, np.arange(len(rows)) % 12] = 3


def silent(facts: dict[str, np.ndarray]) -> None:
    facts["silent"] = facts["folds"] < 7


EVERY = tuple(range(12))
SPOILT: dict[str, tuple[Cohort, str]] = {
    "no selection": (
        cohort_of(folds=tuple(range(1, 10))),
        "a cohort made by hand has no record for the selection role, which a study needs: none is in fold 10; give the "
        "role other folds.",
    ),
    "nothing to score": (
        cohort_of(folds=(1, 2, 3, 4, 5, 6, 7, 10)),
        "a cohort made by hand has no record for the audit role, which a study needs: none is in fold 9; give the role "
        "other folds.",
    ),
    "one patient": (
        cohort_of(change=one_patient),
        "The audit role has 1 patient; a role needs at least two, so that they can be resampled.",
    ),
    "a record without a lead": (
        cohort_of(change=one_without),
        "1 record has no lead at all in the validation role (245); take such records out of the table.",
    ),
    "too few leads to audit": (
        cohort_of(change=lacking(9, *EVERY[3:])),
        "No record of the audit role has 4 leads; the most that one has is 3, so leave out larger budgets.",
    ),
    "nothing to choose in training": (
        cohort_of(change=lacking((1, 2, 3, 4, 5, 6), *EVERY[1:])),
        "No record of the train role has 2 leads; the most that one has is 1, so leave out larger budgets.",
    ),
    "no lead in common": (
        cohort_of(change=no_lead_in_common),
        "There is no fixed set of 1, 2, 4 leads: the records of the selection role that have as many leads have fewer "
        "in common; take records that lack other leads than the rest out of the table.",
    ),
    "no wave to learn from": (
        cohort_of(change=silent),
        "Every signal of the train role is 0 throughout, so nothing can be learned from it; see what leadwise "
        "data check says.",
    ),
    "a label that none has": (
        cohort_of(change=labelled(7, False)),
        "In the validation role no record has the label B, so nothing can be fitted for it; a role needs records with "
        "and without.",
    ),
    "a label that all have": (
        cohort_of(change=labelled(7, True)),
        "In the validation role every record has the label B, so nothing can be fitted for it; a role needs records "
        "with and without.",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_a_cohort_does_not_allow_is_said(tmp_path: Path, what: str) -> None:
    cohort, sentence = SPOILT[what]
    assert plan_complaints(plan_of(tmp_path), cohort) == [sentence]


BATCH = "references = [1, 2]\nrecipe = {epochs = 2, batch = 32"
"""Of the strong evaluator."""
PLANS = {
    (BATCH, BATCH.replace("32", "500")): "'evaluators.strong.recipe.batch' is "
    "500, but the train role has 240 records; take a smaller batch.",
    (BATCH, BATCH.replace("32", "1")): "'evaluators.strong.recipe' reads one "
    "record of 3 samples at a time, from which batch normalisation learns nothing; take a larger 'batch' or 'crop'.",
    ('title = "tiny"', "roles = {train = [1], selection = [10], audit = [9]}"): "The plan gives no fold to the "
    "validation role, which a study needs; name some in 'roles.validation'.",
    ("references = [1, 2]\n", "references = [2, 12]\n"): "No record of the selection role has 12 leads, which "
    "'evaluators.strong.references' asks for; leave that out.",
    (
        'first_lead = "controlled"',
        "first_lead = 'aVR'",
    ): "'first_lead' is aVR, which no record of a cohort made by hand has; name another lead.",
}


@pytest.mark.parametrize("change", PLANS, ids=lambda change: change[1].strip())
def test_what_a_plan_asks_in_vain_is_said(tmp_path: Path, change: tuple[str, str]) -> None:
    """Every record lacks aVR, with which everything else can be done."""
    cohort = cohort_of(change=lacking(None, 3))
    assert plan_complaints(plan_of(tmp_path), cohort) == []
    assert plan_complaints(plan_of(tmp_path, PTBXL.replace(*change)), cohort) == [PLANS[change]]


def test_a_sealed_fold_is_used_only_where_the_plan_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold 8 has as many records and patients as in PTB-XL, and the plan gives it to the audit role."""
    monkeypatch.setattr("leadwise.cohort.identity._SIZES", {8: (40, 40)})
    roles = "roles = {train = [1, 2, 3, 4, 5, 6], validation = [7], selection = [10], audit = [8, 9]}\n"
    sealed, unsealed = (plan_of(tmp_path, roles + said + PTBXL) for said in ("", "unsealed = true\n"))
    assert plan_complaints(sealed, replace(cohort_of(), roles=sealed.cohort_roles())) == [
        "The plan gives fold 8 to the audit role, but of PTB-XL that fold is sealed whatever its role; give it the "
        "evaluation role, or say 'unsealed = true', which the ledger and the report then tell."
    ]
    assert plan_complaints(unsealed, replace(cohort_of(), roles=unsealed.cohort_roles())) == []


def test_all_complaints_come_at_once(tmp_path: Path) -> None:
    def spoil(facts: dict[str, np.ndarray]) -> None:
        one_patient(facts)
        one_without(facts)
        no_lead_in_common(facts)

    plan = plan_of(tmp_path, PTBXL.replace("batch = 32", "batch = 500"))
    with pytest.raises(PlanError) as caught:
        check_plan(plan, cohort_of(change=spoil))
    assert len(str(caught.value).splitlines()) == 5  # both batches


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(1, 12))
def test_references_can_be_searched_just_where_nothing_is_complained_of(seed: int, share: float, budget: int) -> None:
    def spoil(facts: dict[str, np.ndarray]) -> None:
        rng = np.random.default_rng(seed)
        rows = facts["folds"] == 10
        kinds = rng.random((2, 12)) < share  # two kinds of devices, each without some leads
        facts["missing"][rows] = 3 * kinds[rng.integers(2, size=int(rows.sum()))]

    selection = cohort_of(each=6, change=spoil)["selection"]
    searched = sorted({1, budget, max(budget, 2)})
    plan = Plan.model_validate(
        {
            "budgets": [max(budget, 2)],
            "cohort": {"kind": "ptbxl"},
            "evaluators": {"first": {"kind": "logistic", "references": searched}},
            "policies": {"any": {"kind": "random-subset"}},
        }
    )
    about_leads = [each for each in plan_complaints(plan, selection.cohort) if "leads" in each or "lead at" in each]
    try:
        search_references(Reader("first"), selection, searched)
    except InputError:
        assert about_leads
    else:
        assert not [each for each in about_leads if "lead at" not in each]


# memory --------------------------------------------------------------------------------------------------------------

HUGE = {
    "cohort.records": PLAN.replace("records = 160", f"records = {PLENTY}"),
    "evaluators.controlled-unbalanced.repeats": PLAN.replace('"none"\nrepeats = 2', f'"none"\nrepeats = {PLENTY}'),
    "evaluators.strong.widths": PLAN.replace("widths = [4, 4,", f"widths = [4, {PLENTY},", 1),
    "evaluators.strong.recipe.epochs": PLAN.replace("epochs = 2, batch = 32", f"epochs = {PLENTY}, batch = 32", 1),
    "policies.ecg-on-demand.states": PLAN.replace("states = 120", f"states = {PLENTY}", 1),
    "policies.ecg-on-demand.hidden": PLAN.replace("hidden = 8", f"hidden = {PLENTY}", 1),
    "policies.ecg-on-demand.epochs": PLAN.replace("hidden = 8\nepochs = 2", f"hidden = 8\nepochs = {PLENTY}", 1),
    "bootstrap.replicates": PLAN.replace("{replicates = 20", f"{{replicates = {PLENTY}"),
    "bootstrap.own_replicates": PLAN.replace("own_replicates = 40", f"own_replicates = {PLENTY}"),
}


@pytest.mark.parametrize("key", HUGE)
def test_a_number_that_no_memory_can_hold_is_named_before_anything_is_written(tmp_path: Path, key: str) -> None:
    plan_of(tmp_path, HUGE[key])
    for attempt in (run_study, forecast):
        with pytest.raises(PlanError) as caught:
            attempt(tmp_path / "plan.toml", tmp_path / "run")
        shown = f"[4, {PLENTY}, 8, 8]" if key.endswith("widths") else f"{PLENTY:,}"
        said, *more = str(caught.value).splitlines()
        assert said.startswith(f"'{key}' of {shown} would take about ")
        assert said.endswith(" GB; take a smaller number.")
        assert len(more) == key.endswith("widths"), "a batch of so wide a network is too large too"
    assert os.listdir(tmp_path) == ["plan.toml"]


def test_a_batch_and_neighbours_count_as_far_as_there_are_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than there are take no more memory; where memory is short, they are named too."""
    plan = plan_of(tmp_path, PLAN.replace("neighbours = 10", f"neighbours = {PLENTY}").replace("= 120", "= 1200"))
    assert plan_complaints(plan, None) == []
    monkeypatch.setattr(os, "sysconf", lambda name: 1 if name == "SC_PAGE_SIZE" else 500_000)
    named = {complaint.split("'")[1] for complaint in plan_complaints(plan, None)}
    assert {
        "policies.ccga.neighbours",
        *(f"evaluators.{name}.recipe.batch" for name in ("strong", "mask-robust")),
    } <= named


def test_a_synthetic_cohort_that_no_memory_can_hold(tmp_path: Path) -> None:
    with pytest.raises(
        CohortError, match=r"^A synthetic cohort of 10,000,000,000,000 records would take about 20,000,000 GB"
    ):
        write_synthetic(tmp_path / "cohort", 10**13, seed=1)
    assert not (tmp_path / "cohort").exists()


@pytest.mark.parametrize("widths", [(64, 96, 160, 256), (4, 4, 8, 8), (5, 5, 5, 5), (7, 3, 3, 9)])
def test_parameters_are_counted_without_a_network(widths: tuple[int, ...]) -> None:
    network = MaskedResNet1D(3, widths)
    assert network_parameters(widths, 3) == sum(weight.numel() for weight in network.parameters())


@pytest.mark.parametrize("name", ["demo", "ptbxl"])
def test_plans_that_ship_can_be_carried_out(name: str) -> None:
    plan = read_plan(find_plan(name))
    cohort = None if plan.cohort.kind == "synthetic" else cohort_of(each=400)
    assert plan_complaints(plan, cohort) == []


# before anything is written ------------------------------------------------------------------------------------------


def test_a_refused_plan_leaves_nothing(tmp_path: Path, pristine_tree: Path) -> None:
    plan_of(tmp_path, PTBXL.replace("batch = 32", "batch = 500"))
    for attempt in (run_study, forecast):
        with pytest.raises(
            PlanError, match=r"'evaluators\.strong\.recipe\.batch' is 500, but the train role has \d+ records"
        ):
            attempt(tmp_path / "plan.toml", tmp_path / "run", pristine_tree)
    assert not (tmp_path / "run").exists()


def test_a_synthetic_cohort_that_lacks_a_label_is_not_kept(tmp_path: Path) -> None:
    """Its labels are known only when it is made."""
    plan_of(tmp_path, PLAN.replace("records = 160", "records = 20").replace("batch = 32", "batch = 2"))
    with pytest.raises(PlanError, match="In the validation role no record has the label"):
        run_study(tmp_path / "plan.toml", tmp_path / "run")
    assert os.listdir(tmp_path / "run") == [".lock"]


def test_a_bundle_is_not_put_to_a_cohort_that_it_does_not_fit(finished: Path) -> None:
    bundle = Bundle(finished / "bundle")
    labels = bundle.evaluators["controlled"].labels
    with pytest.raises(PlanError) as caught:
        check_bundle(bundle.plan, labels, cohort_of(change=one_patient), "audit")
    answers, patients = str(caught.value).splitlines()
    assert answers == (
        "The frozen evaluators answer for CD, HYP, MI, NORM, STTC, but the labels of a cohort made by hand are A, B; "
        "score a cohort with the same labels."
    )
    assert patients.startswith("The audit role has 1 patient")


def test_scoring_that_is_refused_leaves_nothing(finished: Path, tmp_path: Path) -> None:
    write_synthetic(tmp_path / "cohort", records=40, seed=1)
    table = tmp_path / "cohort" / "ptbxl_database.csv"
    head, *rows = table.read_text().splitlines(keepends=True)
    audited = [row for row in rows if ",9,records100" in row]
    table.write_text(head + audited[0] + "".join(row for row in rows if row not in audited))
    assert len(read_ptbxl(tmp_path / "cohort")["audit"]) == 1
    with pytest.raises(PlanError, match="The audit role has 1 patient"):
        evaluate_bundle(finished / "bundle", tmp_path / "cohort", tmp_path / "out", "audit")
    assert not (tmp_path / "out").exists()
