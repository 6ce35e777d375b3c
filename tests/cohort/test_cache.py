"""The cache: quick, never half-written, never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leadwise.cohort import waveforms
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseWarning


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often records are read from the tree."""
    calls: list[int] = []
    original = waveforms.read_waveforms
    monkeypatch.setattr(
        "leadwise.cohort.ptbxl.read_waveforms", lambda paths: calls.append(len(paths)) or original(paths)
    )
    return calls


def test_second_opening_reads_no_record(tree: Path, reads: list[int]) -> None:
    first, second = read_ptbxl(tree), read_ptbxl(tree)
    assert reads == [120]
    assert isinstance(second.records.cohort._signals, np.memmap)
    np.testing.assert_array_equal(first["train"].signals[:], second["train"].signals[:])
    np.testing.assert_array_equal(first["train"].labels, second["train"].labels)


def test_anew_reads_again(tree: Path, reads: list[int]) -> None:
    read_ptbxl(tree)
    read_ptbxl(tree, anew=True)
    assert reads == [120, 120]


def test_changed_table_or_directory_is_noticed(tree: Path, reads: list[int], tmp_path: Path) -> None:
    read_ptbxl(tree)
    for name in ("ptbxl_database.csv", "scp_statements.csv"):
        path = tree / name
        path.write_text(path.read_text().replace("\n", "\r\n"))
        read_ptbxl(tree)
    (tree / "records100" / "00000" / "another").touch()
    read_ptbxl(tree)
    assert reads == [120] * 4
    assert len(list((tmp_path / "cache").glob("*/*/signals.npy"))) == 1, "old entries must not pile up"


@pytest.mark.parametrize("name", ["signals.npy", "table.npz", "facts.json"])
@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_damaged_cache_is_rebuilt(tree: Path, reads: list[int], tmp_path: Path, name: str, damage: str) -> None:
    read_ptbxl(tree)
    (path,) = (tmp_path / "cache").glob(f"*/*/{name}")
    if damage == "truncate":
        os.truncate(path, path.stat().st_size // 2)
    else:
        path.unlink()
    assert len(read_ptbxl(tree)["train"].signals[:])
    assert reads == [120, 120]


def test_leftover_of_a_kill_is_cleaned(tree: Path, tmp_path: Path) -> None:
    read_ptbxl(tree)
    (home,) = (tmp_path / "cache").iterdir()
    (home / ".draft.abc").mkdir()
    (entry,) = (path for path in home.iterdir() if path.is_dir() and path.name != ".draft.abc")
    shutil.copytree(entry, home / f"{entry.name}.new")
    np.save(home / f"{entry.name}.new" / "signals.npy", np.zeros((120, 12, 1000), np.int16))
    assert read_ptbxl(tree, anew=True)["train"].signals[:].any(), "a leftover must not pass for what was just read"
    assert [path.name for path in home.iterdir() if path.is_dir()] == [entry.name]


@pytest.mark.parametrize("content", ["{}", "[]", '{"label_names": ["A"]}', "no JSON"])
def test_wrong_facts_are_no_cache(tree: Path, reads: list[int], tmp_path: Path, content: str) -> None:
    read_ptbxl(tree)
    (path,) = (tmp_path / "cache").glob("*/*/facts.json")
    path.write_text(content)
    read_ptbxl(tree)
    assert reads == [120, 120]


def test_signals_of_another_size_are_no_cache(tree: Path, reads: list[int], tmp_path: Path) -> None:
    read_ptbxl(tree)
    (path,) = (tmp_path / "cache").glob("*/*/signals.npy")
    path.unlink()
    np.save(path, np.zeros((10, 12, 1000), np.int16))
    read_ptbxl(tree)
    assert reads == [120, 120]


def test_unwritable_cache_warns_and_works(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a directory should be, which stops even root")
    monkeypatch.setenv("LEADWISE_CACHE", str(blocked))
    with pytest.warns(LeadwiseWarning, match="not cached and will be read anew each time"):
        cohort = read_ptbxl(tree)
    assert cohort["train"].signals[:].any()


def test_cache_lies_beside_the_tree_or_with_the_user(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LEADWISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    read_ptbxl(tree)
    assert list(tree.glob(".leadwise/*/signals.npy"))
    for path in sorted((tree / ".leadwise").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tree / ".leadwise").rmdir()
    (tree / ".leadwise").write_text("in the way")
    read_ptbxl(tree)
    assert list((tmp_path / "user").glob("leadwise/*/*/signals.npy"))


def test_a_full_disk_leaves_nothing_and_says_so(tree: Path, tmp_path: Path) -> None:
    """A limit on file size stands for the full disk; both end a write in the middle with an OSError."""
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6));"
        "from leadwise.cli import main; sys.argv = ['leadwise', 'data', 'check', sys.argv[1]]; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tree)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "There is no room for the cohort's signals" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "cache").rglob("*.npy"))
