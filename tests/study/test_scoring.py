"""The tables of a study: what follows from the plan, how many rows it implies, and numbers from the records alone."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.coverage import Reader, varied_records
from leadwise.cohort.cohort import Records
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.evaluators.scoring import score
from leadwise.leads import LEADS, LeadSet
from leadwise.metrics import METRICS
from leadwise.policies.random_subset import RandomSubset
from leadwise.policies.rollout import allocate
from leadwise.references import search_references
from leadwise.run.bundle import Bundle
from leadwise.run.plan import Plan, read_plan
from leadwise.run.results import TABLES
from leadwise.study.scoring import RoleResults, write_frames
from runs import gapped_results

BUDGETS = (2, 4)  # of the finished run


# what follows from a plan ---------------------------------------------------------------------------------------------


class Made(Bundle):
    """A bundle whose contents are made by hand."""

    def __init__(self, plan: Plan, **contents: dict[str, Any]) -> None:
        self.__dict__.update({"tables": {}, **contents}, plan=plan)


class Random(RandomSubset):
    """Random leads that claim to have been trained, and to begin somewhere."""

    def __init__(self, name: str, seed: int, target: Reader | None, first_lead: tuple[str, ...] | None) -> None:
        super().__init__(seed, name)
        self.target, self.first_lead = target, first_lead  # type: ignore[assignment]


def made(tmp_path: Path, records: Records, lists: str, policies: dict[str, str | None], searched: list[str]) -> Made:
    """A bundle for a plan with these lists: evaluators a, b, c, and policies, each trained on one of them or none."""
    evaluators = {}
    for name, reader in zip("abc", ("first", "second", "third"), strict=True):
        evaluators[name] = Reader(reader)
        evaluators[name].name = name
    said = [
        "budgets = [2, 3]",
        "first_lead = 'V2'",
        "cohort = {kind = 'synthetic', records = 100}",
        "bootstrap = {replicates = 25, own_replicates = 25}",
    ]
    for name in evaluators:
        said += [f"[evaluators.{name}]", "kind = 'logistic'", f"references = {[2, 3] if name in searched else []}"]
    for name, target in policies.items():
        said += [
            f"[policies.{name}]",
            *(["kind = 'mga'", f"target = '{target}'"] if target else ["kind = 'random-subset'"]),
        ]
    place = tmp_path / "plan.toml"
    place.write_text("\n".join([*said, lists]))
    chooses = {
        name: Random(name, seed, None if target is None else evaluators[target], ("V2",) if target else None)
        for seed, (name, target) in enumerate(policies.items())
    }
    references = {name: search_references(evaluators[name], records, [2, 3]) for name in searched}
    return Made(read_plan(place), evaluators=evaluators, policies=chooses, references=references)


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(patients=30, seed=12)


def frames_of(bundle: Made, records: Records, memory: Path) -> dict[str, pd.DataFrame]:
    frames = RoleResults(bundle, records, memory).frames()
    for name, frame in frames.items():
        assert list(frame.columns)[: len(TABLES[name].columns)] == list(TABLES[name].columns), name
        assert not frame.duplicated(list(TABLES[name].key)).any(), name
    return frames


def cells(frame: pd.DataFrame, *columns: str) -> set[tuple[str, ...]]:
    return set(frame[list(columns)].itertuples(index=False, name=None))


LISTS = """
[[interactions]]
policies = ["p", "q"]
evaluator = "b"
baseline = "a"

[[interactions]]
policies = ["p", "q"]
evaluator = "b"
baseline = "a"
reference = "a"

[[interactions]]
policies = ["r"]
evaluator = "c"
baseline = "b"
reference = "a"

[[pairs]]
policies = ["p", "q"]
evaluators = ["b"]

[[pairs]]
policies = ["q", "r"]
evaluators = ["a", "c"]

[[pairs]]
policies = ["p", "q"]
evaluators = ["a"]

[transfer]
policies = ["r", "p"]
evaluators = ["b", "a"]

[[decompositions]]
policies = ["q"]
evaluator = "b"
baseline = "a"
recalibrated_evaluator = "a"
recalibrated_baseline = "b"
"""


def test_what_is_compared_follows_from_the_plan(records: Records, tmp_path: Path) -> None:
    trained: dict[str, str | None] = {"p": "b", "q": "a", "r": None}
    bundle = made(tmp_path, records, LISTS, trained, ["a", "b"])
    frames = frames_of(bundle, records, tmp_path)
    own = {(policy, each, each) for policy in "pqr" for each in "ab"}
    common = {("p", "b", "a"), ("q", "b", "a"), ("r", "c", "a"), ("r", "b", "a")}
    assert cells(frames["contrasts"], "policy", "evaluator", "reference_evaluator") == own | common
    assert len(frames["contrasts"]) == len(own | common) * 2 * 3
    families = {(policy, "b", "a", reference) for policy in "pq" for reference in ("own", "a")} | {("r", "c", "b", "a")}
    assert cells(frames["interactions"], "policy", "evaluator", "baseline_evaluator", "reference") == families
    assert len(frames["interactions"]) == len(families) * 2 * 3
    assert cells(frames["paired"], "policy_a", "policy_b", "evaluator") == {
        ("p", "q", "b"),
        ("p", "q", "a"),
        ("q", "r", "a"),
        ("q", "r", "c"),
    }
    # p was trained on b, and q on another; r was trained on none, so nothing is closed between q and r
    assert cells(frames["gap_closed"], "policy", "baseline_policy", "evaluator") == {("p", "q", "b")}
    assert len(frames["gap_closed"]) == 2 * 3
    matrix = frames["transfer"]
    assert list(dict.fromkeys(zip(matrix["policy"], matrix["trained_on"], matrix["evaluator"], strict=True))) == [
        ("r", "", "b"),
        ("r", "", "a"),
        ("p", "b", "b"),
        ("p", "b", "a"),
    ]
    assert cells(matrix, "metric", "reference_metric") == {
        *((metric, metric) for metric in ("nll", "brier", "ece")),
        ("auroc", "nll"),
    }
    assert len(matrix) == 4 * 2 * 4
    parts = frames["decomposition"].pivot(index=["k", "metric"], columns="statistic", values="value")
    assert cells(frames["decomposition"], "policy", "evaluator", "baseline_evaluator") == {("q", "b", "a")}
    np.testing.assert_allclose(parts["remaining"], -parts["whole"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(parts["share"], 2, rtol=1e-12)  # the two were swapped
    assert len(parts) == 2 * 3
    groups = frames["subgroups"]
    assert cells(groups, "quantity", "policy", "evaluator", "baseline_evaluator") == {
        *(("contrast", policy, evaluator, "") for policy in "pq" for evaluator in "ab"),
        *(("interaction", policy, "b", "a") for policy in "pq"),
    }
    assert cells(groups, "metric") == {("nll",), ("brier",)}
    assert cells(frames["calibration"], "policy", "evaluator") == {
        (p, e) for p in ("p", "q", "reference") for e in "ab"
    }
    assert cells(frames["patients"], "policy", "versus", "evaluator") == {
        *((policy, "reference", evaluator) for policy in "pq" for evaluator in "ab"),
        *(("p", "q", evaluator) for evaluator in "ab"),
    }
    assert cells(frames["alignment"].query("versus == 'reference'"), "policy", "evaluator") == {
        (policy, evaluator) for policy in "pqr" for evaluator in "ab"
    }
    assert cells(frames["alignment"].query("versus not in ['', 'reference']"), "policy", "versus") == {
        ("p", "q"),
        ("q", "r"),
    }
    assert set(frames["evaluator_quality"]["evaluator"]) == set("abc")
    assert len(frames["replicates"]) == 25 * (len(frames["contrasts"]) + len(frames["interactions"]))


STAND_INS = """
[[interactions]]
policies = ["p"]
evaluator = "b"
baseline = "a"

[transfer]
policies = ["p", "r"]
evaluators = ["a", "b"]

[[variance]]
source = "draws"
stand_ins = {p = ["q", "r"], a = ["c", "a"]}
"""


def test_what_only_stands_in_for_others_is_in_no_table(records: Records, tmp_path: Path) -> None:
    """Here q and c do nothing else; r is in the matrix, too."""
    bundle = made(tmp_path, records, STAND_INS, {"p": "a", "q": "a", "r": "a"}, ["a", "b", "c"])
    assert bundle.plan.stand_ins == {"q", "c"}
    frames = frames_of(bundle, records, tmp_path)
    for name, frame in frames.items():
        if name not in ("variance", "replications"):
            for column in frame.columns.intersection(["policy", "policy_a", "policy_b", "versus"]):
                assert "q" not in set(frame[column]), name
            for column in frame.columns.intersection(["evaluator", "baseline_evaluator", "trained_on"]):
                assert "c" not in set(frame[column]), name
    assert cells(frames["contrasts"], "policy", "evaluator") == {(p, e) for p in "pr" for e in "ab"}
    assert cells(frames["transfer"], "policy", "evaluator") == {(p, e) for p in "pr" for e in "ab"}


def test_names_are_the_plans_and_change_no_number(records: Records, tmp_path: Path) -> None:
    names = {"p": "x", "q": "k", "r": "w"}
    several = []
    for renamed in ({name: name for name in names}, names):
        trained: dict[str, str | None] = {renamed["p"]: "b", renamed["q"]: "a", renamed["r"]: None}
        plan = LISTS
        for old, new in renamed.items():
            plan = plan.replace(f'"{old}"', f'"{new}"')
        place = tmp_path / "".join(renamed.values())
        place.mkdir()
        several.append(frames_of(made(place, records, plan, trained, ["a", "b"]), records, place))
    for name, frame in several[0].items():
        expected = (
            frame.replace(names) if name != "reliability" else frame.assign(policy=frame["policy"].replace(names))
        )
        pd.testing.assert_frame_equal(several[1][name], expected, check_exact=True)


def test_one_evaluator_and_one_policy(records: Records, tmp_path: Path) -> None:
    bundle = made(tmp_path, records, "", {"only": None}, ["a"])
    bundle.__dict__["evaluators"] = {"a": bundle.evaluators["a"]}
    frames = frames_of(bundle, records, tmp_path)
    for name in ("interactions", "transfer", "decomposition", "gap_closed", "paired", "left_out"):
        assert frames[name].empty, name
    assert len(frames["contrasts"]) == 2 * 3
    assert cells(frames["patients"], "policy", "versus") == {("only", "reference")}
    # no policy says where to begin, so there is no uncertainty
    assert not frames["patients"]["statistic"].str.match("spearman|Q[1-4]").any()
    assert frames["patient_effects"]["uncertainty"].isna().all()
    assert set(frames["calibration"]["policy"]) == {"only", "reference"}


def test_without_references_nothing_is_contrasted(records: Records, tmp_path: Path) -> None:
    frames = frames_of(made(tmp_path, records, "", {"p": "a", "q": None}, []), records, tmp_path)
    empty = {name for name, frame in frames.items() if frame.empty}
    about = {"calibration", "reliability", "patients", "patient_effects", "replicates"}
    about |= {"variance", "replications", "equivalence"}
    compared = {"contrasts", "interactions", "transfer", "decomposition", "subgroups", "gap_closed", "paired"}
    assert empty == about | compared | {"left_out"}
    assert set(frames["alignment"]["policy"]) == {"p", "q"}
    write_frames(tmp_path, frames)
    for name in about:
        assert list(pd.read_parquet(tmp_path / f"{name}.parquet").columns) == list(TABLES[name].columns)


VARIED = """
[[interactions]]
policies = ["p", "q"]
evaluator = "b"
baseline = "a"

[[pairs]]
policies = ["p", "q"]
evaluators = ["b"]
"""
SOURCES = """
[[variance]]
source = "networks"
stand_ins = {b = ["b", "c"]}

[[variance]]
source = "all together"
stand_ins = {p = ["s", "p"], b = ["c", "b"], a = ["b", "a"]}
"""
STUDIED: dict[str, str | None] = {"p": "a", "q": "a", "s": "a"}


def test_who_stands_in_for_others_is_in_no_other_table(records: Records, tmp_path: Path) -> None:
    bundle = made(tmp_path, records, VARIED + SOURCES, STUDIED, ["a", "b", "c"])
    assert bundle.plan.stand_ins == {"c", "s"}
    with_them = frames_of(bundle, records, tmp_path)
    alone = made(tmp_path, records, VARIED, {name: STUDIED[name] for name in "pq"}, ["a", "b"])
    del alone.__dict__["evaluators"]["c"]
    without = frames_of(alone, records, tmp_path)
    assert with_them.keys() == without.keys()
    for name in with_them.keys() - {"variance", "replications"}:
        pd.testing.assert_frame_equal(with_them[name], without[name], check_exact=True)
    own = with_them["variance"].query("interval_kind == 'conditional'").reset_index(drop=True)
    pd.testing.assert_frame_equal(own, without["variance"], check_exact=True)
    assert len(without["replications"]) == 0


def test_a_replication_is_what_a_plan_that_names_it_would_say(records: Records, tmp_path: Path) -> None:
    """Against the references of the evaluators that stand in, and with as many replicates of the same draw."""
    searched = ["a", "b", "c"]
    found = frames_of(made(tmp_path, records, VARIED + SOURCES, STUDIED, searched), records, tmp_path)
    pairs = ("b", "a"), ("c", "a"), ("c", "b")
    family = "[[interactions]]\npolicies = ['p', 'q', 's']\nevaluator = '{}'\nbaseline = '{}'\n"
    named = made(tmp_path, records, "".join(family.format(*pair) for pair in pairs), STUDIED, searched)
    frames = frames_of(named, records, tmp_path)
    facts = ["policy", "evaluator", "baseline_evaluator", "k", "metric"]
    interactions, contrasts = frames["interactions"].set_index(facts), frames["contrasts"]
    contrasts = contrasts.assign(baseline_evaluator="").set_index(facts)
    standing = {
        ("networks", 2): {"b": "c"},
        ("all together", 1): {"p": "s", "b": "c", "a": "b"},
    }
    rows = pd.concat([found["replications"], found["variance"].query("source == ''")], ignore_index=True)
    for row in rows.itertuples():
        who = standing.get((row.source, row.replication), {})
        names = [who.get(name, name) for name in (row.policy, row.evaluator, row.baseline_evaluator)]
        table, column = (interactions, "interaction") if row.quantity == "interaction" else (contrasts, "delta")
        expected = table.loc[(*names, row.k, row.metric)]
        bounds = expected[[column, "lo", "hi"]].to_list()
        np.testing.assert_allclose([row.value, row.lo, row.hi], bounds, rtol=0, atol=1e-12)
    cells = 2 * 2 * 3  # policies, budgets, metrics
    assert found["replications"].groupby("source").size().to_dict() == {
        "networks": 2 * 2 * cells,
        "all together": 2 * 3 * cells,
    }
    of_source = found["replications"].groupby(["source", "quantity", *facts], sort=False)["value"]
    means = found["variance"].query("interval_kind == 'with_seeds'").set_index(["source", "quantity", *facts])
    pd.testing.assert_series_equal(means["value"], of_source.mean(), check_index_type=False)
    assert set(means.loc["networks"]["replications"]) == {2}
    assert (means["replicates"] == 25).all()


def test_budgets_that_a_stand_in_was_not_searched_at_are_left_out(records: Records, tmp_path: Path) -> None:
    bundle = made(tmp_path, records, VARIED + SOURCES, STUDIED, ["a", "b", "c"])
    bundle.references["c"] = search_references(bundle.evaluators["c"], records, [3])
    frames = frames_of(bundle, records, tmp_path)
    assert set(frames["replications"]["k"]) == {3}
    assert set(frames["variance"].query("source == ''")["k"]) == {2, 3}
    del bundle.references["c"]
    assert frames_of(bundle, records, tmp_path)["replications"].empty


def test_equivalence_is_asked_of_every_contrast_in_nll(records: Records, tmp_path: Path) -> None:
    lists = VARIED + SOURCES + "[equivalence]\nmargin = 0.1\n"
    frames = frames_of(made(tmp_path, records, lists, STUDIED, ["a", "b", "c"]), records, tmp_path)
    facts = ["policy", "evaluator", "reference_evaluator", "k", "metric"]
    own = frames["contrasts"].query("metric == 'nll'").set_index(facts)["delta"]
    rows = frames["equivalence"].set_index(facts)
    pd.testing.assert_series_equal(rows["delta"], own)
    assert set(rows["margin"]) == {0.1}
    replicates = frames["replicates"].dropna(subset="delta").query("metric == 'nll'").groupby(facts)["delta"]
    pd.testing.assert_series_equal(rows["sd"].sort_index(), replicates.std(), check_names=False, check_index_type=False)
    inside = (rows["lo"] > -0.1) & (rows["hi"] < 0.1)
    assert set(inside) == {True, False}
    assert ((rows["verdict"] == "equivalent") == inside).all()


def test_a_policy_that_begins_nowhere_is_read_where_another_begins(records: Records, tmp_path: Path) -> None:
    frames = frames_of(made(tmp_path, records, "", {"q": None, "p": "a"}, ["a"]), records, tmp_path)
    uncertainty = frames["patient_effects"].pivot(index=["k", "patient"], columns="policy", values="uncertainty")
    pd.testing.assert_series_equal(uncertainty["p"], uncertainty["q"], check_names=False)


def test_what_was_read_before_a_kill_is_not_read_again(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = made(tmp_path, records, LISTS, {"p": "b", "q": "a", "r": None}, ["a", "b"])
    expected = frames_of(bundle, records, tmp_path)

    def read_again(*_arguments: object) -> None:
        raise AssertionError("it was read before")

    for evaluator in bundle.evaluators.values():
        monkeypatch.setattr(evaluator, "probabilities", read_again)
    for name, frame in frames_of(bundle, records, tmp_path).items():
        pd.testing.assert_frame_equal(frame, expected[name], check_exact=True)


# a finished run -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(finished: Path) -> Path:
    return finished / "results"


@pytest.fixture(scope="module")
def tables(results: Path) -> dict[str, pd.DataFrame]:
    return {file.stem: pd.read_parquet(file) for file in results.glob("*.parquet")}


def test_every_table_is_there_as_csv_and_parquet(results: Path, tables: dict[str, pd.DataFrame]) -> None:
    assert set(TABLES) <= set(tables)
    large = {name for name, table in TABLES.items() if table.large}
    assert {file.stem for file in results.glob("*.csv")} == set(tables) - large
    for file in results.glob("*.csv"):
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
        assert list(table.columns) == list(tables[file.stem].columns)
        numbers = table.select_dtypes("number").columns
        expected = tables[file.stem][numbers].reset_index(drop=True).astype(float)
        pd.testing.assert_frame_equal(table[numbers].astype(float), expected, rtol=1e-12)


def test_a_name_is_no_formula_in_a_csv(tmp_path: Path) -> None:
    """Labels are called as the user's files call them."""
    frame = pd.DataFrame({"label": ["=cmd|'/C calc'!A0", "NORM"], "value": [-0.5, 0.5]})
    write_frames(tmp_path, {"alignment": frame})
    assert (tmp_path / "alignment.csv").read_text() == "label,value\n'=cmd|'/C calc'!A0,-0.5\nNORM,0.5\n"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "alignment.parquet"), frame, check_dtype=False)


def test_rows_are_as_many_as_the_plan_implies(results: Path, tables: dict[str, pd.DataFrame]) -> None:
    plan = read_plan(results.parent / "plan.toml")
    compared = {name: each for name, each in plan.evaluators.items() if name not in plan.stand_ins}
    roles, metrics, policies = 2, 3, len(plan.policies.keys() - plan.stand_ins)
    budgets = {name: [k for k in each.references if k in plan.budgets] for name, each in compared.items()}
    common = {
        (policy, evaluator, family.reference)
        for family in plan.interactions
        for policy in family.policies
        for evaluator in (family.evaluator, family.baseline)
        if family.reference not in ("own", evaluator)
    }
    contrasts = policies * sum(map(len, budgets.values())) + sum(len(budgets[owner]) for *_, owner in common)
    assert len(tables["contrasts"]) == roles * metrics * contrasts
    interactions = 0
    for family in plan.interactions:
        owners = [family.evaluator, family.baseline] if family.reference == "own" else [family.reference]
        interactions += len(family.policies) * len(set.intersection(*(set(budgets[owner]) for owner in owners)))
    assert len(tables["interactions"]) == roles * metrics * interactions
    paired = sum(len(pair.evaluators) for pair in plan.pairs)
    assert len(tables["paired"]) == roles * metrics * len(plan.budgets) * paired
    assert len(tables["references"]) == metrics * sum(len(each.references) for each in plan.evaluators.values())
    assert len(tables["evaluator_quality"]) == (roles + 1) * len(compared) * 2 * 5
    first = plan.interactions[0]
    cells = len(first.policies) * len(set(budgets[first.evaluator]) & set(budgets[first.baseline])) * metrics
    # all three quantities of their own, and with selection; with draws of masks two of three, with seeds of one of two
    # policies three
    assert len(tables["variance"]) == roles * (2 * 3 * cells + 2 * cells + 3 * cells // 2)
    assert len(tables["replications"]) == roles * 2 * (2 * cells + 3 * cells // 2)
    assert len(tables["equivalence"]) == roles * policies * sum(map(len, budgets.values()))
    assert plan.transfer is not None
    matrix = len(plan.transfer.policies) * sum(len(budgets[name]) for name in plan.transfer.evaluators)
    assert len(tables["transfer"]) == roles * (metrics + 1) * matrix
    parts = tables["decomposition"].groupby(["role", "k", "metric"])["statistic"].agg(set)
    assert parts.index.tolist() == [
        (role, 2, metric) for role in ("audit", "evaluation") for metric in ("brier", "ece", "nll")
    ]
    assert all(found >= {"whole", "removed", "remaining"} for found in parts)
    assert len(tables["resamples"]) == roles
    assert len(tables["selection_summary"]) == len(tables["references"])
    of_readers = sum(len(budgets[name]) for name in plan.readers)
    assert len(tables["selection_choices"]) == metrics * of_readers * plan.bootstrap.own_replicates
    trained = tables["allocations"].groupby("policy")["trained_on"].first()
    readers = {name: dict.fromkeys([*plan.readers, *([target] if target else [])]) for name, target in trained.items()}
    cells_of = {name: sum(len(budgets[each]) for each in several) for name, several in readers.items()}
    assert len(tables["places"]) == metrics * sum(cells_of.values())
    learned = {"ecg-on-demand": 3, "mga": 2, "ccga": 2, "strong-mga": 2, "strong-mga-controlled-state": 2}
    every_k = {name: len(several) * len(plan.budgets) for name, several in readers.items()}
    # policies as controls need no references, the anchored set does
    controls = sum((count - 1) * every_k[name] + cells_of[name] for name, count in learned.items())
    assert len(tables["controls"]) == roles * metrics * controls
    replicates = plan.bootstrap.replicates * (len(tables["contrasts"]) + len(tables["interactions"]))
    assert len(tables["replicates"]) == replicates
    scored = tables["splits"].set_index("role").loc[["audit", "evaluation"], "records"].sum()
    assert len(tables["allocations"]) == policies * len(plan.budgets) * scored
    for name, table in TABLES.items():
        assert not tables[name].duplicated(list(table.key)).any(), name


def test_what_knows_nothing_of_the_patient_is_beside_every_learned_policy(tables: dict[str, pd.DataFrame]) -> None:
    rows = tables["controls"]
    assert cells(rows[rows["kind"] != "anchored set"], "policy", "versus", "kind") == {
        *((policy, "random-subset", "untrained policy") for policy in rows["policy"]),
        ("ecg-on-demand", "cohort-state", "policy made from it"),
    }
    paired = tables["paired"].rename(columns={"policy_a": "policy", "policy_b": "versus"})
    paired = paired.set_index(["role", "evaluator", "k", "metric", "policy", "versus"])
    own = rows[rows["policy"] == "ecg-on-demand"].set_index(["role", "evaluator", "k", "metric", "policy", "versus"])
    both = own.merge(paired, left_index=True, right_index=True, suffixes=("", "_paired"))
    assert len(both) == 2 * 2 * 2 * 2 * 3  # two controls, roles, evaluators, budgets, and the metrics
    for column, other in (("value", "delta"), ("lo", "lo_paired"), ("hi", "hi_paired")):
        np.testing.assert_array_equal(both[column], both[other])
    anchored = rows[rows["kind"] == "anchored set"]
    first = tables["references"].query("evaluator == 'controlled' and k == 1 and metric == 'nll'")["leads"].item()
    assert all(first in LeadSet.parse(leads) for leads in anchored["leads"])


def test_places_are_those_of_a_search(finished: Path, tables: dict[str, pd.DataFrame]) -> None:
    bundle = Bundle(finished / "bundle")
    assert set(tables["places"]["role"]) == {"selection"}
    records = read_ptbxl(finished / "cohort-160-3", bundle.plan.cohort_roles())["selection"]
    for name in ("mga", "cohort-state"):
        chosen = allocate(bundle.policies[name], records, 2)
        answers = score(bundle.evaluators["strong"], records, chosen.masks)
        candidates = bundle.references["strong"].ranking("nll", 2)["nll"]
        value = METRICS["nll"](records.labels, answers, None)
        row = tables["places"].query("policy == @name and evaluator == 'strong' and k == 2 and metric == 'nll'")
        assert row["value"].item() == pytest.approx(value, abs=1e-6)
        assert row["rank"].item() == 1 + (candidates < row["value"].item() - 1e-12).sum()


def test_what_was_chosen_anew_begins_with_the_reference(tables: dict[str, pd.DataFrame]) -> None:
    keys = ["evaluator", "metric", "k"]
    first = tables["selection"].query("rank == 1").set_index(keys)[["leads", "value"]].sort_index()
    pd.testing.assert_frame_equal(first, tables["references"].set_index(keys)[["leads", "value"]].sort_index())
    summary = tables["selection_summary"].set_index(keys)
    assert (summary["replicates"] == 40).all()
    assert (summary["regret"] >= 0).all()
    frozen = tables["selection_choices"].groupby(keys)["leads"].agg(lambda leads: leads.nunique())
    assert (frozen == summary["kept"].loc[frozen.index]).all()
    assert frozen.max() > 1


def test_a_choice_that_is_always_the_reference_leaves_intervals_as_they_are(records: Records, tmp_path: Path) -> None:
    lists = VARIED + SOURCES
    bundle = made(tmp_path, records, lists, STUDIED, ["a", "b", "c"])
    replicates = bundle.plan.bootstrap.own_replicates
    bundle.__dict__["tables"] = {"selection_choices": always_best(bundle, replicates)}
    rows = frames_of(bundle, records, tmp_path)["variance"]
    facts = ["quantity", "policy", "evaluator", "baseline_evaluator", "k", "metric"]
    own, anew = (
        rows[rows["interval_kind"] == kind].set_index(facts).sort_index() for kind in ("conditional", "with_selection")
    )
    assert len(own) == len(anew)
    assert set(anew["source"]) == {"references"}
    assert set(anew["replications"]) == {replicates}
    pd.testing.assert_frame_equal(own[["value", "lo", "hi", "sd"]], anew[["value", "lo", "hi", "sd"]], atol=1e-12)
    assert anew["sd_source"].max() < 1e-12


def always_best(bundle: Made, replicates: int) -> pd.DataFrame:
    """Frozen choices of every resample that are all the reference's."""
    best = pd.concat([each.frame for each in bundle.references.values()])[["evaluator", "metric", "k", "leads"]]
    return best.merge(pd.DataFrame({"replicate": range(replicates)}), how="cross").assign(role="selection")


def test_every_reading_is_there_once(tables: dict[str, pd.DataFrame]) -> None:
    assert not tables["records"].duplicated(["role", "evaluator", "id", "leads"]).any()
    assert (tables["records"]["leads"].map(lambda leads: str(LeadSet.parse(leads))) == tables["records"]["leads"]).all()


def test_allocations_have_as_many_leads_as_the_budget(tables: dict[str, pd.DataFrame]) -> None:
    leads = tables["allocations"]["leads"].str.split()
    assert (leads.map(len) == tables["allocations"]["k"]).all()
    assert (leads.map(set).map(len) == tables["allocations"]["k"]).all()


def metric_of(tables: dict[str, pd.DataFrame], role: str, evaluator: str, which: pd.DataFrame, metric: str) -> float:
    """A metric of ids and lead sets, from the readings."""
    readings = tables["records"]
    readings = readings[(readings["role"] == role) & (readings["evaluator"] == evaluator)].set_index(["id", "leads"])
    rows = readings.loc[list(zip(which["id"], which["leads"], strict=True))]
    labels = [column.removeprefix("y_") for column in rows if column.startswith("y_")]
    y = rows[[f"y_{label}" for label in labels]].to_numpy(dtype=bool)
    p = rows[[f"p_{label}" for label in labels]].to_numpy()
    if metric in ("nll", "brier"):
        assert METRICS[metric](y, p, None) == pytest.approx(rows[metric].mean(), abs=1e-12)
    return METRICS[metric](y, p, None)


def chosen(tables: dict[str, pd.DataFrame], role: str, policy: str, k: int) -> pd.DataFrame:
    rows = tables["allocations"]
    rows = rows[(rows["role"] == role) & (rows["policy"] == policy) & (rows["k"] == k)]
    return rows.assign(leads=[str(LeadSet.parse(leads)) for leads in rows["leads"]])


def test_every_contrast_can_be_recomputed_from_allocations_and_readings(
    results: Path, tables: dict[str, pd.DataFrame]
) -> None:
    references = tables["references"].set_index(["evaluator", "metric", "k"])["leads"]
    contrasts = pd.read_csv(results / "contrasts.csv")
    for row in contrasts.itertuples():
        allocation = chosen(tables, row.role, row.policy, row.k)
        fixed = allocation.assign(leads=references[row.reference_evaluator, row.reference_metric, row.k])
        assert row.reference_metric == row.metric
        a = metric_of(tables, row.role, row.evaluator, allocation, row.metric)
        b = metric_of(tables, row.role, row.evaluator, fixed, row.metric)
        np.testing.assert_allclose([row.adaptive, row.fixed, row.delta], [a, b, a - b], rtol=0, atol=1e-12)
        assert row.lo <= row.hi


def test_records_that_lack_leads_are_in_neither_arm_and_listed(results: Path, tmp_path: Path) -> None:
    records, tables = gapped_results(results.parent, tmp_path)
    searched, lists = tables["references"], []
    for k in BUDGETS:
        needed = {lead for leads in searched[searched["k"] == k]["leads"] for lead in leads.split()}
        has = records.available[:, [LEADS.index(lead) for lead in needed]].all(axis=1)
        enough = records.available.sum(axis=1) >= k
        assert 0 < (enough & ~has).sum() < len(records) - 2
        reasons = np.where(enough, "lacks a lead of a reference", f"fewer than {k} leads")[~(enough & has)]
        lists += [("audit", k, i, why) for i, why in zip(records.ids[~(enough & has)], reasons, strict=True)]
    assert list(tables["left_out"].itertuples(index=False, name=None)) == lists
    best = searched.set_index(["evaluator", "metric", "k"])["leads"]
    for row in tables["contrasts"].itertuples():
        allocation = chosen(tables, row.role, row.policy, row.k)
        allocation = allocation[~allocation["id"].isin([i for _, k, i, _ in lists if k == row.k])]
        fixed = allocation.assign(leads=best[row.reference_evaluator, row.metric, row.k])
        a, b = (metric_of(tables, row.role, row.evaluator, arm, row.metric) for arm in (allocation, fixed))
        np.testing.assert_allclose([row.adaptive, row.fixed, row.delta], [a, b, a - b], rtol=0, atol=1e-12)
    assert not tables["records"].duplicated(["role", "evaluator", "id", "leads"]).any()
    for name in ("patients", "calibration", "reliability"):
        assert len(tables[name]), name
    counts = tables["patient_effects"].groupby(["policy", "evaluator", "k"])["patient"].nunique()
    for (_, _, k), count in counts.items():
        kept = ~np.isin(records.ids, [i for _, at, i, _ in lists if at == k])
        assert count == len(np.unique(records.patients[kept]))


def test_nobody_is_left_out_where_all_records_have_all_leads(tables: dict[str, pd.DataFrame]) -> None:
    assert list(tables["left_out"].columns) == ["role", "k", "id", "reason"]
    assert tables["left_out"].empty


def test_the_matrix_can_be_recomputed_and_agrees_with_the_contrasts(tables: dict[str, pd.DataFrame]) -> None:
    references = tables["references"].set_index(["evaluator", "metric", "k"])["leads"]
    key = ["role", "policy", "evaluator", "reference_metric", "k", "metric"]
    own = tables["contrasts"][tables["contrasts"]["evaluator"] == tables["contrasts"]["reference_evaluator"]]
    own = own.set_index(key)[["delta", "lo", "hi"]]
    for row in tables["transfer"].itertuples():
        assert row.reference_metric == ("nll" if row.metric == "auroc" else row.metric)
        if row.metric != "auroc":
            found = own.loc[tuple(getattr(row, name) for name in key)].tolist()
            assert found == [row.delta, row.lo, row.hi]
            continue
        allocation = chosen(tables, row.role, row.policy, row.k)
        fixed = allocation.assign(leads=references[row.evaluator, "nll", row.k])
        a, b = (metric_of(tables, row.role, row.evaluator, arm, "auroc") for arm in (allocation, fixed))
        np.testing.assert_allclose([row.adaptive, row.fixed, row.delta], [a, b, a - b], rtol=0, atol=1e-12)


def test_groups_add_up_to_contrasts_and_interactions(tables: dict[str, pd.DataFrame]) -> None:
    whole = tables["contrasts"][tables["contrasts"]["evaluator"] == tables["contrasts"]["reference_evaluator"]]
    key = ["role", "policy", "evaluator", "k", "metric"]
    first = tables["interactions"].drop_duplicates(key)  # the plan's first family comes first
    expected = {"contrast": whole.set_index(key)["delta"], "interaction": first.set_index(key)["interaction"]}
    groups = tables["subgroups"]
    assert set(groups["quantity"]) == set(expected)
    for (quantity, *at, _), rows in groups.groupby(["quantity", *key, "group"]):
        mean = np.average(rows["value"], weights=rows["records"])
        assert mean == pytest.approx(expected[quantity].loc[tuple(at)], abs=1e-12)


def test_every_pair_can_be_recomputed(tables: dict[str, pd.DataFrame]) -> None:
    for row in tables["paired"].itertuples():
        a, b = (
            metric_of(tables, row.role, row.evaluator, chosen(tables, row.role, policy, row.k), row.metric)
            for policy in (row.policy_a, row.policy_b)
        )
        np.testing.assert_allclose([row.a, row.b, row.delta], [a, b, a - b], rtol=0, atol=1e-12)


def test_interactions_are_differences_of_contrasts_in_every_replicate(tables: dict[str, pd.DataFrame]) -> None:
    facts = ["role", "policy", "k", "metric", "evaluator", "reference_evaluator"]
    delta = tables["contrasts"].set_index(facts)["delta"]
    replicates = tables["replicates"].dropna(subset="delta").set_index([*facts, "replicate"])["delta"].sort_index()
    named = ["role", "policy", "k", "metric", "evaluator", "baseline_evaluator", "reference"]
    written = tables["replicates"].dropna(subset="interaction").set_index([*named, "replicate"]).sort_index()
    for row in tables["interactions"].itertuples():
        owners = (row.evaluator, row.baseline_evaluator) if row.reference == "own" else (row.reference, row.reference)
        keys = [
            (row.role, row.policy, row.k, row.metric, evaluator, owner)
            for evaluator, owner in zip((row.evaluator, row.baseline_evaluator), owners, strict=True)
        ]
        expected = [delta[keys[1]], delta[keys[0]], delta[keys[0]] - delta[keys[1]]]
        np.testing.assert_allclose([row.d_baseline, row.d_evaluator, row.interaction], expected, rtol=0, atol=1e-12)
        values = replicates[keys[0]] - replicates[keys[1]]
        pd.testing.assert_series_equal(
            written.loc[tuple(getattr(row, name) for name in named), "interaction"], values, check_names=False
        )
        interval = np.percentile(values, [2.5, 97.5])
        np.testing.assert_allclose([row.lo, row.hi], interval, rtol=0, atol=1e-12)
        middle = (row.lo_simultaneous + row.hi_simultaneous) / 2
        assert middle == pytest.approx(row.interaction, abs=1e-12)
        assert row.lo_simultaneous <= row.hi_simultaneous


def test_references_are_the_best_of_what_was_searched(results: Path, tables: dict[str, pd.DataFrame]) -> None:
    for row in tables["references"].itertuples():
        searched = pd.read_csv(results.parent / "bundle" / "references" / f"{row.evaluator}.csv")
        of_size = searched[searched["k"] == row.k]
        assert row.candidates == len(of_size)
        assert row.value == pytest.approx(of_size[row.metric].min(), abs=1e-12)
        best = of_size[of_size["leads"] == row.leads][row.metric].iloc[0]
        assert best == pytest.approx(row.value, abs=1e-12)


def test_one_seed_of_each_evaluator_was_chosen_by_the_selection_role(tables: dict[str, pd.DataFrame]) -> None:
    assert len(tables["seeds"])
    for _, rows in tables["seeds"].query("role == 'selection'").groupby("evaluator"):
        selection = rows.set_index("seed")
        assert selection["chosen"].sum() == 1
        assert selection["value"].idxmin() == selection["chosen"].idxmax()


def test_the_share_of_the_gap_is_what_the_contrasts_say(tables: dict[str, pd.DataFrame]) -> None:
    facts = ["role", "policy", "k", "metric", "evaluator", "reference_evaluator"]
    delta = tables["contrasts"].set_index(facts)["delta"]
    assert len(tables["gap_closed"])
    for row in tables["gap_closed"].itertuples():
        before, after = (
            delta[row.role, policy, row.k, row.metric, row.evaluator, row.evaluator]
            for policy in (row.baseline_policy, row.policy)
        )
        expected = [before, after, (before - after) / before]
        np.testing.assert_allclose([row.d_baseline, row.d_policy, row.share], expected, rtol=1e-12)


def test_all_intervals_of_a_role_share_one_resample(tables: dict[str, pd.DataFrame]) -> None:
    for row in tables["resamples"].itertuples():
        patients = tables["records"].query("role == @row.role")["patient"].unique()
        assert row.patients == len(patients)
        drawn = np.random.default_rng(row.seed).multinomial(len(patients), [1 / len(patients)] * len(patients), 40)
        assert row.sha256 == sha256(drawn[:20].astype("<i8").tobytes()).hexdigest()
        assert row.own_sha256 == sha256(drawn.astype("<i8").tobytes()).hexdigest()
        assert (row.replicates, row.own_replicates) == (20, 40)
