"""What reaches the disk: whole or not at all."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadwise.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed_files(directory: Path, hashes: Mapping[str, str], list_of_them: str | None = None) -> list[str]:
    """A sentence for each file that is missing, or is not what it was, or was not there before.

    ``hashes`` are SHA-256 by path within the directory; the file that holds them may lie there too.
    """
    problems = []
    for name, expected in hashes.items():
        file = directory / name
        if not file.exists():
            problems.append(f"{file} is missing.")
        elif file_sha256(file) != expected:
            problems.append(f"{file} was changed after it was made.")
    present = {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}
    return problems + [f"{directory / name} was added later." for name in sorted(present - {*hashes, list_of_them})]


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it is flushed and renamed to ``path``, otherwise removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        _flush(draft)
        draft.chmod(0o666 & ~_umask())  # mkstemp makes files private; ours are as open as any other
        draft.replace(path)
        _flush(path.parent)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory beside ``path``; on success it becomes ``path``, otherwise it is removed.

    If ``path`` has come to exist meanwhile (another process was faster), that one stays and ours is dropped.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield draft
        for file in draft.rglob("*"):
            _flush(file)
        draft.chmod(0o777 & ~_umask())
        try:
            draft.rename(path)
        except OSError:
            if not (path.is_dir() and any(path.iterdir())):
                raise
        _flush(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_tensors(path: Path, tensors: dict[str, "np.ndarray"], format: str, facts: dict[str, Any]) -> None:
    """One safetensors file, with the name of its format and facts in the header."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    # safetensors writes an array's memory as it lies, and reads it as if it lay row by row
    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    header = {"facts": json.dumps({"format": format} | facts)}  # several keys would come in random order
    try:
        with atomic_file(path) as draft:
            save_file(whole, draft, header)
    except SafetensorError as error:  # a full disk, for one: it has an error of its own for what the system says
        raise InputError(f"{path} cannot be written: {error}; what was there before is untouched.") from None


def read_tensors(path: Path, format: str) -> tuple[dict[str, "np.ndarray"], dict[str, Any]]:
    """What `write_tensors` wrote, if it is of this format."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            facts = _facts(file.metadata())
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a mapping
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} is not a readable {format}: {error}.") from None
    if facts.get("format") != format:
        raise InputError(f"{path} holds '{facts.get('format')}', not '{format}'; make the file again.")
    return tensors, facts


def read_format(path: Path) -> str | None:
    """The format of a file that `write_tensors` wrote; None if it is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return _facts(file.metadata()).get("format")
    except (OSError, SafetensorError):
        return None


def _facts(header: dict[str, str] | None) -> dict[str, Any]:
    try:
        facts = json.loads((header or {})["facts"])
    except (KeyError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` against every other process; waits its turn, and a kill releases it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _flush(path: Path) -> None:
    """Force a file or directory to the disk, so that a rename never outlives the content it names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
