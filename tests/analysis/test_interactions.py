from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.arms import INTERACTIONS, READERS, REPLICATES, by_hand, fixed_masks, read, some_allocation
from leadwise.analysis.bootstrap import SUM_METRICS, PatientBootstrap
from leadwise.analysis.contrasts import Contrast, estimate_contrasts
from leadwise.analysis.interactions import (
    Interaction,
    estimate_interactions,
    interaction,
    interactions,
    interactions_frame,
)
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.policies.allocation import Allocation
from leadwise.references import References


def framed(*args: Any, **settings: Any) -> pd.DataFrame:
    return interactions_frame(estimate_interactions(*args, **settings))


def in_order(interactions: pd.DataFrame) -> pd.DataFrame:
    """Rows by cell, however the list of contrasts was ordered."""
    return interactions.sort_values(["policy", "k", "metric"], ignore_index=True)


def test_interactions_by_hand(
    found: dict[str, list[Contrast]], records: Records, references: dict[str, References]
) -> None:
    frame = framed(found["own"], "second", "first")
    assert list(frame.columns) == INTERACTIONS.split()
    assert len(frame) == 4 * len(SUM_METRICS)
    assert set(frame["reference"]) == {"own"}
    row = frame[(frame["policy"] == "ccga") & (frame["k"] == 3) & (frame["metric"] == "brier")].iloc[0]
    allocation = next(e.allocation for e in found["own"] if e.allocation.policy == "ccga" and e.allocation.k == 3)
    d = {}
    for name in ("first", "second"):
        fixed = fixed_masks(records, references[name].best("brier", 3))
        adaptive = read(name, records, allocation.masks)
        d[name] = by_hand("brier", records, records, adaptive, read(name, records, fixed), REPLICATES)
    np.testing.assert_allclose(
        row[["d_baseline", "d_evaluator", "interaction"]].to_numpy(dtype=float),
        [d["first"][0], d["second"][0], d["second"][0] - d["first"][0]],
        atol=1e-12,
    )
    replicates = d["second"][1] - d["first"][1]
    np.testing.assert_allclose((row["lo"], row["hi"]), np.percentile(replicates, [2.5, 97.5]), atol=1e-12)


def test_simultaneous_intervals_of_interactions(found: dict[str, list[Contrast]]) -> None:
    frame = framed(found["own"], "third", "first")
    deltas = {(id(e.allocation), e.metric, e.evaluator): e.delta for e in found["own"]}
    keys = [(id(e.allocation), e.metric) for e in found["own"] if e.evaluator == "first"]
    theta = np.array([deltas[(*key, "third")].value - deltas[(*key, "first")].value for key in keys])
    replicates = np.array([deltas[(*key, "third")].replicates - deltas[(*key, "first")].replicates for key in keys])
    deviation = np.sqrt(((replicates - replicates.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / (REPLICATES - 1))
    largest = np.max(np.abs(replicates - theta[:, None]) / deviation[:, None], axis=0)
    critical = np.quantile(largest, 0.95)
    np.testing.assert_allclose(frame["interaction"], theta, atol=1e-14)
    np.testing.assert_allclose(frame["lo_simultaneous"], theta - critical * deviation, atol=1e-12)
    np.testing.assert_allclose(frame["hi_simultaneous"], theta + critical * deviation, atol=1e-12)
    assert (frame["hi_simultaneous"] - frame["interaction"] > 1.96 * deviation).all()


def test_interactions_of_three_evaluators_add_up(found: dict[str, list[Contrast]]) -> None:
    second, third, between = (
        framed(found["own"], *pair)["interaction"]
        for pair in (("second", "first"), ("third", "first"), ("third", "second"))
    )
    np.testing.assert_allclose(third - second, between, rtol=0, atol=1e-15)
    assert second.abs().min() > 0


def test_interactions_with_a_common_reference(
    found: dict[str, list[Contrast]], records: Records, references: dict[str, References]
) -> None:
    frame = framed(found["first"], "second", "first", "first")
    own = framed(found["own"], "second", "first")
    assert set(frame["reference"]) == {"first"}
    np.testing.assert_allclose(frame["d_baseline"], own["d_baseline"], atol=1e-15)
    assert (frame["d_evaluator"] - own["d_evaluator"]).abs().min() > 0
    row = frame[(frame["policy"] == "mga") & (frame["k"] == 2) & (frame["metric"] == "nll")].iloc[0]
    allocation = found["own"][0].allocation
    fixed = fixed_masks(records, references["first"].best("nll", 2))
    d_second, _ = by_hand(
        "nll", records, records, read("second", records, allocation.masks), read("second", records, fixed), 1
    )
    np.testing.assert_allclose(row["d_evaluator"], d_second, atol=1e-12)


def test_contrasts_of_several_references_are_not_mixed_up(found: dict[str, list[Contrast]]) -> None:
    together = [*found["own"], *found["first"]]
    for reference in ("own", "first"):
        expected = framed(found[reference], "third", "second", reference)
        pd.testing.assert_frame_equal(framed(together, "third", "second", reference), expected)
    assert estimate_interactions(found["first"], "third", "second") == []


def test_an_evaluator_is_not_its_own_baseline(
    records: Records, references: dict[str, References], found: dict[str, list[Contrast]]
) -> None:
    for ask in (
        lambda: interaction(some_allocation(records, "mga", 2, 0), READERS["first"], READERS["first"], references),
        lambda: framed(found["own"], "first", "first"),
    ):
        with pytest.raises(InputError, match=r"^'first' cannot be its own baseline; an interaction is between two"):
            ask()


@pytest.fixture(scope="module")
def ece_matched(readings: Readings, allocations: list[Allocation], references: dict[str, References]) -> list[Contrast]:
    return estimate_contrasts(readings, allocations, references, reference_metric="ece")


@settings(max_examples=20)
@given(st.permutations(range(3 * 4 * 9)), st.randoms())
def test_interactions_do_not_depend_on_the_order_of_contrasts(
    found: dict[str, list[Contrast]], ece_matched: list[Contrast], order: list[int], random: Random
) -> None:
    """Whatever else is in the list: other references, other reference metrics, a contrast twice."""
    several = [each for each in found["own"] if each.metric in ("nll", "brier", "ece")]
    several += [each for each in found["first"] if each.metric == "nll"] + random.sample(several, 24)
    several = [(several + ece_matched)[at] for at in order if at < len(several + ece_matched)]
    expected = framed([each for each in found["own"] if each.metric in ("nll", "brier", "ece")], "third", "first")
    answer = framed(several, "third", "first")
    pd.testing.assert_frame_equal(in_order(answer), in_order(expected), check_exact=True)


def test_interactions_keep_reference_metrics_apart(
    found: dict[str, list[Contrast]], ece_matched: list[Contrast]
) -> None:
    own = framed([*ece_matched, *found["own"]], "second", "first")
    pd.testing.assert_frame_equal(in_order(own), in_order(framed(found["own"], "second", "first")))
    frame = framed([*found["own"], *ece_matched], "second", "first", reference_metric="ece")
    d = {(e.allocation.policy, e.allocation.k, e.metric, e.evaluator): e.delta.value for e in ece_matched}
    for row in frame[~frame["metric"].str.match(r"ece\d")].to_dict("records"):
        cell = row["policy"], row["k"], row["metric"]
        assert row["interaction"] == d[(*cell, "second")] - d[(*cell, "first")]
    assert estimate_interactions(ece_matched, "second", "first", reference_metric="brier") == []


def test_equal_allocations_are_one_whoever_made_them(
    readings: Readings, allocations: list[Allocation], references: dict[str, References]
) -> None:
    parts = []
    for name in ("second", "first"):
        again = [
            Allocation(replace(each.records), each.policy, each.trained_on, each.order.copy()) for each in allocations
        ]
        parts += estimate_contrasts(readings, again, references, evaluators=[name])
    whole = estimate_contrasts(readings, allocations, references, evaluators=["first", "second"])
    answers = [in_order(framed(each, "second", "first")) for each in (parts, whole)]
    pd.testing.assert_frame_equal(*answers, check_exact=True)


def test_what_differs_in_records_choices_or_resample_is_not_subtracted(
    readings: Readings, records: Records, allocations: list[Allocation], references: dict[str, References]
) -> None:
    one = allocations[0]
    base = estimate_contrasts(readings, [one], references, evaluators=["first"])
    part = records.select(slice(0, 30))
    other_draw = Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES, seed=1))
    for other, where in (
        (Allocation(records, one.policy, one.trained_on, one.order[::-1].copy()), readings),
        (Allocation(part, one.policy, one.trained_on, one.order[:30]), readings),
        (one, other_draw),
    ):
        read_by_second = estimate_contrasts(where, [other], references, evaluators=["second"])
        with pytest.raises(InputError, match=r"^<Contrast mga, k = 2, nll under second.*differ in their records"):
            estimate_interactions([*base, *read_by_second], "second", "first")


def test_two_allocations_of_one_name_are_not_mixed_up(
    readings: Readings, allocations: list[Allocation], references: dict[str, References]
) -> None:
    """Their rows could not be told apart."""
    one = allocations[0]
    other = Allocation(one.records, one.policy, one.trained_on, one.order[::-1].copy())
    found = estimate_contrasts(readings, [one, other], references)
    with pytest.raises(InputError, match="give different allocations different policy names"):
        estimate_interactions(found, "second", "first")
    renamed = replace(other, policy="another")
    assert len(estimate_interactions(estimate_contrasts(readings, [one, renamed], references), "second", "first")) == 6


def test_an_interaction_is_known_by_its_key_and_keeps_its_replicates(
    found: dict[str, list[Contrast]], ece_matched: list[Contrast]
) -> None:
    """Two reference metrics in one list: keys differ, and no number depends on their order."""
    by_key: dict[tuple[object, ...], Interaction] = {}
    for several in ([*found["own"], *ece_matched], [*ece_matched, *found["own"]]):
        for metric in (None, "ece"):
            for each in estimate_interactions(several, "second", "first", reference_metric=metric):
                known = by_key.setdefault(each.key, each)
                assert known.estimate.value == each.estimate.value
                np.testing.assert_array_equal(known.estimate.replicates, each.estimate.replicates)
    assert len(by_key) == 4 * (len(SUM_METRICS) + 2)
    for key, each in by_key.items():
        assert (key[3], key[4], key[5]) == ("second", "first", "own")
        expected = each.read.delta.replicates - each.base.delta.replicates
        np.testing.assert_array_equal(each.estimate.replicates, expected)
        assert each.estimate.value == each.read.delta.value - each.base.delta.value
        assert repr(each).startswith(f"<Interaction {key[1]}, k = {key[7]}, {key[8]} under second minus first, own ")


def test_one_and_many_are_alike(
    records: Records, references: dict[str, References], allocations: list[Allocation]
) -> None:
    one = interaction(allocations[0], READERS["third"], READERS["first"], references, "brier")
    many = interactions(allocations, READERS["third"], READERS["first"], references)
    assert list(many.columns) == list(one.columns)
    assert len(many) == 4 * 3
    row = many.query("policy == 'mga' and k == 2 and metric == 'brier'").reset_index(drop=True)
    alone = [column for column in one if "simultaneous" not in column]
    pd.testing.assert_frame_equal(one[alone], row[alone], rtol=1e-12)
    assert (row["lo_simultaneous"] < one["lo_simultaneous"]).all()  # over a family of twelve
    readings = Readings(records, READERS.values())
    found = estimate_contrasts(readings, allocations, references)
    expected = framed(found, "third", "first")
    pd.testing.assert_frame_equal(in_order(many[INTERACTIONS.split()]), in_order(expected), rtol=1e-12)
