"""`Cohort`, everyone who is studied, and `Records`, the view on it that everything else takes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from operator import index
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int16

from leadwise.cohort.roles import FOLDS, PTBXL_ROLES, SEALED_ROLE, Roles, Token
from leadwise.errors import CohortError, InputError, PlanError, SealedRole

Selection = slice | Int[np.ndarray, " m"] | Bool[np.ndarray, " n"]
"""Which records of a view: a slice, positions, or a mask over all of them."""

QUALITY_FLAGS = (
    "baseline_drift",
    "static_noise",
    "burst_noise",
    "electrodes_problems",
    "extra_beats",
    "pacemaker",
)


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Signals, labels, patients and folds of n records, in the order of their table.

    ``cohort["train"]``, ``cohort.fold(7)`` and ``cohort.records`` give views. Signals and labels are reached only
    through a view, because a view knows about the seal.
    """

    source: str
    """Where the records came from, for messages."""
    ids: Int[np.ndarray, " n"]
    patients: Int[np.ndarray, " n"]
    folds: Int[np.ndarray, " n"]
    age: Float[np.ndarray, " n"]
    """Years; NaN where unknown, or over 89 (which PTB-XL hides)."""
    sex: Int[np.ndarray, " n"]
    """0 male, 1 female, −1 unknown."""
    quality: Bool[np.ndarray, "n 6"]
    """Annotators' remarks on the signal, one column for each of `QUALITY_FLAGS`."""
    missing: Int[np.ndarray, "n 12"]
    """Samples that the recording lacks in each lead; they were interpolated."""
    label_names: tuple[str, ...]
    sampling_rate: float
    version: str | None
    """PTB-XL version that the rows match, if any."""
    _signals: Int16[np.ndarray, "n 12 t"]
    _labels: Bool[np.ndarray, "n l"]
    roles: Roles = field(default=PTBXL_ROLES)
    cache: Path | None = None
    """Directory where arrays that are made from this cohort may be kept."""
    token: Token | None = None
    """What a frozen bundle issues: with it, the evaluation role may be read."""

    def __post_init__(self) -> None:
        if not len(self.ids):
            raise CohortError(f"{self.source} holds no records.")
        n, signals = len(self.ids), self._signals
        if signals.dtype != np.int16 or signals.ndim != 3 or signals.shape[:2] != (n, 12):
            raise InputError(
                f"The signals of {self.source} are {signals.dtype} of shape {signals.shape}; give int16 microvolts of "
                f"shape ({n}, 12, samples): millivolts × 1000, rounded."
            )
        for name in ("ids", "patients", "folds", "age", "sex", "quality", "missing", "_signals", "_labels"):
            array = getattr(self, name)
            if len(array) != n:
                raise InputError(f"{self.source} has {n} ids but {len(array)} {name.strip('_')}; give one a record.")
            array.flags.writeable = False  # the seal looks at folds; nobody may move a record
        self.roles.check_disjoint(self.patients, self.folds)

    @property
    def records(self) -> "Records":
        """All records. Signals and labels raise while any of them lies under the seal."""
        return Records(self, np.arange(len(self.ids)), "the whole cohort")

    @cached_property
    def unlabelled(self) -> "Cohort":
        """The same cohort without its labels."""
        return replace(self, _labels=self._labels[:, :0])

    def __getitem__(self, role: str) -> "Records":
        """The records of a role."""
        if role not in self.roles.folds:
            raise PlanError(f"There is no role '{role}' in this plan; it has {', '.join(self.roles.folds)}.")
        folds = self.roles.folds[role]
        rows = np.flatnonzero(np.isin(self.folds, folds))
        if not len(rows):
            raise CohortError(
                f"{self.source} has no record for the {role} role: no record is in fold {', '.join(map(str, folds))}."
            )
        return Records(self, rows, f"the {role} role")

    def fold(self, number: int) -> "Records":
        """The records of one fold."""
        if number not in FOLDS:
            raise PlanError(f"There is no fold {number}; folds are numbered 1 to 10.")
        return Records(self, np.flatnonzero(self.folds == number), f"fold {number}")

    def __contains__(self, role: object) -> bool:
        """Whether the cohort has any record for a role."""
        return bool(np.isin(self.folds, self.roles.folds.get(str(role), ())).any())

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Cohort {self.source}: {len(self)} records of {len(np.unique(self.patients))} patients>"


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """A selection of a cohort's records. Nothing is read from disk until ``signals`` is indexed."""

    cohort: Cohort
    rows: Int[np.ndarray, " n"]
    """Positions in the cohort."""
    name: str
    """What the selection is, for messages."""

    def __post_init__(self) -> None:
        rows = np.array(self.rows)
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)

    @property
    def ids(self) -> Int[np.ndarray, " n"]:
        return self.cohort.ids[self.rows]

    @property
    def patients(self) -> Int[np.ndarray, " n"]:
        return self.cohort.patients[self.rows]

    @property
    def folds(self) -> Int[np.ndarray, " n"]:
        return self.cohort.folds[self.rows]

    @property
    def role(self) -> str:
        """The role that all these records have; empty if they have several or none."""
        roles = {role for role, folds in self.cohort.roles.folds.items() if np.isin(folds, self.folds).any()}
        return roles.pop() if len(roles) == 1 else ""

    @property
    def age(self) -> Float[np.ndarray, " n"]:
        return self.cohort.age[self.rows]

    @property
    def sex(self) -> Int[np.ndarray, " n"]:
        return self.cohort.sex[self.rows]

    @property
    def quality(self) -> Bool[np.ndarray, "n 6"]:
        return self.cohort.quality[self.rows]

    @property
    def available(self) -> Bool[np.ndarray, "n 12"]:
        """Which leads each record has: those with at least one recorded sample."""
        return self.cohort.missing[self.rows] < self.length

    @property
    def sampling_rate(self) -> float:
        return self.cohort.sampling_rate

    @property
    def length(self) -> int:
        """Samples per lead."""
        return int(self.cohort._signals.shape[2])

    @property
    def label_names(self) -> tuple[str, ...]:
        return self.cohort.label_names

    @property
    def labels(self) -> Bool[np.ndarray, "n l"]:
        """Which labels each record has, in the order of ``label_names``."""
        self._refuse_if_sealed("labels")
        labels = self.cohort._labels
        if labels.shape[1] != len(self.label_names):
            raise InputError(
                f"The labels of {self.name} were asked for where records are handed over without them: whatever "
                "prepares for reading must not depend on labels."
            )
        return labels[self.rows]

    @property
    def unlabelled(self) -> "Records":
        """The same records, of the cohort without its labels: for those who must not see them."""
        return replace(self, cohort=self.cohort.unlabelled)

    @property
    def signals(self) -> "Signals":
        """The recordings, read when indexed."""
        self._refuse_if_sealed("signals")
        return Signals(self.cohort._signals, self.rows)

    @property
    def sha256(self) -> str:
        """Hash of ids, labels and available leads, by which later work knows that it is about the same records."""
        facts = self.ids.astype("<i8"), self.labels, self.available
        return sha256(b"".join(fact.tobytes() for fact in facts)).hexdigest()

    def select(self, which: Selection) -> "Records":
        """The records that a boolean mask, positions or a slice picks out of this view."""
        if not isinstance(which, slice | np.ndarray):
            raise InputError(
                f"select takes a slice, positions or a mask, not {which!r}; one record is records[{which!r}]."
            )
        return Records(self.cohort, self.rows[which], f"a selection of {self.name}")

    def with_id(self, ecg_id: int) -> "Records":
        """The one record that has this ECG id."""
        at = np.flatnonzero(self.ids == ecg_id)
        if not len(at):
            raise CohortError(f"There is no record {ecg_id} in {self.name} of {self.cohort.source}.")
        return Records(self.cohort, self.rows[at], f"record {ecg_id}")

    def __getitem__(self, position: int | np.integer) -> "Records":
        """One record, still as a view; for several, see `select`."""
        row = self.rows[index(position)]
        return Records(self.cohort, np.array([row]), f"record {self.cohort.ids[row]}")

    def __iter__(self) -> Iterator["Records"]:
        return (self[position] for position in range(len(self)))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Records {self.name} of {self.cohort.source}: {len(self)} records>"

    def fingerprint(self) -> str:
        """Hash of everything that these records are: ids, patients, folds, labels, missing samples and signals.

        For integrity only, so it may be taken of a sealed role too.
        """
        cohort, digest = self.cohort, sha256(",".join(self.label_names).encode())
        for array in (cohort.ids, cohort.patients, cohort.folds, cohort.missing):
            digest.update(array[self.rows].astype("<i8").tobytes())
        digest.update(cohort._labels[self.rows].tobytes())
        for _, chunk in Signals(cohort._signals, self.rows).chunks(256):
            digest.update(chunk.tobytes())
        return digest.hexdigest()

    @property
    def sealed(self) -> int:
        """How many of these records lie under the seal."""
        return 0 if self.cohort.token is not None else int(self.cohort.roles.sealed(self.folds).sum())

    def _refuse_if_sealed(self, what: str) -> None:
        if self.sealed:
            folds = ", ".join(map(str, self.cohort.roles.sealed_folds))
            raise SealedRole(
                f"The {what} of {self.name} cannot be read: {self.sealed} of its {len(self)} records belong to the "
                f"{SEALED_ROLE} role (fold {folds}), which stays sealed until a bundle is frozen; use another role."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Signals:
    """Recordings of the selected rows as int16 microvolts (n, 12, t), read from the memory map when indexed."""

    _microvolts: Int16[np.ndarray, "all 12 t"]
    _rows: Int[np.ndarray, " n"]

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self._rows), self._microvolts.shape[1], self._microvolts.shape[2]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, which: Selection) -> Int16[np.ndarray, "m 12 t"]:
        return np.asarray(self._microvolts[self._rows[which]])

    def millivolts(self, which: Selection) -> Float32[np.ndarray, "m 12 t"]:
        """The same in millivolts."""
        return self[which] * np.float32(1e-3)

    def chunks(self, size: int) -> Iterator[tuple[slice, Int16[np.ndarray, "m 12 t"]]]:
        """Walk over all recordings, ``size`` at a time, with bounded memory."""
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield part, self[part]
