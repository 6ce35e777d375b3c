"""The benchmarks run and measure what they say; how fast they are is not for a test to judge."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest

from leadwise.bench import BENCHMARKS, run, scoring, training
from leadwise.errors import LeadwiseError
from leadwise.evaluators.masked_resnet.recipe import Recipe

ROWS = {"scoring": ["torch", "exact"], "training": ["training", "training on crops"]}
"""Names that somebody asks for."""


@pytest.fixture(autouse=True)
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few records do, and a machine that does 10¹¹ operations a second."""
    monkeypatch.setattr(scoring, "RECORDS", 8)
    monkeypatch.setattr(training, "Recipe", lambda: Recipe(batch=2))
    for bench in (scoring, training):
        monkeypatch.setattr(bench, "peak", lambda: 1e11)
        monkeypatch.setattr(bench, "shortest", lambda work, _times: once(work))


def once(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


@pytest.mark.parametrize("name", BENCHMARKS)
def test_rows_have_the_promised_shape(name: str, tree: Path) -> None:
    rows = run(name, tree)
    assert [row["name"] for row in rows] == ROWS.get(name, [row["name"] for row in rows])
    assert rows
    for row in rows:
        assert {"name", "ours", "other", "ratio", "unit", "what"} <= set(row)
        better = row["other"] / row["ours"] if row["unit"] == "s" else row["ours"] / row["other"]
        assert row["ratio"] == pytest.approx(better)
        if "share_of_peak" in row:
            assert row["share_of_peak"] / row["other_share_of_peak"] == pytest.approx(row["ratio"])
            assert row["peak_gflops"] == 100


def test_benchmark_notices_a_different_answer(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leadwise.bench import ingest

    honest = ingest.read_waveforms

    def dishonest(paths):  # type: ignore[no-untyped-def]
        for part in honest(paths):
            part.microvolts[0, 0, 0] += 1
            yield part

    monkeypatch.setattr(ingest, "read_waveforms", dishonest)
    with pytest.raises(LeadwiseError, match="disagree"):
        run("ingest", tree)


def test_scoring_notices_a_different_answer(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = scoring.Scorer.pairs
    monkeypatch.setattr(scoring.Scorer, "pairs", lambda *given: honest(*given) + 1e-4)
    with pytest.raises(LeadwiseError, match="The engine 'torch' and eager torch disagree"):
        run("scoring", tree)
