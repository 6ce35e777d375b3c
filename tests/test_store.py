import errno
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.store import (
    atomic_directory,
    atomic_file,
    csv_text,
    differing_files,
    error_number,
    exclusive,
    file_sha256,
    remove_drafts,
    text_of_csv,
    write_csv,
)


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"leads" * 100_000)
    assert file_sha256(tmp_path / "a") == hashlib.sha256(b"leads" * 100_000).hexdigest()


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    with atomic_file(target) as draft:
        draft.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~_umask()
    with pytest.raises(ZeroDivisionError), atomic_file(target) as draft:
        draft.write_text("half")
        _ = 1 / 0
    assert target.read_text() == "whole"
    assert os.listdir(target.parent) == ["file"]


def test_a_directory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "directory"
    with pytest.raises(ZeroDivisionError), atomic_directory(target) as draft:
        (draft / "file").write_text("half")
        _ = 1 / 0
    assert os.listdir(tmp_path) == []
    with atomic_directory(target) as draft:
        (draft / "deep").mkdir()
        (draft / "deep" / "file").write_text("whole")
        assert not target.exists()
    assert (target / "deep" / "file").read_text() == "whole"
    assert os.listdir(tmp_path) == ["directory"]


def test_drafts_that_kills_have_left(tmp_path: Path) -> None:
    others = ["file.txt", ".file.txt", ".other.txt.a1", ".my.file.txt.a1", "file.txt.a1"]
    for name in (".file.txt.a1", ".file.txt.b_2", *others):
        (tmp_path / name).write_text("")
    (tmp_path / ".file.txt.c3" / "deep").mkdir(parents=True)
    remove_drafts(tmp_path / "file.txt")
    assert sorted(os.listdir(tmp_path)) == sorted(others)
    remove_drafts(tmp_path / "nowhere" / "file.txt")


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OSError(errno.EROFS, "Read-only file system"), errno.EROFS),
        (OSError("12 requested and 3 written"), errno.ENOSPC),
        (shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]), errno.ENOSPC),
        (ValueError("I/O error: File too large (os error 27)"), errno.EFBIG),
        (OSError("nothing that has a number: 28"), 0),
    ],
)
def test_the_number_of_an_error(error: Exception, number: int) -> None:
    assert error_number(error) == number


def test_who_comes_first_stays(tmp_path: Path) -> None:
    target = tmp_path / "directory"
    with atomic_directory(target) as slow:
        (slow / "file").write_text("slow")
        with atomic_directory(target) as fast:
            (fast / "file").write_text("fast")
    assert (target / "file").read_text() == "fast"
    assert os.listdir(tmp_path) == ["directory"]


def test_a_lock_keeps_others_out_and_a_kill_releases_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    program = "import sys, time; from pathlib import Path; from leadwise.store import exclusive\n"
    program += "with exclusive(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", program, str(lock)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waiting = subprocess.Popen([sys.executable, "-c", program, str(lock)], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    assert waiting.stdout is not None
    os.set_blocking(waiting.stdout.fileno(), False)
    assert waiting.stdout.buffer.read() is None
    holder.kill()
    os.set_blocking(waiting.stdout.fileno(), True)
    assert waiting.stdout.readline() == "held\n"
    waiting.kill()
    for process in (holder, waiting):
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    with exclusive(lock):
        pass


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@given(st.one_of(st.text(), st.builds("{}{}".format, st.sampled_from("=+-@\t\r'"), st.text())))
def test_no_text_of_a_csv_is_a_formula(text: str) -> None:
    written = csv_text(text)
    assert text_of_csv(written) == text
    if written[:1] in ("=", "+", "-", "@", "\t", "\r"):
        assert float(written) == float(text)


def test_names_are_no_formulas_and_numbers_stay_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": ["=cmd|'/C calc'!A0", "@SUM(A1)", "NORM"], "delta": [-0.5, 0.1, float("nan")]})
    frame["mixed"] = ["aVR V1", -0.25, "-0.25"]
    write_csv(frame, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().splitlines() == [
        "label,delta,mixed",
        "'=cmd|'/C calc'!A0,-0.5,aVR V1",
        "'@SUM(A1),0.1,-0.25",
        "NORM,,-0.25",
    ]
    assert frame["label"].iloc[0].startswith("="), "the table itself is left alone"


@pytest.mark.parametrize("writing", [atomic_file, atomic_directory])
def test_what_the_system_refuses_is_named(tmp_path: Path, writing) -> None:
    for error in (OSError(errno.ENOSPC, "No space left on device"), OSError("12 requested and 3 written")):
        with pytest.raises(OSError, match="No space left on device") as caught, writing(tmp_path / "table"):
            raise error
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "table"))
    for error in (OSError(errno.EACCES, "no", "other"), OSError("something else")):
        with pytest.raises(OSError, match=r"no|something") as caught, writing(tmp_path / "table"):
            raise error
        assert caught.value is error, "it has a name, or no number"


def test_what_cannot_be_read_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("whole")
    (tmp_path / "directory").mkdir()
    assert differing_files(tmp_path, {"nowhere": "", "file/deeper": ""}) == [
        f"{tmp_path / 'nowhere'} is missing.",
        f"{tmp_path / 'file' / 'deeper'} is missing.",
    ]
    (problem,) = differing_files(tmp_path, {"directory": ""})
    assert problem == f"{tmp_path / 'directory'} cannot be read (Is a directory); make it readable, and look again."

    def forbidden(path: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("leadwise.store.file_sha256", forbidden)
    (problem,) = differing_files(tmp_path, {"file": ""})
    assert problem == f"{tmp_path / 'file'} cannot be read (Permission denied); make it readable, and look again."
