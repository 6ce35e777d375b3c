"""Speed, measured beside the alternative in the same run."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leadwise.errors import LeadwiseError

BENCHMARKS = ("ingest", "statistics", "search", "bootstrap", "policies", "rollout", "scoring", "training")
"""Each is a module of this room with a function ``measure(cohort) -> rows``."""


def run(name: str | None, cohort: Path | None) -> list[dict[str, Any]]:
    """Run one benchmark, or all, on the cohort in a directory (a synthetic one of 2,000 records if None).

    Rows are ``{"name", "ours", "other", "ratio", "unit", "what", …}``; a ratio above 1 means that ours is better.
    """
    if name is not None and name not in BENCHMARKS:
        raise LeadwiseError(f"There is no benchmark '{name}'; there are {', '.join(BENCHMARKS)}.")
    if cohort is None:
        from leadwise.cohort.synthetic import write_synthetic

        with TemporaryDirectory(prefix="leadwise-bench-") as directory:
            made = Path(directory) / "cohort"
            write_synthetic(made, records=2000, seed=1)
            return run(name, made)
    rows = []
    for each in [name] if name else BENCHMARKS:
        measure: Callable[[Path], list[dict[str, Any]]] = import_module(f"leadwise.bench.{each}").measure
        rows += measure(cohort)
    return rows
