"""The paper's numbers beside ours: each finds its row, and says of which fold it is."""

import re
from dataclasses import replace
from importlib.resources import files
from math import comb
from pathlib import Path

import pandas as pd
import pytest
from leadwise.report.wording import cell, estimate, number

from findings.paper import BUDGETS, FACTS, LABELS, METRICS, ROLES, Paper, lines
from leadwise.cohort.identity import Identity
from leadwise.findings.claims import claim_cells, claims_frame
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.findings.paper import published_frame, read_published
from leadwise.report.tables import ReportTable, report_tables
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
    results["calibration"] = pd.concat([results["calibration"], _binnings(roles)])
    folds = [" ".join(map(str, ROLES[role])) for role in results["splits"]["role"]]
    results["splits"] = results["splits"].assign(folds=folds)
    results["published"] = published_frame(results, ROLES, FACTS).astype({"published": str, "ours": str})
    results["hypotheses"] = hypotheses_frame(plan, results)
    results["claims"], results["claim_cells"] = claims_frame(results, ROLES), claim_cells(results, ROLES)
    real = Identity("ptbxl", None, {})
    return replace(synthetic, plan=plan, results=results, cohort=real, made_on=real)


def _binnings(roles: tuple[str, ...]) -> pd.DataFrame:
    """Differences by number of bins, where a run has them."""
    said = {line["name"]: float(line["value"]) for line in lines("scalars")}
    place = {"role": "audit", "policy": "ecg-on-demand", "versus": "reference", "evaluator": "controlled", "k": 4}
    rows = [
        place | {"statistic": f"{metric} difference", "value": said[f"ece contrast {bins} bins ecg-on-demand fold9 k4"]}
        for metric, bins in {"ece5": 5, "ece": 10, "ece15": 15, "ece20": 20}.items()
    ]
    return pd.DataFrame(rows if "audit" in roles else []).assign(reference_metric="ece", label="")


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
    "strong-mga": "D",
    "pairs": "A − B",
    "calibration-differences": "value",
    "calibration-labels": "ECE difference",
    "patient-effects": "value",
    "patient-benefit": "value",
    "patient-groups": "mean effect",
    "interactions": "I",
    "interactions-common": "I",
    "interactions-mask-robust": "I",
    "strong-mga-gap": "difference",
    "seeds": "value",
}
"""The column that the paper's first number in a row stands beside."""


@pytest.mark.parametrize("name", MAIN)
def test_beside_what_the_paper_found_stands_the_same(tables: dict[str, ReportTable], name: str) -> None:
    frame = tables[name].frame
    compared = 0
    for row in frame.to_dict("records"):
        for column in paper_columns(frame):
            said = row[column].split(";")[0]
            if re.match(r"−?\d", said):
                assert said.split()[0] == number(row[MAIN[name]]), row
                if "[" in said:
                    assert said.split(" ", 1)[1] == row["95% interval"]
                compared += 1
    assert compared > 0


def test_what_else_the_paper_says_is_ours_too(tables: dict[str, ReportTable]) -> None:
    """Numbers after a word, where the word is the heading of our column."""
    headings = {"Jaccard": "mean Jaccard", "identical": "identical sets", "share": "share closed"}
    for name in ("contrasts-controlled", "pairs", "calibration-structure", "alignment", "lead-frequencies"):
        frame, compared = tables[name].frame, 0
        for row in frame.to_dict("records"):
            for part in "; ".join(row[column] for column in paper_columns(frame)).split("; "):
                word, _, value = part.rpartition(" ")
                column = word if word in frame else headings.get(word, "")
                if column in frame and value:
                    assert float(value) == pytest.approx(row[column], abs=6e-5), (name, word)
                    compared += 1
        assert compared > 5, name


def test_every_line_of_the_paper_finds_its_row(tables: dict[str, ReportTable]) -> None:
    def said(name: str, fold: int) -> int:
        return int((tables[name].frame[f"paper, fold {fold}"] != "").sum())

    policies, metrics, budgets = 2, len(METRICS), len(BUDGETS)
    assert said("interactions", 8) == len(read_published("interactions_fold8")) == policies * budgets * metrics
    assert said("interactions-mask-robust", 8) == len(read_published("mask_robust_interactions_fold8"))
    assert said("interactions-common", 8) == len(read_published("common_reference_fold8_k4_nll")) - 1  # one is own
    assert said("contrasts-controlled", 8) == policies * budgets * metrics
    derived = 2 * metrics  # of MGA and CCGA
    assert said("contrasts-controlled", 9) == len(read_published("controlled_deltas_fold9")) + derived
    assert said("contrasts-strong", 9) == policies * metrics
    assert said("contrasts-strong", 8) == policies * budgets * metrics + metrics  # Strong-MGA at one budget
    assert said("pairs", 9) == len(read_published("adaptive_comparators_fold9_k4"))
    assert said("pairs", 8) == said("strong-mga-gap", 8) == len(read_published("strong_mga_minus_mga_fold8_k4"))
    assert said("calibration-structure", 9) == len(read_published("calibration_structure_fold9_k4"))
    assert said("calibration-differences", 9) == 4 + 1  # binnings, and the variance
    assert said("calibration-labels", 9) == len(LABELS)
    assert said("patient-effects", 9) == len(read_published("patient_effects_fold9_k4")) + 2  # smallest and largest
    assert said("patient-benefit", 9) == 2 + 4 + 1 + 5
    assert said("evaluator-quality", 9) == 2 * 5
    assert said("evaluator-quality", 7) == 2 * 5 + 1
    assert said("alignment", 8) == 2
    assert said("lead-frequencies", 8) == 1
    assert (tables["references"].frame["paper"] != "").all()
    assert len(tables["references"].frame) == 2 * len(read_published("fixed_subsets"))
    assert len(tables["published"].frame) == len(published_frame({}, {}))


def test_references_stand_beside_their_own(tables: dict[str, ReportTable]) -> None:
    for row in tables["references"].frame.to_dict("records"):
        assert row["paper"] == f"{row['leads']}; out of {comb(12, row['k'])}"


def test_splits_stand_beside_their_own(tables: dict[str, ReportTable]) -> None:
    frame = tables["splits"].frame
    texts = {
        row["role"]: "; ".join(row[column] for column in paper_columns(frame) if row[column])
        for row in frame.to_dict("records")
    }
    for row in frame.to_dict("records"):
        counts = row["records"], row["patients"], row["without any label"]
        expected = "records {}; patients {}; unlabelled {}".format(*map(cell, counts))
        assert texts[row["role"]].startswith(expected)
    assert texts["evaluation"].endswith("CD 0.2264; HYP 0.1233; MI 0.2476; NORM 0.4289; STTC 0.2365")


@pytest.mark.parametrize(("scored", "fold", "other"), [("audit", 9, 8), ("evaluation", 8, 9)])
def test_a_fold_that_was_not_scored_is_called_another(
    synthetic: RunContents, run_as_published: RunContents, scored: str, fold: int, other: int
) -> None:
    found = {table.name: table.frame for table in report_tables(as_published(synthetic, (scored,)))}
    whole = {table.name: table.frame for table in report_tables(run_as_published)}
    wrong = {f"paper, fold {other}", f"paper, fold {fold} (another fold)"}
    assert all(name == "splits" or not wrong & set(frame) for name, frame in found.items())
    assert f"paper, fold {other} (another fold)" not in found["splits"], "a role that was not scored is counted"
    there = whole["contrasts-strong"].query("role != @scored")[["policy", "k", "metric", f"paper, fold {other}"]]
    beside = found["contrasts-strong"].merge(there, how="left", on=["policy", "k", "metric"])
    said = beside[f"paper, fold {other} (another fold)"]
    assert said.tolist() == beside[f"paper, fold {other}"].fillna("").tolist()
    assert (said != "").any()


def test_the_interval_of_a_number_that_is_given_twice_is_shown(tables: dict[str, ReportTable]) -> None:
    frame = tables["contrasts-strong"].frame
    row = frame[(frame["role"] == "evaluation") & (frame["policy"] == "MGA") & (frame["k"] == 4)].iloc[0]
    line = next(each for each in read_published("strong_mga_fold8_k4") if each["method"].startswith("MGA"))
    expected = estimate(*(float(line[column]) for column in ("delta", "lo", "hi")))
    assert row["metric"] == line["metric"]
    assert row["paper, fold 8"].split("; ")[0] == expected


def test_the_seed_is_no_count(tables: dict[str, ReportTable]) -> None:
    frame = tables["seeds"].frame
    assert set(frame["seed"]) == {"1", "20060928"}
    assert frame[frame["chosen"].astype(bool)]["paper"].str.startswith("seed 20060928; epoch 54").all()
    published = tables["published"].frame.set_index("quantity")
    assert cell(published.loc["strong chosen seed", "paper"]) == "20060928"
    assert cell(published.loc["strong parameters", "paper"]) == "2,774,685"
    assert cell(published.loc["controlled reference, k=2, nll", "ours"]) == "aVR aVL"
