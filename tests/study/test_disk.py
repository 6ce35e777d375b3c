"""A whole study on a disk that is full, or read-only: one sentence, nothing broken, and later the same end."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disks import small_files_only
from leadwise.cli import main
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.run.directory import RunDirectory
from leadwise.run.verify import verify
from leadwise.study.execute import run_study
from leadwise.study.status import run_status
from runs import events, hashes, planned

MEGABYTE = 2**20
Verb = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def leadwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Verb:
    """Run ``leadwise WORDS`` in this process; returns the exit code and the lines on standard error."""

    def run(*words: object) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", ["leadwise", *map(str, words)])
        with pytest.raises(SystemExit) as exited:
            main()
        code = exited.value.code
        return code if isinstance(code, int) else 0, capsys.readouterr().err.splitlines()

    return run


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[Path]:
    """Something mounted at a place, where one may."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(place)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 megabytes."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", f"size={24 * MEGABYTE}", "tmpfs") as place:
        yield place


@pytest.mark.long
def test_a_disk_that_is_full_again_and_again(finished: Path, disk: Path, leadwise: Verb) -> None:
    """Whenever it is, one sentence and code 2; a little is freed, and in the end nobody can tell the difference."""
    seed = random.randrange(10_000)
    print("seed", seed)
    rng, plan, run, ballast = random.Random(seed), finished.parent / "plan.toml", disk / "run", disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(b"0" * (free - 3 * MEGABYTE))
    reached = [""]
    while True:
        code, said = leadwise("run", plan, "--out", run)
        if not code:
            break
        reached.append(refused(run, code, said, "No space left on device"))
        more = 2 * MEGABYTE if reached[-1] == "results" else rng.randint(4, 6) * MEGABYTE // 10
        os.truncate(ballast, ballast.stat().st_size - more)
    assert len(set(reached)) >= 4, "it was full at several stages"
    same_end(run, finished)


@pytest.mark.long
def test_files_that_may_not_grow(finished: Path, tmp_path: Path, leadwise: Verb) -> None:
    """The same where nothing can be mounted: the system refuses files beyond a size. The cohort is there already."""
    plan, run, reached = finished.parent / "plan.toml", tmp_path / "run", set()
    with RunDirectory(run).writing():  # it has begun
        read_ptbxl(shutil.copytree(finished / "cohort-160-3", run / "cohort-160-3"))
    for size in (100, 2_000, 60_000, 300_000):
        with small_files_only(size):
            code, said = leadwise("run", plan, "--out", run)
        reached.add(refused(run, code, said, "File too large"))
    assert len(reached) >= 3, reached
    assert leadwise("run", plan, "--out", run)[0] == 0
    same_end(run, finished)


def refused(run: Path, code: int, said: list[str], why: str) -> str:
    """One sentence and code 2, nothing broken or half-written; returns what the run had come to."""
    assert code == 2
    assert [line for line in said if line.startswith("leadwise: There is no room")] == [
        f"leadwise: There is no room left for the run {run} ({why}); free some, and the same command goes on where it "
        "was."
    ]
    assert "Traceback" not in "".join(said)
    kept = (".lock", ".readings")
    assert [path for path in run.rglob(".*") if path.name not in kept] == [], "no draft is left"
    if not (run / "plan.toml").exists():
        return "cohort"
    # refused after the results and before the manifest, it says just that
    assert [problem for problem in verify(run) if "manifest.json is missing" not in problem] == []
    return next((row["stage"] for row in run_status(run) if row["state"] != "done"), "results")


def same_end(run: Path, finished: Path) -> None:
    """Nobody can tell it from a run that was never refused anything."""
    assert hashes(run) == hashes(finished)
    assert verify(run) == []
    ended = [stage for event, stage in events(run) if event == "end"]
    assert sorted(ended) == sorted(planned(run / "plan.toml")), "each is finished once"


def test_a_run_that_may_only_be_read(finished: Path, tmp_path: Path, leadwise: Verb) -> None:
    """It can be looked at, not gone on with; nothing is changed by trying."""
    plan, place = finished.parent / "plan.toml", tmp_path / "disk"
    with mounted(place, "-t", "tmpfs", "-o", f"size={24 * MEGABYTE}", "tmpfs"):
        subprocess.run(["cp", "-a", str(finished), str(place / "run")], check=True)
        before = hashes(place / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        for run in (place / "run", place / "new", place / "deep" / "new"):
            assert leadwise("run", plan, "--out", run) == (
                2,
                [
                    f"leadwise: The run {run} cannot be written (Read-only file system); make it writable, or name "
                    "another directory."
                ],
            )
        assert leadwise("status", place / "run") == (0, [])
        assert leadwise("verify", place / "run") == (0, [])
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        assert sorted(path.name for path in place.iterdir()) == ["run"]
        run_study(plan, place / "run")
        assert hashes(place / "run") == before
