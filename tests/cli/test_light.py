"""Verbs that only look at a run, or at the machine, answer at once: they load nothing that computes or draws."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadwise.cli.info import _capability, _threads

HEAVY = {"torch", "matplotlib", "jinja2", "openvino", "onnx", "onnxruntime", "scipy", "sklearn", "wfdb", "pandas"}
PROGRAM = """
import atexit, sys
atexit.register(lambda: print("loaded:", *sys.modules))
from leadwise.cli import main
main()
"""


def loaded_by(*words: object) -> set[str]:
    """Modules that are there when a verb has done its work."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("verb", ["status", "verify"])
def test_what_looks_at_a_run_is_light(verb: str, finished: Path) -> None:
    loaded = loaded_by(verb, finished)
    assert "leadwise.run.history" in loaded
    assert not loaded & HEAVY


def test_verifying_a_bundle_is_light(finished: Path) -> None:
    assert not loaded_by("verify", finished / "bundle") & HEAVY


def test_info_is_light() -> None:
    assert not loaded_by("info") & HEAVY


def test_the_capability_is_what_torch_finds() -> None:
    import torch

    assert _capability() == torch.backends.cpu.get_cpu_capability()


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert 1 <= _threads() <= (os.cpu_count() or 1)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    assert _threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert _threads() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert _threads() == len(os.sched_getaffinity(0))
