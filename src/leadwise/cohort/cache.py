"""A cohort that was read once opens in milliseconds: its arrays, on disk, under a key that says what they came from."""

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import platformdirs
from jaxtyping import Int, Int16

from leadwise.cohort.identity import fold_fingerprints
from leadwise.errors import LeadwiseWarning
from leadwise.store import atomic_directory, exclusive

Arrays = dict[str, np.ndarray]
Facts = dict[str, Any]
Chunk = tuple[Int16[np.ndarray, "m 12 t"], Int[np.ndarray, "m 12"], float]
"""Microvolts, numbers of missing samples, and the sampling rate."""

FACTS = {"label_names", "generator", "sampling_rate", "fingerprints"}
"""Facts of an entry beside the arrays."""


def cache_homes(tree: Path) -> Iterator[Path]:
    """Places for the cache of a tree, best first: ``$LEADWISE_CACHE`` if set, else beside the tree or the user's."""
    own = sha256(os.fsencode(tree.resolve())).hexdigest()[:16]
    chosen = os.environ.get("LEADWISE_CACHE")
    if chosen:
        yield Path(chosen) / own
    else:
        yield tree / ".leadwise"
        yield Path(platformdirs.user_cache_dir("leadwise")) / own


def keep(homes: Iterable[Path], key: str, write: Callable[[Path], None], *, anew: bool) -> Path | None:
    """Let ``write`` fill the entry ``key`` in the first home that takes it, and return that home; None if none does.

    One process writes at a time, so that two that start together do the work once. Entries of other keys, and drafts
    that a kill left behind, are removed: they are half a gigabyte each and nothing will ask for them again.
    """
    reasons = []
    for home in homes:
        try:
            with exclusive(home / "lock"):
                shutil.rmtree(home / f"{key}.new", ignore_errors=True)  # left by a kill between the two renames
                if anew or open_entry(home / key) is None:
                    with atomic_directory(home / f"{key}.new") as draft:
                        write(draft)
                    shutil.rmtree(home / key, ignore_errors=True)
                    (home / f"{key}.new").rename(home / key)
                for other in home.iterdir():
                    if other.is_dir() and other.name != key:
                        shutil.rmtree(other, ignore_errors=True)
            return home
        except OSError as error:
            reasons.append(f"{home}: {error.strerror}")
    message = f"The cohort is not cached and will be read anew each time ({'; '.join(reasons)})."
    warnings.warn(message, LeadwiseWarning, stacklevel=3)
    return None


def write_entry(directory: Path, table: Arrays, facts: Facts, records: int, chunks: Iterator[Chunk]) -> None:
    """Write one entry, streaming the signals, so that memory stays bounded whatever the cohort's size."""
    missing: list[np.ndarray] = []
    # written in sequence and not through a memory map: a full disk is then an error, and not a crash of the process
    with (directory / "signals.npy").open("wb") as file:
        for microvolts, absent, sampling_rate in chunks:
            facts = facts | {"sampling_rate": sampling_rate}
            if not missing:
                shape = (records, *microvolts.shape[1:])
                np.lib.format.write_array_header_1_0(file, {"descr": "<i2", "fortran_order": False, "shape": shape})
            missing.append(absent)
            file.write(microvolts.astype("<i2", copy=False).data)
    table = table | {"missing": np.concatenate(missing)}
    np.savez(directory / "table.npz", **table)  # type: ignore[arg-type]
    written = table | {"signals": np.load(directory / "signals.npy", mmap_mode="r", allow_pickle=False)}
    facts = facts | {"fingerprints": fold_fingerprints(facts["label_names"], written)}
    (directory / "facts.json").write_text(json.dumps(facts))


def open_entry(directory: Path) -> tuple[Arrays, Facts] | None:
    """The arrays and facts of an entry, ``signals`` memory-mapped; None if it is not there, or damaged."""
    try:
        facts = json.loads((directory / "facts.json").read_text())
        with (directory / "table.npz").open("rb") as file, np.load(file, allow_pickle=False) as table:
            arrays = dict(table)
        arrays["signals"] = np.load(directory / "signals.npy", mmap_mode="r", allow_pickle=False)
        facts["fingerprints"] = {int(fold): str(each) for fold, each in facts["fingerprints"].items()}
        whole = set(facts) == FACTS and {len(array) for array in arrays.values()} == {len(arrays["ids"])}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, BadZipFile):
        return None
    return (arrays, facts) if whole else None
