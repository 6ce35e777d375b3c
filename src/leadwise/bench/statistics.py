"""Ten statistics for every record: ours beside SciPy's and NumPy's functions, lead by lead."""

import re
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from leadwise.bench import row, timed
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.evaluators.statistics import compute_statistics

SAMPLE = 500


def measure(cohort: Path) -> list[dict[str, Any]]:
    from scipy.stats import kurtosis, skew

    whole = read_ptbxl(cohort)
    records = whole.records.select(~whole.sealed)
    before = _peak_megabytes()
    _, all_seconds = timed(lambda: compute_statistics(records))
    memory = _peak_megabytes() - before

    some = records.select(slice(0, SAMPLE))
    sample = some.signals[:]
    ours, our_seconds = timed(lambda: compute_statistics(some))
    start = perf_counter()
    theirs = np.empty_like(ours)
    rate = records.sampling_rate
    for index, leads in enumerate(sample):
        for lead, x in enumerate(leads.astype(np.float64)):  # in µV, where means and equality are exact
            steps = np.abs(np.diff(x))
            above = x > x.mean()
            theirs[index, lead] = (
                *(x.mean() / 1000, x.std() / 1000, x.min() / 1000, x.max() / 1000, np.median(x) / 1000),
                *(skew(x), kurtosis(x), steps.mean() * rate / 1000, steps.max() * rate / 1000),
                (above[1:] != above[:-1]).mean() * rate,
            )
    their_seconds = perf_counter() - start
    if not np.allclose(ours, np.nan_to_num(theirs), atol=1e-9):
        raise LeadwiseError("Our statistics and SciPy's disagree; this is a bug, please report it.")
    what = (
        f"all cores, against NumPy and SciPy lead by lead; all {len(records):,} records took {all_seconds:.1f} s and "
        f"{memory:.0f} MiB, pages of the memory map included"
    )
    rates = SAMPLE / our_seconds, SAMPLE / their_seconds
    facts = {"all_records_seconds": all_seconds, "additional_mebibytes": memory}
    return [row("statistics", "records/s", *rates, what, **facts)]


def _peak_megabytes() -> float:
    """Largest resident memory so far (Linux; 0 elsewhere)."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0
