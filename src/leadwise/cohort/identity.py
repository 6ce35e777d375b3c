"""Identity of a cohort: PTB-XL, by the content of its folds; synthetic, by our generator's mark; or neither."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

HELD_OUT = 8
"""The fold of PTB-XL that is sealed whatever role a plan gives it."""

PTBXL, SYNTHETIC, OTHER = "ptbxl", "synthetic", "other"

with Path(__file__).with_name("ptbxl_folds.csv").open() as _file:
    _FOLDS = {int(row["fold"]): row for row in csv.DictReader(_file)}
_SIZES = {fold: (int(row["records"]), int(row["patients"])) for fold, row in _FOLDS.items()}
"""Records and patients of each fold of PTB-XL v1.0.3."""
_FINGERPRINTS = {fold: row["sha256"] for fold, row in _FOLDS.items() if row["sha256"]}
"""`Records.fingerprint` of each fold of PTB-XL v1.0.3 at 100 Hz. That of the held-out fold is not known to those who
write this; it goes by its numbers of records and patients."""

_CHUNK = 256
"""Records that are hashed at a time, so that memory stays bounded."""


@dataclass(frozen=True)
class Identity:
    """Identity of a cohort, from its content and not from what a plan calls it."""

    kind: str
    """``ptbxl``, ``synthetic`` or ``other``."""
    generator: str | None
    """Statement of the program that made the recordings up."""
    folds: Mapping[str, str]
    """Fingerprint of the records of each fold, by its number."""

    @classmethod
    def of(
        cls, sizes: Mapping[int, tuple[int, int]], fingerprints: Mapping[int, str], generator: str | None
    ) -> "Identity":
        """The identity of folds with these numbers of records and patients, and these fingerprints."""
        alike = (_FINGERPRINTS.get(fold, fingerprint) == fingerprint for fold, fingerprint in fingerprints.items())
        kind = PTBXL if ptbxl_version(sizes) and all(alike) else SYNTHETIC if generator else OTHER
        folds = {str(fold): fingerprint for fold, fingerprint in fingerprints.items()}
        return cls(kind, generator if kind == SYNTHETIC else None, folds)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "Identity":
        """Identity that `facts` were made of; raises KeyError or TypeError where they are something else."""
        if facts["kind"] not in (PTBXL, SYNTHETIC, OTHER):
            raise TypeError(f"a cohort cannot be of kind {facts['kind']!r}")
        generator = facts["generator"]
        if not all(isinstance(each, str) for each in dict(facts["folds"]).values()):
            raise TypeError("a fold's fingerprint is no text")
        return cls(facts["kind"], None if generator is None else str(generator), dict(facts["folds"]))

    @property
    def facts(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self)

    @property
    def sha256(self) -> str:
        """Fingerprint of the whole cohort."""
        return sha256("".join(f"{fold} {self.folds[fold]}\n" for fold in sorted(self.folds)).encode()).hexdigest()

    @property
    def title(self) -> str:
        """Title of the cohort.

        >>> Identity("ptbxl", None, {}).title
        'PTB-XL v1.0.3'
        """
        titles = {PTBXL: "PTB-XL v1.0.3", OTHER: "a cohort other than PTB-XL"}
        return titles.get(self.kind) or f"synthetic recordings ({self.generator})"

    def differs_from(self, other: "Identity") -> bool:
        """True if these cannot be two parts of one cohort."""
        common = self.folds.keys() & other.folds.keys()
        made_alike = (self.kind, self.generator) == (other.kind, other.generator)
        return not made_alike or any(self.folds[fold] != other.folds[fold] for fold in common)


def fingerprint(label_names: Sequence[str], arrays: Mapping[str, np.ndarray], rows: Int[np.ndarray, " m"]) -> str:
    """Hash of everything that some records are: ids, patients, folds, labels, missing samples and signals."""
    digest = sha256(",".join(label_names).encode())
    for name in ("ids", "patients", "folds", "missing"):
        digest.update(arrays[name][rows].astype("<i8").tobytes())
    digest.update(arrays["labels"][rows].tobytes())
    for start in range(0, len(rows), _CHUNK):
        digest.update(arrays["signals"][rows[start : start + _CHUNK]].tobytes())
    return digest.hexdigest()


def fold_fingerprints(label_names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> dict[int, str]:
    """`fingerprint` of the records of each fold that is there."""
    folds = arrays["folds"]
    present = sorted(set(folds.tolist()))  # np.unique would import numpy.ma first
    return {fold: fingerprint(label_names, arrays, np.flatnonzero(folds == fold)) for fold in present}


def fold_sizes(patients: Int[np.ndarray, " n"], folds: Int[np.ndarray, " n"]) -> dict[int, tuple[int, int]]:
    """Number of records and of patients of each fold that is there."""
    of_fold = {fold: patients[folds == fold].tolist() for fold in sorted(set(folds.tolist()))}
    return {fold: (len(those), len(set(those))) for fold, those in of_fold.items()}


def ptbxl_version(sizes: Mapping[int, tuple[int, int]]) -> str | None:
    """The version of PTB-XL that has just these numbers of records and patients in the folds that are there."""
    return "1.0.3" if all(_SIZES.get(fold) == size for fold, size in sizes.items()) else None


def resembles_ptbxl(sizes: Mapping[int, tuple[int, int]]) -> bool:
    """True if some fold has just the records and patients that it has in PTB-XL; chance does not do that."""
    return any(_SIZES.get(fold) == size for fold, size in sizes.items())
