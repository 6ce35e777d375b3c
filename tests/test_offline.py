"""Nothing phones home: what a process tries to reach is watched from outside, native code included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

READING_AND_EXPORTING = """
import sys, time
from pathlib import Path

import numpy as np

from leadwise.evaluators.masked_resnet.engines import build_engine
from leadwise.evaluators.onnx import export_onnx
from networks import tiny_evaluator, tiny_network

engine = build_engine(tiny_network().eval(), "openvino", "cpu")
engine(np.zeros((2, 12, 64), np.float32), np.ones((2, 12), np.float32))
export_onnx(tiny_evaluator(device="cpu"), Path(sys.argv[1]))
time.sleep(3)  # what reports does so from a thread of its own, the first time while it is imported
print([name for name, module in sys.modules.items() if module and "telemetry" in name.split(".")[0]])
"""

CALLING = """
import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
"""


def calls_of(program: str, home: Path, *arguments: str) -> tuple[list[str], str]:
    """Every attempt of a program to reach a network, as the system saw it, and what the program printed."""
    trace = home.with_suffix(".trace")
    home.mkdir()
    watch = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "PYTHONPATH": paths}
    environment.pop("ORT_DISABLE_TELEMETRY", None)  # this process has it from leadwise, and so would its children
    try:
        run = subprocess.run(
            [*watch, sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True
        )
        problem = run.stderr if "ptrace" in run.stderr else ""
    except FileNotFoundError:
        problem = "strace is not installed"
    if problem and os.environ.get("CI"):
        pytest.fail(f"No process can be watched here, which CI needs: {problem}")
    if problem:
        pytest.skip(f"no process can be watched here: {problem}")
    assert run.returncode == 0, run.stderr
    return [line for line in trace.read_text().splitlines() if "AF_INET" in line], run.stdout


def test_a_call_is_seen(tmp_path: Path) -> None:
    """Without this the test below would be passed by a watch that sees nothing."""
    calls, _ = calls_of(CALLING, tmp_path / "home")
    assert len(calls) == 1
    assert "192.0.2.1" in calls[0]


def test_reading_and_exporting_call_nobody(tmp_path: Path) -> None:
    """OpenVINO and onnxruntime report to their makers where nobody stops them; onnxruntime also leaves a device id."""
    for module in ("openvino", "onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(module, reason=f"{module} is not installed (leadwise[fast] brings it)")
    home = tmp_path / "home"
    calls, printed = calls_of(READING_AND_EXPORTING, home, str(tmp_path / "tiny.onnx"))
    assert calls == []
    assert printed == "[]\n", "telemetry is not even loaded"
    assert [path for path in home.rglob("*") if path.is_file()] == []
