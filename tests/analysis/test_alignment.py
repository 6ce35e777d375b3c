from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.coverage import varied_records
from leadwise.analysis.alignment import (
    alignment_frame,
    choice_frame,
    jaccard,
    modal_sets,
    policies_alignment_frame,
)
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LEADS, LeadSet
from leadwise.policies.allocation import Allocation

REPLICATES = 60
FIXED = LeadSet.parse("III aVR V2 V5")


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(patients=50, seed=6)


@pytest.fixture(scope="module")
def bootstrap(records: Records) -> PatientBootstrap:
    return PatientBootstrap(records, REPLICATES)


def allocation_of(records: Records, policy: str, seed: int) -> Allocation:
    """Leads by an anchor, aVR, and chance that favours the first leads; the fixed set for a few."""
    rng = np.random.default_rng(seed)
    rank = rng.random((len(records), 12)) * np.linspace(1, 3, 12)
    rank[:, 3] = -1
    order = rank.argsort(axis=1)[:, :4]
    order[:3] = [[3, 2, 10, 7], [7, 10, 2, 3], [0, 1, 6, 11]]
    return Allocation(records, policy, "controlled", order)


@pytest.fixture(scope="module")
def mga(records: Records) -> Allocation:
    return allocation_of(records, "mga", 0)


@pytest.fixture(scope="module")
def draws(records: Records) -> np.ndarray:
    """(r, n): how often each record was drawn."""
    everyone = sorted(set(records.patients.tolist()))
    count = len(everyone)
    draws = np.random.default_rng(20270909).multinomial(count, [1 / count] * count, size=REPLICATES)
    return draws[:, [everyone.index(patient) for patient in records.patients.tolist()]]


def entry(frame: pd.DataFrame, statistic: str, label: str = "") -> pd.Series:
    found = frame[(frame["statistic"] == statistic) & (frame["label"] == label)]
    assert len(found) == 1
    return found.iloc[0]


def check_mean(row: pd.Series, values: list[float], draws: np.ndarray) -> None:
    """The mean over records, and its interval from repeated records."""
    np.testing.assert_allclose(row["value"], np.mean(values), rtol=0, atol=1e-12)
    replicates = [np.mean(np.repeat(values, draw)) for draw in draws]
    np.testing.assert_allclose((row["lo"], row["hi"]), np.percentile(replicates, [2.5, 97.5]), rtol=0, atol=1e-12)


def similarity(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b)


def test_jaccard_of_known_sets() -> None:
    first, second = LeadSet.parse("I II V1"), LeadSet.parse("II V1 V2 V3")
    assert jaccard(first.mask[None], second.mask[None]).tolist() == [2 / 5]


@given(st.lists(st.tuples(st.integers(1, 4095), st.integers(1, 4095)), min_size=1, max_size=20))
def test_jaccard_of_any_sets(pairs: list[tuple[int, int]]) -> None:
    sets = [(LeadSet(a), LeadSet(b)) for a, b in pairs]
    a, b = (np.array([pair[side].mask for pair in sets]) for side in (0, 1))
    expected = [similarity(set(x.indices), set(y.indices)) for x, y in sets]
    np.testing.assert_allclose(jaccard(a, b), expected, rtol=1e-15)
    np.testing.assert_array_equal(jaccard(a, b), jaccard(b, a))
    assert (jaccard(a, a) == 1).all()


def check_similarity(frame: pd.DataFrame, pairs: list[tuple[set[int], set[int]]], draws: np.ndarray) -> None:
    values = [similarity(a, b) for a, b in pairs]
    check_mean(entry(frame, "jaccard"), values, draws)
    assert entry(frame, "jaccard range", "min")["value"] == min(values)
    assert entry(frame, "jaccard range", "max")["value"] == max(values)
    assert np.isnan(entry(frame, "jaccard range", "max")["hi"])
    check_mean(entry(frame, "identical"), [a == b for a, b in pairs], draws)
    for shared in range(5):
        check_mean(entry(frame, "shared leads", str(shared)), [len(a & b) == shared for a, b in pairs], draws)
    np.testing.assert_allclose(frame.loc[frame["statistic"] == "shared leads", "value"].sum(), 1, atol=1e-12)
    assert (frame["statistic"] == "shared leads").sum() == 5


def test_against_a_reference(bootstrap: PatientBootstrap, mga: Allocation, draws: np.ndarray) -> None:
    frame = alignment_frame(bootstrap, mga, FIXED, "strong", "nll")
    chosen = [set(row) for row in mga.order.tolist()]
    check_similarity(frame, [(each, {2, 3, 7, 10}) for each in chosen], draws)
    assert entry(frame, "identical")["value"] >= 2 / len(chosen)
    facts = frame[["role", "policy", "versus", "evaluator", "reference_metric", "k"]].drop_duplicates()
    assert facts.to_numpy().tolist() == [["audit", "mga", "reference", "strong", "nll", 4]]


def test_against_another_policy(bootstrap: PatientBootstrap, mga: Allocation, draws: np.ndarray) -> None:
    other = allocation_of(mga.records, "ccga", 1)
    frame = policies_alignment_frame(bootstrap, mga, other)
    pairs = [(set(a), set(b)) for a, b in zip(mga.order.tolist(), other.order.tolist(), strict=True)]
    check_similarity(frame, pairs, draws)
    assert set(frame["versus"]) == {"ccga"}
    same = policies_alignment_frame(bootstrap, mga, mga)
    assert entry(same, "jaccard")[["value", "lo", "hi"]].tolist() == [1, 1, 1]


def test_policies_that_cannot_be_compared(bootstrap: PatientBootstrap, mga: Allocation) -> None:
    shorter = Allocation(mga.records, "shorter", "", mga.order[:, :3])
    part = Allocation(mga.records.select(slice(1, None)), "part", "", mga.order[1:])
    for other in (shorter, part):
        with pytest.raises(InputError, match="cannot be compared: they differ in their records or their budget"):
            policies_alignment_frame(bootstrap, mga, other)


def test_lead_frequencies(bootstrap: PatientBootstrap, mga: Allocation, draws: np.ndarray) -> None:
    frame = choice_frame(bootstrap, mga)
    for lead, name in enumerate(LEADS):
        check_mean(entry(frame, "lead frequency", name), [lead in row for row in mga.order.tolist()], draws)
    frequencies = frame.loc[frame["statistic"] == "lead frequency", "value"]
    np.testing.assert_allclose(frequencies.sum(), 4, atol=1e-12)
    assert set(frame["versus"]) == {""}


def test_electrodes(bootstrap: PatientBootstrap, mga: Allocation, draws: np.ndarray) -> None:
    frame = choice_frame(bootstrap, mga)
    counts = [len(leads.electrodes) for leads in mga.lead_sets]
    check_mean(entry(frame, "electrodes"), counts, draws)
    assert entry(frame, "electrodes range", "min")["value"] == min(counts)
    assert entry(frame, "electrodes range", "max")["value"] == max(counts)
    assert len(set(counts)) > 1


def test_one_bipolar_lead_takes_two_electrodes(records: Records, bootstrap: PatientBootstrap) -> None:
    everyone = Allocation(records, "lead I", "", np.zeros((len(records), 1), dtype=int))
    assert entry(choice_frame(bootstrap, everyone), "electrodes")["value"] == 2


def test_followed_limb_share(bootstrap: PatientBootstrap, mga: Allocation, draws: np.ndarray) -> None:
    followed, limb = [], []
    for row in mga.order.tolist():
        in_hand, free = [], 0
        for lead in row:
            # by the algebra of leads itself: it follows from what is in hand, and is not in hand
            free += LEADS[lead] in LeadSet.of(in_hand).follows if in_hand else False
            in_hand.append(lead)
        followed.append(free)
        limb.append(sum(lead < 6 for lead in row))
    row = entry(choice_frame(bootstrap, mga), "followed limb share")
    np.testing.assert_allclose(row["value"], sum(followed) / sum(limb), rtol=1e-12)
    assert 0.1 < row["value"] < 0.9
    replicates = [np.dot(draw, followed) / np.dot(draw, limb) for draw in draws]
    np.testing.assert_allclose((row["lo"], row["hi"]), np.percentile(replicates, [2.5, 97.5]), rtol=0, atol=1e-12)


def test_without_limb_leads_there_is_no_share(records: Records, bootstrap: PatientBootstrap) -> None:
    chest = Allocation(records, "chest", "", np.tile([6, 8, 11], (len(records), 1)))
    row = entry(choice_frame(bootstrap, chest), "followed limb share")
    assert np.isnan(row[["value", "lo", "hi"]].to_numpy(dtype=float)).all()
    assert row["undefined"] == REPLICATES


def test_modal_sets(mga: Allocation) -> None:
    frame = modal_sets(mga, top=7)
    assert list(frame.columns) == ["role", "policy", "trained_on", "k", "rank", "leads", "share"]
    counts = Counter(str(LeadSet.of(row)) for row in mga.order.tolist())
    expected = sorted(counts.items(), key=lambda item: (-item[1], LeadSet.parse(item[0]).bits))[:7]
    assert frame["leads"].tolist() == [leads for leads, _ in expected]
    np.testing.assert_allclose(frame["share"], [count / len(mga.order) for _, count in expected])
    assert frame["rank"].tolist() == list(range(1, 8))
    assert set(frame["trained_on"]) == {"controlled"}
    np.testing.assert_allclose(modal_sets(mga, top=10_000)["share"].sum(), 1)
