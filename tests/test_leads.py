from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.errors import LeadwiseError
from leadwise.leads import (
    ALL_LEADS,
    CLINICAL_SETS,
    ELECTRODES,
    LEADS,
    LIMB_FROM_I_AND_II,
    LeadSet,
    bits_masks,
    lead_index,
    lead_names,
    mask_bits,
    order_masks,
    subsets,
)

lead_sets = st.integers(0, 4095).map(LeadSet)


@given(lead_sets)
def test_printing_and_parsing_are_inverse(leads: LeadSet) -> None:
    assert LeadSet.parse(str(leads)) == leads
    assert LeadSet.parse(", ".join(reversed(leads.names)).lower()) == leads
    assert LeadSet.from_mask(leads.mask) == leads == LeadSet.of(leads.indices)
    assert eval(repr(leads).replace("LeadSet(", "LeadSet.parse(")) == leads


@given(lead_sets)
def test_names_are_in_canonical_order(leads: LeadSet) -> None:
    assert list(leads.names) == sorted(leads.names, key=LEADS.index)
    assert len(leads) == len(leads.names) == leads.mask.sum()


@given(lead_sets, lead_sets)
def test_is_a_set(a: LeadSet, b: LeadSet) -> None:
    for ours, theirs in ((a | b, set(a) | set(b)), (a & b, set(a) & set(b)), (a - b, set(a) - set(b))):
        assert set(ours) == theirs
    assert all((lead in a) == (lead in set(a)) for lead in LEADS)
    assert (hash(a) == hash(b)) or a != b


@given(lead_sets)
def test_follows_is_a_closure_and_agrees_with_linear_algebra(leads: LeadSet) -> None:
    assert leads.follows & leads == leads
    assert leads.follows.follows == leads.follows
    # independently: a lead follows when its row adds nothing to the rank of the members' rows
    rows = np.zeros((12, 8))
    rows[:6, :2] = LIMB_FROM_I_AND_II
    rows[6:, 2:] = np.eye(6)
    members = rows[list(leads.indices)].reshape(-1, 8)
    rank = np.linalg.matrix_rank(members) if len(members) else 0
    expected = [i for i in range(12) if np.linalg.matrix_rank(np.vstack([members, rows[i]])) == rank]
    assert leads.follows == LeadSet.of(expected)


@given(lead_sets, st.integers(0, 2**32 - 1))
def test_limb_weights_reconstruct_the_signal(leads: LeadSet, seed: int) -> None:
    one, two, *chest = np.random.default_rng(seed).normal(size=8)
    signal = np.concatenate([LIMB_FROM_I_AND_II @ [one, two], chest])
    for lead in leads.follows:
        weights = leads.limb_weights(lead)
        assert not weights[~leads.mask].any()
        assert weights @ signal == pytest.approx(signal[LEADS.index(lead)])
    for lead in ALL_LEADS - leads.follows:
        with pytest.raises(LeadwiseError, match="does not follow"):
            leads.limb_weights(lead)


@given(lead_sets)
def test_electrodes_give_at_least_their_leads(leads: LeadSet) -> None:
    assert leads.free & leads == leads
    assert leads.free.electrodes == leads.electrodes
    # a lead that follows from others never needs another electrode
    assert leads.follows & leads.free == leads.follows


def test_electrodes_by_hand() -> None:
    expected = {"I": "RA LA", "II": "RA LL", "III": "LA LL", "aVL": "RA LA LL", "V3": "RA LA LL V3", "I II": "RA LA LL"}
    assert {leads: " ".join(LeadSet.parse(leads).electrodes) for leads in expected} == expected
    assert ALL_LEADS.electrodes == ELECTRODES
    assert str(LeadSet.parse("I").free) == "I"
    assert str(LeadSet.parse("V6").free) == "I II III aVR aVL aVF V6"


def test_limb_algebra_is_einthoven_and_goldberger() -> None:
    # independently: electrode potentials
    right, left, foot = np.random.default_rng(0).normal(size=(3, 50))
    one, two, three = left - right, foot - right, foot - left
    augmented = right - (left + foot) / 2, left - (right + foot) / 2, foot - (right + left) / 2
    np.testing.assert_allclose(LIMB_FROM_I_AND_II @ np.stack([one, two]), [one, two, three, *augmented])


def test_clinical_sets_have_their_sizes() -> None:
    assert {name: len(leads) for name, leads in CLINICAL_SETS.items()} == {
        f"{size}-lead": size for size in (12, 6, 4, 3, 2)
    }
    assert LeadSet.parse("4-lead") == LeadSet.parse("I II III V2")


@pytest.mark.parametrize("k", range(1, 13))
def test_subsets_are_all_and_in_lexicographic_order(k: int) -> None:
    masks = subsets(k)
    assert masks.shape == (comb(12, k), 12)
    assert [tuple(np.flatnonzero(row)) for row in masks] == list(combinations(range(12), k))
    assert not masks.flags.writeable


@pytest.mark.parametrize("k", [0, 13, -1])
def test_impossible_budgets(k: int) -> None:
    with pytest.raises(LeadwiseError, match="between 1 and 12"):
        subsets(k)


@pytest.mark.parametrize("text", ["V7", "I II foo", "aVR;V1", "7-lead"])
def test_unknown_leads_are_named(text: str) -> None:
    with pytest.raises(LeadwiseError, match="is not a lead; the twelve leads are I II III"):
        LeadSet.parse(text)


@pytest.mark.parametrize("bits", [-1, 4096])
def test_masks_have_twelve_bits(bits: int) -> None:
    with pytest.raises(LeadwiseError, match="12-bit"):
        LeadSet(bits)


def test_wrong_masks_and_indices() -> None:
    with pytest.raises(LeadwiseError, match="this one has 11"):
        LeadSet.from_mask([True] * 11)
    with pytest.raises(LeadwiseError, match="no lead 12"):
        LeadSet.of([12])
    with pytest.raises(LeadwiseError, match=r"read 'III' with LeadSet\.parse"):
        LeadSet.of("III")
    with pytest.raises(LeadwiseError, match=r"read a mask with LeadSet\.from_mask"):
        LeadSet.of([True, False])
    with pytest.raises(TypeError):
        LeadSet.of([1.7])  # type: ignore[list-item]
    assert lead_index(" avf ") == 5
    assert 3 in LeadSet.parse("aVR")


def test_masks_bits_orders_and_names_say_the_same() -> None:
    bits = np.arange(4096)
    sets = [LeadSet(each) for each in bits.tolist()]
    masks = np.array([[lead in leads for lead in LEADS] for leads in sets])
    np.testing.assert_array_equal(bits_masks(bits), masks)
    np.testing.assert_array_equal(mask_bits(masks), bits)
    np.testing.assert_array_equal(mask_bits(masks.reshape(8, 512, 12)), bits.reshape(8, 512))
    assert lead_names(bits[::-1]) == [str(leads) for leads in reversed(sets)]
    assert lead_names(bits[:0]) == []


@given(st.lists(st.permutations(range(12)), min_size=1), st.integers(0, 12))
def test_an_order_is_a_mask_whatever_its_order(rows: list[list[int]], k: int) -> None:
    order = np.array(rows)[:, :k]
    assert [LeadSet.from_mask(mask) for mask in order_masks(order)] == [LeadSet.of(row) for row in order.tolist()]
