"""A synthetic cohort in PTB-XL's own layout: what reads one reads the other.

The signals come from `leadwise.cohort.dipole`; here stand the patients, their labels and the files.
"""

import csv
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import platformdirs
from jaxtyping import Float, Int, Int16
from numpy.random import Generator

from leadwise.cohort.cohort import QUALITY_FLAGS, Cohort
from leadwise.cohort.conditions import CONDITIONS
from leadwise.cohort.contract import register_cohort
from leadwise.cohort.dipole import SAMPLES, SAMPLING_RATE, Recordings, frontal_axis, make_hearts, record, take
from leadwise.cohort.ptbxl import MARK, read_ptbxl
from leadwise.cohort.roles import Roles
from leadwise.errors import CohortError
from leadwise.leads import ELECTRODES, LEADS
from leadwise.memory import too_large
from leadwise.progress import progress
from leadwise.registry import Count, Seed, Settings
from leadwise.store import exclusive, naming

if TYPE_CHECKING:  # only what makes recordings needs it, not the plan that names this kind
    import pandas as pd

FEWEST_RECORDS = 20
"""With fewer, some of the ten folds would stay empty."""

MODEL_VERSION = 1
"""Bump it whenever the same seed would write other bytes."""

_BATCH = 256
_DRAFT = ".leadwise-draft-"
_PARTS = (MARK, "records100", "scp_statements.csv", "ptbxl_database.csv")
"""Files in the directory of a cohort, in the order in which they appear there."""

_DATA = Path(__file__).parent
with (_DATA / "synthetic_classes.csv").open() as _file:
    _COMBINATIONS = {row["superclasses"]: float(row["share"]) for row in csv.DictReader(_file)}
"""Superclasses of a patient and how often they come together, about as in PTB-XL."""

with (_DATA / "synthetic_codes.csv").open() as _file:
    _STATEMENTS = {row["code"]: row for row in csv.DictReader(_file)}
_CODES = {
    name: {code: float(row["weight"]) for code, row in _STATEMENTS.items() if row["superclass"] == name}
    for name in ("CD", "HYP", "MI", "STTC")
}
"""Weights of the SCP-ECG codes that stand for a superclass."""

_BESIDE_NORMAL = {"IRBBB": 7, "1AVB": 2, "LAFB": 1}
"""Conduction disturbances that are found in hearts called normal."""

# what a technician would have written about a disturbance, and the electrodes that cause it
_LIMBS = ("RA", "LA", "LL")
_STATIC_NOISE = {" , I-AVF,  ": _LIMBS, " , I-AVR,  ": ("RA",), " , alles,  ": ELECTRODES}
_BASELINE_DRIFT = {" , V6": ("V6",), " , V1": ("V1",), " , II-AVF": ("LL",), " , alles": ELECTRODES}
_BURST_NOISE = {"alles": ELECTRODES, "I-AVF": _LIMBS, "V1,V2": ("V1", "V2"), "V1": ("V1",)}


class SyntheticSettings(Settings):
    """Settings of a synthetic cohort in a plan."""

    records: Count
    seed: Seed = 1

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        del sizes, labels, length
        return {"records": memory_for(self.records)}

    def cost(self, sizes: Mapping[str, int]) -> Mapping[str, float]:
        del sizes
        return {"recording": self.records}


@register_cohort("synthetic")
class SyntheticCohort:
    """Recordings that a program makes up, in PTB-XL's layout."""

    Settings = SyntheticSettings

    @classmethod
    def write(cls, settings: SyntheticSettings, directory: Path) -> None:
        """See `write_synthetic`."""
        write_synthetic(directory, settings.records, settings.seed)

    @classmethod
    def read(cls, _settings: object, directory: Path, roles: Roles) -> Cohort:
        """The cohort that `write` wrote."""
        return read_ptbxl(directory, roles)


def write_synthetic(directory: str | Path, records: int, seed: int) -> None:
    """Write a synthetic cohort of ``records`` 100 Hz records; the same seed writes the same bytes.

    Bytes are promised on one kind of machine; another processor may round a few samples to the next microvolt.
    ``directory`` must be absent or empty, but for what a kill has left of an earlier attempt. It receives
    ``ptbxl_database.csv``, ``scp_statements.csv``, ``records100/`` and a mark that says that the recordings are made
    up, whole or not at all.
    """
    if records < FEWEST_RECORDS:
        raise CohortError(
            f"A synthetic cohort of {records} records cannot fill ten folds; ask for {FEWEST_RECORDS} or more."
        )
    if seed < 0:
        raise CohortError(f"The seed of a synthetic cohort cannot be {seed}; give 0 or a larger whole number.")
    for problem in too_large(f"A synthetic cohort of {records:,} records", memory_for(records)):
        raise CohortError(problem)
    directory = Path(directory)
    _check_place(directory)
    rng = np.random.default_rng(seed)
    # patients 0, 1, …, of whom 14% come again, in random order of visits
    visits = rng.choice([1, 2, 3, 4], p=[0.86, 0.10, 0.03, 0.01], size=records)
    patient_of = rng.permutation(np.repeat(np.arange(records), visits)[:records])
    patients, severity = _draw_patients(int(patient_of.max()) + 1, rng)
    age, female = patients["age"].to_numpy(dtype=float), patients["sex"].to_numpy(dtype=float)
    hearts = make_hearts(severity, age, female, rng)
    axis = np.searchsorted([-90, -30, 0, 90, 120], frontal_axis(hearts))
    patients["heart_axis"] = np.array(["AXR", "ALAD", "LAD", "MID", "RAD", "ARAD"])[axis]
    patients["strat_fold"] = _folds(np.bincount(patient_of))
    table = patients.iloc[patient_of].reset_index(drop=True)
    recordings, circumstances = _draw_recordings(table, rng)
    with _filled_at_once(directory) as draft, progress("Writing the synthetic cohort", records) as advance:
        _database(table, circumstances, rng).to_csv(draft / "ptbxl_database.csv", index=False)
        _statements().to_csv(draft / "scp_statements.csv")
        generator = f"leadwise's dipole model {MODEL_VERSION}, {records:,} records, seed {seed}"
        (draft / MARK).write_text(json.dumps({"generator": generator}) + "\n")
        for start in range(0, records, _BATCH):
            rows = np.arange(start, min(start + _BATCH, records))
            signals = record(take(hearts, patient_of[rows]), take(recordings, rows), rng)
            for ecg_id, signal in zip(rows + 1, signals, strict=True):
                _write_record(draft, int(ecg_id), signal)
            advance(len(rows))


def memory_for(records: int) -> int:
    """Bytes of memory that it takes to draw so many patients and recordings; the signals go to the disk in batches."""
    return 2_000 * records


def _check_place(directory: Path) -> None:
    """Raise unless a cohort may be written here: nothing is there, or only what a kill has left of one."""
    if not directory.exists():
        return
    present = {path.name for path in directory.iterdir()} if directory.is_dir() else {directory.name}
    drafts = {name for name in present if name.startswith(_DRAFT)}
    if present - drafts - (set(_PARTS[:-1]) if drafts else set()):
        raise CohortError(f"{directory} is not an empty directory; name a new or an empty one for the cohort.")


@contextmanager
def _filled_at_once(directory: Path) -> Iterator[Path]:
    """Yield a draft inside ``directory``; on success its content moves up, the table last: without it there is no tree.

    The directory itself stays what it is: it may be a shell's current directory, or a mount point. One process writes
    there at a time, and clears away what a kill has left.
    """
    made = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with naming(directory), _locked(directory):
            _check_place(directory)  # nobody else has written there meanwhile
            for left in sorted(directory.iterdir(), key=lambda path: path.name.startswith(_DRAFT)):  # drafts last
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            with TemporaryDirectory(prefix=_DRAFT, dir=directory) as draft:
                yield Path(draft)
                for name in _PARTS:
                    (Path(draft) / name).rename(directory / name)
    except BaseException:
        if made and not any(directory.iterdir()):
            directory.rmdir()
        raise


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a directory against other writers of a cohort; a kill releases it."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every network drive locks directories
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CohortError(
                    f"Another process is writing {directory}; wait for it, or name another directory."
                ) from None
        yield
    finally:
        os.close(handle)


def synthesize(records: int = 2000, seed: int = 1) -> Cohort:
    """A synthetic cohort, written to the user's cache (or ``$LEADWISE_CACHE``) the first time and opened from there."""
    home = Path(os.environ.get("LEADWISE_CACHE") or platformdirs.user_cache_dir("leadwise"))
    directory = home / f"synthetic-v{MODEL_VERSION}-{records}-{seed}"
    if not (directory / "ptbxl_database.csv").exists():
        with exclusive(directory.with_suffix(".lock")):
            if not (directory / "ptbxl_database.csv").exists():  # nobody else has made it meanwhile
                write_synthetic(directory, records, seed)
    return read_ptbxl(directory)


def _draw_patients(count: int, rng: Generator) -> tuple["pd.DataFrame", Float[np.ndarray, "patients conditions"]]:
    """Age, sex, superclasses and SCP codes of each patient, and how severely he has each of `CONDITIONS`."""
    import pandas as pd

    share = np.array(list(_COMBINATIONS.values()))
    combination = rng.choice(list(_COMBINATIONS), p=share / share.sum(), size=count)
    normal = np.array(["NORM" in names for names in combination])
    column = {code: index for index, code in enumerate(CONDITIONS)}
    severity = np.zeros((count, len(CONDITIONS)))
    # Everyone has a trace of something that nobody diagnosed: mild disease and normal variation overlap.
    trace = rng.integers(len(CONDITIONS), size=count)
    severity[np.arange(count), trace] = 0.45 * rng.beta(1, 3, count)
    codes: list[dict[str, float]] = []
    for patient, names in enumerate(combination):
        found: dict[str, float] = {}
        for name in names.split():
            if name == "NORM":
                found["NORM"] = float(rng.choice([100.0, 80.0]))
                continue
            weights = _BESIDE_NORMAL if normal[patient] else _CODES[name]
            share = np.array(list(weights.values())) / sum(weights.values())
            # a heart that has had one infarct may have had another
            number = 2 if name == "MI" and rng.random() < 0.15 else 1
            for code in rng.choice(list(weights), p=share, size=number, replace=False):
                mildest = CONDITIONS[code].mildest
                severity[patient, column[code]] = mildest + (1 - mildest) * rng.beta(1.6, 1.6)
                found[str(code)] = float(rng.choice([100.0, 80.0, 50.0, 15.0, 0.0], p=[0.6, 0.15, 0.15, 0.07, 0.03]))
        codes.append(found)
    years = np.where(normal, rng.normal(52, 17, count), rng.normal(66, 13, count)).clip(18, 89).round()
    frame = pd.DataFrame({"age": years, "sex": (rng.random(count) < 0.48).astype(int), "codes": codes})
    # identifiers that say nothing about the order in which patients were drawn
    frame["patient_id"] = (rng.permutation(count) + 1).astype(float)
    # in PTB-XL an age of 300 hides one over 89; the heart stays as old as it is
    frame["written_age"] = frame["age"].where((frame["age"] < 89) & (rng.random(count) > 0.01), 300.0)
    has_weight = rng.random(count) < 0.4
    frame["weight"] = np.where(has_weight, (76 - 10 * frame["sex"] + rng.normal(0, 12, count)).clip(40).round(), np.nan)
    frame["height"] = np.where(has_weight, (175 - 11 * frame["sex"] + rng.normal(0, 7, count)).round(), np.nan)
    return frame, severity


def _draw_recordings(table: "pd.DataFrame", rng: Generator) -> tuple[Recordings, "pd.DataFrame"]:
    """The circumstances of each record, as the signal model takes them and as the database tells them."""
    import pandas as pd

    n = len(table)
    normal = table["codes"].map(lambda codes: "NORM" in codes).to_numpy(dtype=bool)
    age = table["age"].to_numpy(dtype=float)
    fibrillation = ~normal & (rng.random(n) < 0.004 * (age - 40))
    rate = (70 * np.exp(0.19 * rng.standard_normal(n)) * np.where(fibrillation, 1.2, 1)).clip(42, 150)
    irregularity = np.where(fibrillation, 0.2, 0.03 * np.exp(0.6 * rng.standard_normal(n)))
    rhythm = np.select(
        [fibrillation, rate > 100, rate < 52, irregularity > 0.08], ["AFIB", "STACH", "SBRAD", "SARRH"], default="SR"
    )
    muscle = 0.0035 * np.exp(0.5 * rng.standard_normal((n, 1)) + 0.4 * rng.standard_normal((n, 9)))
    wander = 0.026 * np.exp(0.5 * rng.standard_normal((n, 1)) + 0.4 * rng.standard_normal((n, 9)))
    burst = np.zeros((n, 9))
    static_noise = _disturb(muscle, _STATIC_NOISE, 0.15, 0.025, rng)
    baseline_drift = _disturb(wander, _BASELINE_DRIFT, 0.065, 0.15, rng)
    burst_noise = _disturb(burst, _BURST_NOISE, 0.03, 0.08, rng)
    circumstances = pd.DataFrame(
        {"rhythm": rhythm, "baseline_drift": baseline_drift, "static_noise": static_noise, "burst_noise": burst_noise}
    )
    return Recordings(rate, irregularity, fibrillation.astype(float), muscle, wander, burst), circumstances


def _disturb(
    level: Float[np.ndarray, "n 9"],
    remarks: dict[str, tuple[str, ...]],
    share: float,
    millivolts: float,
    rng: Generator,
) -> list[str | None]:
    """Raise the noise level, in place, at the electrodes of a random remark in a share of the records."""
    chosen: list[str | None] = [None] * len(level)
    for row in np.flatnonzero(rng.random(len(level)) < share):
        remark = str(rng.choice(list(remarks)))
        electrodes = [ELECTRODES.index(name) for name in remarks[remark]]
        level[row, electrodes] += millivolts * np.exp(0.4 * rng.standard_normal(len(electrodes)))
        chosen[row] = remark
    return chosen


def _folds(visits: Int[np.ndarray, "patients"]) -> Int[np.ndarray, "patients"]:
    """A fold from 1 to 10 for each patient, the next always to the smallest fold, so that sizes stay equal."""
    size = np.zeros(10, dtype=int)
    fold = np.empty(len(visits), dtype=int)
    for patient, number in enumerate(visits):
        fold[patient] = size.argmin()
        size[fold[patient]] += number
    return fold + 1


def _database(table: "pd.DataFrame", circumstances: "pd.DataFrame", rng: Generator) -> "pd.DataFrame":
    """``ptbxl_database.csv``, with the columns of PTB-XL in their order."""
    import pandas as pd

    n = len(table)
    ecg_id = range(1, n + 1)
    codes = [
        found | ({} if "NORM" in found else {"ABQRS": 0.0}) | {rhythm: 0.0}
        for found, rhythm in zip(table["codes"], circumstances["rhythm"], strict=True)
    ]
    infarcted = [any(code in _CODES["MI"] for code in found) for found in codes]
    day = pd.Timestamp("1990-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 3000 * 24 * 3600, n)), unit="s")
    columns: dict[str, Any] = {
        "ecg_id": ecg_id,
        "patient_id": table["patient_id"],
        "age": table["written_age"],
        **table[["sex", "height", "weight"]],
        "nurse": rng.integers(0, 12, n).astype(float),
        "site": rng.integers(0, 3, n).astype(float),
        "device": "dipole model",
        "recording_date": day.strftime("%Y-%m-%d %H:%M:%S"),
        "report": ["synthetic: " + ", ".join(_STATEMENTS[code]["description"] for code in found) for found in codes],
        "scp_codes": [str(found) for found in codes],
        "heart_axis": table["heart_axis"],
        "infarction_stadium1": ["unknown" if has_scar else None for has_scar in infarcted],
        **dict.fromkeys(["infarction_stadium2", "validated_by"]),
        "second_opinion": False,
        "initial_autogenerated_report": True,
        "validated_by_human": False,
        **dict.fromkeys(QUALITY_FLAGS),
        **{remark: circumstances[remark] for remark in ("baseline_drift", "static_noise", "burst_noise")},
        "strat_fold": table["strat_fold"],
        "filename_lr": [_record_name("records100", i, "lr") for i in ecg_id],
        "filename_hr": [_record_name("records500", i, "hr") for i in ecg_id],
    }
    return pd.DataFrame(columns)


def _statements() -> "pd.DataFrame":
    """``scp_statements.csv``: the codes that occur, with the columns of PTB-XL."""
    import pandas as pd

    rows = _STATEMENTS.values()
    frame = pd.DataFrame(index=pd.Index(_STATEMENTS))
    frame["description"] = [row["description"] for row in rows]
    for kind in ("diagnostic", "form", "rhythm"):
        frame[kind] = [1.0 if row["kind"] == kind else None for row in rows]
    frame["diagnostic_class"] = [row["superclass"] or None for row in rows]
    frame["diagnostic_subclass"] = [row["code"] if row["superclass"] else None for row in rows]
    frame["Statement Category"] = None
    frame["SCP-ECG Statement Description"] = frame["description"]
    return frame.assign(**dict.fromkeys(("AHA code", "aECG REFID", "CDISC Code", "DICOM Code")))


def _record_name(folder: str, ecg_id: int, suffix: str) -> str:
    return f"{folder}/{ecg_id // 1000 * 1000:05d}/{ecg_id:05d}_{suffix}"


def _write_record(root: Path, ecg_id: int, signal: Int16[np.ndarray, "12 t"]) -> None:
    """One record in WFDB format 16: interleaved little-endian samples, and a header with their first and their sum."""
    path = root / _record_name("records100", ecg_id, "lr")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".dat").write_bytes(signal.T.astype("<i2").tobytes())
    lines = [f"{path.name} {len(LEADS)} {SAMPLING_RATE} {SAMPLES}"]
    for lead, first, total in zip(LEADS, signal[:, 0], signal.sum(1, dtype=np.int64), strict=True):
        lines.append(f"{path.name}.dat 16 1000.0(0)/mV 16 0 {first} {total % 65536} 0 {lead.upper()}")
    path.with_suffix(".hea").write_text("\n".join(lines) + "\n")
