"""What notebooks show: short tables of what there is, and nothing that a name could inject."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leadwise
from leadwise.cohort.cohort import Cohort
from leadwise.leads import LeadSet
from leadwise.notebook import html_table
from leadwise.policies.allocation import Allocation
from leadwise.references import MATCHED_METRICS, References

SCRIPT = "<script>alert('x')</script> & \"more\""


def shown(html: str) -> tuple[str, list[list[str]]]:
    """The caption of a table and the text of its rows, its head first if it has one."""
    assert SCRIPT not in html
    assert len(html) < 5_000
    table = re.fullmatch(r"<table><caption>([^<>]*)</caption>(.*)</table>", html)
    assert table, html
    rows = [re.findall(r"<t[hd]>([^<>]*)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table[2])]
    return unescape(table[1]), [[unescape(cell) for cell in row] for row in rows]


def test_everything_is_escaped() -> None:
    assert shown(html_table(SCRIPT, [SCRIPT], [[SCRIPT]])) == (SCRIPT, [[SCRIPT], [SCRIPT]])
    assert shown(html_table("facts", [], {"a": 1, SCRIPT: SCRIPT}.items())) == ("facts", [["a", "1"], [SCRIPT] * 2])


@pytest.mark.filterwarnings("error")
def test_a_cohort_shows_its_roles_and_counts_and_no_statistics(small_cohort: Cohort) -> None:
    caption, (head, *rows) = shown(replace(small_cohort, source=SCRIPT)._repr_html_())
    patients = len(set(small_cohort.patients.tolist()))
    assert caption == f"Cohort {SCRIPT}: 400 records of {patients} patients, 100 Hz"
    assert head == ["role", "folds", "records", "patients", ""]
    assert [row[0] for row in rows] == ["train", "validation", "selection", "audit", "evaluation"]
    assert [row[4] for row in rows] == ["", "", "", "", "sealed"]
    for role, folds, records, patients, _ in rows:
        rows_of = np.isin(small_cohort.folds, [int(fold) for fold in folds.split(", ")])
        assert (int(records), int(patients)) == (rows_of.sum(), len(np.unique(small_cohort.patients[rows_of]))), role


def test_records_show_prevalences_as_far_as_the_seal_allows(small_cohort: Cohort) -> None:
    records = small_cohort["validation"]
    caption, rows = shown(records._repr_html_())
    assert caption == f"the validation role of {small_cohort.source}"
    patients = len(np.unique(records.patients))
    shares = [f"{100 * share:.1f}%" for share in records.labels.mean(axis=0)]
    assert rows == [
        ["folds", "records", "patients", *records.label_names],
        ["7", str(len(records)), str(patients), *shares],
    ]
    _, rows = shown(small_cohort["evaluation"]._repr_html_())
    assert rows[0] == ["folds", "records", "patients", "labels"]
    assert rows[1][-1] == "sealed"
    assert shown(records.unlabelled._repr_html_())[1][0] == ["folds", "records", "patients"]
    assert shown(records.select(slice(0))._repr_html_())[1][1] == ["", "0", "0"]


def test_an_allocation_shows_the_lead_sets_that_it_has_most_often(small_cohort: Cohort) -> None:
    records = small_cohort["validation"].select(slice(0, 10))
    order = np.array([[0, 1]] * 5 + [[2, 1]] * 3 + [[5, 4], [4, 6]])
    caption, rows = shown(Allocation(records, SCRIPT, "x", order)._repr_html_())
    assert caption == f"Allocation of {SCRIPT} trained on x, k = 2: 10 records"
    assert rows[:3] == [["leads", "records", "share"], ["I II", "5", "50.0%"], ["II III", "3", "30.0%"]]
    assert {row[0] for row in rows[3:]} == {"aVL aVF", "aVL V1"}


def test_references_show_the_best_lead_sets() -> None:
    bits = [LeadSet.parse(leads).bits for leads in ("I", "V2")]
    found = References(
        SCRIPT, pd.DataFrame({"k": 1, "bits": bits, "nll": [0.4, 0.3], "brier": 0.2, "ece": 0.1}), {1: 0}
    )
    caption, rows = shown(found._repr_html_())
    assert caption == f"References of {SCRIPT}"
    assert rows == [
        ["k", *(f"best {metric}" for metric in MATCHED_METRICS), "candidates"],
        ["1", "V2: 0.3000", "V2: 0.2000", "V2: 0.1000", "2"],
    ]


def test_a_run_shows_what_was_scored(finished: Path) -> None:
    run = leadwise.read_run(finished)
    assert repr(run) == f"<Run {finished}: {run.title}>"
    caption, rows = shown(run._repr_html_())
    facts = dict(rows)
    assert caption == run.title
    assert facts["roles scored"] == "audit, evaluation"
    assert facts["budgets"] == "2, 4"
    assert "contrasts" in facts["tables in .results"].split(", ")
    assert facts["directory"] == str(finished)
