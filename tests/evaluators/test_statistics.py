"""The ten statistics, against SciPy and plain loops, and the file in which they are kept."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leadwise.cohort.cohort import Cohort
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.roles import Roles
from leadwise.errors import SealedRole
from leadwise.evaluators import statistics
from leadwise.evaluators.statistics import (
    STATISTICS,
    lead_moments,
    lead_statistics,
    select_statistics,
    waveform_statistics,
)
from leadwise.store import file_sha256


def one_lead(microvolts: np.ndarray, rate: float) -> list[float]:
    """The ten of one lead, by SciPy or by a loop."""
    x = [float(sample) / 1000 for sample in microvolts]
    steps = [abs(b - a) for a, b in pairwise(x)]
    whole = [int(sample) for sample in microvolts]
    # in whole numbers, T·x against Σx: no rounding can move a sample across the mean
    above = [sample * len(whole) > sum(whole) for sample in whole]
    flat = len(set(whole)) == 1
    return [
        np.mean(x),
        np.std(x),
        min(x),
        max(x),
        np.quantile(x, 0.5),
        0.0 if flat else scipy.stats.skew(x),
        0.0 if flat else scipy.stats.kurtosis(x),
        rate * np.mean(steps),
        rate * max(steps),
        rate * np.mean([a != b for a, b in pairwise(above)]),
    ]


def expected(microvolts: np.ndarray, rate: float) -> np.ndarray:
    return np.array([[one_lead(lead, rate) for lead in record] for record in microvolts])


def beats(n: int, seed: int, samples: int = 400) -> np.ndarray:
    """Something like an ECG: narrow spikes on a wandering line, with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 100
    phase = rng.uniform(0.6, 1.2, (n, 1, 1))
    spikes = np.exp(-(((t % phase) - 0.3) ** 2) / 0.0004) * rng.normal(0, 900, (n, 12, 1))
    wander = 80 * np.sin(2 * np.pi * 0.3 * t + rng.uniform(0, 6, (n, 12, 1)))
    return (spikes + wander + rng.normal(0, 8, (n, 12, samples))).round().astype(np.int16)


@pytest.fixture
def cohort(tree: Path) -> Cohort:
    return read_ptbxl(tree)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each computation was of."""
    sizes: list[int] = []
    original = waveform_statistics

    def count(microvolts: np.ndarray, rate: float) -> np.ndarray:
        sizes.append(len(microvolts))
        return original(microvolts, rate)

    monkeypatch.setattr(statistics, "waveform_statistics", count)
    return sizes


def kept_file(cohort: Cohort) -> Path:
    assert cohort.cache is not None
    (path,) = cohort.cache.glob("statistics-*.npy")
    return path


SIGNALS = {
    "noise": np.random.default_rng(0).normal(0, 300, (3, 12, 250)).astype(np.int16),
    "beats": beats(3, 1),
    "full range": np.random.default_rng(2).integers(-32768, 32768, (2, 12, 100)).astype(np.int16),
    "two samples": np.random.default_rng(3).integers(-500, 500, (4, 12, 2)).astype(np.int16),
    "odd length": beats(2, 4, 333),
}


@cache
def both(kind: str) -> tuple[np.ndarray, np.ndarray]:
    return waveform_statistics(SIGNALS[kind], 100.0), expected(SIGNALS[kind], 100.0)


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("column", range(10), ids=STATISTICS)
def test_agrees_with_scipy(kind: str, column: int) -> None:
    ours, theirs = both(kind)
    np.testing.assert_allclose(ours[..., column], theirs[..., column], rtol=1e-10, atol=1e-10)


@settings(max_examples=50)
@given(arrays(np.int16, (1, 12, 9)), st.floats(1, 1000))
def test_agrees_with_scipy_whatever_the_samples(microvolts: np.ndarray, rate: float) -> None:
    ours = waveform_statistics(microvolts, rate)
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, expected(microvolts, rate), rtol=1e-7, atol=1e-7)


def test_agrees_with_scipy_on_a_cohort(cohort: Cohort) -> None:
    train = cohort["train"].select(slice(0, 3))
    np.testing.assert_allclose(
        lead_statistics(train), expected(train.signals[:], cohort.sampling_rate), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("level", [0, 1, -777, 32767, -32768])
def test_flat_lead(level: int) -> None:
    signals = beats(2, 5)
    signals[1, 4] = level
    found = dict(zip(STATISTICS, waveform_statistics(signals, 100.0)[1, 4], strict=True))
    where = {"mean", "minimum", "maximum", "median"}
    assert {found[name] for name in where} == {level / 1000}
    assert {found[name] for name in set(STATISTICS) - where} == {0.0}


@given(st.integers(1, 11))
def test_a_lead_knows_nothing_of_the_others(lead: int) -> None:
    signals = beats(2, 6)
    other = signals.copy()
    other[0, lead] = beats(1, 99)[0, 0]
    before, after = waveform_statistics(signals, 100.0), waveform_statistics(other, 100.0)
    changed = (before != after).any(axis=2)
    assert changed[0, lead]
    assert changed.sum() == 1


def test_rates_scale_what_is_per_second() -> None:
    once, twice = waveform_statistics(SIGNALS["beats"], 100.0), waveform_statistics(SIGNALS["beats"], 200.0)
    np.testing.assert_array_equal(once[..., :7], twice[..., :7])
    np.testing.assert_allclose(2 * once[..., 7:], twice[..., 7:], rtol=1e-14)


@settings(max_examples=50)
@given(st.integers(1, 40), st.sampled_from([0, 0.2, 0.9]), st.integers(0, 1000))
def test_moments_are_of_the_records_that_have_the_lead(n: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, available = rng.normal(3, 7, (n, 12, 10)), rng.random((n, 12)) >= share
    available[:, 3] = False
    values[~available] = rng.choice([np.nan, np.inf, 1e300, 0])  # what is not there may be anything
    mean, deviation = lead_moments(values, available)
    for lead in range(12):
        there = values[available[:, lead], lead]
        np.testing.assert_allclose(mean[lead], there.mean(axis=0) if len(there) else 0, rtol=1e-12)
        np.testing.assert_allclose(deviation[lead], there.std(axis=0) if len(there) else 0, rtol=1e-12, atol=1e-13)


def test_moments_of_whole_records_are_numpys_to_the_bit() -> None:
    values = np.random.default_rng(0).normal(3, 7, (3000, 12, 10))
    mean, deviation = lead_moments(values, np.full((3000, 12), True))
    np.testing.assert_array_equal(mean, values.mean(axis=0))
    np.testing.assert_array_equal(deviation, values.std(axis=0))


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_chunks_are_bounded_and_change_nothing(
    cohort: Cohort, computed: list[int], monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(statistics, "_CHUNK", chunk)
    train = replace(cohort, cache=None)["train"]
    in_chunks = lead_statistics(train)
    assert max(computed) <= chunk
    assert sum(computed) == len(train)
    np.testing.assert_array_equal(in_chunks, waveform_statistics(train.signals[:], train.sampling_rate))


def test_a_cohort_without_a_cache(cohort: Cohort, computed: list[int]) -> None:
    bare = replace(cohort, cache=None)
    np.testing.assert_array_equal(lead_statistics(bare["train"]), lead_statistics(cohort["train"]))
    computed.clear()
    lead_statistics(bare["validation"])
    assert sum(computed) == len(bare["validation"]), "only what was asked for"


def test_computed_once_and_kept(cohort: Cohort, tree: Path, computed: list[int]) -> None:
    first = lead_statistics(cohort["train"])
    assert sum(computed) == len(cohort) - len(cohort["evaluation"]), "all that is not sealed"
    computed.clear()
    np.testing.assert_array_equal(lead_statistics(cohort["train"]), first)
    again = read_ptbxl(tree)
    np.testing.assert_array_equal(lead_statistics(again["train"]), first)
    some = again["train"].select(np.array([5, 2, 2]))
    np.testing.assert_array_equal(lead_statistics(some), first[[5, 2, 2]])
    lead_statistics(again["audit"])
    assert computed == []


@pytest.mark.parametrize("vouched", [True, False])
def test_what_is_kept_is_what_is_used_if_its_hash_stands_beside_it(cohort: Cohort, vouched: bool) -> None:
    right = lead_statistics(cohort["train"])
    path = kept_file(cohort)
    other = np.load(path) + 1
    np.save(path, other)
    if vouched:
        path.with_suffix(".sha256").write_text(file_sha256(path))
        right = other[cohort["train"].rows]
    np.testing.assert_array_equal(lead_statistics(cohort["train"]), right)


def test_an_answer_is_the_callers_to_change(cohort: Cohort) -> None:
    for _ in range(2):  # computed, then from the file
        answer = lead_statistics(cohort["train"])
        kept = answer.copy()
        answer[:] = 0
        np.testing.assert_array_equal(lead_statistics(cohort["train"]), kept)


def test_the_seal_holds(cohort: Cohort) -> None:
    with pytest.raises(SealedRole):
        lead_statistics(cohort["evaluation"])
    lead_statistics(cohort["train"])
    path = kept_file(cohort)
    kept = np.load(path)
    sealed = cohort.folds == 8
    assert sealed.any()
    assert np.isnan(kept[sealed]).all()
    assert np.isfinite(kept[~sealed]).all()
    np.save(path, np.zeros_like(kept))  # even if the file had them
    for records in (cohort["evaluation"], cohort.records, cohort.fold(8)):
        with pytest.raises(SealedRole):
            lead_statistics(records)


def test_records_that_were_sealed_when_the_file_was_made(cohort: Cohort, computed: list[int]) -> None:
    lead_statistics(cohort["train"])
    computed.clear()
    opened = replace(cohort, roles=Roles({"audit": (8, 9)}))["audit"]
    np.testing.assert_array_equal(lead_statistics(opened), waveform_statistics(opened.signals[:], 100.0))
    assert sum(computed) == (cohort.folds == 8).sum()


DAMAGE = {
    "empty": b"",
    "text": b"not an array",
    "half a header": b"\x93NUMPY\x01\x00",
    "a broken archive": b"PK\x03\x04 and so on",
}


@pytest.mark.parametrize("kind", [*DAMAGE, "truncated"])
def test_damaged_file_is_made_anew(cohort: Cohort, computed: list[int], kind: str) -> None:
    first = lead_statistics(cohort["train"])
    path = kept_file(cohort)
    path.write_bytes(DAMAGE.get(kind, path.read_bytes()[: path.stat().st_size // 2]))
    computed.clear()
    np.testing.assert_array_equal(lead_statistics(cohort["train"]), first)
    assert computed != []
    computed.clear()
    np.testing.assert_array_equal(lead_statistics(cohort["train"]), first)
    assert computed == [], "and the new file is whole"


@pytest.mark.parametrize("wrong", [np.zeros((5, 12, 10)), np.zeros((120, 12, 9)), np.zeros((120, 12, 10), np.float32)])
def test_file_of_another_shape_is_made_anew(cohort: Cohort, wrong: np.ndarray) -> None:
    first = lead_statistics(cohort["train"])
    np.save(kept_file(cohort), wrong)
    np.testing.assert_array_equal(lead_statistics(cohort["train"]), first)


def test_a_cache_that_takes_nothing(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: Path) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(statistics, "atomic_file", full)
    train = cohort["train"]
    np.testing.assert_array_equal(lead_statistics(train), waveform_statistics(train.signals[:], train.sampling_rate))
    assert cohort.cache is not None
    assert not list(cohort.cache.glob("*statistics*"))


def test_two_more_statistics_follow_from_the_ten(small_cohort: Cohort) -> None:
    records = small_cohort["validation"].select(slice(0, 20))
    millivolts = records.signals.millivolts(slice(None)).astype(np.float64)
    chosen = select_statistics(lead_statistics(records), ["root mean square", "median", "peak to peak"])
    np.testing.assert_allclose(chosen[..., 0], np.sqrt((millivolts**2).mean(axis=2)), rtol=1e-5)
    np.testing.assert_allclose(chosen[..., 1], np.median(millivolts, axis=2), atol=1e-6)
    np.testing.assert_allclose(chosen[..., 2], np.ptp(millivolts, axis=2), rtol=1e-5)
