from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import jaxtyping
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.coverage import Reader, records_of, varied_records
from leadwise.analysis.bootstrap import SUM_METRICS, Estimate, PatientBootstrap
from leadwise.analysis.contrasts import (
    Contrast,
    Readings,
    contrast,
    contrasts,
    contrasts_frame,
    interaction,
    interactions_frame,
    paired_frame,
)
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LeadSet, subsets
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation
from leadwise.references import References, search_references

CONTRASTS = "role policy trained_on evaluator reference_evaluator reference_metric k metric adaptive fixed delta lo hi"
INTERACTIONS = (
    "role policy trained_on evaluator baseline_evaluator reference k metric d_baseline d_evaluator interaction lo hi "
    "lo_simultaneous hi_simultaneous"
)
PAIRED = "role evaluator k metric policy_a policy_b a b delta lo hi"

REPLICATES = 25
READERS = {name: Reader(name) for name in ("first", "second", "third")}


def some_references(name: str, seed: int) -> References:
    """All sets of two and three leads, with metrics out of thin air: what is best for one is not for another."""
    rng = np.random.default_rng(seed)
    rows = [(k, int(bits), *rng.random(3)) for k in (2, 3) for bits in subsets(k) @ (1 << np.arange(12))]
    return References(name, pd.DataFrame(rows, columns=["k", "bits", "nll", "brier", "ece"]), {})


def some_allocation(records: Records, policy: str, k: int, seed: int) -> Allocation:
    order = np.random.default_rng(seed).random((len(records), 12)).argsort(axis=1)[:, :k]
    return Allocation(records, policy, "first", order)


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(patients=40, seed=11)


@pytest.fixture(scope="module")
def references() -> dict[str, References]:
    found = {name: some_references(name, seed) for seed, name in enumerate(READERS, 2)}
    sets = {each.best(metric, k) for each in found.values() for metric in ("nll", "brier", "ece") for k in (2, 3)}
    assert len(sets) == 18  # so that a reference taken for another is noticed
    return found


@pytest.fixture(scope="module")
def readings(records: Records) -> Readings:
    return Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES))


@pytest.fixture(scope="module")
def allocations(records: Records) -> list[Allocation]:
    return [
        some_allocation(records, policy, k, seed)
        for seed, (policy, k) in enumerate((policy, k) for policy in ("mga", "ccga") for k in (2, 3))
    ]


@pytest.fixture(scope="module")
def found(
    readings: Readings, allocations: list[Allocation], references: dict[str, References]
) -> dict[str, list[Contrast]]:
    """Contrasts in every metric, with each evaluator's own references and with those of the first."""
    return {
        reference: contrasts(readings, allocations, references.values(), reference, SUM_METRICS)
        for reference in ("own", "first")
    }


def read(evaluator: str, records: Records, masks: np.ndarray) -> np.ndarray:
    """Probabilities straight from an evaluator."""
    signals = records.signals.millivolts(slice(None))
    signals[~masks] = 0
    return READERS[evaluator].probabilities(signals, masks)


def by_hand(
    metric: str, role: Records, part: Records, a: np.ndarray, b: np.ndarray, replicates: int
) -> tuple[float, np.ndarray]:
    """metric(a) − metric(b), and in every replicate: records weighed with how often their patient was drawn."""
    everyone = sorted(set(role.patients.tolist()))
    count = len(everyone)
    draws = np.random.default_rng(20270909).multinomial(count, [1 / count] * count, size=replicates)
    where = np.array([everyone.index(patient) for patient in part.patients.tolist()])
    function: Callable[..., float] = METRICS[metric]
    point = function(part.labels, a, None) - function(part.labels, b, None)
    return point, np.array([function(part.labels, a, w[where]) - function(part.labels, b, w[where]) for w in draws])


def fixed_masks(records: Records, leads: LeadSet) -> np.ndarray:
    return np.array([[lead in leads.indices for lead in range(12)]] * len(records))


def in_order(interactions: pd.DataFrame) -> pd.DataFrame:
    """Rows by cell, however the list of contrasts was ordered."""
    return interactions.sort_values(["policy", "k", "metric"], ignore_index=True)


def check(estimate: Estimate, point: float, replicates: np.ndarray) -> None:
    np.testing.assert_allclose(estimate.value, point, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.replicates, replicates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.interval, np.percentile(replicates, [2.5, 97.5]), rtol=0, atol=1e-12)


def test_every_contrast_by_hand(
    found: dict[str, list[Contrast]], records: Records, references: dict[str, References]
) -> None:
    for reference, several in found.items():
        assert len(several) == 4 * 3 * len(SUM_METRICS)
        for each in several:
            owner = each.evaluator if reference == "own" else "first"
            matched = "ece" if each.metric.startswith("ece") else each.metric
            assert (each.reference_evaluator, each.reference_metric) == (owner, matched)
            if each.metric in ("ece5", "ece15", "ece20") and (each.allocation.policy, each.allocation.k) != ("mga", 3):
                continue  # one allocation is enough to see their bins and their reference
            leads = references[owner].best(matched, each.allocation.k)
            adaptive = read(each.evaluator, records, each.allocation.masks)
            fixed = read(each.evaluator, records, fixed_masks(records, leads))
            check(each.delta, *by_hand(each.metric, records, records, adaptive, fixed, REPLICATES))
            np.testing.assert_allclose(each.adaptive.value, METRICS[each.metric](records.labels, adaptive, None))


def test_one_reference_metric_for_all(readings: Readings, allocations: list[Allocation], records: Records) -> None:
    one = some_references("first", 0)
    readings = Readings(records, [READERS["first"]], readings.bootstrap)
    several = contrasts(readings, allocations[:1], [one], reference_metric="ece")
    fixed = read("first", records, fixed_masks(records, one.best("ece", 2)))
    for each in several:
        assert each.reference_metric == "ece"
        np.testing.assert_allclose(each.fixed.value, METRICS[each.metric](records.labels, fixed, None))


@pytest.mark.parametrize("metric", SUM_METRICS)
def test_a_reference_against_itself(
    readings: Readings,
    records: Records,
    references: dict[str, References],
    allocations: list[Allocation],
    metric: str,
) -> None:
    leads = references["first"].best(metric if metric in ("nll", "brier") else "ece", 3)
    order = np.tile(leads.indices[::-1], (len(records), 1))
    everybody = Allocation(records, "everybody", "", order)
    for each in contrasts(readings, [*allocations, everybody], references.values(), "first", ["nll", metric]):
        if each.allocation is everybody and each.metric == metric:
            assert each.delta.value == 0
            assert each.delta.interval == (0, 0)
            assert not each.delta.replicates.any()
        elif each.metric == metric:
            assert each.delta.value != 0


def test_contrasts_frame(found: dict[str, list[Contrast]]) -> None:
    frame = contrasts_frame(found["own"])
    assert list(frame.columns) == CONTRASTS.split()
    assert set(frame["role"]) == {"audit"}
    assert set(frame["trained_on"]) == {"first"}
    np.testing.assert_allclose(frame["delta"], frame["adaptive"] - frame["fixed"], rtol=0, atol=1e-15)
    assert len(frame.drop_duplicates(["policy", "evaluator", "k", "metric"])) == len(frame)
    first, row = found["own"][0], frame.iloc[0]
    assert (row["policy"], row["k"], row["evaluator"], row["metric"]) == ("mga", 2, "first", "nll")
    assert (row["lo"], row["hi"]) == first.delta.interval


def test_interactions_by_hand(
    found: dict[str, list[Contrast]], records: Records, references: dict[str, References]
) -> None:
    frame = interactions_frame(found["own"], "second", "first")
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
    frame = interactions_frame(found["own"], "third", "first")
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
        interactions_frame(found["own"], *pair)["interaction"]
        for pair in (("second", "first"), ("third", "first"), ("third", "second"))
    )
    np.testing.assert_allclose(third - second, between, rtol=0, atol=1e-15)
    assert second.abs().min() > 0


def test_interactions_with_a_common_reference(
    found: dict[str, list[Contrast]], records: Records, references: dict[str, References]
) -> None:
    frame = interactions_frame(found["first"], "second", "first", "first")
    own = interactions_frame(found["own"], "second", "first")
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
        expected = interactions_frame(found[reference], "third", "second", reference)
        pd.testing.assert_frame_equal(interactions_frame(together, "third", "second", reference), expected)
    with pytest.raises(InputError, match="under both 'third' and 'second' with the reference 'own'"):
        interactions_frame(found["first"], "third", "second")


def test_paired_frame(readings: Readings, records: Records, allocations: list[Allocation]) -> None:
    frame = paired_frame(readings, [(allocations[0], allocations[2]), (allocations[1], allocations[1])])
    assert list(frame.columns) == PAIRED.split()
    assert len(frame) == 2 * 3 * 3
    for row in frame[frame["k"] == 2].to_dict("records"):
        a, b = (read(row["evaluator"], records, allocations[i].masks) for i in (0, 2))
        point, replicates = by_hand(row["metric"], records, records, a, b, REPLICATES)
        np.testing.assert_allclose(row["a"], METRICS[row["metric"]](records.labels, a, None), atol=1e-12)
        np.testing.assert_allclose(row["b"], METRICS[row["metric"]](records.labels, b, None), atol=1e-12)
        np.testing.assert_allclose(row["delta"], point, atol=1e-12)
        np.testing.assert_allclose((row["lo"], row["hi"]), np.percentile(replicates, [2.5, 97.5]), atol=1e-12)
    assert not frame.loc[frame["k"] == 3, ["delta", "lo", "hi"]].to_numpy().any()


def test_what_cannot_be_paired(readings: Readings, records: Records, allocations: list[Allocation]) -> None:
    part = some_allocation(records.select(slice(0, 30)), "part", 2, 0)
    for other in (allocations[1], part):
        with pytest.raises(InputError, match="cannot be paired: they differ in their records or their budget"):
            paired_frame(readings, [(allocations[0], other)])


def test_records_that_are_left_out_leave_the_resample_of_the_role(
    readings: Readings, records: Records, references: dict[str, References], allocations: list[Allocation]
) -> None:
    part = records.select(np.flatnonzero(records.patients > np.median(records.patients)))
    some = some_allocation(part, "part", 2, 3)
    several = contrasts(readings, [allocations[0], some], references.values(), metrics=["nll"])
    of_part = [each for each in several if each.allocation is some]
    assert len(of_part) == 3
    assert len(several) == 6
    for each in of_part:
        leads = references[each.evaluator].best("nll", 2)
        a, b = read(each.evaluator, part, some.masks), read(each.evaluator, part, fixed_masks(part, leads))
        check(each.delta, *by_hand("nll", records, part, a, b, REPLICATES))


def test_what_is_missing_is_named(
    readings: Readings, records: Records, references: dict[str, References], allocations: list[Allocation]
) -> None:
    with pytest.raises(InputError, match="no references of evaluator 'third'; search them first"):
        contrasts(readings, allocations, [references["first"], references["second"]])
    with pytest.raises(InputError, match="no references of evaluator 'strong'"):
        contrasts(readings, allocations, references.values(), "strong")
    with pytest.raises(InputError, match="no evaluator 'strong' here; there are first, second, third"):
        readings.probabilities("strong", records, [allocations[0].masks])
    with pytest.raises(InputError, match="No contrast was made under both 'second' and 'first'"):
        interactions_frame([], "second", "first")
    with pytest.raises(InputError, match="has no patient-cluster interval"):
        paired_frame(readings, [(allocations[0], allocations[2])], ["auroc"])


def test_two_evaluators_of_one_name_are_refused(records: Records, references: dict[str, References]) -> None:
    other = Reader("second")
    other.name = "first"
    with pytest.raises(InputError, match="Two evaluators are called 'first'; give each a name of its own"):
        interaction(some_allocation(records, "mga", 2, 0), other, READERS["first"], references)
    assert list(Readings(records, [other, other]).evaluators) == ["first"]


def test_the_two_convenient_functions(records: Records, references: dict[str, References]) -> None:
    allocation = some_allocation(records, "mga", 3, 1)
    full = Readings(records, READERS.values())
    expected = contrasts(full, [allocation], references.values(), metrics=["brier"])
    pd.testing.assert_frame_equal(
        contrast(allocation, READERS["second"], references["second"], "brier")[CONTRASTS.split()],
        contrasts_frame(each for each in expected if each.evaluator == "second"),
        rtol=1e-12,
    )
    wanted = interactions_frame(expected, "third", "first")
    answer = interaction(allocation, READERS["third"], READERS["first"], references, "brier")
    pd.testing.assert_frame_equal(answer[INTERACTIONS.split()], wanted, rtol=1e-12)
    # a family of one: θ ± c s, c the 95th percentile of |θ* − θ| / s, so that s cancels
    d = {each.evaluator: each.delta for each in expected}
    estimate = d["third"] - d["first"]
    half = np.percentile(np.abs(estimate.replicates - estimate.value), 95)
    row = wanted.iloc[0]
    np.testing.assert_allclose(
        (row["lo_simultaneous"], row["hi_simultaneous"]), (estimate.value - half, estimate.value + half)
    )


def test_one_or_many_references_will_do(records: Records, references: dict[str, References]) -> None:
    allocation, many = some_allocation(records, "mga", 3, 1), list(references.values())
    wanted = contrast(allocation, READERS["second"], references["second"])
    for several in (references, many, many[::-1], iter(many), [references["second"]]):
        pd.testing.assert_frame_equal(contrast(allocation, READERS["second"], several), wanted)
    wanted = interaction(allocation, READERS["third"], READERS["first"], references)
    for several in (many, many[::-1], iter(many)):
        pd.testing.assert_frame_equal(interaction(allocation, READERS["third"], READERS["first"], several), wanted)
    of_one = interaction(allocation, READERS["third"], READERS["first"], references["second"], reference="second")
    d = [contrast(allocation, READERS[name], many, reference="second")["delta"].iloc[0] for name in ("third", "first")]
    assert of_one["interaction"].iloc[0] == d[0] - d[1]
    readings = Readings(records, [READERS["second"]])
    assert len(contrasts(readings, [allocation], references["second"])) == 3
    with pytest.raises(
        InputError, match=r"^References are what search_references gives, one or several; this is 'a\.csv'"
    ):
        contrast(allocation, READERS["second"], iter(["a.csv"]))  # type: ignore[arg-type]
    assert repr(readings) == f"<Readings of {len(records)} records by second>"


def test_what_is_no_allocation(
    records: Records, references: dict[str, References], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for a user, whose types nobody checks
    allocation = some_allocation(records, "mga", 3, 1)
    with pytest.raises(InputError, match=r"^An allocation is what allocate gives; this is <References of second"):
        contrast(references["second"], READERS["second"], allocation)  # type: ignore[arg-type]


def test_searches_of_one_evaluator_are_taken_together(records: Records, references: dict[str, References]) -> None:
    whole = references["first"]
    parts = [replace(whole, candidates=whole.candidates[whole.candidates["k"] == k]) for k in (3, 2)]
    for k in (2, 3):
        allocation = some_allocation(records, "mga", k, 1)
        pd.testing.assert_frame_equal(
            contrast(allocation, READERS["first"], parts), contrast(allocation, READERS["first"], whole)
        )


def test_a_contrast_uses_the_evaluators_own_references_unless_others_are_named(
    records: Records, references: dict[str, References]
) -> None:
    allocation = some_allocation(records, "mga", 3, 1)
    sentence = (
        r"^There are no references of evaluator 'second'; search them first, or ask with reference= for those of "
    )
    for foreign, there in (
        (references["first"], "first"),
        ([references["third"], references["first"]], "third, first"),
    ):
        with pytest.raises(InputError, match=rf"{sentence}{there}\.$"):
            contrast(allocation, READERS["second"], foreign)
        with pytest.raises(InputError, match=rf"{sentence}{there}\.$"):
            interaction(allocation, READERS["second"], READERS["first"], foreign)
    with pytest.raises(InputError, match=r"^There are no references of evaluator 'second'; search them first\.$"):
        contrast(allocation, READERS["second"], [])
    asked = contrast(allocation, READERS["second"], references["first"], reference="first").iloc[0]
    assert (asked["evaluator"], asked["reference_evaluator"], asked["metric"]) == ("second", "first", "nll")
    own = contrast(allocation, READERS["second"], references).iloc[0]
    assert own["reference_evaluator"] == "second"
    assert own["delta"] != asked["delta"]


def test_an_evaluator_is_not_its_own_baseline(
    records: Records, references: dict[str, References], found: dict[str, list[Contrast]]
) -> None:
    for ask in (
        lambda: interaction(some_allocation(records, "mga", 2, 0), READERS["first"], READERS["first"], references),
        lambda: interactions_frame(found["own"], "first", "first"),
    ):
        with pytest.raises(InputError, match=r"^'first' cannot be its own baseline; an interaction is between two"):
            ask()


@settings(max_examples=20)
@given(st.permutations(range(3 * 4 * 9)), st.randoms())
def test_interactions_do_not_depend_on_the_order_of_contrasts(
    found: dict[str, list[Contrast]], ece_matched: list[Contrast], order: list[int], random: Random
) -> None:
    """Whatever else is in the list: other references, other reference metrics, a contrast twice."""
    several = [each for each in found["own"] if each.metric in ("nll", "brier", "ece")]
    several += [each for each in found["first"] if each.metric == "nll"] + random.sample(several, 24)
    several = [(several + ece_matched)[at] for at in order if at < len(several + ece_matched)]
    expected = interactions_frame(
        [each for each in found["own"] if each.metric in ("nll", "brier", "ece")], "third", "first"
    )
    answer = interactions_frame(several, "third", "first")
    pd.testing.assert_frame_equal(in_order(answer), in_order(expected), check_exact=True)


@pytest.fixture(scope="module")
def ece_matched(readings: Readings, allocations: list[Allocation], references: dict[str, References]) -> list[Contrast]:
    return contrasts(readings, allocations, references, reference_metric="ece")


def test_interactions_keep_reference_metrics_apart(
    found: dict[str, list[Contrast]], ece_matched: list[Contrast]
) -> None:
    own = interactions_frame([*ece_matched, *found["own"]], "second", "first")
    pd.testing.assert_frame_equal(in_order(own), in_order(interactions_frame(found["own"], "second", "first")))
    frame = interactions_frame([*found["own"], *ece_matched], "second", "first", reference_metric="ece")
    d = {(e.allocation.policy, e.allocation.k, e.metric, e.evaluator): e.delta.value for e in ece_matched}
    for row in frame[~frame["metric"].str.match(r"ece\d")].to_dict("records"):
        cell = row["policy"], row["k"], row["metric"]
        assert row["interaction"] == d[(*cell, "second")] - d[(*cell, "first")]
    with pytest.raises(InputError, match="with the reference 'own' for brier on the same records"):
        interactions_frame(ece_matched, "second", "first", reference_metric="brier")


def test_equal_allocations_are_one_whoever_made_them(
    readings: Readings, allocations: list[Allocation], references: dict[str, References]
) -> None:
    parts = []
    for name in ("second", "first"):
        again = [
            Allocation(replace(each.records), each.policy, each.trained_on, each.order.copy()) for each in allocations
        ]
        parts += contrasts(readings, again, references, evaluators=[name])
    whole = contrasts(readings, allocations, references, evaluators=["first", "second"])
    answers = [in_order(interactions_frame(each, "second", "first")) for each in (parts, whole)]
    pd.testing.assert_frame_equal(*answers, check_exact=True)


def test_what_differs_in_records_choices_or_resample_is_not_subtracted(
    readings: Readings, records: Records, allocations: list[Allocation], references: dict[str, References]
) -> None:
    one = allocations[0]
    base = contrasts(readings, [one], references, evaluators=["first"])
    part = records.select(slice(0, 30))
    other_draw = Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES, seed=1))
    for other, where in (
        (Allocation(records, one.policy, one.trained_on, one.order[::-1].copy()), readings),
        (Allocation(part, one.policy, one.trained_on, one.order[:30]), readings),
        (one, other_draw),
    ):
        with pytest.raises(InputError, match="under both 'second' and 'first' with the reference 'own' on the same"):
            interactions_frame(
                [*base, *contrasts(where, [other], references, evaluators=["second"])], "second", "first"
            )


def test_records_of_another_role_are_not_read(readings: Readings, references: dict[str, References]) -> None:
    some = contrasts(readings, [some_allocation(readings.records.select(slice(0, 40)), "mga", 2, 0)], references)
    assert len(some) == 9
    for others in (varied_records(patients=60, seed=5), varied_records(patients=60, seed=5).select(slice(0, 40))):
        with pytest.raises(InputError, match=r"^Record 1 of .* is not among those of the whole cohort\.$"):
            contrasts(readings, [some_allocation(others, "mga", 2, 0)], references)
    doubled = records_of(np.repeat(readings.records.patients, 2), np.repeat(readings.records.labels, 2, axis=0))
    with pytest.raises(InputError, match=rf"^Record {len(readings.records) + 1} of .* is not among those of"):
        contrasts(
            readings, [some_allocation(doubled.select(doubled.ids > len(readings.records)), "mga", 2, 0)], references
        )


def test_what_is_printed_is_short_and_says_what_it_is_about(
    records: Records, references: dict[str, References], found: dict[str, list[Contrast]]
) -> None:
    allocation = some_allocation(records, "ecg-on-demand", 3, 1)
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        for frame, what in (
            (contrast(allocation, READERS["second"], references), "delta"),
            (interaction(allocation, READERS["third"], READERS["first"], references), "interaction"),
        ):
            head = str(frame).splitlines()[0].split()
            assert head[:3] == ["policy", "k", "metric"]
            assert head[-3:] == [what, "lo", "hi"]
    printed = repr(found["own"][0])
    assert printed.startswith("<Contrast mga, k = 2, nll under first, reference of first: ")
    assert printed.endswith(f"{found['own'][0].delta.interval[1]:.4g}]>")
    assert len(printed) < 120


# records that lack leads ---------------------------------------------------------------------------------------------


def some_gaps(n: int, share: float, without_avr: bool, seed: int) -> np.ndarray:
    """Missing samples: any lead may be missing anywhere, aVR perhaps everywhere, and some records have no lead."""
    rng = np.random.default_rng(seed)
    lacking = rng.random((n, 12)) < share
    lacking[:, 3] |= without_avr
    lacking[rng.random(n) < 0.1] = True
    return 3 * lacking


@settings(max_examples=25)
@given(st.sampled_from([0.01, 0.05, 0.3]), st.booleans(), st.integers(0, 1000))
def test_both_arms_are_of_records_that_can_give_them(share: float, without_avr: bool, seed: int) -> None:
    n = len(varied_records(patients=25, seed=3))
    records = varied_records(patients=25, seed=3, missing=some_gaps(n, share, without_avr, seed))
    available = records.available
    references = [some_references(name, seed + number) for number, name in enumerate(("first", "second"))]
    readings = Readings(records, [READERS["first"], READERS["second"]], PatientBootstrap(records, REPLICATES))
    for k in (2, 3):
        enough = records.select(available.sum(axis=1) >= k)
        order = np.where(enough.available, np.random.default_rng(seed).random((len(enough), 12)), 2).argsort(axis=1)
        allocation = Allocation(enough, "mga", "first", order[:, :k])
        needed = np.zeros(12, dtype=bool)
        for each in references:
            for metric in ("nll", "brier", "ece"):
                needed |= each.best(metric, k).mask
        has = enough.available[:, needed].all(axis=1)
        if not has.any():
            with pytest.raises(
                InputError, match=rf"^No record of .* has all of .*, which mga is .* at k = {k}; search "
            ):
                contrasts(readings, [allocation], references)
            continue
        kept = enough.select(has)
        for each in contrasts(readings, [allocation], references):
            assert each.allocation.records.ids.tolist() == kept.ids.tolist()
            owner = references[("first", "second").index(each.evaluator)]
            fixed = read(each.evaluator, kept, fixed_masks(kept, owner.best(each.metric, k)))
            adaptive = read(each.evaluator, kept, each.allocation.masks)
            arms = [METRICS[each.metric](kept.labels, p, None) for p in (adaptive, fixed)]
            np.testing.assert_allclose((each.adaptive.value, each.fixed.value), arms, rtol=0, atol=1e-12)
            cluster = np.isin(readings.bootstrap.patients, kept.patients)
            undrawn = readings.bootstrap.multiplicities[:, cluster].sum(axis=1) == 0
            np.testing.assert_array_equal(np.isnan(each.delta.replicates), undrawn)


def test_contrast_and_interaction_count_whom_they_leave_out(
    records: Records, references: dict[str, References]
) -> None:
    own, other = (references[name].best("nll", 3) for name in ("first", "second"))
    missing = np.zeros((len(records), 12), dtype=int)
    missing[:4, own.indices[0]] = 3
    missing[4:6, next(lead for lead in range(12) if lead in other.indices and lead not in own.indices)] = 3
    every = {lead for metric in ("nll", "brier", "ece") for lead in references["first"].best(metric, 3).indices}
    gapped = varied_records(patients=40, seed=11, missing=missing)
    order = np.tile([lead for lead in range(12) if not missing[:, lead].any()][:3], (len(gapped), 1))
    allocation = Allocation(gapped, "mga", "first", order)
    one = contrast(allocation, READERS["first"], references).iloc[0]
    lacking = int((missing[:, sorted(every)] > 0).any(axis=1).sum())
    assert (one["records"], one["left_out"]) == (len(gapped) - lacking, lacking)
    both = interaction(allocation, READERS["second"], READERS["first"], references).iloc[0]
    assert both["left_out"] == 6
    whole = contrast(some_allocation(records, "mga", 3, 1), READERS["first"], references).iloc[0]
    assert (whole["records"], whole["left_out"]) == (len(records), 0)


def test_on_a_cohort_in_the_layout_of_ptbxl(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Evaluators that were trained, references that were searched; D against the best set is never negative there."""
    from leadwise.cohort.ptbxl import read_ptbxl
    from leadwise.cohort.synthetic import write_synthetic
    from leadwise.evaluators.logistic import LogisticEvaluator
    from leadwise.evaluators.scoring import score

    directory: Path = tmp_path_factory.mktemp("contrasts") / "cohort"
    write_synthetic(directory, records=240, seed=2)
    cohort = read_ptbxl(directory)
    controlled = LogisticEvaluator().fit(cohort["train"])
    other = LogisticEvaluator(name="controlled-unbalanced", class_weight=None).fit(cohort["train"])
    selection = cohort["selection"]
    references = [search_references(each, selection, [2]) for each in (controlled, other)]
    readings = Readings(selection, [controlled, other])
    pairs = subsets(2)[::6]
    allocations = [
        Allocation(selection, f"always {index}", "", np.tile(np.flatnonzero(mask), (len(selection), 1)))
        for index, mask in enumerate(pairs)
    ]
    several = contrasts(readings, allocations, references)
    assert min(each.delta.value for each in several) >= -1e-12
    row = interaction(allocations[3], other, controlled, references).iloc[0]
    d = []
    for evaluator, searched in zip((other, controlled), references[::-1], strict=True):
        p = score(
            evaluator, selection, np.stack([allocations[3].masks, fixed_masks(selection, searched.best("nll", 2))])
        )
        d.append(METRICS["nll"](selection.labels, p[0], None) - METRICS["nll"](selection.labels, p[1], None))
    np.testing.assert_allclose(row["interaction"], d[0] - d[1], atol=1e-12)
    assert (row["role"], row["evaluator"], row["baseline_evaluator"]) == (
        "selection",
        "controlled-unbalanced",
        "controlled",
    )
