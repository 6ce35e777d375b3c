"""Speed, measured beside the alternative in the same run."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeVar

from leadwise.errors import LeadwiseError

BENCHMARKS = ("ingest", "statistics", "search", "bootstrap", "policies", "rollout", "scoring", "training")
"""Each is a module of this room with a function ``measure(cohort) -> rows``."""

Result = TypeVar("Result")


def run(name: str | None, cohort: Path | None) -> list[dict[str, Any]]:
    """Run one benchmark, or all, on the cohort in a directory (a synthetic one of 2,000 records if None).

    Rows are those of `row`; a ratio above 1 means that ours is better.
    """
    if name is not None and name not in BENCHMARKS:
        raise LeadwiseError(f"There is no benchmark '{name}'; there are {', '.join(BENCHMARKS)}.")
    if cohort is None:
        from leadwise.cohort.synthetic import write_synthetic

        with TemporaryDirectory(prefix="leadwise-bench-") as directory:
            made = Path(directory) / "cohort"
            write_synthetic(made, records=2000, seed=1)
            return run(name, made)
    names = [name] if name else BENCHMARKS
    return [each for name in names for each in import_module(f"leadwise.bench.{name}").measure(cohort)]


def row(name: str, unit: str, ours: float, other: float, what: str, **facts: Any) -> dict[str, Any]:
    """One measurement: seconds, of which fewer are better, or something in a second, of which more are."""
    ratio = other / ours if unit == "s" else ours / other
    return {"name": name, "ours": ours, "other": other, "ratio": ratio, "unit": unit, "what": what} | facts


def timed(work: Callable[[], Result], times: int = 1) -> tuple[Result, float]:
    """The result of some work, and the seconds of the fastest of several attempts."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        result = work()
        seconds.append(perf_counter() - start)
    return result, min(seconds)
