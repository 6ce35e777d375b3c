from dataclasses import replace
from pathlib import Path

import jaxtyping
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.arms import (
    CONTRASTS,
    INTERACTIONS,
    READERS,
    REPLICATES,
    by_hand,
    check,
    fixed_masks,
    read,
    some_allocation,
    some_references,
)
from analysis.coverage import Reader, varied_records
from leadwise.analysis.bootstrap import SUM_METRICS, PatientBootstrap
from leadwise.analysis.contrasts import Contrast, contrast, contrasts, contrasts_frame, estimate_contrasts
from leadwise.analysis.interactions import estimate_interactions, interaction, interactions_frame
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import subsets
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation
from leadwise.references import References, search_references


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
    several = estimate_contrasts(readings, allocations[:1], [one], reference_metric="ece")
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
    for each in estimate_contrasts(readings, [*allocations, everybody], references.values(), "first", ["nll", metric]):
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


def test_records_that_are_left_out_leave_the_resample_of_the_role(
    readings: Readings, records: Records, references: dict[str, References], allocations: list[Allocation]
) -> None:
    part = records.select(np.flatnonzero(records.patients > np.median(records.patients)))
    some = some_allocation(part, "part", 2, 3)
    several = estimate_contrasts(readings, [allocations[0], some], references.values(), metrics=["nll"])
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
        estimate_contrasts(readings, allocations, [references["first"], references["second"]])
    with pytest.raises(InputError, match="no references of evaluator 'strong'"):
        estimate_contrasts(readings, allocations, references.values(), "strong")
    with pytest.raises(InputError, match="no evaluator 'strong' here; there are first, second, third"):
        readings.probabilities("strong", records, [allocations[0].masks])
    with pytest.raises(InputError, match=r"^There are no allocations to compare with a reference; give one or more\.$"):
        contrasts([], READERS.values(), references)


def test_two_evaluators_of_one_name_are_refused(records: Records, references: dict[str, References]) -> None:
    other = Reader("second")
    other.name = "first"
    with pytest.raises(InputError, match="Two evaluators are called 'first'; give each a name of its own"):
        interaction(some_allocation(records, "mga", 2, 0), other, READERS["first"], references)
    assert list(Readings(records, [other, other]).evaluators) == ["first"]


def test_the_two_convenient_functions(records: Records, references: dict[str, References]) -> None:
    allocation = some_allocation(records, "mga", 3, 1)
    full = Readings(records, READERS.values())
    expected = estimate_contrasts(full, [allocation], references.values(), metrics=["brier"])
    pd.testing.assert_frame_equal(
        contrast(allocation, READERS["second"], references["second"], "brier")[CONTRASTS.split()],
        contrasts_frame(each for each in expected if each.evaluator == "second"),
        rtol=1e-12,
    )
    wanted = interactions_frame(estimate_interactions(expected, "third", "first"))
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


def test_one_and_many_are_alike(
    records: Records, references: dict[str, References], allocations: list[Allocation]
) -> None:
    one = contrast(allocations[2], READERS["second"], references, "ece")
    many = contrasts(allocations, READERS.values(), references)
    assert list(many.columns) == list(one.columns)
    assert len(many) == 4 * 3 * 3
    row = many.query("policy == 'ccga' and k == 2 and evaluator == 'second' and metric == 'ece'")
    pd.testing.assert_frame_equal(one, row.reset_index(drop=True), rtol=1e-12)
    full = Readings(records, READERS.values())
    expected = contrasts_frame(estimate_contrasts(full, allocations, references))
    pd.testing.assert_frame_equal(many[CONTRASTS.split()], expected)
    with pytest.raises(InputError, match=r"^Record 1 of .* is not among those of"):
        others = varied_records(patients=30, seed=5)
        contrasts([*allocations, some_allocation(others, "mga", 2, 0)], [READERS["first"]], references)


def test_a_contrast_is_known_by_the_key_columns(found: dict[str, list[Contrast]]) -> None:
    several = [*found["own"], *(each for each in found["first"] if each.evaluator != "first")]
    assert len({each.key for each in several}) == len(several)
    for each in several:
        assert each.key._asdict() == {name: each.row[name] for name in each.key._fields}


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
    assert len(estimate_contrasts(readings, [allocation], references["second"])) == 3
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
                estimate_contrasts(readings, [allocation], references)
            continue
        kept = enough.select(has)
        for each in estimate_contrasts(readings, [allocation], references):
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
    several = estimate_contrasts(readings, allocations, references)
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
