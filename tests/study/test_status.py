"""How far a run has come: by what the present plan asks for, not by what was done under another one."""

import json
import shutil
from pathlib import Path

import pytest

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import Ledger
from leadwise.run.plan import read_plan
from leadwise.run.stage import OUTPUTS, Runner, Stage, Work
from leadwise.study.execute import evaluate_bundle, run_study
from leadwise.study.status import run_status
from receipts import receipt_facts
from runs import PLAN, planned

LAST = {"freeze", "score/audit", "score/evaluation"}
FROM_STRONG = {"evaluator/strong", "references/strong/1", "references/strong/2"} | {
    f"policy/{name}" for name in ("strong-mga", "strong-mga-controlled-state")
}
FROM_STRONG |= {"evaluator/strong-recalibrated", "evaluator/strong-2"}
FROM_STRONG |= {"references/strong-recalibrated/2", "references/strong-2/2"}
PLACES = {
    f"places/{name}"
    for name in ("ecg-on-demand", "mga", "ccga", "strong-mga", "strong-mga-controlled-state", "cohort-state")
} | {"places/random-subset"}
FROM_STRONG |= PLACES | {f"selection/{name}" for name in ("strong", "strong-2", "strong-recalibrated")}
OF_MASK_ROBUST = {"evaluator/mask-robust", "development"}


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The finished run, without its recordings, which status does not read."""
    return Path(shutil.copytree(finished, tmp_path / "run", ignore=shutil.ignore_patterns("cohort-160-3", "results")))


def states(run: Path, plan: str | None = None) -> dict[str, set[str]]:
    """The stages in each state, under the plan of the run or another one."""
    other = run.with_name("other.toml")
    other.write_text(plan or (run / "plan.toml").read_text())
    found: dict[str, set[str]] = {}
    for row in run_status(run, read_plan(other) if plan else None):
        found.setdefault(row["state"], set()).add(row["stage"])
    return found


def rolled_back(run: Path, event: str, stage: str) -> None:
    """The ledger as it was when a receipt had just been written."""
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    at = [(each["event"], each.get("stage")) for each in receipt_facts(run / "ledger.jsonl")].index((event, stage))
    (run / "ledger.jsonl").write_bytes(b"".join(lines[: at + 1]))


def test_a_finished_run(finished: Path) -> None:
    rows = run_status(finished)
    assert [row["stage"] for row in rows] == planned(finished / "plan.toml")
    ends = {each["stage"]: each for each in receipt_facts(finished / "ledger.jsonl") if each["event"] == "end"}
    for row in rows:
        end = ends[row["stage"]]
        assert row == {"stage": row["stage"], "state": "done", "seconds": end["seconds"], "time": end["time"]}


@pytest.mark.parametrize(
    ("before", "after", "outdated", "to_do"),
    [
        ("neighbours = 10", "neighbours = 9", {"policy/ccga", "places/ccga"} | LAST, set()),
        ('"tiny"', '"small"', LAST, set()),
        (
            "references = [1, 2]\nrecipe",
            "references = [1, 2, 4]\nrecipe",
            PLACES | {"selection/strong"} | LAST,
            {"references/strong/4"},
        ),
        ("replicates = 20", "replicates = 21", {"development"} | LAST, set()),
        ("seeds = [1, 2]", "seeds = [1]", FROM_STRONG | {"development"} | LAST, set()),
        ("seeds = [1]", "seeds = [2]", OF_MASK_ROBUST | LAST, {"evaluator/mask-robust/seed-2"}),
        (
            "[evaluators.controlled]",
            "[roles]\ntrain = [1, 2, 3, 4, 5, 6]\nvalidation = [7]\nselection = [10]\naudit = [8]\n"
            "evaluation = [9]\n[evaluators.controlled]",
            {"cohort", "policy/cohort-state", "places/cohort-state"} | LAST,
            set(),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_another_plan_would_redo(
    copied: Path, before: str, after: str, outdated: set[str], to_do: set[str]
) -> None:
    """Whether the plan is only asked about or has taken the place of the old one; taken back, all is done."""
    plan = PLAN.replace(before, after)
    assert plan != PLAN
    found = states(copied, plan)
    assert found.pop("done") == set(planned(copied.with_name("other.toml"))) - outdated - to_do
    assert found == {"outdated": outdated} | ({"to do": to_do} if to_do else {})
    (copied / "plan.toml").write_text(plan)
    assert states(copied)["outdated"] == outdated
    assert set(states(copied, PLAN)) == {"done"}


def test_other_training_records_outdate_all_that_was_fitted(copied: Path) -> None:
    roles = "train = [1, 2, 3, 4, 5]\nvalidation = [6, 7]\nselection = [10]\naudit = [9]\nevaluation = [8]"
    found = states(copied, PLAN.replace("[evaluators.controlled]", f"[roles]\n{roles}\n[evaluators.controlled]"))
    assert set(found) == {"outdated"}


def test_outdated_until_it_runs_again(finished: Path, tmp_path: Path) -> None:
    run, plan = Path(shutil.copytree(finished, tmp_path / "run")), tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("neighbours = 10", "neighbours = 9"))
    assert "outdated" in states(run, plan.read_text())
    run_study(plan, run)
    assert set(states(run)) == {"done"}
    assert set(states(run, PLAN)) == {"done"}, "what was done under the other plan is still there"


def test_killed_in_the_middle(copied: Path) -> None:
    rolled_back(copied, "begin", "policy/ccga")
    done = {end["stage"] for end in receipt_facts(copied / "ledger.jsonl") if end["event"] == "end"}
    for stage in set(planned(copied / "plan.toml")) - done:
        shutil.rmtree(copied / "artifacts" / stage, ignore_errors=True)  # it may lie in another that is gone
    found = states(copied)
    assert found["unfinished"] == {"policy/ccga"}
    assert found["to do"] == set(planned(copied / "plan.toml")) - done - {"policy/ccga"}
    assert found["to do"] > LAST
    assert set(found) == {"done", "unfinished", "to do"}
    found = states(copied, PLAN.replace("neighbours = 10", "neighbours = 9"))
    assert "policy/ccga" in found["to do"], "what was begun from other settings is of no use"


def test_a_receipt_that_a_kill_took(copied: Path) -> None:
    rolled_back(copied, "begin", "score/evaluation")
    (row,) = [row for row in run_status(copied) if row["stage"] == "score/evaluation"]
    assert (row["state"], row["seconds"]) == ("done", None)


def test_an_artifact_that_somebody_removed(copied: Path) -> None:
    shutil.rmtree(copied / "artifacts" / "policy" / "random-subset")
    assert states(copied)["to do"] == {"policy/random-subset"}


def test_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no run: it has no plan\.toml\."):
        run_status(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    assert {row["stage"]: row["state"] for row in run_status(tmp_path)} == dict.fromkeys(
        planned(tmp_path / "plan.toml"), "to do"
    )


def test_nothing_is_written(copied: Path) -> None:
    """Not even a torn line is repaired: another process may be writing it."""
    with (copied / "ledger.jsonl").open("ab") as file:
        file.write(b'{"event":')
    before = {path: path.stat().st_mtime_ns for path in copied.rglob("*")}
    assert set(states(copied)) == {"done"}
    assert {path: path.stat().st_mtime_ns for path in copied.rglob("*")} == before


def cohort_seen(run: Path, roles: dict[str, str], folds: dict[str, list[int]]) -> None:
    """Let the first stage be done for other records."""

    def make(work: Work) -> None:
        (work.out / "splits").write_text(str(folds))

    runner = Runner(RunDirectory(run), Ledger(run / "ledger.jsonl"), roles, None)
    runner.run(Stage("cohort", make, tuple(f"role:{role}" for role in roles), {"roles": folds}))


def test_the_cohort_is_the_one_that_fits_the_plan(copied: Path) -> None:
    """A change of roles that was taken back leaves a later receipt, about other records."""
    folds = read_plan(copied / "plan.toml").roles
    cohort_seen(copied, dict.fromkeys(folds, "else"), folds | {"train": [1, 2], "validation": [3, 4, 5, 6, 7]})
    assert set(states(copied)) == {"done"}


def test_the_cohort_is_the_last_one(copied: Path) -> None:
    folds = read_plan(copied / "plan.toml").roles
    cohort_seen(copied, dict.fromkeys(folds, "else"), folds)
    assert "done" not in states(copied)


def test_a_plan_for_another_synthetic_cohort(copied: Path) -> None:
    """Nothing is known of its records, whatever its folds; told by what the first stage was made from."""
    (listed,) = (copied / "artifacts" / "cohort").glob(f"*/{OUTPUTS}")
    facts = json.loads(listed.read_text())
    facts["settings"]["cohort"] = read_plan(copied / "plan.toml").cohort.as_said()
    listed.write_text(json.dumps(facts))
    assert set(states(copied)) == {"done"}
    assert "done" not in states(copied, PLAN.replace("records = 160", "records = 161"))


def test_a_bundle_that_was_scored_elsewhere(finished: Path, tmp_path: Path) -> None:
    directory, _ = evaluate_bundle(finished, finished / "cohort-160-3", tmp_path / "out", "audit")
    assert [(row["stage"], row["state"]) for row in run_status(directory.path)] == [("score/audit", "done")]
