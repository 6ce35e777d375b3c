"""The paper's numbers beside ours: each finds its row, and says of which fold it is."""

from dataclasses import replace
from importlib.resources import files
from math import comb
from pathlib import Path

import pandas as pd
import pytest

from findings.paper import BUDGETS, LABELS, METRICS, ROLES, Paper
from leadwise.cohort.identity import Identity
from leadwise.findings.claims import claim_cells, claims_frame
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.findings.paper import published_frame, published_numbers
from leadwise.report.numbers import Estimate, Named, cell, number
from leadwise.report.tables import report_tables
from leadwise.report.tables.view import ReportTable
from leadwise.run.contents import RunContents
from leadwise.run.plan import read_plan


@pytest.fixture(scope="module")
def synthetic(finished: Path) -> RunContents:
    return RunContents.read(finished)


def as_published(synthetic: RunContents, roles: tuple[str, ...] = ("audit", "evaluation")) -> RunContents:
    """A run on PTB-XL that found what the paper found, as far as these roles were scored."""
    plan = read_plan(Path(str(files("leadwise") / "studies" / "ptbxl.toml")))
    unscored = {"audit", "evaluation"} - set(roles)
    results = {
        name: frame[~frame["role"].isin(unscored)] if name != "splits" and "role" in frame else frame
        for name, frame in Paper().results.items()
    }
    results["published"] = published_frame(results, ROLES)
    results["hypotheses"] = hypotheses_frame(plan, results)
    results["claims"], results["claim_cells"] = claims_frame(results, ROLES), claim_cells(results, ROLES)
    real = Identity("ptbxl", None, {})
    return replace(synthetic, plan=plan, results=results, cohort=real, made_on=real)


@pytest.fixture(scope="module")
def run_as_published(synthetic: RunContents) -> RunContents:
    return as_published(synthetic)


@pytest.fixture(scope="module")
def tables(run_as_published: RunContents) -> dict[str, ReportTable]:
    return {table.name: table for table in report_tables(run_as_published)}


def paper_columns(frame: pd.DataFrame) -> list[str]:
    return [column for column in frame if str(column).startswith("paper")]


def test_synthetic_recordings_have_no_paper_beside(synthetic: RunContents) -> None:
    tables = {table.name: table for table in report_tables(synthetic)}
    for table in tables.values():
        if table.name != "published":
            assert paper_columns(table.frame) == []
            assert "published.csv" not in table.source
    assert tables["published"].frame.empty
    assert "this is something else" in tables["published"].caption


MAIN = {
    "hypotheses": "estimate",
    "evaluator-quality": "value",
    "contrasts-controlled": "D",
    "contrasts-strong": "D",
    "pairs": "A − B",
    "gap-closed": "difference",
    "calibration-differences": "value",
    "calibration-labels": "ECE difference",
    "patient-effects": "value",
    "patient-benefit": "value",
    "patient-groups": "mean effect",
    "interactions": "I",
    "interactions-strong-controlled-controlled": "I",
    "interactions-strong-controlled-strong": "I",
    "interactions-mask-robust-controlled-controlled": "I",
    "claim-cells": "value",
    "seeds": "value",
}
"""The column that the paper's number without a word stands beside."""


@pytest.mark.parametrize("name", MAIN)
def test_beside_what_the_paper_found_stands_the_same(tables: dict[str, ReportTable], name: str) -> None:
    frame = tables[name].frame
    compared = 0
    for row in frame.to_dict("records"):
        for said in (row[column] for column in paper_columns(frame)):
            for word, estimate in said.parts[:1]:
                if not word:
                    assert number(estimate.value) == number(row[MAIN[name]]), row
                    if not pd.isna(estimate.lo):
                        ours = row["95% interval"]
                        assert str(estimate) == str(Estimate(row[MAIN[name]], ours.lo, ours.hi))
                    compared += 1
    assert compared > 0


def test_claims_about_statistics_have_the_paper_beside_them(tables: dict[str, ReportTable]) -> None:
    frame = tables["claim-cells"].frame
    beside = frame[frame["paper, fold 9"].map(str) != ""]
    shares = beside.groupby("claim").size() / frame.groupby("claim").size()
    for claim, share in {
        "patients with NORM gain and those without lose": 1,
        "benefit does not rise with initial uncertainty": 1,
        "label-wise ECE is lower for all labels but NORM": 1,
        "the strong evaluator is better with all leads": 1,
        "the ECE contrast is negative for every number of bins": 3 / 4,  # that of ten bins is a contrast
    }.items():
        assert shares[claim] == share, claim


def test_what_else_the_paper_says_is_ours_too(tables: dict[str, ReportTable]) -> None:
    """Numbers after a word, which is the heading of our column."""
    for name in ("contrasts-controlled", "pairs", "gap-closed", "calibration-structure", "alignment"):
        frame, compared = tables[name].frame, 0
        for row in frame.to_dict("records"):
            for word, estimate in (part for column in paper_columns(frame) for part in row[column].parts if part[0]):
                assert estimate.value == pytest.approx(row[word], abs=6e-5), (name, word)
                compared += 1
        assert compared > 0, name


def test_every_line_of_the_paper_finds_its_row(tables: dict[str, ReportTable]) -> None:
    """As many numbers stand beside rows as the publication has of the rows that are shown."""
    numbers = published_numbers()

    def shown(*names: str) -> int:
        frames = [tables[name].frame for name in names]
        return sum(
            word == "" or word in frame
            for frame in frames
            for column in paper_columns(frame)
            for said in frame[column]
            for word, _ in said.parts
        )

    def printed(table: str, **facts: object) -> int:
        rows = numbers[numbers["table"] == table]
        for column, value in facts.items():
            rows = rows[rows[column] == value]
        keys = [column for column in rows if column not in ("quantity", "where", "unit", "signed", "published_leads")]
        keys = [column for column in keys if not str(column).startswith("published")]
        return len(rows.drop_duplicates(keys))

    own = {"evaluator": "controlled", "reference_evaluator": "controlled"}
    assert shown("contrasts-controlled") == printed("contrasts", **own)
    own = {"evaluator": "strong", "reference_evaluator": "strong"}
    assert shown("contrasts-strong") == printed("contrasts", **own)
    robust = tables["interactions-mask-robust-controlled-controlled"].frame["paper, fold 8"]
    assert sum(part[0] == "" for said in robust for part in said.parts) == 2 * len(BUDGETS) * len(METRICS)
    assert shown("calibration-structure", "calibration-differences", "calibration-labels") == printed("calibration")
    without_size = 2  # groups whose number of patients the made-up results do not have
    assert shown("patient-benefit", "patient-groups", "patient-effects") == printed("patients") - without_size
    assert shown("evaluator-quality") == printed("evaluator_quality")
    assert shown("references") == printed("references")
    assert len(tables["published"].frame) == len(numbers)
    assert len(LABELS) == sum(said != Named() for said in tables["calibration-labels"].frame["paper, fold 9"])


def test_references_stand_beside_their_own(tables: dict[str, ReportTable]) -> None:
    for row in tables["references"].frame.to_dict("records"):
        texts = {word: cell(part) for word, part in row["paper"].parts}
        assert texts.get("", row["leads"]) == row["leads"]
        assert texts.get("candidates", str(comb(12, row["k"]))) == str(comb(12, row["k"]))


def test_splits_stand_beside_their_own(tables: dict[str, ReportTable]) -> None:
    frame = tables["splits"].frame
    texts = {
        row["role"]: "; ".join(str(row[column]) for column in paper_columns(frame) if str(row[column]))
        for row in frame.to_dict("records")
    }
    for row in frame.to_dict("records"):
        counts = row["records"], row["patients"], row["without any label"]
        expected = "records {}; patients {}; without any label {}".format(*map(cell, counts))
        assert expected in texts[row["role"]]
    assert "share of CD 0.2264; share of HYP 0.1233" in texts["evaluation"]


@pytest.mark.parametrize(("scored", "fold", "other"), [("audit", 9, 8), ("evaluation", 8, 9)])
def test_a_fold_that_was_not_scored_is_called_another(
    synthetic: RunContents, run_as_published: RunContents, scored: str, fold: int, other: int
) -> None:
    found = {table.name: table.frame for table in report_tables(as_published(synthetic, (scored,)))}
    whole = {table.name: table.frame for table in report_tables(run_as_published)}
    wrong = {f"paper, fold {other}", f"paper, fold {fold} (another fold)"}
    # claims are about a fold whether it was scored or not
    assert all(name in ("splits", "claim-cells") or not wrong & set(frame) for name, frame in found.items())
    there = whole["contrasts-strong"].query("role != @scored")[["policy", "k", "metric", f"paper, fold {other}"]]
    beside = found["contrasts-strong"].merge(there, how="left", on=["policy", "k", "metric"])
    said = beside[f"paper, fold {other} (another fold)"]
    assert said.map(str).tolist() == beside[f"paper, fold {other}"].map(cell).tolist()
    assert (said.map(str) != "").any()


def test_the_interval_of_a_number_that_is_given_twice_is_shown(tables: dict[str, ReportTable]) -> None:
    frame = tables["contrasts-strong"].frame
    row = frame[(frame["role"] == "evaluation") & (frame["policy"] == "MGA") & (frame["k"] == 4)].iloc[0]
    lines = published_numbers().query("table == 'contrasts' and fold == 8 and policy == 'mga' and k == 4")
    lines = lines[lines["published_lo"].notna()]
    line = lines.query("reference_evaluator == 'strong' and metric == 'nll' and evaluator == 'strong'").iloc[0]
    assert row["metric"] == "NLL"
    assert row["paper, fold 8"].parts[0][1] == Estimate(line["published"], line["published_lo"], line["published_hi"])


def test_the_seed_is_no_count(tables: dict[str, ReportTable]) -> None:
    frame = tables["seeds"].frame
    said = "; ".join(str(row[column]) for row in frame.to_dict("records") for column in paper_columns(frame))
    assert "seed 20060928" in said
    assert "epoch 54" in said
    published = tables["published"].frame.set_index("quantity")
    assert cell(published.loc["strong chosen seed", "paper"]) == "20060928"
    assert cell(published.loc["strong parameters", "paper"]) == "2,774,685"
    assert cell(published.loc["controlled reference, k=2, nll", "ours"]) == "aVR aVL"
