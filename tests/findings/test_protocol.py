"""A sound run passes every check; whatever is broken in it, the check that is about it fails, and says what."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leadwise.findings.protocol import Check, protocol_checks
from leadwise.run.contents import RunContents
from leadwise.run.plan_parts import Hypothesis
from leadwise.study.execute import evaluate_bundle
from receipts import chained, receipt_facts

Receipts = list[dict[str, Any]]


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy to be broken; artifacts and cohort are not looked at."""
    ignored = shutil.ignore_patterns("artifacts", "cohort-160-3", "figures")
    return Path(shutil.copytree(finished, tmp_path / "run", ignore=ignored))


def checks(run: Path, **changed: Any) -> dict[int, Check]:
    """The checks of a run by number; ``changed`` are other contents than those that lie there."""
    return {check.number: check for check in protocol_checks(replace(RunContents.read(run), **changed))}


def failing(found: dict[int, Check]) -> set[int]:
    return {number for number, check in found.items() if check.state == "failed"}


def with_table(run: Path, name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[int, Check]:
    """The checks if a table of the results had been another one from the beginning."""
    results = dict(RunContents.read(run).results)
    return checks(run, results=results | {name: change(results[name].copy())})


def with_file(run: Path, name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[int, Check]:
    """The checks if the file of a large table were another one; then it is not what its receipt says either."""
    path = run / "results" / f"{name}.parquet"
    change(pd.read_parquet(path)).to_parquet(path, index=False)
    found = checks(run)
    assert found[11].state == "failed"
    return {number: check for number, check in found.items() if number != 11}


def with_ledger(run: Path, change: Callable[[Receipts], Receipts]) -> dict[int, Check]:
    """The checks if the ledger had told another story from the beginning: its chain is sound."""
    ledger = run / "ledger.jsonl"
    ledger.write_bytes(b"".join(line + b"\n" for line in chained(change(receipt_facts(ledger)))))
    (run / "manifest.json").unlink()  # it names the head of the other story
    return checks(run)


def first(frame: pd.DataFrame, column: str, value: object) -> pd.DataFrame:
    """Another value in the first row."""
    frame.loc[frame.index[0], column] = value
    return frame


# ----------------------------------------------------------------------------------------------------------------------


def test_a_sound_run_passes(finished: Path) -> None:
    found = checks(finished)
    assert list(found) == list(range(1, 15))
    assert {number: check.state for number, check in found.items() if check.state != "passed"} == {
        13: "not applicable"  # its plan has no hypotheses
    }
    assert all(check.title and check.explanation and check.detail.endswith(".") for check in found.values())
    contents = RunContents.read(finished)
    assert contents.history.head in found[2].detail
    assert contents.bundle.sha256 in found[10].detail
    for row in contents.results["resamples"].itertuples():
        assert row.sha256 in found[8].detail


def test_1_patients_in_two_roles(run: Path) -> None:
    found = with_table(run, "splits", lambda frame: first(frame, "shared_patients", 3))
    assert failing(found) == {1}
    assert found[1].detail == "The train role shares 3 patients with others."
    unknown = with_table(run, "splits", lambda frame: frame.drop(columns="shared_patients"))
    assert unknown[1].state == "not applicable"

    def same(frame: pd.DataFrame) -> pd.DataFrame:
        patient = frame.loc[frame["role"] == "audit", "patient"].iloc[0]
        evaluation = frame["patient"][frame["role"] == "evaluation"].iloc[0]
        return frame.assign(patient=frame["patient"].replace(evaluation, patient))

    found = with_file(run, "records", same)
    assert failing(found) == {1}
    assert found[1].detail == "Scored in two roles: 1 patient."


@pytest.mark.parametrize("how", ["changed", "removed", "last removed", "replaced"])
def test_2_a_broken_ledger(run: Path, how: str) -> None:
    contents, file = RunContents.read(run), run / "ledger.jsonl"
    whole = file.read_bytes().splitlines(keepends=True)
    if how == "changed":
        whole[4] = whole[4].replace(b'"threads"', b'"Threads"')
    elif how == "replaced":
        whole[-1] = whole[-1].replace(b'"time":"20', b'"time":"21')
    else:
        del whole[-1 if how == "last removed" else 4]
    file.write_bytes(b"".join(whole))
    found = {check.number: check for check in protocol_checks(contents)}
    assert failing(found) == {2}
    assert ("the manifest" in found[2].detail) == (how in ("last removed", "replaced"))


def scoring_first(receipts: Receipts) -> Receipts:
    """The audit begins before the freeze."""
    looked = [each for each in receipts if each.get("stage") == "score/audit"]
    return looked + [each for each in receipts if each.get("stage") != "score/audit"]


def test_3_scoring_before_any_freeze(run: Path) -> None:
    found = with_ledger(run, scoring_first)
    assert 3 in failing(found)
    assert "line 1: the audit role was scored before the freeze" in found[3].detail


@pytest.mark.parametrize(("role", "state"), [("audit", "passed"), ("evaluation", "failed")])
def test_3_looking_with_an_earlier_bundle(run: Path, role: str, state: str) -> None:
    """An audit that was looked at before is counted; an evaluation is spent."""

    def earlier(receipts: Receipts) -> Receipts:
        (freeze,) = [each for each in receipts if (each["event"], each.get("stage")) == ("end", "freeze")]
        looked = [each for each in receipts if each.get("stage") == f"score/{role}"]
        other = freeze | {"outputs": freeze["outputs"] | {"bundle.json": "0" * 64}}
        return [other, *looked, *receipts]

    found = with_ledger(run, earlier)
    assert found[3].state == state
    assert f"The {role} role had been scored 1 time with " in found[3].detail
    assert failing(found) == ({3} if state == "failed" else set())


def test_4_references_chosen_elsewhere(run: Path) -> None:
    def peeking(receipts: Receipts) -> Receipts:
        (search,) = [
            each for each in receipts if (each["event"], each.get("stage")) == ("begin", "references/strong/2")
        ]
        search["inputs"]["role:validation"] = "0" * 64
        return receipts

    found = with_ledger(run, peeking)
    assert failing(found) == {4}
    assert "references/strong/2" in found[4].detail
    assert "read selection, validation" in found[4].detail


def test_4_and_14_without_any_fitting(run: Path) -> None:
    kept = ("freeze", "score/audit", "score/evaluation")
    found = with_ledger(run, lambda receipts: [each for each in receipts if each.get("stage", "freeze") in kept])
    assert failing(found) == {4}, "freezing is a stage that is given no role"
    assert found[4].detail == "The ledger tells of no search for references."


def test_5_fitting_after_the_freeze(run: Path) -> None:
    def late(receipts: Receipts) -> Receipts:
        fitted = [each for each in receipts if each.get("stage") == "policy/mga"]
        at = next(i for i, each in enumerate(receipts) if each.get("stage") == "score/evaluation")
        return [*receipts[:at], *fitted, *receipts[at:]]

    found = with_ledger(run, late)
    assert failing(found) == {5}
    assert found[5].detail.startswith("policy/mga was begun after the freeze (receipt ")


@pytest.mark.parametrize("leads", ["V6", "V6 V6", "V6 V7", "V6 I II III"])
def test_6_another_number_of_leads(run: Path, leads: str) -> None:
    found = with_table(run, "allocations", lambda frame: first(frame, "leads", leads))
    assert failing(found) == {6}
    assert f"has '{leads}' for record" in found[6].detail


def test_6_two_allocations_for_a_record(run: Path) -> None:
    found = with_table(run, "allocations", lambda frame: pd.concat([frame, frame.iloc[:1]], ignore_index=True))
    assert failing(found) == {6}


def test_7_another_first_lead(run: Path) -> None:
    def swapped(frame: pd.DataFrame) -> pd.DataFrame:
        anchored = frame.index[frame["policy"] == "mga"][0]
        frame.loc[anchored, "leads"] = " ".join(reversed(frame.loc[anchored, "leads"].split()))
        return frame

    found = with_table(run, "allocations", swapped)
    assert failing(found) == {7}
    assert found[7].detail == "Policies begin with different leads for 1 record."
    free = with_table(
        run,
        "allocations",
        lambda frame: first(frame.sort_values("policy", key=lambda p: p != "random-subset"), "leads", "V1 V2"),
    )
    assert failing(free) <= {6}, "a random subset may begin anywhere"


@pytest.mark.parametrize("column", ["seed", "replicates", "patients"])
def test_8_another_draw(run: Path, column: str) -> None:
    found = with_table(run, "resamples", lambda frame: first(frame, column, 7))
    assert failing(found) == {8}
    assert found[8].detail == "The draw of patients of the audit role is not the one that the plan asks for."


def test_8_a_replicate_is_missing(run: Path) -> None:
    found = with_file(run, "replicates", lambda frame: frame.iloc[1:])
    assert failing(found) == {8}
    assert found[8].detail == "Not every contrast and interaction of the audit role has 20 replicates."
    assert 8 in failing(with_file(run, "replicates", lambda frame: frame.assign(replicate=frame["replicate"] + 1)))


def rows_of_primary(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Of the cell that is computed again: ECG-on-Demand at k = 2, where the strong evaluator was searched."""
    rows = (frame["role"] == "evaluation") & (frame["evaluator"] == "strong")
    for column, value in (("policy", "ecg-on-demand"), ("k", 2), ("metric", "nll"), ("reference_evaluator", "strong")):
        rows &= (frame[column] == value) if column in frame else True
    return rows


def test_9_other_readings(run: Path) -> None:
    def shifted(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[rows_of_primary(frame), "p_CD"] **= 2
        return frame

    found = with_file(run, "records", shifted)
    assert failing(found) == {9}
    assert "The D under the strong evaluator comes out as" in found[9].detail
    assert "controlled" not in found[9].detail


def test_9_missing_readings(run: Path) -> None:
    found = with_file(run, "records", lambda frame: frame[~rows_of_primary(frame)])
    assert failing(found) == {9}
    assert found[9].detail == "records.parquet lacks readings by the strong evaluator that the primary cell needs."


def test_9_other_replicates(run: Path) -> None:
    def shifted(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[rows_of_primary(frame), "delta"] += 0.5
        return frame

    found = with_file(run, "replicates", shifted)
    assert failing(found) == {9}
    assert "lower bound of D under the strong" in found[9].detail
    assert "upper bound of I" in found[9].detail


@pytest.mark.parametrize("column", ["delta", "lo", "hi"])
def test_9_other_results(run: Path, column: str) -> None:
    def shifted(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[rows_of_primary(frame), column] += 1e-6
        return frame

    assert failing(with_table(run, "contrasts", shifted)) == {9}


def test_9_other_interaction(run: Path) -> None:
    found = with_table(run, "interactions", lambda frame: frame.assign(interaction=frame["interaction"] + 1e-6))
    assert failing(found) == {9}


def test_9_no_primary_cell(run: Path) -> None:
    found = with_table(run, "interactions", lambda frame: frame.iloc[:0])
    assert found[9].state == "not applicable"


def test_10_a_changed_bundle(run: Path) -> None:
    file = run / "bundle" / "policies" / "mga.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    found = checks(run)
    assert failing(found) == {10}
    assert str(file) in found[10].detail


def test_10_another_list_of_the_bundle(run: Path) -> None:
    file = run / "bundle" / "bundle.json"
    file.write_text(file.read_text() + "\n")
    assert failing(checks(run)) == {3, 5, 10, 11}, "it is not the bundle that the receipts tell of"


def test_11_changed_results(run: Path) -> None:
    file = run / "results" / "contrasts.csv"
    file.write_text(file.read_text().replace("0", "1", 1))
    found = checks(run)
    assert failing(found) == {11}
    assert str(file) in found[11].detail
    (run / "results" / "more.csv").write_text("")
    assert "more.csv was added later" in checks(run)[11].detail


def test_11_an_unreadable_table_is_a_failure_not_a_crash(run: Path) -> None:
    (run / "results" / "replicates.parquet").write_bytes(b"nothing")
    found = checks(run)
    assert failing(found) == {8, 9, 11}
    assert found[8].detail.startswith("This could not be checked: ")


def elsewhere(name: str, value: object) -> Callable[[Receipts], Receipts]:
    """Another value in the last receipt before that of the report."""

    def change(receipts: Receipts) -> Receipts:
        receipts[-2]["software"] |= {name: value}
        return receipts

    return change


def test_12_several_machines(run: Path) -> None:
    found = with_ledger(run, elsewhere("threads", 64))
    assert failing(found) == {12}
    assert "threads " in found[12].detail
    assert "64" in found[12].detail


def test_12_another_commit_is_told_but_no_failure(run: Path) -> None:
    found = with_ledger(run, elsewhere("commit", "abc"))
    assert found[12].state == "passed"
    assert re.search(r"Commit (abc or \w+|\w+ or abc),", found[12].detail)  # they stand in the order of their names


@pytest.fixture
def hypothesis() -> Hypothesis:
    facts: dict[str, Any] = {"policies": ["mga"], "evaluator": "strong", "budgets": [2], "metrics": ["nll"]}
    return Hypothesis(level="primary", quantity="contrast", expected="above zero", **facts)


def test_13_hypotheses_are_part_of_what_was_frozen(run: Path, hypothesis: Hypothesis) -> None:
    plan = RunContents.read(run).plan.model_copy(update={"hypotheses": [hypothesis]})
    found = checks(run, plan=plan)
    assert found[13].state == "passed"
    assert found[13].detail.startswith("The bundle with the plan's 1 hypothesis was frozen at ")
    (run / "plan.toml").write_text((run / "plan.toml").read_text() + "# expected all along\n")
    found = checks(run, plan=plan)
    assert failing(found) == {13}
    assert found[13].detail == "plan.toml is not the plan that was frozen."


def test_13_no_freeze_before_the_scoring(run: Path, hypothesis: Hypothesis) -> None:
    plan = RunContents.read(run).plan.model_copy(update={"hypotheses": [hypothesis]})
    with_ledger(run, lambda receipts: [each for each in receipts if each.get("stage") != "freeze"])
    assert failing(checks(run, plan=plan)) == {3, 5, 13}


@pytest.mark.parametrize("role", ["audit", "evaluation"])
def test_14_training_on_a_scored_role(run: Path, role: str) -> None:
    def peeking(receipts: Receipts) -> Receipts:
        (begin,) = [each for each in receipts if (each["event"], each.get("stage")) == ("begin", "policy/mga")]
        begin["inputs"][f"role:{role}"] = "0" * 64
        return receipts

    found = with_ledger(run, peeking)
    assert failing(found) == {14}
    assert found[14].detail.startswith("policy/mga (receipt ")
    assert f"was given the {role} role" in found[14].detail


def test_a_bundle_from_elsewhere_was_fitted_elsewhere(finished: Path, tmp_path: Path) -> None:
    evaluate_bundle(finished / "bundle", finished / "cohort-160-3", tmp_path / "out", "audit")
    found = checks(tmp_path / "out")
    assert failing(found) == set()
    assert {number for number, check in found.items() if check.state == "not applicable"} == {4, 13, 14}
    evaluate_bundle(finished / "bundle", finished / "cohort-160-3", tmp_path / "out", "audit")
    assert failing(checks(tmp_path / "out")) == set(), "asked again, it finds what it has done"
