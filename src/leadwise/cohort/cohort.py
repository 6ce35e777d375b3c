"""`Cohort`, everyone who is studied, and `Records`, the view on it that everything else takes."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int16

from leadwise.cohort.identity import (
    HELD_OUT,
    Identity,
    fingerprint,
    fold_fingerprints,
    fold_sizes,
    ptbxl_version,
    resembles_ptbxl,
)
from leadwise.cohort.roles import AUDIT, FOLDS, PTBXL_ROLES, Roles, Token
from leadwise.errors import CohortError, InputError, LeadwiseWarning, PlanError, SealedRole
from leadwise.notebook import html_table

Selection = slice | Int[np.ndarray, " m"] | Bool[np.ndarray, " n"]
"""Records of a view: a slice, positions, or a mask over all of them."""

QUALITY_FLAGS = ("baseline_drift", "static_noise", "burst_noise", "electrodes_problems", "extra_beats", "pacemaker")

TOLD = ("ids", "patients", "folds", "age", "sex", "quality")
"""Fields that a view tells of each record, sealed or not."""
ARRAYS = (*TOLD, "missing", "_signals", "_labels")
"""Fields of a cohort with one entry a record."""


def frozen(array: np.ndarray) -> np.ndarray:
    """A copy that nobody can make writeable again: its memory is an immutable object of Python's.

    >>> frozen(np.arange(3)).flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def table_sha256(ids: Int[np.ndarray, " n"], patients: Int[np.ndarray, " n"], folds: Int[np.ndarray, " n"]) -> str:
    """Hash of who is in which fold."""
    return sha256(b"".join(array.astype("<i8").tobytes() for array in (ids, patients, folds))).hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Signals, labels, patients and folds of n records, in the order of their table.

    ``cohort["train"]``, ``cohort.fold(7)`` and ``cohort.records`` give views. Signals and labels are reached only
    through a view, because a view knows about the seal.
    """

    source: str
    """Origin of the records, for messages."""
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
    _signals: Int16[np.ndarray, "n 12 t"]
    _labels: Bool[np.ndarray, "n l"]
    roles: Roles = field(default=PTBXL_ROLES)
    cache: Path | None = None
    """Directory where arrays that are made from this cohort may be kept."""
    generator: str | None = None
    """Statement of the program that made the recordings up; None where there is none."""
    as_read: Mapping[int, str] | None = None
    """Fingerprint of each fold when the cache was written, if the cohort comes from there."""
    table_as_read: str | None = None
    """`table_sha256` of the tree that was read: records of it cannot be moved to other folds afterwards."""
    token: Token | None = None
    """Issued by a frozen bundle: with it, sealed records may be read."""

    def __post_init__(self) -> None:
        for name in ARRAYS:
            array = getattr(self, name)
            if not isinstance(array, np.ndarray):
                raise InputError(f"The {name.strip('_')} of {self.source} are a {type(array).__name__}; give an array.")
        if not len(self.ids):
            raise CohortError(f"{self.source} holds no records.")
        n, signals = len(self.ids), self._signals
        if signals.dtype != np.int16 or signals.ndim != 3 or signals.shape[:2] != (n, 12):
            raise InputError(
                f"The signals of {self.source} are {signals.dtype} of shape {signals.shape}; give int16 microvolts of "
                f"shape ({n}, 12, samples): millivolts × 1000, rounded."
            )
        if signals.shape[2] < 2:
            raise CohortError(
                f"The recordings of {self.source} have leads of length {signals.shape[2]}; take some with two samples "
                "or more."
            )
        for name in ARRAYS:
            array = getattr(self, name)
            if len(array) != n:
                raise InputError(f"{self.source} has {n} ids but {len(array)} {name.strip('_')}; give one a record.")
            if name == "_signals":  # too large to be copied; as a rule they are mapped from a file, for reading only
                array.flags.writeable = False
            else:
                object.__setattr__(self, name, frozen(array))  # the seal looks at folds; nobody may move a record
        if self.table_as_read not in (None, self.table_sha256):
            raise InputError(
                f"The ids, patients or folds are not those of {self.source}, which was read; give folds other roles "
                "with roles=Roles(…), or pick records with select."
            )
        if self.token is not None and not isinstance(self.token, Token):
            raise SealedRole(f"{self.token!r} is no token; let a frozen bundle open {self.source}.")
        if self.token is not None and self.token.cohort != self.table_sha256:
            raise SealedRole(
                f"The token was issued for another cohort than {self.source}; let the bundle open this one."
            )
        self.roles.check_disjoint(self.patients, self.folds)

    @classmethod
    def of(cls, records: "Records", microvolts: Int[np.ndarray, "n 12 t"] | None = None) -> "Cohort":
        """Some records as a cohort of their own, without a cache, with other signals if given."""
        cohort = records.cohort
        arrays = {name: getattr(cohort, name)[records.rows] for name in (*TOLD, "missing")}
        table = table_sha256(arrays["ids"], arrays["patients"], arrays["folds"])
        return replace(
            cohort,
            **arrays,
            _signals=records.signals[:] if microvolts is None else microvolts.astype(np.int16),
            _labels=records.labels,
            cache=None,
            as_read=None,
            table_as_read=None,
            token=cohort.token and replace(cohort.token, cohort=table),
        )

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """A copy comes out of the constructor, which freezes its arrays and looks at its token."""
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    @cached_property
    def table_sha256(self) -> str:
        """Hash of ids, patients and folds."""
        return table_sha256(self.ids, self.patients, self.folds)

    @cached_property
    def version(self) -> str | None:
        """PTB-XL version whose numbers of records and patients the folds have, if any; `identity` looks closely."""
        return ptbxl_version(fold_sizes(self.patients, self.folds))

    @cached_property
    def identity(self) -> Identity:
        """Identity of the cohort, from its content; reads every signal once.

        Raises `CohortError` if the cache is not what was read from the tree.
        """
        sizes = fold_sizes(self.patients, self.folds)
        fingerprints = fold_fingerprints(self.label_names, self._arrays)
        altered = [fold for fold, each in fingerprints.items() if (self.as_read or fingerprints).get(fold) != each]
        if altered:
            raise CohortError(
                f"The cache {self.cache} was changed after {self.source} was read (fold "
                f"{', '.join(map(str, altered))}); leadwise data check {self.source} reads every record anew."
            )
        return Identity.of(sizes, fingerprints, self.generator)

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        """Arrays that fingerprints are made of."""
        table = {"ids": self.ids, "patients": self.patients, "folds": self.folds, "missing": self.missing}
        return table | {"labels": self._labels, "signals": self._signals}

    @cached_property
    def sealed_folds(self) -> tuple[int, ...]:
        """Folds under the seal: those of the evaluation role, and of PTB-XL the held-out one whatever its role."""
        by_role = set(self.roles.sealed_folds)
        if not self.roles.unsealed and resembles_ptbxl(fold_sizes(self.patients, self.folds)):
            by_role.add(HELD_OUT)
        return tuple(sorted(by_role & set(self.folds.tolist())))

    @cached_property
    def sealed(self) -> Bool[np.ndarray, " n"]:
        """Mask of the records that lie under the seal, whether or not a token opens it."""
        return frozen(np.isin(self.folds, self.sealed_folds))

    @property
    def records(self) -> "Records":
        """All records. Signals and labels raise while any of them lies under the seal."""
        return Records(self, np.arange(len(self.ids)), "the whole cohort")

    @cached_property
    def unlabelled(self) -> "Cohort":
        """The same cohort without its labels."""
        return replace(self, _labels=self._labels[:, :0])

    def __getitem__(self, role: str) -> "Records":
        """The records of a role; with a warning where looking at them should leave a receipt."""
        if role == AUDIT and self.version and self.token is None:
            warnings.warn(
                "This is PTB-XL's audit role. It is unseen for as long as nobody chooses anything by it: let a run "
                "look at it (leadwise evaluate), which leaves a receipt, and develop on the validation role.",
                LeadwiseWarning,
                stacklevel=2,
            )
        return self.role(role)

    def role(self, role: str) -> "Records":
        """The records of a role, for those who leave a receipt of what they do with them."""
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
        """True if the cohort has any record for a role."""
        return bool(np.isin(self.folds, self.roles.folds.get(str(role), ())).any())

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Cohort {self.source}: {len(self)} records of {len(np.unique(self.patients))} patients>"

    def _repr_html_(self) -> str:
        """The number of records and patients of each role."""
        rows = []
        for role, folds in self.roles.folds.items():
            if role in self:
                records = self.role(role)
                counts = f"{len(records):,}", f"{len(np.unique(records.patients)):,}"
                rows.append((role, ", ".join(map(str, folds)), *counts, "sealed" if records.sealed else ""))
        caption = f"{repr(self)[1:-1]}, {self.sampling_rate:g} Hz"
        return html_table(caption, ("role", "folds", "records", "patients", ""), rows)


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """A selection of a cohort's records. Nothing is read from disk until ``signals`` is indexed."""

    cohort: Cohort
    rows: Int[np.ndarray, " n"]
    """Positions in the cohort."""
    name: str
    """Name of the selection, for messages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", frozen(np.asarray(self.rows)))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """A copy comes out of the constructor, which freezes its rows."""
        return type(self), (self.cohort, self.rows, self.name)

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
    def age(self) -> Float[np.ndarray, " n"]:
        return self.cohort.age[self.rows]

    @property
    def sex(self) -> Int[np.ndarray, " n"]:
        return self.cohort.sex[self.rows]

    @property
    def quality(self) -> Bool[np.ndarray, "n 6"]:
        return self.cohort.quality[self.rows]

    @property
    def role(self) -> str:
        """The role that all these records have; empty if they have several or none."""
        roles = {role for role, folds in self.cohort.roles.folds.items() if np.isin(folds, self.folds).any()}
        return roles.pop() if len(roles) == 1 else ""

    @property
    def available(self) -> Bool[np.ndarray, "n 12"]:
        """Mask of the leads that each record has: those with at least one recorded sample."""
        return self.cohort.missing[self.rows] < self.length

    @property
    def lead_counts(self) -> Int[np.ndarray, " n"]:
        """Number of leads that each record has."""
        return self.available.sum(axis=1)

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
        """Mask of the labels that each record has, in the order of ``label_names``."""
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
    def labels_sha256(self) -> str:
        """Hash of ids, labels and available leads, by which later work knows that it is about the same records.

        It reads no signal; `fingerprint` is of everything.
        """
        facts = self.ids.astype("<i8"), self.labels, self.available
        return sha256(b"".join(fact.tobytes() for fact in facts)).hexdigest()

    def select(self, which: Selection) -> "Records":
        """The records that a boolean mask, positions or a slice picks out of this view."""
        if not isinstance(which, slice | np.ndarray):
            raise InputError(
                f"select takes a slice, positions or a mask, not {which!r}; one record is records[{which!r}]."
            )
        return Records(self.cohort, self.rows[which], f"a selection of {self.name}")

    def with_leads(self, k: int) -> "Records":
        """The records that have k leads or more; these themselves where all have."""
        enough = self.lead_counts >= k
        if not enough.any():
            raise InputError(f"No record of {self.name} has {k} leads; take a smaller budget.")
        return self if enough.all() else self.select(enough)

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

    def _repr_html_(self) -> str:
        """The number of records and patients, and the share of each label where the seal allows."""
        from leadwise.cohort.census import count_records

        counts = count_records(self)
        shares = counts["prevalence"] or {}
        row = [", ".join(map(str, counts["folds"])), f"{len(self):,}", f"{counts['patients']:,}"]
        row += [f"{100 * share:.1f}%" for share in shares.values()] or (["sealed"] if self.sealed else [])
        columns = ["folds", "records", "patients", *(shares or (["labels"] if self.sealed else []))]
        return html_table(f"{self.name} of {self.cohort.source}", columns, [row])

    def fingerprint(self) -> str:
        """Hash of everything that these records are: ids, patients, folds, labels, missing samples and signals.

        For integrity only, so it may be taken of a sealed role too.
        """
        return fingerprint(self.label_names, self.cohort._arrays, self.rows)

    @property
    def sealed(self) -> int:
        """Number of these records that lie under a closed seal."""
        return 0 if self.cohort.token is not None else int(self.cohort.sealed[self.rows].sum())

    def _refuse_if_sealed(self, what: str) -> None:
        if self.sealed:
            folds = ", ".join(map(str, self.cohort.sealed_folds))
            raise SealedRole(
                f"The {what} of {self.name} cannot be read: {self.sealed} of its {len(self)} records are in fold "
                f"{folds}, which stays sealed until a bundle is frozen; use others."
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

    def __repr__(self) -> str:
        return f"<Signals in µV: {' × '.join(map(str, self.shape))}>"

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
