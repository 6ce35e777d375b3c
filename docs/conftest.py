"""The tutorial's code blocks are run in order, as a reader would run them."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

DEMO = Path(__file__).parent.parent / "build" / "study" / "run"
"""What `make study` leaves; where it is there, the tutorial's run finds all stages done, and saves minutes."""


def new_directory(namespace: dict[str, Any]) -> None:
    namespace["home"] = home = Path(tempfile.mkdtemp())
    if (DEMO / "manifest.json").exists():
        shutil.copytree(DEMO, home / "demo-run")


def remove_directory(namespace: dict[str, Any]) -> None:
    shutil.rmtree(namespace["home"])


def run_commands(example: Example) -> None:
    """Run a block of shell commands with the leadwise of this environment; any that fails fails the test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = example.namespace["home"]
    done = subprocess.run(
        ["sh", "-e", "-c", str(example.parsed)],
        cwd=home,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if "leadwise run demo --out demo-run" in example.parsed:
        assert (home / "demo-run" / "report.html").exists()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser(language="sh", evaluator=run_commands)],
    pattern="tutorial.md",
    setup=new_directory,
    teardown=remove_directory,
).pytest()
