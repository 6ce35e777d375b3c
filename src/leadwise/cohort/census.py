"""Counts of a cohort, role by role, and oddities of its signals.

Integrity and counts may be asked of sealed roles too; nothing here fits, chooses or scores.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Int16

from leadwise.cohort.cohort import Cohort, Records
from leadwise.leads import LEADS
from leadwise.progress import progress

FLAT_SECONDS = 0.5
"""A lead that does not move for so long was not connected: hearts beat, and amplifiers are noisy."""
SATURATED_SECONDS = 0.05
SATURATED_MICROVOLTS = 1000
"""A lead that stays at its own extreme for so long, this far from zero, was clipped."""
LIMB_MICROVOLTS = 3
"""Rounding alone keeps the limb leads within this of their algebra."""
ZERO = "zero"
"""The kind of a record without any wave in any lead."""

_CHUNK = 512


@dataclass(frozen=True)
class Oddity:
    """Something about one record's signals that a reader of results may want to know. Not a reason to reject it."""

    kind: str
    """``zero``, ``flat``, ``saturated``, ``limb-algebra`` or ``missing-samples``."""
    ecg_id: int
    leads: str
    detail: str


def check_cohort(cohort: Cohort) -> dict[str, Any]:
    """Counts and oddities as plain data: what the cohort is, records, patients, roles, oddities."""
    return {
        "cohort": cohort.identity.title,
        "records": len(cohort),
        "patients": len(np.unique(cohort.patients)),
        "roles": {role: count_records(cohort.role(role)) for role in cohort.roles.folds if role in cohort},
        "oddities": [asdict(oddity) for oddity in find_oddities(cohort)],
    }


def count_records(records: Records) -> dict[str, Any]:
    """Folds, numbers of records, of patients and of records without a label, and the prevalence of each label.

    Of records under the seal there are counts, and no prevalences, which are statistics.
    """
    labels = records.cohort._labels[records.rows]
    known = len(labels) and not records.sealed
    return {
        "folds": sorted(set(records.folds.tolist())),
        "records": len(records),
        "patients": len(np.unique(records.patients)),
        "all_zero": int((~labels.any(axis=1)).sum()),
        "prevalence": dict(zip(records.label_names, labels.mean(axis=0).tolist(), strict=False)) if known else None,
    }


def find_oddities(cohort: Cohort) -> list[Oddity]:
    """Look at every signal of the cohort once, in chunks."""
    found: list[Oddity] = []
    with progress("Looking at signals", len(cohort)) as advance:
        for start in range(0, len(cohort), _CHUNK):
            part = slice(start, start + _CHUNK)
            microvolts = np.asarray(cohort._signals[part])
            found += _in_chunk(microvolts, cohort.missing[part], cohort.ids[part], cohort.sampling_rate)
            advance(len(microvolts))
    return found


def _in_chunk(
    microvolts: Int16[np.ndarray, "n 12 t"], missing: Int[np.ndarray, "n 12"], ids: Int[np.ndarray, " n"], rate: float
) -> Iterator[Oddity]:
    for record, lead in np.argwhere(missing):
        detail = f"{missing[record, lead]} of {microvolts.shape[2]} samples missing"
        yield Oddity("missing-samples", int(ids[record]), LEADS[lead], detail)

    unrecorded = missing == microvolts.shape[2]
    zero = ~microvolts.any(axis=(1, 2)) & ~unrecorded.all(axis=1)
    for record in np.flatnonzero(zero):
        leads = " ".join(LEADS[lead] for lead in np.flatnonzero(~unrecorded[record]))
        yield Oddity(ZERO, int(ids[record]), leads, "0 throughout")

    flat = np.zeros_like(unrecorded)
    # two samples half the wanted run apart are equal in every such run, and seldom elsewhere: look closely only there
    step = max(1, int(FLAT_SECONDS * rate) // 2)
    coarse = microvolts[..., ::step]
    for record, lead in np.argwhere((coarse[..., 1:] == coarse[..., :-1]).any(axis=2) & ~unrecorded & ~zero[:, None]):
        signal = microvolts[record, lead]
        seconds = (longest_run(signal[1:] == signal[:-1]) + 1) / rate
        if seconds >= FLAT_SECONDS:
            flat[record, lead] = True
            yield Oddity("flat", int(ids[record]), LEADS[lead], f"constant for {seconds:.2f} s")

    for extreme in (microvolts.max(axis=2), microvolts.min(axis=2)):
        far = (np.abs(extreme.astype(np.int32)) >= SATURATED_MICROVOLTS) & ~flat
        for record, lead in np.argwhere(far):
            seconds = longest_run(microvolts[record, lead] == extreme[record, lead]) / rate
            if seconds >= SATURATED_SECONDS:
                detail = f"held at {extreme[record, lead] / 1000:+.2f} mV for {seconds:.2f} s"
                yield Oddity("saturated", int(ids[record]), LEADS[lead], detail)

    deviation = limb_deviation(microvolts)
    deviation[unrecorded[:, :6].any(axis=1)] = 0
    for record in np.flatnonzero(deviation.max(axis=1) > LIMB_MICROVOLTS):
        leads = " ".join(LEADS[2 + i] for i in np.flatnonzero(deviation[record] > LIMB_MICROVOLTS))
        yield Oddity("limb-algebra", int(ids[record]), leads, f"off by up to {deviation[record].max():g} µV")


def limb_deviation(microvolts: Int16[np.ndarray, "n 12 t"]) -> np.ndarray:
    """Largest distance in µV of III, aVR, aVL, aVF from what I and II make them, (n, 4).

    III = II − I, aVR = −(I + II)/2, aVL = I − II/2, aVF = II − I/2; twice each is an integer, so int32 is exact.
    """
    one, two, three, right, left, foot = microvolts[:, :6].astype(np.int32).transpose(1, 0, 2)
    twice = (2 * (three - two + one), 2 * right + one + two, 2 * (left - one) + two, 2 * (foot - two) + one)
    return np.stack([np.abs(difference).max(axis=1) for difference in twice], axis=1) / 2


def longest_run(flags: Bool[np.ndarray, " t"]) -> int:
    """Length of the longest run of True.

    >>> longest_run(np.array([True, True, False, True]))
    2
    """
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return int((edges[1::2] - edges[::2]).max(initial=0))
