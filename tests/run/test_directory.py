"""One process writes a run at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory

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
