"""Recordings on disk as int16 microvolts, verified against their headers.

PTB-XL's files are WFDB format 16 with one fixed header layout; those are parsed here, some forty times faster than
`wfdb.rdrecord` does it. Every other header or format goes through wfdb.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int, Int16

from leadwise.errors import CohortError
from leadwise.leads import LEADS

CHUNK = 256
MISSING = -32768
"""Value of a sample that was not recorded, in WFDB format 16."""

_CANONICAL = [lead.upper().encode() for lead in LEADS]
_PER_MILLIVOLT = {"mv": 1.0, "uv": 1e-3, "µv": 1e-3, "v": 1e3}


@dataclass(frozen=True, eq=False)
class Waveforms:
    """A few recordings with one sampling rate and one length."""

    microvolts: Int16[np.ndarray, "n 12 t"]
    missing: Int[np.ndarray, "n 12"]
    sampling_rate: float


def read_waveforms(records: Sequence[Path]) -> Iterator[Waveforms]:
    """Read records (paths without extension) in chunks of at most `CHUNK`, in order.

    Samples that are marked missing are interpolated and counted. All records must agree in rate and length.
    """
    first: _Header | None = None
    for start in range(0, len(records), CHUNK):
        part = records[start : start + CHUNK]
        headers = [_read_header(record) for record in part]
        first = first or headers[0]
        for record, header in zip(part, headers, strict=True):
            if (header.sampling_rate, header.length) != (first.sampling_rate, first.length):
                raise CohortError(
                    f"{record}.hea says {header.length} samples at {header.sampling_rate:g} Hz, {records[0]}.hea says "
                    f"{first.length} at {first.sampling_rate:g} Hz; all records of a cohort must agree."
                )
        if all(header.plain for header in headers):
            microvolts = _read_plain(part, headers)
        else:
            microvolts = np.stack(
                [
                    _read_plain([record], [header])[0] if header.plain else _read_by_wfdb(record, header)
                    for record, header in zip(part, headers, strict=True)
                ]
            )
        yield Waveforms(microvolts, _interpolate_missing(microvolts), first.sampling_rate)


@dataclass(frozen=True)
class _Header:
    sampling_rate: float
    length: int
    leads: Sequence[bytes]
    """Upper-case lead names in the order of the file."""
    first_values: Sequence[int | None]
    checksums: Sequence[int | None]
    plain: bool
    """True if it has PTB-XL's layout and scale, so that the samples are microvolts as they stand."""


def _read_header(record: Path) -> _Header:
    path = f"{record}.hea"
    with _explained(path), open(path, "rb") as file:
        content = file.read()
    words = content.split()
    header = None
    if _is_plain(record, content, words):
        with suppress(ValueError):  # a rate like 100/100, say, or nonsense
            header = _Header(
                sampling_rate=float(words[2]),
                length=int(words[3]),
                leads=[name.upper() for name in words[12::9]],
                first_values=[int(word) for word in words[9::9]],
                checksums=[int(word) & 0xFFFF for word in words[10::9]],
                plain=True,
            )
    if header is None:
        header = _read_header_by_wfdb(record)
        _check_gains(path, content)
    if header.leads != _CANONICAL:
        _check_leads(path, [name.decode("ascii", "replace") for name in header.leads])
    if not (np.isfinite(header.sampling_rate) and header.sampling_rate > 0 and 0 < header.length < 1e8):
        raise CohortError(f"{path} says {header.length} samples at {header.sampling_rate} Hz, which cannot be.")
    return header


def _is_plain(record: Path, content: bytes, words: list[bytes]) -> bool:
    """True if it is as PTB-XL's: ``NAME 12 RATE LENGTH``, then ``NAME.dat 16 1000.0(0)/mV 16 0 FIRST SUM 0 LEAD``."""
    name = record.name.encode()
    return (
        len(words) == 4 + 9 * 12
        and content.count(b"\n") in (12, 13)
        and b"#" not in content
        and words[:2] == [name, b"12"]
        and words[4::9] == [name + b".dat"] * 12
        and words[5::9] == [b"16"] * 12
        and words[6::9] in ([b"1000.0(0)/mV"] * 12, [b"1000(0)/mV"] * 12)
        and words[11::9] == [b"0"] * 12
    )


def _check_leads(path: str, names: Sequence[str]) -> None:
    known = {lead.upper(): lead for lead in LEADS}
    for name in names:
        if name.upper() not in known:
            raise CohortError(f"{path} names a lead '{name}', which is none of {' '.join(LEADS)}.")
        if sum(other.upper() == name.upper() for other in names) > 1:
            raise CohortError(f"{path} names lead {known[name.upper()]} more than once; each lead must appear once.")
    absent = [lead for upper, lead in known.items() if upper not in {name.upper() for name in names}]
    if absent:
        raise CohortError(
            f"{path} has no lead {', '.join(absent)}; all twelve must be named "
            "(a lead that was not recorded is marked by missing samples)."
        )


def _check_gains(path: str, content: bytes) -> None:
    """Refuse gains that scale nothing; asked of the text, because wfdb takes a gain of 0 for 200."""
    lines = [line.split() for line in content.decode("ascii", "replace").splitlines() if not line.startswith("#")]
    for fields in [line for line in lines if line][1:]:
        gain, usable = re.split(r"[(/]", fields[2])[0], False
        with suppress(ValueError):
            usable = 0 < float(gain) < np.inf
        if not usable:
            raise CohortError(f"{path} gives lead {fields[-1]} the gain '{gain}'; it must be a number above 0.")


def _read_plain(records: Sequence[Path], headers: Sequence[_Header]) -> Int16[np.ndarray, "n 12 t"]:
    length = headers[0].length
    size = length * 24
    for record in records:  # before the header's word about the length is taken for an allocation
        with _explained(f"{record}.dat"):
            found = os.stat(f"{record}.dat").st_size
        if found != size:
            raise CohortError(
                f"{record}.dat has {found:,} bytes where its header promises {size:,}; "
                "the file is damaged, fetch it again (leadwise data fetch)."
            )
    samples = np.empty((len(records), length, 12), "<i2")
    buffer = memoryview(samples.data).cast("B")
    for index, record in enumerate(records):
        with _explained(f"{record}.dat"), open(f"{record}.dat", "rb", buffering=0) as file:
            file.readinto(buffer[index * size : (index + 1) * size])
    microvolts = np.ascontiguousarray(samples.transpose(0, 2, 1), dtype=np.int16)
    sums = microvolts.view(np.uint16).sum(axis=2, dtype=np.uint16)  # modulo 2^16, as a checksum is
    wrong = sums != np.array([header.checksums for header in headers])
    wrong |= microvolts[:, :, 0] != np.array([header.first_values for header in headers])
    for row, column in np.argwhere(wrong):
        _complain_of_content(records[row], headers[row].leads[column])
    if any(header.leads != _CANONICAL for header in headers):
        order = np.array([[header.leads.index(lead) for lead in _CANONICAL] for header in headers])
        microvolts = np.take_along_axis(microvolts, order[:, :, None], axis=1)
    return microvolts


def _read_header_by_wfdb(record: Path) -> _Header:
    import wfdb

    try:
        header = wfdb.rdheader(os.fspath(record))
        if not isinstance(header, wfdb.Record):
            raise ValueError("it has several segments")
        return _Header(
            sampling_rate=float(header.fs),
            length=int(header.sig_len),
            leads=[name.upper().encode() for name in header.sig_name or []],
            first_values=header.init_value,
            checksums=[None if value is None else value & 0xFFFF for value in header.checksum],
            plain=False,
        )
    # wfdb meets a malformed header with whatever its parsing stumbles over, and documents no error of its own
    except Exception as error:
        raise CohortError(f"{record}.hea is not a readable WFDB header: {_first_line(error)}.") from error


def _read_by_wfdb(record: Path, header: _Header) -> Int16[np.ndarray, "12 t"]:
    import wfdb

    try:
        content = wfdb.rdrecord(os.fspath(record), physical=False)
        digital = np.asarray(content.d_signal)
        physical = content.dac()
        units = [str(unit).lower() for unit in content.units]
    except Exception as error:  # as above: wfdb documents none
        raise CohortError(f"{record} cannot be read as a WFDB record: {_first_line(error)}.") from error
    for column, lead in enumerate(header.leads):
        values, checksum, first_value = digital[:, column], header.checksums[column], header.first_values[column]
        same_sum = checksum is None or int(values.sum(dtype=np.int64)) & 0xFFFF == checksum
        if not (same_sum and (first_value is None or values[0] == first_value)):
            _complain_of_content(record, lead)
        if units[column] not in _PER_MILLIVOLT:
            raise CohortError(f"{record}.hea gives lead {lead.decode()} in '{units[column]}'; it must be mV, µV or V.")
    order = [header.leads.index(lead) for lead in _CANONICAL]
    to_microvolts = np.array([1e3 * _PER_MILLIVOLT[unit] for unit in units])
    microvolts = (physical * to_microvolts).T[order]
    return np.where(np.isnan(microvolts), MISSING, np.clip(np.rint(microvolts), -32767, 32767)).astype(np.int16)


def _interpolate_missing(microvolts: Int16[np.ndarray, "n 12 t"]) -> Int[np.ndarray, "n 12"]:
    """Fill missing samples in place, linearly between their neighbours (0 if a lead has none); return their counts."""
    gaps = microvolts == MISSING
    missing = np.zeros(gaps.shape[:2], int)
    for record, lead in np.argwhere(gaps.any(axis=2)):
        signal, gap = microvolts[record, lead], gaps[record, lead]
        missing[record, lead] = gap.sum()
        present = np.flatnonzero(~gap)
        signal[gap] = np.rint(np.interp(np.flatnonzero(gap), present, signal[present])) if len(present) else 0
    return missing


def _complain_of_content(record: Path, lead: bytes) -> None:
    raise CohortError(
        f"{record}.dat does not match its header: checksum or first value of lead {lead.decode()} differs; "
        "the file is damaged, fetch it again (leadwise data fetch)."
    )


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn an operating-system error about a file into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise CohortError(f"{path} is missing; fetch it again (leadwise data fetch).") from None
    except OSError as error:
        raise CohortError(f"{path} cannot be read: {error.strerror}.") from None


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
