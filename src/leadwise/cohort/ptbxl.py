"""PTB-XL's published tree, read into a `Cohort`."""

import csv
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from jaxtyping import Int16

from leadwise.cohort.cache import Arrays, Chunk, Facts, cache_homes, keep, open_entry, write_entry
from leadwise.cohort.cohort import ARRAYS, QUALITY_FLAGS, TOLD, Cohort, table_sha256
from leadwise.cohort.contract import register_cohort
from leadwise.cohort.identity import Identity, fold_sizes
from leadwise.cohort.roles import FOLDS, PTBXL_ROLES, Roles
from leadwise.cohort.waveforms import read_waveforms
from leadwise.errors import CohortError, LeadwiseWarning, one_line
from leadwise.progress import progress
from leadwise.registry import Settings
from leadwise.store import file_sha256

READER_VERSION = 2
"""Part of the cache key: bump it whenever the reader would give other arrays for the same files."""

MARK = "leadwise-synthetic.json"
"""File that a program leaves in a tree whose recordings it made up, so that nobody takes them for real ones."""

SAMPLING_RATE = 100
"""To which recordings of records500 are brought."""

_STATEMENT_COLUMNS = ("", "diagnostic", "diagnostic_class")
_DATABASE_COLUMNS = ("ecg_id", "patient_id", "age", "sex", "scp_codes", "strat_fold", *QUALITY_FLAGS)
_WHOLE_NUMBER = re.compile(r"\d{1,15}(\.0+)?")
_SCP_ITEM = r"""['"][^'"]+['"]\s*:\s*\d+(?:\.\d*)?"""
_SCP_CODES = re.compile(rf"\{{\s*(?:{_SCP_ITEM}(?:\s*,\s*{_SCP_ITEM})*\s*,?\s*)?\}}")
_SCP_CODE = re.compile(r"""['"]([^'"]+)['"]""")
_HIDDEN_AGE = 300.0

_ROWS_OF_1_0_1 = 21_837


def read_ptbxl(directory: str | Path, roles: Roles = PTBXL_ROLES, *, anew: bool = False) -> Cohort:
    """Open a PTB-XL tree, or any tree in its layout, as a cohort; from the cache when nothing changed.

    The tree holds ``ptbxl_database.csv``, ``scp_statements.csv`` and ``records100/`` or, failing that, ``records500/``,
    whose recordings are then resampled to 100 Hz. ``anew`` reads and verifies every record even if the cache has them.
    """
    tree = _Tree.find(Path(directory))
    homes, key = list(cache_homes(tree.root)), tree.cache_key()
    places = () if anew else ((home / key, open_entry(home / key)) for home in homes)
    entry, kept = next(((place, found) for place, found in places if found), (None, None))
    if kept is None:
        write = _writer(tree)
        home = keep(homes, key, write, anew=anew)
        entry = home / key if home else None
        kept = open_entry(entry) if entry else _without_cache(write)
    if kept is None:
        raise CohortError(f"The cache of {tree.root} vanished while it was opened; run the command again.")
    arrays, facts = kept
    columns: dict[str, Any] = {name: arrays[name.strip("_")] for name in ARRAYS}
    return Cohort(
        source=str(directory),
        **columns,
        label_names=tuple(facts["label_names"]),
        sampling_rate=facts["sampling_rate"],
        roles=roles,
        cache=entry,
        generator=facts["generator"],
        as_read=facts["fingerprints"],
        table_as_read=table_sha256(arrays["ids"], arrays["patients"], arrays["folds"]),
    )


def read_identity(directory: str | Path) -> Identity:
    """The identity of a tree, from every record as it lies there now; the cache is neither asked nor written."""
    kept = _without_cache(_writer(_Tree.find(Path(directory))))
    if kept is None:
        raise CohortError(f"The recordings of {directory} vanished while they were read; run the command again.")
    arrays, facts = kept
    return Identity.of(fold_sizes(arrays["patients"], arrays["folds"]), facts["fingerprints"], facts["generator"])


@register_cohort("ptbxl")
class PTBXLTree:
    """PTB-XL, or any cohort in its layout, in a directory."""

    Settings = Settings

    @classmethod
    def read(cls, _settings: object, directory: Path, roles: Roles) -> Cohort:
        """See `read_ptbxl`."""
        return read_ptbxl(directory, roles)


@dataclass(frozen=True)
class _Tree:
    root: Path
    database: Path
    statements: Path
    records: Path
    """``records100``, or ``records500`` where only that is there."""
    path_column: str

    @classmethod
    def find(cls, root: Path) -> "_Tree":
        if not root.is_dir():
            raise CohortError(f"There is no directory {root}; leadwise data fetch or data synth can make one.")
        database, statements = root / "ptbxl_database.csv", root / "scp_statements.csv"
        for file in (database, statements):
            if not file.is_file():
                raise CohortError(f"{root} has no {file.name}, so it is no PTB-XL tree; is it the right directory?")
        for folder, column in (("records100", "filename_lr"), ("records500", "filename_hr")):
            if (root / folder).is_dir():
                return cls(root, database, statements, root / folder, column)
        raise CohortError(f"{root} has neither records100 nor records500; fetch the records (leadwise data fetch).")

    @property
    def resamples(self) -> bool:
        return self.records.name == "records500"

    def cache_key(self) -> str:
        """Hash of what the arrays depend on. Directory times stand for recordings, whose hashing would take as long as
        reading them; a file that is changed in place goes unnoticed until ``leadwise data check``."""
        folders = [self.records, *sorted(path for path in self.records.iterdir() if path.is_dir())]
        times = [(path.name, path.stat().st_mtime_ns) for path in folders]
        marked = file_sha256(mark) if (mark := self.root / MARK).exists() else None
        sources = [READER_VERSION, file_sha256(self.database), file_sha256(self.statements), marked, times]
        return sha256(json.dumps(sources).encode()).hexdigest()[:32]


def _writer(tree: _Tree) -> Callable[[Path], None]:
    """What writes a cohort to a directory as the cache keeps it; the tables are read already."""
    table, facts, paths = _read_table(tree)
    return lambda draft: write_entry(draft, table, facts, len(paths), _signals(tree, paths))


def _without_cache(write: Callable[[Path], None]) -> tuple[Arrays, Facts] | None:
    """Read into a temporary directory that is gone at once; a memory map outlives the name of its file."""
    try:
        with tempfile.TemporaryDirectory(prefix="leadwise-") as draft:
            write(Path(draft))
            return open_entry(Path(draft))
    except OSError as error:
        raise CohortError(
            f"There is no room for the cohort's signals in {tempfile.gettempdir()}: {error.strerror}; "
            "set TMPDIR or LEADWISE_CACHE to a directory with more."
        ) from None


def _signals(tree: _Tree, paths: list[Path]) -> Iterator[Chunk]:
    """The recordings, verified and, where need be, resampled."""
    if tree.resamples:
        message = f"{tree.root} has only 500 Hz recordings; they are resampled to {SAMPLING_RATE} Hz."
        warnings.warn(message, LeadwiseWarning, stacklevel=5)
    with progress("Reading records", len(paths)) as advance:
        for part in read_waveforms(paths):
            microvolts, missing, rate = part.microvolts, part.missing, part.sampling_rate
            if tree.resamples:
                before = microvolts.shape[2]
                microvolts, rate = _resample(microvolts, rate), float(SAMPLING_RATE)
                # rounded down, so that only a lead that has no sample at all counts as not recorded
                missing = missing * microvolts.shape[2] // before
            yield microvolts, missing, rate
            advance(len(microvolts))


def _resample(microvolts: Int16[np.ndarray, "m 12 t"], rate: float) -> Int16[np.ndarray, "m 12 u"]:
    """Bring recordings to 100 Hz through SciPy's zero-phase anti-aliasing filter."""
    from scipy.signal import resample_poly

    if rate != int(rate):
        raise CohortError(f"Recordings at {rate:g} Hz cannot be resampled; the rate must be a whole number.")
    resampled = resample_poly(microvolts.astype(np.float32), SAMPLING_RATE, int(rate), axis=2, padtype="line")
    return np.clip(np.rint(resampled), -32767, 32767).astype(np.int16)


def _read_table(tree: _Tree) -> tuple[Arrays, Facts, list[Path]]:
    """Everything but the recordings: the table's columns as arrays, facts about the cohort, each record's path."""
    class_of = _read_statements(tree.statements)
    label_names = sorted(set(class_of.values()) - {None})  # type: ignore[type-var]
    texts = list(_read_csv(tree.database, (*_DATABASE_COLUMNS, tree.path_column)))
    if len(texts) == _ROWS_OF_1_0_1:
        raise CohortError(
            f"{tree.database} has {len(texts):,} rows: this is PTB-XL v1.0.1, which holds duplicates; "
            "the study needs v1.0.3 with 21,799 (leadwise data fetch)."
        )
    if not texts:
        raise CohortError(f"{tree.database} has no rows.")
    first_line: dict[tuple[str, int | str], int] = {}
    rows = []
    for line, row in texts:
        try:
            parsed = _parse_row(row, class_of, tree.path_column)
        except ValueError as error:
            raise CohortError(f"{tree.database}, line {line} (ecg_id {row['ecg_id']!r}): {error}") from None
        for column, value in (("ecg_id", parsed["ids"]), (tree.path_column, parsed["path"])):
            first = first_line.setdefault((column, value), line)
            if first != line:
                raise CohortError(
                    f"{tree.database} has {column} {value} twice, on lines {first} and {line}; "
                    "each record must appear once."
                )
        rows.append(parsed)
    table = {name: np.array([row[name] for row in rows]) for name in TOLD}
    table["labels"] = np.array([[name in row["classes"] for name in label_names] for row in rows])
    facts = {"label_names": label_names, "generator": _generator(tree.root / MARK)}
    return table, facts, [tree.root / row["path"] for row in rows]


def _parse_row(row: dict[str, str], class_of: dict[str, str | None], path_column: str) -> dict[str, Any]:
    """One row of the table; raises ValueError with a sentence that the caller completes with file and line."""
    if "." in row["ecg_id"]:  # patients have a decimal point in PTB-XL's own table, records have none
        raise ValueError(f"ecg_id {_shown(row['ecg_id'])} is not a whole number; write it without a decimal point.")
    fold = _whole_number(row, "strat_fold")
    if fold not in FOLDS:
        raise ValueError(f"strat_fold {fold} is unknown; folds are numbered 1 to 10.")
    if not _SCP_CODES.fullmatch(row["scp_codes"].strip()):
        raise ValueError(f"scp_codes {_shown(row['scp_codes'])} is not of the form {{'NORM': 100.0, 'SR': 0.0}}.")
    codes = _SCP_CODE.findall(row["scp_codes"])
    unknown = [code for code in codes if code not in class_of]
    if unknown:
        raise ValueError(f"scp_codes names {_shown(unknown[0])}, which scp_statements.csv does not have.")
    if row["sex"].strip() not in ("0", "1", "0.0", "1.0", ""):
        raise ValueError(f"sex {_shown(row['sex'])} is neither 0 (male), 1 (female) nor empty.")
    path = PurePosixPath(row[path_column].strip())
    if path.is_absolute() or ".." in path.parts or not path.name or not str(path).isprintable():
        raise ValueError(f"{path_column} {_shown(row[path_column])} is not a path inside the tree.")
    return {
        "ids": _whole_number(row, "ecg_id"),
        "patients": _whole_number(row, "patient_id"),
        "folds": fold,
        "age": _age(row["age"]),
        "sex": int(float(row["sex"])) if row["sex"].strip() else -1,
        "quality": [bool(row[flag].strip()) for flag in QUALITY_FLAGS],
        # any likelihood counts, 0 included: only so do the published counts come out
        "classes": {class_of[code] for code in codes},
        "path": str(path),
    }


def _generator(mark: Path) -> str | None:
    """Content of a generator's mark; None where there is no mark."""
    if not mark.exists():
        return None
    try:
        return str(json.loads(mark.read_text())["generator"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CohortError(
            f"{mark} does not say what made these recordings ({one_line(error)}); make the cohort again."
        ) from None


def _whole_number(row: dict[str, str], column: str) -> int:
    text = row[column].strip()
    if not _WHOLE_NUMBER.fullmatch(text):
        raise ValueError(f"{column} {_shown(text)} is not a whole number.")
    return int(text.split(".")[0])


def _age(text: str) -> float:
    if not text.strip():
        return np.nan
    try:
        age = float(text)
    except ValueError:
        age = -1.0
    if not 0 <= age <= _HIDDEN_AGE:
        raise ValueError(f"age {_shown(text)} is not a number of years.")
    return np.nan if age == _HIDDEN_AGE else age


def _read_statements(file: Path) -> dict[str, str | None]:
    """The superclass of every diagnostic SCP code; None for codes of form and rhythm."""
    class_of: dict[str, str | None] = {}
    for line, row in _read_csv(file, _STATEMENT_COLUMNS):
        diagnostic = row["diagnostic"].strip() in ("1", "1.0")
        if diagnostic and not re.fullmatch(r"\w+", row["diagnostic_class"].strip()):
            raise CohortError(f"{file}, line {line}: the diagnostic_class of {_shown(row[''])} must be one word.")
        class_of[row[""].strip()] = row["diagnostic_class"].strip() if diagnostic else None
    if not any(class_of.values()):
        raise CohortError(f"{file} has no diagnostic code, so no record could have a label.")
    return class_of


def _read_csv(file: Path, wanted: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a CSV file as (line number, {column: text}), with the wanted columns only."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            for column in wanted:
                if column not in header:
                    shown = f"column '{column}'" if column else "unnamed first column of SCP codes"
                    raise CohortError(f"{file} has no {shown}; it must be the file that PTB-XL publishes.")
                if header.count(column) > 1:
                    raise CohortError(f"{file} has the column '{column}' more than once; leave one of them.")
            places = [(column, header.index(column)) for column in wanted]
            for row in filter(None, reader):
                if len(row) != len(header):
                    raise CohortError(
                        f"{file}, line {reader.line_num}: {len(row)} fields; the header has {len(header)}."
                    )
                yield reader.line_num, {column: row[place] for column, place in places}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CohortError(f"{file} cannot be read: {reason}.") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
