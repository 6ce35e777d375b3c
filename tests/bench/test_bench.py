"""The benchmarks run and measure what they say; how fast they are is not for a test to judge."""

from pathlib import Path

import pytest

from leadwise.bench import BENCHMARKS, run
from leadwise.errors import LeadwiseError


@pytest.mark.parametrize("name", BENCHMARKS)
def test_rows_have_the_promised_shape(name: str, tree: Path) -> None:
    rows = run(name, tree)
    assert rows
    for row in rows:
        assert {"name", "ours", "other", "ratio", "unit", "what"} <= set(row)
        better = row["other"] / row["ours"] if row["unit"] == "s" else row["ours"] / row["other"]
        assert row["ratio"] == pytest.approx(better)


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
