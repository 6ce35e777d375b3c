"""A whole study on a tiny cohort: done once, killed everywhere, frozen before anybody looks."""

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import InputError, PlanError, SealedRole
from leadwise.run.bundle import Bundle, pretrained_bundle
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import Ledger
from leadwise.run.plan import read_plan
from leadwise.run.stage import Runner, Stage, Work, read_artifact
from leadwise.run.stage_names import scoring_stage
from leadwise.run.verify import verify
from leadwise.store import file_sha256
from leadwise.study.execute import _made_cohort, evaluate_bundle, report_run, run_study
from leadwise.study.fitting import Study
from leadwise.study.forecast import forecast
from leadwise.study.graph import stages
from leadwise.study.status import run_status
from receipts import receipt_facts
from runs import PLAN, events, hashes, planned


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The finished run, to be gone on with."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def begun(directory: Path, since: int) -> set[str]:
    return {stage for event, stage in events(directory)[since:] if event == "begin"}


# done once -----------------------------------------------------------------------------------------------------------


def test_every_stage_is_done_once_and_the_receipts_say_so(finished: Path) -> None:
    names = planned(finished / "plan.toml")
    expected = [(event, name) for name in names for event in ("begin", "end")]
    assert events(finished) == [("cohort", ""), *expected, ("results", ""), ("report", "")]
    assert {row["stage"]: row["state"] for row in run_status(finished)} == dict.fromkeys(names, "done")
    for receipt in receipt_facts(finished / "ledger.jsonl"):
        assert {"time", "software", "number", "previous"} <= set(receipt)
        assert {"commit", "cpu", "threads", "torch", "numpy", "leadwise"} <= set(receipt["software"])
        if receipt["event"] == "end":
            artifact = read_artifact(finished / "artifacts" / receipt["stage"] / receipt["key"][:16])
            assert artifact is not None
            assert artifact.outputs == receipt["outputs"]
            assert receipt["seconds"] >= 0
    assert verify(finished) == []
    assert verify(finished / "bundle") == []


def test_nothing_but_finished_work_is_left(finished: Path) -> None:
    places = [path for path in (finished / "artifacts").rglob("*") if re.match("[0-9a-f]{16}", path.name)]
    assert places
    assert [path for path in places if not (path / "outputs.json").exists()] == []
    files = [".lock", "ledger.jsonl", "manifest.json", "plan.toml", "report.html"]
    directories = ["artifacts", "bundle", "cohort-160-3", "figures", "results", "tables"]
    assert sorted(path.name for path in finished.iterdir()) == sorted(files + directories)


def test_again_nothing_is_done_and_all_is_the_same(finished: Path, copied: Path) -> None:
    before = (copied / "ledger.jsonl").read_bytes()
    run_study(copied / "plan.toml", copied)
    assert (copied / "ledger.jsonl").read_bytes() == before
    assert hashes(copied) == hashes(finished)
    assert verify(copied) == []


def test_a_change_of_the_plan_redoes_what_depends_on_it(copied: Path, tmp_path: Path) -> None:
    """Another setting of one policy: all that is not made from it stays."""
    changed, count = tmp_path / "changed.toml", len(events(copied))
    changed.write_text(PLAN.replace("neighbours = 10", "neighbours = 9"))
    run_study(changed, copied)
    assert begun(copied, count) == {"policy/ccga", "places/ccga", "freeze", "score/audit", "score/evaluation"}
    assert verify(copied) == []
    assert Bundle(copied / "bundle").plan.policies["ccga"].settings.model_dump()["neighbours"] == 9
    count = len(events(copied))
    run_study(tmp_path / "changed.toml", copied)
    assert begun(copied, count) == set()


def test_words_of_the_plan_that_decide_nothing_redo_little(copied: Path, tmp_path: Path) -> None:
    changed, count = tmp_path / "changed.toml", len(events(copied))
    changed.write_text(PLAN.replace('"tiny"', '"small"'))
    run_study(changed, copied)
    assert begun(copied, count) <= {"freeze", "score/audit", "score/evaluation"}
    assert verify(copied) == []


def test_another_budget_of_the_strong_search_redoes_no_other(copied: Path, tmp_path: Path) -> None:
    changed, count = tmp_path / "changed.toml", len(events(copied))
    changed.write_text(PLAN.replace("references = [1, 2]\n", "references = [1, 2, 4]\n"))
    run_study(changed, copied)
    redone = {stage for stage in begun(copied, count) if not stage.startswith("places/")}
    assert redone == {"references/strong/4", "selection/strong", "freeze", "score/audit", "score/evaluation"}
    contrasts = pd.read_csv(copied / "results" / "contrasts.csv")
    assert set(contrasts[contrasts["evaluator"] == "strong"]["k"]) == {2, 4}


def test_another_made_cohort_is_made_when_the_plan_asks_for_it(tmp_path: Path) -> None:
    plan, directory = tmp_path / "plan.toml", RunDirectory(tmp_path / "run")
    sizes = []
    for records in (160, 200):
        plan.write_text(PLAN.replace("records = 160", f"records = {records}"))
        sizes.append(len(_made_cohort(read_plan(plan), directory)))
    assert sizes == [160, 200]


# freeze, then look ---------------------------------------------------------------------------------------------------


def test_no_stage_can_read_the_evaluation_role_before_the_freeze(finished: Path, tmp_path: Path) -> None:
    plan = read_plan(finished / "plan.toml")
    cohort = read_ptbxl(finished / "cohort-160-3", plan.cohort_roles())
    runner = Runner(
        RunDirectory(tmp_path), Ledger(tmp_path / "ledger.jsonl"), {}, Study(plan, finished / "plan.toml", cohort)
    )

    def peek(what: str):  # type: ignore[no-untyped-def]
        def make(work: Work) -> None:
            getattr(work.study.cohort["evaluation"], what)

        return make

    for what in ("labels", "signals"):
        with pytest.raises(SealedRole):
            runner.run(Stage(f"peek-{what}", peek(what)))
        assert runner.find(Stage(f"peek-{what}", peek(what))) is None


def test_before_the_freeze_only_fingerprints_and_counts_are_taken_of_it(finished: Path) -> None:
    """The evaluation role begins after the freeze ends; of its labels not even the prevalence is told before."""
    told = events(finished)
    assert told.index(("end", "freeze")) < told.index(("begin", "score/audit"))
    assert told.index(("begin", "score/audit")) < told.index(("begin", "score/evaluation"))
    splits = pd.read_parquet(finished / "bundle" / "tables" / "splits.parquet").set_index("role")
    prevalence = [column for column in splits if column.startswith("prevalence") or column == "all_zero"]
    assert len(prevalence) == 6
    assert splits.loc["evaluation", prevalence].isna().all()
    assert splits.drop("evaluation")[prevalence].notna().all(axis=None)
    told_later = pd.read_csv(finished / "results" / "splits.csv").set_index("role")
    assert told_later.loc["evaluation", prevalence].notna().all()
    assert list(told_later.index) == list(splits.index)
    needs = {need for stage in stages(read_plan(finished / "plan.toml"), []) for need in stage.needs}
    assert "role:audit" not in needs
    assert "role:evaluation" not in needs


def test_only_an_unchanged_bundle_opens_the_seal(finished: Path, tmp_path: Path) -> None:
    cohort = read_ptbxl(finished / "cohort-160-3")
    with pytest.raises(SealedRole):
        _ = cohort["evaluation"].labels
    bundle = Bundle(shutil.copytree(finished / "bundle", tmp_path / "bundle"))
    opened = bundle.open(cohort, "evaluation")
    assert opened["evaluation"].labels.shape == (len(cohort["evaluation"]), 5)
    assert opened.token is not None
    assert opened.token.bundle == bundle.sha256
    with pytest.raises(SealedRole):
        _ = cohort["evaluation"].signals
    (bundle.path / "tables" / "seeds.csv").write_text("something else")
    with pytest.raises(InputError, match=r"does not open the seal: .*seeds\.csv was changed after it was made"):
        bundle.open(cohort, "evaluation")


@pytest.mark.parametrize("role", [None, "audit"])
def test_a_bundle_elsewhere_gives_the_same_results(finished: Path, tmp_path: Path, role: str | None) -> None:
    bundle = shutil.copytree(finished / "bundle", tmp_path / "elsewhere")
    directory, scored = evaluate_bundle(bundle, finished / "cohort-160-3", tmp_path / "out", role)
    assert scored == (role or "evaluation")
    names = {file.name for file in directory.results.glob("*.parquet")}
    assert names == {file.name for file in (finished / "results").glob("*.parquet")}
    # what the publication says of the evaluation role is put to the audit role where that alone was scored
    beside = {f"{name}.parquet" for name in ("published", "claims", "claim_cells", "references", "evaluators")}
    for name in names - beside:
        ours, theirs = (pd.read_parquet(place / name) for place in (directory.results, finished / "results"))
        ours, theirs = (table[table["role"] == scored].reset_index(drop=True) for table in (ours, theirs))
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    assert (directory.path / "report.html").exists()
    assert verify(directory.path) == []
    stage = scoring_stage(scored)
    expected = [("cohort", ""), ("bundle", ""), ("begin", stage), ("end", stage), ("results", ""), ("report", "")]
    assert events(directory.path) == expected
    evaluate_bundle(bundle, finished / "cohort-160-3", tmp_path / "out", role)
    assert events(directory.path).count(("begin", stage)) == 1
    assert verify(directory.path) == []


@pytest.mark.parametrize(
    ("name", "lacking", "change"),
    [
        ("strong", "1, 2", lambda _: None),
        ("strong", "1, 2", lambda table: table.replace("\nstrong,", "\nother,")),
        ("controlled", "4", lambda table: "".join(row for row in table.splitlines(True) if ",4," not in row)),
    ],
    ids=["no file", "another evaluator's", "a budget less"],
)
def test_a_bundle_without_all_of_its_references_is_not_scored(
    finished: Path, tmp_path: Path, name: str, lacking: str, change
) -> None:
    bundle = Path(shutil.copytree(finished / "bundle", tmp_path / "bundle"))
    file, contents = bundle / "references" / f"{name}.csv", json.loads((bundle / "bundle.json").read_text())
    table = change(file.read_text())
    if table is None:
        file.unlink()
        del contents["files"][f"references/{name}.csv"]
    else:
        file.write_text(table)
        contents["files"][f"references/{name}.csv"] = file_sha256(file)
    (bundle / "bundle.json").write_text(json.dumps(contents))
    (bundle / "freeze.json").unlink()  # it is of the bundle as it was
    sentence = rf"^{bundle} lacks references of the {name} evaluator for k = {lacking}, which its plan searches; take "
    with pytest.raises(InputError, match=sentence):
        evaluate_bundle(bundle, finished / "cohort-160-3", tmp_path / "out", "audit")
    assert not (tmp_path / "out").exists()


def test_a_bundle_that_is_not_the_one_its_run_froze_is_not_scored(copied: Path, tmp_path: Path) -> None:
    """Consistent in itself, but not what the ledger beside it says; by itself, elsewhere, it can be scored."""
    contents = json.loads((copied / "bundle" / "bundle.json").read_text())
    seeds = copied / "bundle" / "tables" / "seeds.csv"
    seeds.write_text(seeds.read_text().replace("0.", "1."))
    contents["files"]["tables/seeds.csv"] = file_sha256(seeds)
    (copied / "bundle" / "bundle.json").write_text(json.dumps(contents))
    for place in (copied, copied / "bundle"):
        with pytest.raises(InputError, match=r"bundle\.json is not what a receipt says was frozen"):
            evaluate_bundle(place, copied / "cohort-160-3", tmp_path / "out", "audit")
    assert not (tmp_path / "out").exists()


def test_results_of_a_bundle_are_not_replaced_by_those_of_another(finished: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", Path(shutil.copytree(finished / "bundle", tmp_path / "other"))
    out.mkdir()
    Ledger(out / "ledger.jsonl").add("bundle", sha256="0" * 64, frozen=None)
    with pytest.raises(InputError, match=rf"^{out} holds the bundle or another run; name a new directory"):
        evaluate_bundle(other, finished / "cohort-160-3", out, "audit")
    assert [file.name for file in out.iterdir()] == ["ledger.jsonl"]


@pytest.mark.parametrize("name", ["sub", "bundle/sub", "results/deep/sub", ""])
def test_no_run_is_put_into_the_run_whose_bundle_is_scored(copied: Path, name: str) -> None:
    before = sorted(copied.rglob("*"))
    for bundle in (copied, copied / "bundle"):
        with pytest.raises(InputError, match=" holds the bundle or another run; name a new directory"):
            evaluate_bundle(bundle, copied / "cohort-160-3", copied / name, "audit")
    assert sorted(copied.rglob("*")) == before


def test_an_evaluation_tells_when_its_bundle_was_frozen_not_when_it_was_taken_over(
    finished: Path, tmp_path: Path
) -> None:
    known, unknown = (Path(shutil.copytree(finished / "bundle", tmp_path / name)) for name in ("known", "unknown"))
    (unknown / "freeze.json").unlink()
    freeze = Bundle(known).freeze
    assert freeze is not None
    for bundle, said in ((known, freeze.time[:19].replace("T", " ")), (unknown, "does not say when it was frozen")):
        directory, _ = evaluate_bundle(bundle, finished / "cohort-160-3", tmp_path / f"{bundle.name}-out", "audit")
        page = directory.report.read_text()
        assert said in page
        assert (freeze.head in page) == (bundle is known)
        assert verify(directory.path) == []
    assert (
        hashes(tmp_path / "known-out")["bundle/bundle.json"] == hashes(tmp_path / "unknown-out")["bundle/bundle.json"]
    )


def test_roles_that_were_used_are_not_scored_again(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="The train role was used before the freeze; score audit or evaluation"):
        evaluate_bundle(finished, finished / "cohort-160-3", tmp_path / "out", "train")
    for wrong in ("audt", ""):
        with pytest.raises(PlanError, match=f"^There is no role '{wrong}' to be scored; score audit or evaluation"):
            evaluate_bundle(finished, finished / "cohort-160-3", tmp_path / "out", wrong)
    assert not (tmp_path / "out").exists()


# what is not ours is not touched --------------------------------------------------------------------------------------


def everything(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name", ["results/mine.csv", "figures/mine.svg", "bundle/b", "report.html", "plan.toml", ".lock"]
)
def test_a_directory_that_is_no_run_is_refused_and_left_alone(finished: Path, tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "theirs"
    (theirs / name).parent.mkdir(parents=True)
    (theirs / name).write_text("mine")
    begun: list[Callable[[], object]] = [
        lambda: run_study(finished / "plan.toml", theirs),
        lambda: forecast(finished / "plan.toml", theirs),
        lambda: evaluate_bundle(finished, finished / "cohort-160-3", theirs, "audit"),
    ]
    for begin in begun:
        with pytest.raises(InputError, match=f"^{theirs} is neither empty nor a run of leadwise, and stays as it is"):
            begin()
        assert everything(theirs) == {name: b"mine"}


@pytest.mark.parametrize(
    "name", ["results/mine.csv", "results/deep/mine.csv", "figures/mine.txt", "tables/mine.csv", "bundle/mine.txt"]
)
def test_what_somebody_put_into_a_run_is_not_replaced(copied: Path, name: str) -> None:
    (copied / name).parent.mkdir(exist_ok=True)
    (copied / name).write_text("mine")
    before = everything(copied)
    for begin in (lambda: run_study(copied / "plan.toml", copied), lambda: report_run(copied)):
        with pytest.raises(
            InputError, match=r"was not made by the run, which would replace .*; move it elsewhere, and"
        ):
            begin()
        assert everything(copied) == before


@pytest.mark.parametrize("name", ["results", "figures", "tables", "bundle"])
def test_a_directory_from_before_the_run_made_its_own_is_not_replaced(tmp_path: Path, name: str) -> None:
    directory = RunDirectory(tmp_path)
    with directory.writing():
        Ledger(directory.ledger).add("begin", stage="cohort", key="a" * 64, inputs={})
    (tmp_path / name).mkdir()
    directory.check_ours()
    (tmp_path / name / "contrasts.csv").write_text("mine")
    with pytest.raises(InputError, match=rf"{name}/contrasts\.csv was not made by the run"), directory.writing():
        pass


@pytest.mark.parametrize("name", ["results", "figures", "tables", "bundle"])
def test_a_link_in_place_of_what_is_replaced_is_named(copied: Path, tmp_path: Path, name: str) -> None:
    (copied / name).rename(tmp_path / "elsewhere")
    (copied / name).symlink_to(tmp_path / "elsewhere")
    before = everything(tmp_path / "elsewhere")
    with pytest.raises(
        InputError, match=f"{name} is no directory of the run's; move it elsewhere, and the run can go on"
    ):
        run_study(copied / "plan.toml", copied)
    assert everything(tmp_path / "elsewhere") == before
    (copied / name).unlink()
    RunDirectory(copied).check_ours()


def test_a_kill_before_anything_was_written_does_not_lock_a_run_out(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    with RunDirectory(tmp_path).writing():
        pass
    (tmp_path / "cohort-160-3").mkdir()
    with RunDirectory(tmp_path).writing():
        pass


def test_a_scoring_that_is_refused_leaves_nothing_behind(finished: Path, tmp_path: Path) -> None:
    part = "policies/ccga.safetensors"
    bundle = Path(shutil.copytree(finished / "bundle", tmp_path / "bundle"))
    contents = json.loads((bundle / "bundle.json").read_text())
    (bundle / part).write_bytes(b"")
    contents["files"][part] = file_sha256(bundle / part)
    (bundle / "bundle.json").write_text(json.dumps(contents))
    (bundle / "freeze.json").unlink()  # it is of the bundle as it was
    with pytest.raises(InputError, match=r"ccga\.safetensors is not a readable"):
        evaluate_bundle(bundle, finished / "cohort-160-3", tmp_path / "out", "audit")
    assert not (tmp_path / "out").exists()


def test_what_is_made_is_told_before_it_is_made(copied: Path) -> None:
    told: list[tuple[str, bool]] = []
    (copied / "report.html").unlink()
    run_study(copied / "plan.toml", copied, tell=lambda line: told.append((line, (copied / "report.html").exists())))
    assert told == [("making the report …", False)]


def test_a_cohort_without_an_evaluation_role_ends_with_the_audit(finished: Path, tmp_path: Path) -> None:
    tree = Path(shutil.copytree(finished / "cohort-160-3", tmp_path / "tree"))
    table = tree / "ptbxl_database.csv"
    head, *rows = table.read_text().splitlines(keepends=True)
    table.write_text(head + "".join(row for row in rows if ",8,records100" not in row))
    assert "evaluation" not in read_ptbxl(tree)
    directory, scored = evaluate_bundle(finished, tree, tmp_path / "out")
    assert scored == "audit"
    assert set(pd.read_csv(directory.results / "contrasts.csv")["role"]) == {"audit"}


# killed everywhere ---------------------------------------------------------------------------------------------------

KILLER = '''
"""For each point, a child that runs the study and kills itself there; then one that finishes."""
import importlib, json, os, signal, sys, traceback
from dataclasses import replace

import sklearn.linear_model, torch, pyarrow.parquet  # so that children, which are forked, need not
from leadwise.run.ledger import Ledger
from leadwise.run.stage import Runner
from leadwise.study.execute import run_study

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def arm(kind, name, moment):
    if kind == "stage":
        make = Runner._make
        def wrapped(runner, stage):
            if stage.name == name:
                before = stage.make
                stage = replace(stage, make=die if moment == "begun" else lambda work: (before(work), die()))
            return make(runner, stage)
        Runner._make = wrapped
    elif kind == "receipt":
        add = Ledger.add
        def wrapped(ledger, event, **facts):
            if (event, facts.get("stage", "")) != tuple(name):
                return add(ledger, event, **facts)
            if moment == "torn":
                with ledger.path.open("ab") as file:
                    file.write(b'{"event":"' + event.encode())
            if moment == "written":
                add(ledger, event, **facts)
            die()
        Ledger.add = wrapped
    elif kind == "call":
        module, *path, last = name.split(" ")
        owner = importlib.import_module(module)
        for each in path:
            owner = getattr(owner, each)
        function, left = getattr(owner, last), [moment]
        def wrapped(*args, **kwargs):
            left[0] -= 1
            return die() if left[0] < 0 else function(*args, **kwargs)
        setattr(owner, last, wrapped)

plan, out, points = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for point in [*points, None]:
    child = os.fork()
    if not child:
        try:
            if point:
                arm(*point)
            run_study(plan, out)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if (os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)) != (9 if point else 0):
        sys.exit(f"the child for {point} ended with {status}")
'''


def kill_points(plan: Path, seed: int) -> list[tuple[str, object, object]]:
    """In the order of the stages: a moment of each, and the middle of what takes long."""
    rng = random.Random(seed)
    training, scorer, search = (
        "leadwise.evaluators.masked_resnet.training Training learn",
        "leadwise.evaluators.scoring Scorer _checked",
        "leadwise.search_ledger SearchLedger add",
    )
    inside: dict[str, list[tuple[str, object, object]]] = {
        "evaluator/strong/seed-1": [("call", training, 1), ("call", training, 4), ("call", training, 1)],
        "evaluator/mask-robust/seed-1": [("call", training, 3 + rng.randrange(3))],
        "references/strong/2": [("call", search, n) for n in (0, 20 + rng.randrange(30))],
        "references/controlled/4": [("call", search, 0)],
        "policy/strong-mga": [("call", scorer, rng.randrange(3))],
        "score/audit": [("call", scorer, rng.randrange(6)), ("call", "leadwise.study.scoring paired_frame", 0)],
        "score/evaluation": [("call", "leadwise.study.scoring readings_frame", 0)],
        "freeze": [("call", "leadwise.run.bundle atomic_file", 0)],
    }
    points: list[tuple[str, object, object]] = [("call", "leadwise.cohort.synthetic read_ptbxl", 0)]
    for name in planned(plan):
        points += inside.get(name, [])
        moments: list[tuple[str, object, object]] = [
            ("stage", name, "begun"),
            ("stage", name, "made"),
            ("receipt", ["begin", name], "torn"),
            ("receipt", ["end", name], "unwritten"),
            ("receipt", ["end", name], "torn"),
            ("receipt", ["end", name], "written"),
        ]
        points.append(rng.choice(moments))
    replacing = "leadwise.study.execute shutil rmtree"
    points += [("call", replacing, n) for n in (0, 1, 2, 3)]
    points += [("receipt", ["results", ""], moment) for moment in ("torn", "written")]
    points += [("receipt", ["report", ""], moment) for moment in ("unwritten", "torn", "written")]
    points.append(("call", "leadwise.report.figures _write", rng.randrange(12)))
    return [*points, ("call", "leadwise.run.manifest atomic_file", 0)]


@pytest.mark.long
def test_killed_in_every_stage_it_comes_to_the_same_end(finished: Path, tmp_path: Path) -> None:
    seed = random.randrange(10_000)
    points = kill_points(finished / "plan.toml", seed)
    print(f"seed {seed}: {points}")
    out, plan = tmp_path / "killed", finished.parent / "plan.toml"
    command = [sys.executable, "-c", KILLER, str(plan), str(out), json.dumps(points)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert hashes(out) == hashes(finished)
    assert verify(out) == []
    assert {path.name for path in out.iterdir()} == {path.name for path in finished.iterdir()}, "no drafts are left"
    ended = [stage for event, stage in events(out) if event == "end"]
    assert sorted(ended) == sorted(planned(plan)), "each is finished once"


# the report names the cohort that was read ----------------------------------------------------------------------------


def test_what_ships_scored_on_made_up_recordings_says_so_everywhere(tmp_path: Path, pristine_tree: Path) -> None:
    directory, _ = evaluate_bundle(pretrained_bundle(), pristine_tree, tmp_path / "out", "audit")
    page = directory.report.read_text()
    title = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert title is not None
    assert "made on PTB-XL v1.0.3, scored on synthetic recordings" in title[1]
    assert "A program made these recordings up" in page
    assert "Another cohort." in page
    claims = pd.read_csv(directory.results / "claims.csv")
    assert set(claims["verdict"]) == {"not answerable"}
    assert pd.read_csv(directory.results / "published.csv")["ours"].isna().all()
    (receipt,) = [each for each in receipt_facts(directory.ledger) if each["event"] == "cohort"]
    assert receipt["cohort"]["kind"] == "synthetic"
    assert verify(directory.path) == []
