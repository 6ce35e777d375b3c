"""If our results were the published ones, every number would agree and every claim would hold; and only then."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.coverage import logistic, records_of
from findings.paper import DEMAND, LABELS, ROLES, Paper
from leadwise.analysis.alignment import alignment_frame, choice_frame, policies_alignment_frame
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.calibration import calibration_frame
from leadwise.analysis.contrasts import contrasts_frame, estimate_contrasts
from leadwise.analysis.interactions import estimate_interactions, interactions_frame
from leadwise.analysis.paired import paired_frame
from leadwise.analysis.patients import overlap_frame, patient_effects, patients_frame
from leadwise.analysis.readings import Readings
from leadwise.findings.claims import claim_cells, claims_frame, read_claims
from leadwise.findings.paper import published_frame, published_numbers
from leadwise.findings.statements import QUANTITIES
from leadwise.findings.verdicts import VERDICTS
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation
from leadwise.references import search_references
from leadwise.run.plan_parts import PARTS
from leadwise.run.results import KEYS, TABLES

Results = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def results() -> Results:
    return Paper().results


@pytest.fixture(scope="module")
def published(results: Results) -> pd.DataFrame:
    return published_frame(results, ROLES)


def without_role(results: Results, role: str) -> Results:
    """As a run leaves results when a role is sealed: its records are counted, nothing is scored."""
    return {
        name: frame[frame["role"] != role] if "role" in frame.columns and name != "splits" else frame
        for name, frame in results.items()
    }


def changed(results: Results, name: str, facts: Mapping[str, Any], **cells: Any) -> Results:
    """Other numbers in the rows of one frame that agree with ``facts``."""
    frame = results[name].copy()
    rows = np.logical_and.reduce([frame[column] == value for column, value in facts.items()])
    assert rows.any()
    frame.loc[rows, list(cells)] = list(cells.values())
    return results | {name: frame}


def dropped(results: Results, name: str, facts: Mapping[str, Any]) -> Results:
    frame = results[name]
    rows = np.logical_and.reduce([frame[column] == value for column, value in facts.items()])
    assert rows.any()
    return results | {name: frame[~rows]}


def verdict(results: Results, claim: str, roles: Mapping[str, Any] = ROLES) -> tuple[Any, ...]:
    """(role, cells, holding, contradicted, verdict) of a claim."""
    frame = claims_frame(results, roles)
    (row,) = frame[frame["claim"] == claim][list(TABLES["claims"].columns[2:7])].itertuples(index=False, name=None)
    return tuple(row)


def orientation(results: Results, claim: str, roles: Mapping[str, Any] = ROLES) -> tuple[Any, ...]:
    """(role, cells, holding, contradicted) of what stands beside a claim for orientation."""
    frame = claims_frame(results, roles)
    (row,) = frame[frame["claim"] == claim][list(TABLES["claims"].columns[7:])].itertuples(index=False, name=None)
    return tuple(row)


# --- numbers


def test_every_published_number_has_one_row(published: pd.DataFrame) -> None:
    numbers = published_numbers()
    assert len(published) == len(numbers) == 412
    columns = ["table", "column", "quantity", "where", "published", "published_leads", "published_lo", "published_hi"]
    pd.testing.assert_frame_equal(published[columns], numbers[columns])
    assert (published["published"].notna() != published["published_leads"].notna()).all(), "a number or leads"
    assert (published["role"].ne("") == (numbers["fold"].notna() | numbers["folds"].ne(""))).all()


def test_a_key_names_one_row_of_our_tables(published: pd.DataFrame, results: Results) -> None:
    """A number that the paper gives twice has one key; no key is that of several rows of ours."""
    for name, rows in published.groupby("table"):
        if name != "evaluators":
            keys = [key for key in KEYS if key in results[str(name)] and rows[key].notna().any() and key != "chosen"]
            frame = results[str(name)] if name != "seeds" else results["seeds"].query("chosen")
            assert not frame.duplicated([key for key in keys if (rows[key] != "").any()]).any(), name


def test_quantities_are_unique_and_say_where(published: pd.DataFrame) -> None:
    assert tuple(published.columns) == TABLES["published"].columns
    assert published["quantity"].is_unique
    assert published["where"].str.fullmatch(r"(section )?[S\d.]+( and S\d+)?").all()
    row = published.set_index("quantity").loc["controlled contrast, ecg-on-demand, k=3, nll, fold 9"]
    assert (row["where"], row["published"], row["published_lo"]) == ("S5", -0.012196, -0.020452)


def test_what_equals_the_paper_agrees_with_it(published: pd.DataFrame) -> None:
    text = published["published_leads"].notna()
    assert text.sum() == 36
    assert (published["published_leads"] == published["ours_leads"])[text].all()
    difference = (published["ours"] - published["published"])[~text].abs()
    assert (difference <= 5.1e-5).all(), "the paper gives some numbers twice, with four digits and with six"
    assert not published["same_sign"].eq(False).any()
    assert not published["intervals_overlap"].eq(False).any()


def test_a_sign_is_compared_where_it_says_something(published: pd.DataFrame) -> None:
    """Differences and correlations, whose published values may be negative; levels, shares and counts are not."""
    signed = published["same_sign"].notna()
    differs = published["quantity"].str.contains(r"contrast|difference|interaction|Spearman|delta nll|minus")
    levels = published["quantity"].str.contains(r"reference of .* contrast")
    assert (signed == (differs & ~levels)).all()
    assert (published["published"][~signed].dropna() >= 0).all()


def test_intervals_are_compared_where_both_have_one(published: pd.DataFrame) -> None:
    both = published[["published_lo", "published_hi", "ours_lo", "ours_hi"]].notna().all(axis=1)
    assert (published["intervals_overlap"].notna() == both).all()
    assert both.sum() > 80


def test_signs_and_intervals_that_differ_are_seen(results: Results) -> None:
    facts = {"role": "audit", "policy": DEMAND, "evaluator": "controlled", "k": 2, "metric": "nll"}
    other = changed(results, "contrasts", facts, delta=0.01, lo=0.005, hi=0.015)
    frame = published_frame(other, ROLES).set_index("quantity")
    row = frame.loc["controlled contrast, ecg-on-demand, k=2, nll, fold 9"]
    assert (row["ours"], row["same_sign"], row["intervals_overlap"]) == (0.01, False, False)
    assert frame["same_sign"].eq(False).sum() == 1


def test_the_same_patients_have_a_difference_and_no_test(results: Results, published: pd.DataFrame) -> None:
    """Their errors are shared, so nothing says how far apart the two numbers may lie."""
    of_a_fold = published["fold"].notna()
    assert (published["patients"][of_a_fold] == "the same").all()
    assert published["patients"][~of_a_fold].isna().all()
    assert published["z"].isna().all()
    assert (published["difference"].notna() == published["published"].notna()).all()
    facts = {"role": "audit", "policy": DEMAND, "evaluator": "strong", "k": 4, "metric": "ece"}
    row = published_frame(changed(results, "contrasts", facts, delta=0.011579), ROLES).set_index("quantity")
    row = row.loc["strong contrast ece ecg-on-demand, k=4, fold 9"]
    assert (row["patients"], row["intervals_overlap"]) == ("the same", True)
    assert row["difference"] == pytest.approx(0.011579 - 0.005011)


def test_other_patients_stand_beside_with_a_test(results: Results) -> None:
    """Ours of the audit role, where the fold was not scored: for orientation, with z of the difference."""
    facts = {"role": "audit", "policy": DEMAND, "evaluator": "strong", "k": 4, "metric": "ece"}
    sealed = changed(without_role(results, "evaluation"), "contrasts", facts, delta=0.0116, lo=0.003, hi=0.0156)
    frame = published_frame(sealed, ROLES).set_index("quantity")
    row = frame.loc["strong contrast ece ecg-on-demand, k=4, fold 8"]
    assert (row["orientation_role"], row["orientation"], row["patients"]) == ("audit", 0.0116, "others")
    errors = [(0.000486 + 0.014115) / 3.92, (0.0156 - 0.003) / 3.92]
    assert row["z"] == pytest.approx((0.0116 + 0.007919) / np.hypot(*errors))
    assert pd.isna(row["ours"])
    assert set(frame["fold"][frame["patients"] == "others"]) == {8}
    assert (frame["patients"].eq("the same") == (frame["ours"].notna() & frame["fold"].notna())).all()
    bounds = ["published_lo", "published_hi", "orientation_lo", "orientation_hi"]
    assert (frame["z"].notna() == frame[bounds].notna().all(axis=1)).all()


def test_counts_of_patients_follow_from_shares(published: pd.DataFrame) -> None:
    counts = published.set_index("quantity")["ours"]
    assert counts["patients improved (count of 1942), k=4, fold 9"] == 1133
    assert counts["patients unchanged (count), k=4, fold 9"] == 1
    assert counts["percent of patients improved, ecg-on-demand, k=4, fold 9"] == pytest.approx(58.34)


def test_a_role_that_was_not_scored_leaves_its_numbers_empty(results: Results, published: pd.DataFrame) -> None:
    frame = published_frame(without_role(results, "evaluation"), ROLES)
    scored = frame["where"].ne("S1") & frame["quantity"].str.contains("fold 8")
    assert scored.sum() > 150
    assert frame["ours"][scored].isna().all()
    columns = TABLES["published"].columns
    numbers = list(columns[: columns.index("same_sign")])
    pd.testing.assert_frame_equal(frame.loc[~scored, numbers], published.loc[~scored, numbers])


def test_roles_of_other_folds_are_not_compared(results: Results) -> None:
    roles = {role: folds for role, folds in ROLES.items() if role != "evaluation"} | {"evaluation": [5]}
    frame = published_frame(results, roles)
    assert frame["ours"][frame["quantity"].str.contains("fold 8|total")].isna().all()
    assert frame["ours"][frame["quantity"].str.contains("fold 9")].notna().all()
    assert frame["ours"][frame["quantity"].str.startswith("records, training")].notna().all()
    elsewhere = published_frame(results, ROLES | {"train": [1, 2, 3]})
    assert elsewhere["ours"][frame["quantity"].str.contains("folds 1-6|total")].isna().all(), "counts of other folds"


def test_results_read_from_csv_are_the_same(results: Results, published: pd.DataFrame) -> None:
    """Blank cells come back as missing ones."""
    read = {name: pd.read_csv(StringIO(frame.to_csv(index=False))) for name, frame in results.items()}
    pd.testing.assert_frame_equal(published_frame(read, ROLES), published)
    pd.testing.assert_frame_equal(claims_frame(read, ROLES), claims_frame(results, ROLES))


def test_pairs_may_be_the_other_way_round(results: Results) -> None:
    swap = {"policy_a": "policy_b", "policy_b": "policy_a", "a": "b", "b": "a"}
    paired = results["paired"].rename(columns=swap)
    paired = paired.assign(delta=-paired["delta"], lo=-paired["hi"], hi=-paired["lo"])
    other = results | {"paired": paired}
    pd.testing.assert_frame_equal(claims_frame(other, ROLES), claims_frame(results, ROLES))
    pd.testing.assert_frame_equal(claim_cells(other, ROLES), claim_cells(results, ROLES))


def cases_of_missing(results: Results) -> Iterator[Results]:
    """Nothing at all, no rows, one frame less, one column less wherever it is."""
    yield {}
    yield {name: pd.DataFrame() for name in results}
    yield {name: frame[:0] for name, frame in results.items()}
    for name in results:
        yield {each: frame for each, frame in results.items() if each != name}
    for column in ("role", "policy", "k", "lo", "delta", "value"):
        yield {name: frame.drop(columns=column, errors="ignore") for name, frame in results.items()}


def test_what_is_missing_never_raises(results: Results) -> None:
    for case in cases_of_missing(results):
        frame = published_frame(case, ROLES)
        assert len(frame) == 412
        assert frame["ours"].isna().any()
        assert set(claims_frame(case, ROLES)["verdict"]) <= {"holds", "inconclusive", "not answerable"}


def test_without_roles_only_what_has_none_is_found(results: Results) -> None:
    frame = published_frame(results, {})
    found = frame[frame["ours"].notna()]["quantity"]
    assert found.str.contains(r"reference, k|candidates|^strong parameters").all()
    claims = claims_frame(results, {})
    assert set(claims["verdict"]) == {"not answerable"}
    assert claims["orientation_cells"].sum() > 0  # of the audit role, which the results name


# --- claims


OPEN = {
    "strong ECE stays negative at small budgets",
    "strong ECE turns positive at large budgets",
    "each strong ECE interval crosses zero",
    "ECG-on-Demand and MGA cannot be told apart at k=4",
    "benefit does not rise with initial uncertainty",
    "Strong-MGA shows no clear change in ECE",
    "Strong-MGA spans zero at k=8",
}
"""Claims of the paper that rest on intervals which include zero: its own numbers do not decide them."""


def test_no_claim_is_contradicted_in_the_paper_itself(results: Results) -> None:
    frame = claims_frame(results, ROLES)
    claims = read_claims()
    assert tuple(frame.columns) == TABLES["claims"].columns
    assert frame["claim"].tolist() == [claim.text for claim in claims]
    assert frame["cells"].tolist() == [
        *(15, 15, 20, 30, 20, 6, 4, 10, 1, 1, 30, 20, 30, 40, 20, 3),
        *(6, 3, 4, 4, 1, 2, 3, 2, 3, 2, 2, 2, 1, 2, 4, 1, 5, 1, 1, 8, 1),
    ]
    assert (frame["contradicted"] == 0).all()
    assert set(frame["claim"][frame["verdict"] == "inconclusive"]) == OPEN
    assert (frame["verdict"][~frame["claim"].isin(OPEN)] == "holds").all()
    assert (frame["holding"] == frame["cells"])[frame["verdict"] == "holds"].all()
    assert frame["orientation_role"].isna().all()
    assert frame["role"].tolist() == [{8: "evaluation", 9: "audit"}[claim.fold] for claim in claims]
    assert {each.quantity for claim in claims for each in claim.statements} == set(QUANTITIES) - {*PARTS}


def test_cells_are_those_that_decide(results: Results) -> None:
    cells, frame = claim_cells(results, ROLES), claims_frame(results, ROLES)
    assert tuple(cells.columns) == TABLES["claim_cells"].columns
    assert (cells.groupby("claim")["cell"].max().reindex(frame["claim"]).to_numpy() == frame["cells"]).all()
    reversal = cells[cells["claim"] == "ordered reversal at the primary cell"]
    assert reversal[["evaluator", "k", "value", "lo", "hi", "verdict", "cell"]].to_numpy().tolist() == [
        ["controlled", 4, -0.01112, -0.018652, -0.002885, "holds", 1],
        ["strong", 4, 0.029466, 0.022848, 0.036799, "holds", 1],
    ]
    assert cells["decides"].all()
    collapse = cells[cells["claim"] == "no collapse of the probabilities"].set_index("metric")["value"]
    assert collapse.to_dict() == pytest.approx({"variance": 0.0886, "entropy": 0.581565 - 0.601231})


AT = {"role": "evaluation", "policy": DEMAND, "k": 4, "metric": "nll"}
OWN = {"reference": "own", "evaluator": "strong"}
CALIBRATION = {"role": "audit", "k": 4, "evaluator": "controlled"}


ABOVE, BELOW = {"value": 0.2, "lo": 0.1, "hi": 0.3}, {"value": -0.2, "lo": -0.3, "hi": -0.1}
SPANNING = {"lo": -0.1, "hi": 0.1}


@pytest.mark.parametrize(
    ("claim", "cells", "frame", "facts", "otherwise"),
    [
        ("primary: the interaction lies above zero", 1, "interactions", AT | OWN, BELOW),
        ("all interactions lie above zero", 30, "interactions", AT | OWN, BELOW),
        ("ordered reversal at the primary cell", 1, "contrasts", AT | {"evaluator": "controlled"}, ABOVE),
        ("ordered reversal at the primary cell", 1, "contrasts", AT | {"evaluator": "strong"}, BELOW),
        (
            "mean advantage reverses under the strong evaluator",
            20,
            "contrasts",
            AT | {"evaluator": "controlled"},
            ABOVE,
        ),
        (
            *("Strong-MGA has smaller NLL gaps than MGA across budgets", 5, "paired"),
            *({"role": "evaluation", "policy_a": "strong-mga", "k": 6, "metric": "nll"}, ABOVE),
        ),
        (
            *("the interaction survives either common reference", 20, "interactions"),
            *(AT | {"evaluator": "strong", "reference": "controlled"}, BELOW),
        ),
        (
            *("label-wise ECE is higher for NORM", 1, "calibration"),
            *(CALIBRATION | {"statistic": "ece difference", "label": "NORM"}, BELOW),
        ),
        (
            *("no collapse of the probabilities", 2, "calibration"),
            *(CALIBRATION | {"statistic": "entropy", "policy": DEMAND}, {"value": 0.8, "lo": 0.7, "hi": 0.9}),
        ),
        (
            *("no collapse of the probabilities", 2, "calibration"),
            *(CALIBRATION | {"statistic": "variance retention"}, {"value": 0.9, "lo": 0.8, "hi": 0.99}),
        ),
        (
            *("patients with the most uncertainty benefit least often", 3, "patients"),
            *({"statistic": "Q4 minus Q2 benefit rate"}, ABOVE),
        ),
        (
            *("patients with one diagnosis gain and those with several lose", 2, "patients"),
            *({"statistic": "mean", "label": "several labels"}, BELOW),
        ),
        (
            *("patients with NORM gain and those without lose", 2, "patients"),
            *({"statistic": "mean", "label": "NORM positive"}, ABOVE),
        ),
        (
            *("lower probability loss and lower ECE than the ECE-matched set", 3, "calibration"),
            *(CALIBRATION | {"statistic": "nll", "policy": DEMAND}, {"value": 0.8, "lo": 0.7, "hi": 0.9}),
        ),
        (
            *("Strong-MGA narrows MGA's gap in Brier", 2, "paired"),
            *({"role": "evaluation", "policy_a": "strong-mga", "k": 4, "metric": "brier"}, ABOVE),
        ),
        (
            *("Strong-MGA narrows MGA's gap in Brier", 2, "contrasts"),
            *(AT | {"policy": "mga", "evaluator": "strong", "metric": "brier"}, BELOW),
        ),
        (
            *("all NLL interactions of the third figure lie above zero", 40, "interactions"),
            *(AT | {"evaluator": "mask-robust", "reference": "controlled"}, BELOW),
        ),
        (
            *("the strong evaluator is better with all leads", 1, "evaluator_quality"),
            *({"role": "audit", "evaluator": "strong", "metric": "nll"}, {"value": 0.6, "lo": 0.55, "hi": 0.65}),
        ),
    ],
)
def test_one_cell_decides(
    results: Results, claim: str, cells: int, frame: str, facts: dict[str, Any], otherwise: dict[str, float]
) -> None:
    """On the other side of zero it contradicts a claim; where it includes zero, the claim is open."""
    value = {"contrasts": "delta", "interactions": "interaction", "paired": "delta"}.get(frame, "value")
    other = changed(results, frame, facts, **{value if name == "value" else name: n for name, n in otherwise.items()})
    assert verdict(other, claim)[1:] == (cells, cells - 1, 1, "contradicted")
    differing = claim_cells(other, ROLES).query("claim == @claim and verdict == 'contradicted'")
    assert differing["cell"].nunique() == 1
    vague = changed(results, frame, facts, lo=-9.0, hi=9.0)
    assert verdict(vague, claim)[1:] == (cells, cells - 1, 0, "inconclusive")


@pytest.mark.parametrize(
    ("claim", "cells", "frame", "facts"),
    [
        ("each strong ECE interval crosses zero", 10, "contrasts", AT | {"evaluator": "strong", "metric": "ece"}),
        (
            *("ECG-on-Demand and MGA cannot be told apart at k=4", 3, "paired"),
            {"role": "audit", "k": 4, "policy_b": "mga", "metric": "ece"},
        ),
    ],
)
def test_zero_in_an_interval_is_no_equality(
    results: Results, claim: str, cells: int, frame: str, facts: dict[str, Any]
) -> None:
    """A claim that nothing can be told apart is contradicted where it can; it never holds."""
    assert verdict(results, claim)[1:] == (cells, 0, 0, "inconclusive")
    assert verdict(changed(results, frame, facts, lo=0.0001, hi=0.1), claim)[1:] == (cells, 0, 1, "contradicted")


def test_a_correlation_that_rises_contradicts_that_it_does_not(results: Results) -> None:
    claim, facts = "benefit does not rise with initial uncertainty", {"statistic": "spearman", "policy": "mga"}
    assert verdict(changed(results, "patients", facts, **ABOVE), claim)[2:] == (1, 1, "contradicted")
    assert verdict(changed(results, "patients", facts, **BELOW), claim)[2:] == (2, 0, "holds")


ALIKE = "no record receives the strong reference itself"


def test_a_set_that_is_the_reference_contradicts_that_none_is(results: Results) -> None:
    other = changed(results, "alignment", {"statistic": "identical", "role": "evaluation"}, value=0.001)
    assert verdict(other, ALIKE)[1:] == (1, 0, 1, "contradicted")


def beginning_with(results: Results, *leads: str) -> Results:
    rows = [{"role": "audit", "policy": DEMAND, "k": 4, "id": 1 + i, "leads": text} for i, text in enumerate(leads)]
    return results | {"allocations": pd.DataFrame(rows)}


def test_what_could_not_be_otherwise_is_trivial(results: Results) -> None:
    """A set that begins with aVR cannot equal a reference without it, scored or not; one that begins elsewhere can."""
    facts = {"evaluator": "strong", "metric": "nll", "k": 4}
    without = changed(results, "references", facts, leads="II III V1 V5")
    assert verdict(beginning_with(without, "aVR II V1 V5", "aVR I II V1"), ALIKE)[-1] == "trivial"
    assert verdict(beginning_with(without, "aVR II V1 V5", "II I V3 V4"), ALIKE)[-1] == "holds"
    assert verdict(without, ALIKE)[-1] == "holds", "where a policy begins is not known"
    assert verdict(beginning_with(results, "aVR II V1 V5"), ALIKE)[-1] == "holds", "the published reference has aVR"
    sealed = beginning_with(without_role(without, "evaluation"), "aVR II V1 V5")
    assert verdict(sealed, ALIKE)[-1] == "trivial"


def test_a_lead_that_comes_first_is_in_every_set(results: Results) -> None:
    claim, facts = "aVR stands in every adaptive set", {"statistic": "lead frequency", "label": "aVR"}
    assert verdict(results, claim)[1:] == (1, 1, 0, "holds")
    assert verdict(changed(results, "alignment", facts, value=0.999), claim)[1:] == (1, 0, 1, "contradicted")
    assert verdict(beginning_with(results, "aVR II V1 V5"), claim)[-1] == "trivial"
    assert verdict(beginning_with(results, "aVR II V1 V5", "II aVR V1 V5"), claim)[-1] == "holds"


def test_one_lead_more_often_than_another_takes_both_intervals(results: Results) -> None:
    claim, facts = "I II V1 and V6 are chosen more often than III and V2", {"statistic": "lead frequency"}
    assert verdict(changed(results, "alignment", facts | {"label": "V6"}, lo=0.27, hi=0.34), claim)[1:] == (
        *(8, 7, 0),
        "inconclusive",
    ), "it overlaps with that of III"
    rare = changed(results, "alignment", facts | {"label": "V6"}, value=0.1, lo=0.09, hi=0.11)
    assert verdict(rare, claim)[1:] == (8, 6, 2, "contradicted")


@pytest.mark.parametrize("expected", VERDICTS)
def test_each_verdict_has_a_case(results: Results, expected: str) -> None:
    """One claim in words, put to results that differ in what decides it, and in nothing else."""
    primary = "primary: the interaction lies above zero"
    cases = {
        "holds": (results, primary),
        "contradicted": (changed(results, "interactions", AT | OWN, interaction=-0.2, lo=-0.3, hi=-0.1), primary),
        "inconclusive": (changed(results, "interactions", AT | OWN, **SPANNING), primary),
        "trivial": (
            changed(
                beginning_with(results, "aVR II V1 V5"),
                *("references", {"evaluator": "strong", "metric": "nll", "k": 4}),
                leads="II III V1 V5",
            ),
            ALIKE,
        ),
        "not answerable": (dropped(results, "interactions", AT | OWN), primary),
    }
    assert verdict(*cases[expected])[-1] == expected


def test_a_missing_cell_leaves_a_claim_unanswered_unless_another_contradicts_it(results: Results) -> None:
    claim = "all interactions lie above zero"
    partial = dropped(results, "interactions", AT | OWN)
    assert verdict(partial, claim) == ("evaluation", 29, 29, 0, "not answerable")
    vague = changed(partial, "interactions", AT | OWN | {"k": 2}, **SPANNING)
    assert verdict(vague, claim) == ("evaluation", 29, 28, 0, "not answerable")
    opposite = changed(partial, "interactions", AT | OWN | {"k": 2}, lo=-0.03, hi=-0.01)
    assert verdict(opposite, claim) == ("evaluation", 29, 28, 1, "contradicted")


def test_an_interval_that_is_missing_decides_nothing(results: Results) -> None:
    other = changed(results, "interactions", AT | OWN, lo=np.nan)
    assert verdict(other, "primary: the interaction lies above zero")[1:] == (0, 0, 0, "not answerable")


def test_the_audit_stands_beside_claims_about_a_sealed_role_and_decides_nothing(results: Results) -> None:
    sealed = without_role(results, "evaluation")
    claim = "controlled differences lie below zero with their intervals"
    assert verdict(sealed, claim) == ("evaluation", 0, 0, 0, "not answerable")
    assert orientation(sealed, claim) == ("audit", 30, 30, 0)
    opposite = changed(sealed, "contrasts", {"evaluator": "controlled"}, lo=0.1, hi=0.2)
    assert verdict(opposite, claim)[-1] == "not answerable"
    assert orientation(opposite, claim) == ("audit", 30, 0, 30)
    assert verdict(sealed, "MGA beats its controlled references") == ("audit", 15, 15, 0, "holds")
    frame, cells = claims_frame(sealed, ROLES), claim_cells(sealed, ROLES)
    assert frame["claim"].tolist() == [claim.text for claim in read_claims()], "one row a claim"
    assert (frame["verdict"][frame["role"] == "evaluation"] == "not answerable").all()
    assert set(cells["role"]) == {"audit"}
    assert set(cells["claim"][~cells["decides"]]) == set(frame["claim"][frame["orientation_cells"] > 0])
    assert (frame["role"][frame["orientation_cells"] > 0] == "evaluation").all()


def test_without_the_audit_role_nothing_stands_beside(results: Results) -> None:
    neither = without_role(without_role(results, "evaluation"), "audit")
    frame = claims_frame(neither, ROLES)
    assert len(frame) == len(read_claims())
    assert set(frame["verdict"]) == {"not answerable"}
    assert frame["orientation_role"].isna().all()


def test_a_plan_without_the_fold_cannot_answer(results: Results) -> None:
    roles = {role: folds for role, folds in ROLES.items() if role != "evaluation"} | {"evaluation": [5]}
    claim = "primary: the interaction lies above zero"
    assert verdict(results, claim, roles) == ("evaluation", 0, 0, 0, "not answerable")
    assert orientation(results, claim, roles) == ("audit", 1, 1, 0)


def test_a_role_with_more_folds_than_a_statement_is_about_does_not_answer_it(results: Results) -> None:
    """Neither as the same patients nor as others, since some are the same."""
    both = {"audit": [8, 9], "train": ROLES["train"]}
    numbers = published_frame(results, both)
    assert numbers["ours"][numbers["fold"].isin([8, 9])].isna().all()
    assert numbers["orientation"].isna().all()
    assert numbers["z"].isna().all()
    claims = claims_frame(results, both)
    assert set(claims["verdict"]) == {"not answerable"}
    assert claims["orientation_role"].isna().all()


def test_the_documents_have_the_verdicts_of_today() -> None:
    """Those on the audit of PTB-XL, from the tables that lie beside them."""
    home = Path(__file__).parents[2] / "docs"
    tables = {file.stem: pd.read_csv(file) for file in (home / "results").glob("*.csv")}
    claims, cells, numbers = (tables.pop(name) for name in ("claims", "claim_cells", "published"))
    tables["allocations"] = pd.DataFrame({"policy": [DEMAND], "leads": ["aVR II V1 V5"]})  # all begin so
    for kept, made in (
        (claims, claims_frame(tables, ROLES)),
        (cells, claim_cells(tables, ROLES)),
        (numbers, published_frame(tables, ROLES)),
    ):
        again = pd.read_csv(StringIO(made.to_csv(index=False)))
        pd.testing.assert_frame_equal(again, kept, rtol=1e-12)
    text = (home / "results.md").read_text(encoding="utf-8")
    said = [re.escape(row.claim) + r" \|[^|]*\|[^|]*\| \**" + row.verdict for row in claims.itertuples()]
    assert [line for line in said if not re.search(line, text)] == []


# --- frames of the analysis itself, so that both call things alike


class Reader:
    """An evaluator that weighs leads in a way of its own."""

    labels = LABELS

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.weights = np.random.default_rng(seed).standard_normal((12, len(LABELS)))

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return logistic(signals[:, :, 0].astype(np.float64) @ self.weights / masks.sum(axis=1)[:, None])


@pytest.fixture(scope="module")
def analysed() -> Results:
    """Everything of the audit role at budget four, made by the functions that make a run's results."""
    rng = np.random.default_rng(5)
    patients = np.repeat(np.arange(40), 2)
    signals = (rng.standard_normal((80, 12, 3)) * 1000).astype(np.int16)
    cohort = replace(records_of(patients, rng.random((80, 5)) < 0.4, signals).cohort, label_names=LABELS)
    records = cohort.records
    evaluators = [Reader("controlled", 1), Reader("strong", 2), Reader("mask-robust", 3)]
    references = {each.name: search_references(each, records, [4]) for each in evaluators}
    readings = Readings(records, evaluators, PatientBootstrap(records, 20))
    on_demand, mga, ccga, strong_mga = several = [
        Allocation(records, policy, "controlled", rng.random((80, 12)).argsort(axis=1)[:, :4])
        for policy in (DEMAND, "mga", "ccga", "strong-mga")
    ]
    found = [
        each
        for reference in ("own", "controlled", "strong")
        for each in estimate_contrasts(readings, several, references.values(), reference)
    ]
    pairs = [(on_demand, mga), (on_demand, ccga), (strong_mga, mga)]
    best = references["controlled"].best("nll", 4)
    effects = [patient_effects(readings, "controlled", each, best, LeadSet.of(["aVR"])) for each in (on_demand, mga)]
    bootstrap = readings.bootstrap
    near = [
        alignment_frame(bootstrap, on_demand, references[owner].best("nll", 4), owner, "nll")
        for owner in ("controlled", "strong")
    ]
    ece_matched = references["controlled"].best("ece", 4)
    return {
        "splits": pd.DataFrame({"role": ["audit"], "patients": [40]}),
        "contrasts": contrasts_frame(found),
        "interactions": pd.concat(
            [
                interactions_frame(estimate_interactions(found, evaluator, "controlled", each))
                for evaluator, each in (
                    *(("strong", owner) for owner in ("own", "controlled", "strong")),
                    ("mask-robust", "controlled"),
                )
            ]
        ),
        "paired": paired_frame(readings, pairs),
        "references": pd.concat([each.frame for each in references.values()]),
        "calibration": calibration_frame(readings, "controlled", [on_demand, mga], ece_matched),
        "patients": pd.concat([*map(patients_frame, effects), overlap_frame(*effects)]),
        "alignment": pd.concat(
            [*near, policies_alignment_frame(bootstrap, on_demand, mga), choice_frame(bootstrap, on_demand)]
        ),
    }


def test_the_analysis_calls_things_as_they_are_looked_up(analysed: Results) -> None:
    """With the audit role in place of each published one, all of budget four is found, but for what is named."""
    frames = [published_frame(analysed, {"audit": [fold]}).query("fold == @fold or fold.isna()") for fold in (8, 9)]
    frame = pd.concat(frames)
    missing = frame["quantity"][frame["ours"].isna() & frame["ours_leads"].isna() & frame["k"].eq(4)]
    ends = {f"{which} patient delta nll, k=4, fold 9" for which in ("smallest", "largest")}
    assert set(missing) <= ends | {"share of mga's nll gap closed by strong-mga, k=4, fold 8"}


def test_the_analysis_decides_the_claims_of_its_budget(analysed: Results) -> None:
    of_budget = [claim for claim in read_claims() if {k for each in claim.statements for k in each.budgets} == {4}]
    needed = {claim.text: len({p[:3] + p[5:] for each in claim.statements for p in each.places}) for claim in of_budget}
    cells = {fold: claims_frame(analysed, {"audit": [fold]}).set_index("claim")["cells"] for fold in (8, 9)}
    assert {claim.text: cells[claim.fold][claim.text] for claim in of_budget} == needed
