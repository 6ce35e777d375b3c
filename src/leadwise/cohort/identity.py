"""Identity of a cohort: PTB-XL, by the content of its folds; synthetic, by our generator's mark; or neither."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from jaxtyping import Int

HELD_OUT = 8
"""The fold of PTB-XL that is sealed whatever role a plan gives it."""

PTBXL, SYNTHETIC, OTHER = "ptbxl", "synthetic", "other"

_SIZES = {
    1: (2175, 1878),
    2: (2181, 1849),
    3: (2192, 1887),
    4: (2174, 1883),
    5: (2174, 1890),
    6: (2173, 1884),
    7: (2176, 1871),
    8: (2173, 1881),
    9: (2183, 1942),
    10: (2198, 1904),
}
"""Records and patients of each fold of PTB-XL v1.0.3."""

_FINGERPRINTS = {
    1: "210861f2b4395eb5727f17e2485b2c5b67e328769db5ad4a1d8d2982a17c679b",
    2: "5870b17bf56fc23912228adeb6f5a6e2da64ccdf97809b3433ca6721702fde61",
    3: "21ffc671f658ed00d29baf903a7171b65aa5f68e79863770464284453a6c1c3f",
    4: "918b26308374ae12518f13f2ed686eab50a4bf34481caa835c1552e264b7b087",
    5: "d9d3576213d276306055cb0f01cc63674464fb692cb86cec754586bd5754a67a",
    6: "7d8c96b78ff47a9c015f22bd9fd2c9343c54e19dedbc892f166677a8c37fc397",
    7: "1214823457721b7e5fc869793d3ba54bb925fe3b0f21c5a5c30966ec53564041",
    9: "b9f27d721e1293e6fb5f151edb336b58f7f1ce7f5d44f70ab7935232f4b5d340",
    10: "8e8ccbc69ce84ac6c060c7bac59f04ea0935f6a40cbf60bbdbb961f84b76b3b2",
}
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
        published = all(
            sizes[fold] == _SIZES.get(fold) and fingerprint == _FINGERPRINTS.get(fold, fingerprint)
            for fold, fingerprint in fingerprints.items()
        )
        kind = PTBXL if published else SYNTHETIC if generator else OTHER
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
        return (self.kind, self.generator) != (other.kind, other.generator) or any(
            self.folds[fold] != other.folds[fold] for fold in common
        )


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
    return {fold: fingerprint(label_names, arrays, np.flatnonzero(folds == fold)) for fold in np.unique(folds).tolist()}


def fold_sizes(patients: Int[np.ndarray, " n"], folds: Int[np.ndarray, " n"]) -> dict[int, tuple[int, int]]:
    """Number of records and of patients of each fold that is there."""
    return {
        fold: (int((folds == fold).sum()), len(np.unique(patients[folds == fold])))
        for fold in np.unique(folds).tolist()
    }


def ptbxl_version(sizes: Mapping[int, tuple[int, int]]) -> str | None:
    """The version of PTB-XL that has just these numbers of records and patients in the folds that are there."""
    return "1.0.3" if all(_SIZES.get(fold) == size for fold, size in sizes.items()) else None


def resembles_ptbxl(sizes: Mapping[int, tuple[int, int]]) -> bool:
    """True if some fold has just the records and patients that it has in PTB-XL; chance does not do that."""
    return any(_SIZES.get(fold) == size for fold, size in sizes.items())
