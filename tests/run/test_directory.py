"""One process writes a run at a time, and what it cannot write is told in one sentence."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from disks import small_files_only
from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.ledger import Ledger
from leadwise.store import atomic_directory, atomic_file, write_tensors
from runs import PLAN

HOLDER = """
import sys
from leadwise.run.directory import RunDirectory
with RunDirectory(sys.argv[1]).writing():
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_the_second_writer_is_refused_and_a_kill_gives_the_place_free(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "deep" / "run")
    command = [sys.executable, "-c", HOLDER, str(directory.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "writing\n"
        with pytest.raises(InputError) as caught, directory.writing():
            pass
        assert str(caught.value) == (
            f"Another process is writing the run {directory.path}; wait for it, or name another directory."
        )
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        with directory.writing():
            pass


def test_one_after_the_other(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    for _ in range(2):
        with directory.writing():
            pass
    with pytest.raises(KeyError), directory.writing():
        raise KeyError
    with directory.writing():
        pass


def test_two_runs_do_not_disturb_each_other(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "one").writing(), RunDirectory(tmp_path / "two").writing():
        pass


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "leadwise", *map(str, words)], stderr=subprocess.PIPE, text=True)


def test_two_runs_of_the_same_plan_at_once(tmp_path: Path) -> None:
    """The second is refused, the first is not disturbed; when it is gone, the second may go on in its place."""
    plan, run = tmp_path / "plan.toml", tmp_path / "run"
    plan.write_text(PLAN)
    with start("run", plan, "--out", run) as first:
        deadline = time.monotonic() + 120
        while not (run / ".lock").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        with start("run", plan, "--out", run) as second:
            _, err = second.communicate(timeout=120)
        assert first.poll() is None
        assert second.returncode == 2
        assert err == f"leadwise: Another process is writing the run {run}; wait for it, or name another directory.\n"
        assert first.stderr is not None
        assert any(line == "cohort …\n" for line in first.stderr)
        first.kill()
    with start("run", plan, "--out", run) as third:
        assert third.stderr is not None
        assert any(line.endswith(" …\n") for line in third.stderr), "a stage begins"
        third.kill()


# what cannot be written ----------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(np.random.default_rng(0).random((5000, 4)), columns=list("abcd"))
LARGE = np.random.default_rng(0).random(50_000)


def picture(path: Path) -> None:
    figure = Figure()
    figure.subplots().scatter(*FRAME[["a", "b"]].to_numpy().T, c=FRAME["c"])
    with atomic_file(path) as draft:
        figure.savefig(draft, format=path.suffix[1:])


def copy(path: Path) -> None:
    shutil.copyfile(sys.executable, path)


def copy_all(path: Path) -> None:
    shutil.copytree(Path(os.__file__).parent / "json", path)


def table(path: Path) -> None:
    FRAME.to_parquet(path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("x" * 100_000),
    "csv": lambda path: FRAME.to_csv(path),
    "parquet": table,
    "safetensors": lambda path: write_tensors(path, {"a": LARGE}, "large", {}),
    "npy": lambda path: np.save(path, LARGE),
    "npz": lambda path: np.savez(path, a=LARGE, b=LARGE),
    "jsonl": lambda path: Ledger(path).add("large", text="x" * 100_000),
    "svg": picture,
    "pdf": picture,
    "png": picture,
    "copy": copy,
    "tree": copy_all,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_whoever_writes_a_full_disk_is_told_alike(tmp_path: Path, kind: str) -> None:
    directory = RunDirectory(tmp_path / "run")
    with (
        pytest.raises(InputError) as caught,
        small_files_only(4096),
        directory.writing(),
        atomic_directory(directory.artifacts / "stage") as draft,
    ):
        WRITERS[kind](draft / f"file.{kind}")
    why = "No space left on device" if kind == "npy" else "File too large"
    assert str(caught.value) == (
        f"There is no room left for the run {directory.path} ({why}); free some, and the same command goes on where it "
        "was."
    )
    assert list(directory.artifacts.iterdir()) == [], "nothing half-written stays"
    with directory.writing():
        pass


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_what_may_not_be_written(tmp_path: Path, number: int) -> None:
    directory = RunDirectory(tmp_path / "run")
    for place in (directory.path, directory.ledger, tmp_path):
        with pytest.raises(InputError) as caught, directory.writing():
            raise OSError(number, os.strerror(number), str(place))
        assert str(caught.value) == (
            f"The run {directory.path} cannot be written ({os.strerror(number)}); make it writable, or name another "
            "directory."
        )


def test_other_errors_are_none_of_its_business(tmp_path: Path) -> None:
    """A cohort, say, that may not be read."""
    for error in (PermissionError(errno.EACCES, "no", "/elsewhere"), FileNotFoundError(errno.ENOENT, "no")):
        with pytest.raises(type(error), match="no") as caught, RunDirectory(tmp_path).writing():
            raise error
        assert caught.value is error
