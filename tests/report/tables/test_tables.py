"""The report's tables: all are there, as long as the plan implies, made of results alone, with the paper beside."""

import re
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leadwise.report.names import spoken
from leadwise.report.numbers import cell, interval
from leadwise.report.tables import report_tables
from leadwise.report.tables.view import ReportTable
from leadwise.run.contents import RunContents
from leadwise.run.plan_parts import Hypothesis

COMPARED = {"claim-cells", "published", "hypotheses"}
"""Tables whose rows are about others' words."""


@pytest.fixture(scope="module")
def contents(finished: Path) -> RunContents:
    return RunContents.read(finished)


@pytest.fixture(scope="module")
def tables(contents: RunContents) -> dict[str, ReportTable]:
    return {table.name: table for table in report_tables(contents)}


# all of them ---------------------------------------------------------------------------------------------------------


def test_every_table_has_a_name_of_its_own(tables: dict[str, ReportTable], contents: RunContents) -> None:
    assert len(tables) == len(report_tables(contents))
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]+", name) for name in tables)
    assert next(iter(tables)) == "hypotheses"
    assert list(tables)[-3:] == ["claims", "claim-cells", "published"]


def test_tables_are_those_of_the_plan(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    plan = contents.plan
    contrasts = [name.removeprefix("contrasts-") for name in tables if name.startswith("contrasts-")]
    searched = [name for name, each in plan.evaluators.items() if each.references]
    assert contrasts == [name for name in searched if name not in plan.stand_ins] != searched
    interactions = [table for name, table in tables.items() if name.startswith("interactions")]
    assert len(interactions) == len(plan.interactions)
    for table, family in zip(interactions, plan.interactions, strict=True):
        assert f"{spoken(family.evaluator)} minus {spoken(family.baseline)}" in table.title


def test_tables_are_as_long_as_the_plan_implies(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    plan, studied = contents.plan, len(contents.plan.studied)
    members = {name: each for name, each in plan.evaluators.items() if name not in plan.stand_ins}
    policies, evaluators = len(plan.policies.keys() - plan.stand_ins), len(members)
    roles, metrics, labels = len(contents.scored), 3, 5
    searched = {name: set(each.references) for name, each in members.items()}
    shared = {name: len(set(plan.budgets) & found) for name, found in searched.items()}
    both = sum(shared[name] for name in plan.readers)
    budgets = len(plan.budgets)
    assert plan.transfer is not None
    matrix = len(plan.transfer.policies) * sum(shared[name] for name in plan.transfer.evaluators)
    expected = {
        "hypotheses": 0,
        "splits": len(plan.roles),
        "evaluator-quality": (roles + 1) * evaluators * 2 * 5,
        "references": metrics * sum(len(each.references) for each in plan.evaluators.values()),
        "selection": metrics * sum(len(each.references) for each in plan.evaluators.values()),
        "controls": len(contents.results["controls"]),
        "places": len(contents.results["places"]),
        **{f"contrasts-{name}": roles * policies * metrics * shared[name] for name in searched if searched[name]},
        "transfer": roles * (metrics + 1) * matrix,
        "pairs": roles * budgets * metrics * sum(len(each.evaluators) for each in plan.pairs),
        "calibration-structure": roles * both * 7,
        "calibration-differences": roles * both * studied * 7,
        "calibration-labels": roles * both * studied * labels,
        "patient-effects": roles * both * studied * 11,
        "patient-benefit": roles * both * (studied * 12 + 5),
        "alignment": roles * policies * both,
        "lead-frequencies": roles * policies * budgets,
        "modal-sets": roles * policies * budgets,
        "headroom": 12 + budgets + budgets + sum(k <= 4 for k in plan.budgets),
        "published": 0,
    }
    first = plan.interactions[0]
    cells = metrics * len(set(plan.budgets).intersection(searched[first.evaluator], searched[first.baseline]))
    # two policies by themselves, with selection and over draws of masks, one of them over seeds
    expected |= {"variance": roles * cells * (2 + 2 + 2 + 1), "equivalence": roles * policies * sum(shared.values())}
    for name, family in zip([n for n in tables if n.startswith("interactions")], plan.interactions, strict=True):
        owners = (family.evaluator, family.baseline) if family.reference == "own" else (family.reference,)
        common = set(plan.budgets).intersection(*(searched[owner] for owner in owners))
        expected[name] = roles * len(family.policies) * len(common) * metrics
    assert {name: len(tables[name].frame) for name in expected} == expected
    groups = tables["patient-groups"].frame  # as many as there happen to be
    assert roles * both * studied * labels < len(groups) <= roles * both * studied * (3 + 2 * labels)


def test_rows_can_be_told_apart(tables: dict[str, ReportTable]) -> None:
    for name in set(tables) - COMPARED:
        frame = tables[name].frame
        facts = [column for column in frame if frame[column].dtype != float and "interval" not in column]
        assert not frame.duplicated(facts).any(), name


def test_numbers_are_those_of_the_source(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    """Nothing is computed: every number of a table stands in a file that it names."""
    for table in tables.values():
        sources = [contents.results[name.strip().removesuffix(".csv")] for name in table.source.split(",")]
        known = {value for frame in sources for value in frame.select_dtypes("number").to_numpy(float).ravel()}
        shown = [
            value
            for column in table.frame
            for value in table.frame[column].dropna()
            if isinstance(value, int | float | np.number) and not isinstance(value, bool)
        ]
        assert len(shown) > 0 or not any(map(len, sources)) or table.name in ("hypotheses", "published"), table.name
        assert {float(value) for value in shown} <= known, table.name


def test_intervals_belong_to_their_numbers(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    bounds = {
        (row["delta"], interval(row["lo"], row["hi"])) for row in contents.results["contrasts"].to_dict("records")
    }
    for name in (name for name in tables if name.startswith("contrasts-")):
        assert {(row["D"], cell(row["95% interval"])) for row in tables[name].frame.to_dict("records")} <= bounds
    rows = contents.results["interactions"].to_dict("records")
    bounds = {
        (
            row["d_baseline"],
            row["d_evaluator"],
            row["interaction"],
            interval(row["lo"], row["hi"]),
            interval(row["lo_simultaneous"], row["hi_simultaneous"]),
        )
        for row in rows
    }
    shown: set[tuple[object, ...]] = set()
    for frame in (table.frame for name, table in tables.items() if name.startswith("interactions")):
        before, after = [column for column in frame if column.startswith("D ")]
        columns = [before, after, "I", "95% interval", "simultaneous 95% interval"]
        shown |= {(*numbers, cell(own), cell(joint)) for *numbers, own, joint in frame[columns].itertuples(index=False)}
    assert shown == bounds


def test_the_gap_is_closed_as_far_as_the_results_say(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    rows = contents.results["gap_closed"].to_dict("records")
    columns = ["D of the other", "D of the policy", "share closed", "95% interval of the share"]
    shown = tables["gap-closed"].frame[columns].itertuples(index=False)
    expected = [(row["d_baseline"], row["d_policy"], row["share"], interval(row["lo"], row["hi"])) for row in rows]
    assert sorted((*numbers, cell(of_share)) for *numbers, of_share in shown) == sorted(expected)


def test_pairs_carry_how_alike_the_sets_are(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    alike = contents.results["alignment"].set_index(["role", "policy", "versus", "k", "statistic", "label"])["value"]
    rows = contents.results["paired"].sort_values("delta").to_dict("records")
    shown = tables["pairs"].frame.sort_values("A − B").to_dict("records")
    for row, line in zip(rows, shown, strict=True):
        place = row["role"], row["policy_a"], row["policy_b"], row["k"]
        if row["delta"] != 0:  # pairs that do not differ stand in any order
            assert line["identical sets"] == alike[(*place, "identical", "")]
            assert line["mean Jaccard"] == alike[(*place, "jaccard", "")]


def test_shares_of_leads_and_of_shared_leads_add_up(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    leads = tables["lead-frequencies"].frame
    assert leads[["I", "II", "III", "aVR", "aVL", "aVF", *(f"V{i}" for i in range(1, 7))]].sum(axis=1).tolist() == (
        pytest.approx(leads["k"].tolist())
    )
    near = tables["alignment"].frame
    assert near[[f"{j} shared" for j in range(max(contents.plan.budgets) + 1)]].sum(axis=1).tolist() == pytest.approx(
        [1.0] * len(near)
    )
    assert (near["smallest"] <= near["mean Jaccard"] + 1e-12).all()
    assert (near["mean Jaccard"] <= near["largest"] + 1e-12).all()


def test_references_come_with_the_size_of_their_search(tables: dict[str, ReportTable]) -> None:
    frame = tables["references"].frame
    assert frame["candidates"].tolist() == [comb(12, k) for k in frame["k"]]
    assert frame["leads"].str.split().map(len).tolist() == frame["k"].tolist()


def test_a_decomposition_shows_its_own_evaluators(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    (each,) = contents.plan.decompositions
    other = each.model_copy(update={"recalibrated_evaluator": "elsewhere"})
    rows = contents.results["decomposition"]
    more = pd.concat([rows, rows.assign(recalibrated_evaluator="elsewhere", value=9.0)], ignore_index=True)
    plan = contents.plan.model_copy(update={"decompositions": [each, other]})
    results = dict(contents.results) | {"decomposition": more}
    made = {table.name: table for table in report_tables(replace(contents, plan=plan, results=results))}
    pd.testing.assert_frame_equal(made["decomposition"].frame, tables["decomposition"].frame)
    assert set(made["decomposition-2"].frame["value"]) == {9.0}
    assert "evaluator elsewhere" in made["decomposition-2"].caption
    assert len(tables["decomposition"].frame) == len(rows) > 0


def test_without_a_matrix_there_is_no_table_of_it(contents: RunContents) -> None:
    plan = contents.plan.model_copy(update={"transfer": None, "decompositions": []})
    names = {table.name for table in report_tables(replace(contents, plan=plan))}
    assert not names & {"transfer", "decomposition"}
    assert "subgroups" in names


def test_groups_name_both_evaluators_of_an_interaction(tables: dict[str, ReportTable]) -> None:
    frame = tables["subgroups"].frame
    assert set(frame[frame["quantity"] == "I"]["evaluator"]) == {"strong minus controlled"}
    assert set(frame[frame["quantity"] == "D"]["evaluator"]) == {"controlled", "strong"}


# what may be missing -------------------------------------------------------------------------------------------------


def test_a_result_that_is_missing_leaves_an_empty_table(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    sources = {name for table in tables.values() for name in re.findall(r"(\w+)\.csv", table.source)}
    assert sources <= set(contents.results)
    for gone in sources - {"contrasts"}:
        results = {name: frame for name, frame in contents.results.items() if name != gone}
        found = report_tables(replace(contents, results=results))
        assert [table.name for table in found] == list(tables)
        for table in found:
            if table.source == f"{gone}.csv":
                assert table.frame.empty
                assert len(table.frame.columns) > 0
            elif f"{gone}.csv" not in table.source:
                pd.testing.assert_frame_equal(table.frame, tables[table.name].frame)


def test_results_without_rows_make_tables_without_rows(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    kept = {"contrasts"}  # which says what roles were scored
    results = {name: frame if name in kept else frame.iloc[:0] for name, frame in contents.results.items()}
    for table in report_tables(replace(contents, results=results)):
        assert table.frame.empty == (table.source != "contrasts.csv")
        assert list(table.frame.columns) == list(tables[table.name].frame.columns)


def test_one_role_needs_no_column_and_two_do(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    about_both = {"splits", "claims"}  # a role is counted, and claims are about it, though it was not scored
    of_others = {"evaluator-quality", "seeds", "headroom", "selection", "places"}  # or of these roles and others
    results = {
        name: frame[frame["role"] != "evaluation"] if "role" in frame and name not in about_both else frame
        for name, frame in contents.results.items()
    }
    alone = {table.name: table for table in report_tables(replace(contents, results=results))}
    for name in set(tables) - {"references", "published"}:
        assert "role" in tables[name].frame
        assert ("role" in alone[name].frame) == (name in about_both | of_others), name
        assert "evaluation" not in alone[name].caption
    assert "on the audit role" in alone["interactions"].caption


# words ---------------------------------------------------------------------------------------------------------------


def test_captions_are_a_sentence_or_two_and_say_what_is_exploratory(tables: dict[str, ReportTable]) -> None:
    for table in tables.values():
        assert 1 <= len(re.findall(r"\.(?= [A-Z]|$)", table.caption)) <= 3, table.caption
        assert "{" not in table.caption + table.title
        assert ("xploratory" in table.caption) == (table.status == "exploratory"), table.name
        assert ("ost hoc" in table.caption) == (table.status == "post hoc"), table.name
        assert table.status in ("", "primary", "supporting", "secondary", "exploratory", "post hoc")
    assert "sees the labels" in tables["headroom"].caption


def test_differences_say_what_negative_means(tables: dict[str, ReportTable]) -> None:
    signs = {"D", "simultaneous 95% interval", "A − B", "difference", "ECE difference", "mean effect"}
    for table in tables.values():
        if signs & set(table.frame.columns):
            assert re.search(r"negative|above zero", table.caption), table.name


def test_names_are_as_people_write_them(tables: dict[str, ReportTable]) -> None:
    raw = {"ecg-on-demand", "mga", "ccga", "strong-mga", "strong-mga-controlled-state", "nll", "brier", "ece"}
    for name in set(tables) - {"published"}:
        frame = tables[name].frame
        assert not raw & set(frame.to_numpy(dtype=object).ravel()), name
        assert not any("_" in str(column) for column in frame)


def test_levels_are_those_of_the_plan(contents: RunContents, tables: dict[str, ReportTable]) -> None:
    assert all("level" not in table.frame or table.name == "hypotheses" for table in tables.values())
    facts = {"evaluator": "strong", "baseline": "controlled", "metrics": ["nll"], "expected": "above zero"}
    first = Hypothesis(level="primary", quantity="interaction", policies=["mga"], budgets=[2], **facts)
    later = Hypothesis(
        level="secondary", quantity="interaction", policies=["mga", "ecg-on-demand"], budgets=[2], **facts
    )
    plan = contents.plan.model_copy(update={"hypotheses": [first, later]})
    made = {table.name: table for table in report_tables(replace(contents, plan=plan))}
    assert [name for name, table in made.items() if table.status == "primary"] == ["interactions"]
    frame = made["interactions"].frame
    levels = frame.groupby(["policy", "k", "metric"])["level"].unique().map(list).to_dict()
    assert levels.pop(("MGA", 2, "NLL")) == ["primary"]
    assert levels.pop(("ECG-on-Demand", 2, "NLL")) == ["secondary"]
    assert set(map(tuple, levels.values())) == {("",)}
