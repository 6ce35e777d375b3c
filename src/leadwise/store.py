"""Files: written whole or not at all, hashed, and checked when they are read."""

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadwise.errors import InputError, LeadwiseError, one_line

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\r']")
"""First characters of cells that a spreadsheet would not show as they are."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

TensorsDue = Mapping[str, tuple[str, tuple[int | str, ...]]]
"""Type (as NumPy writes it) and shape of each tensor of a file; a name stands for any length, everywhere the same."""


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed_files(directory: Path, hashes: Mapping[str, str], *lists: str) -> list[str]:
    """A sentence for each file that is missing, or is not what it was, or was not there before.

    ``hashes`` are SHA-256 by path within the directory; ``lists``, the files that say so, may lie there too.
    """
    problems = differing_files(directory, hashes)
    present = {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file() or file.is_symlink()}
    return problems + [f"{directory / name} was added later." for name in sorted(present - {*hashes, *lists})]


def differing_files(directory: Path, hashes: Mapping[str, str]) -> list[str]:
    """A sentence for each of these files that is missing, or is not what it was."""
    problems = []
    for name, expected in hashes.items():
        file = directory / name
        if not lies_within(directory, name):
            problems.append(f"{file} lies outside of {directory}, where nothing of it belongs.")
            continue
        try:
            changed = file_sha256(file) != expected
        except (FileNotFoundError, NotADirectoryError):
            problems.append(f"{file} is missing.")
        except OSError as error:
            problems.append(f"{file} cannot be read ({error.strerror}); make it readable, and look again.")
        else:
            problems += [f"{file} was changed after it was made."] * changed
    return problems


def lies_within(directory: Path, name: str) -> bool:
    """True if a path leads to a place within a directory, links followed."""
    try:
        # unlike Path.resolve, this lets a link that leads to itself be; whoever reads it meets an error of the system
        return Path(os.path.realpath(directory / name)).is_relative_to(os.path.realpath(directory))
    except (ValueError, OSError):  # no path at all
        return False


def write_csv(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table as CSV without formulas: text that a spreadsheet would run has an apostrophe before it."""
    texts = {str(name): cells.map(csv_text) for name, cells in frame.items() if cells.dtype.kind == "O"}
    frame.assign(**texts).to_csv(path, index=False)


def csv_text(cell: Any) -> Any:
    """A cell as it is written: names from a user's files may begin as formulas do; numbers stay as they are.

    >>> csv_text("=cmd|'/C calc'!A0"), csv_text("-0.5"), csv_text(-0.5)
    ("'=cmd|'/C calc'!A0", '-0.5', -0.5)
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def text_of_csv(cell: str) -> str:
    """The text that `csv_text` made a cell of."""
    return cell.removeprefix("'")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system that name no file, as those of a full disk do, name this one."""
    try:
        yield
    except OSError as error:
        number = error_number(error)
        if error.filename or not number:
            raise
        raise OSError(number, os.strerror(number), str(path)) from None


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it is flushed and renamed to ``path``, otherwise removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        with naming(path):
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
        with naming(path):
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


def remove_drafts(path: Path) -> None:
    """Remove what kills have left of attempts to write ``path``; only for the one process that writes it."""
    for draft in path.parent.glob(f".{path.name}.*"):
        shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield an empty directory to fill, which on success takes the place of ``target`` and of all that was in it."""
    new = target.with_name(f".{target.name}.new")
    remove_drafts(target)  # a kill may have left some
    remove_drafts(new)
    with atomic_directory(new) as draft:
        yield draft
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def error_number(error: Exception) -> int:
    """The system's number of an error of input or output, which many libraries keep only in their words; 0 if none."""
    said = re.search(r"(?:errno|os error) (\d+)", str(error), re.IGNORECASE)
    if "requested and" in str(error):  # by which NumPy means that it could not write all
        return errno.ENOSPC
    return getattr(error, "errno", None) or (int(said[1]) if said else 0)


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
    except SafetensorError as error:  # it has one of its own for what the system says, a full disk for instance
        number = error_number(error)
        if not number:
            raise InputError(f"{path} cannot be written ({one_line(error)}); what was there before stays.") from None
        raise OSError(number, os.strerror(number), str(path)) from None


def read_tensors(path: Path, format: str) -> tuple[dict[str, "np.ndarray"], dict[str, Any]]:
    """Tensors and facts of a file that `write_tensors` wrote; raises where it is of another format."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            facts = _facts(path, file.metadata())
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a mapping
    except (OSError, SafetensorError, TypeError) as error:  # a TypeError is of a number format that NumPy lacks
        raise InputError(f"{path} is not a readable {format}: {one_line(error)}.") from None
    if facts.get("format") != format:
        raise InputError(f"{path} holds '{facts.get('format')}', not '{format}'; make the file again.")
    return tensors, facts


def check_tensors(tensors: Mapping[str, "np.ndarray"], due: TensorsDue, undefined: Collection[str] = ()) -> None:
    """Raise ValueError unless these are just the tensors that are due, of their types and shapes, with finite numbers.

    Those named in ``undefined`` may hold NaN, where it means something; one called ``scale`` must lie above zero.
    """
    import numpy as np

    lengths: dict[str, int] = {}
    for name in [*(due.keys() - tensors.keys()), *(tensors.keys() - due.keys())]:
        raise ValueError(f"tensor '{name}' " + ("is missing" if name in due else "does not belong there"))
    for name, (dtype, shape) in due.items():
        tensor = tensors[name]
        if len(shape) == tensor.ndim:
            sizes = zip(shape, tensor.shape, strict=True)
            shape = tuple(lengths.setdefault(one, size) if isinstance(one, str) else one for one, size in sizes)
        if (tensor.dtype, tensor.shape) != (np.dtype(dtype), shape):
            given, wanted = (" × ".join(map(str, size)) for size in (tensor.shape, shape))
            raise ValueError(f"tensor '{name}' is {tensor.dtype} {given}, where {np.dtype(dtype)} {wanted} is due")
        wrong = np.isinf(tensor) if name in undefined else ~np.isfinite(tensor)
        if name == "scale":
            wrong |= tensor <= 0  # it is divided by
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            raise ValueError(f"tensor '{name}' holds {tensor[place]} at {list(place)}")


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[None]:
    """Say in one sentence that a file is not what it should be, where reading meets what saving would not have made."""
    try:
        yield
        return
    except KeyError as error:
        reason = f"it lacks {error}"
    except LeadwiseError as error:
        if str(path) in str(error):
            raise
        reason = one_line(error)
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RuntimeError) as error:
        reason = one_line(error)
    raise InputError(f"{path} is not a whole {what} ({reason}); save it again.")


def read_facts(path: Path) -> dict[str, Any]:
    """The facts in a file that `write_tensors` wrote, its format among them; none if it is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return _facts(path, file.metadata())
    except (OSError, SafetensorError):
        return {}


def _facts(path: Path, header: dict[str, str] | None) -> dict[str, Any]:
    def finite(text: str) -> float:
        if not math.isfinite(float(text)):
            raise InputError(
                f"{path} has {text} among its facts, where only finite numbers belong; make the file again."
            )
        return float(text)

    try:
        facts = json.loads((header or {})["facts"], parse_float=finite, parse_constant=finite)
    except (KeyError, ValueError, RecursionError):
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
