import numpy as np
import pytest

from analysis.coverage import records_of
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LeadSet
from leadwise.policies.allocation import Allocation


@pytest.fixture
def records() -> Records:
    missing = np.zeros((3, 12), dtype=int)
    missing[1, 7] = 3  # record 2 lacks V2 altogether
    missing[2, 7] = 2  # record 3 has a sample of it
    return records_of(np.array([5, 6, 6]), np.ones((3, 1), dtype=bool), missing=missing)


def test_what_an_allocation_knows(records: Records) -> None:
    allocation = Allocation(records, "mga", "controlled", np.array([[3, 7], [11, 0], [7, 3]]))
    assert allocation.k == 2
    assert [str(leads) for leads in allocation.lead_sets] == ["aVR V2", "I V6", "aVR V2"]
    expected = [LeadSet.parse(text).mask.tolist() for text in ("aVR V2", "I V6", "aVR V2")]
    assert allocation.masks.tolist() == expected
    assert allocation.masks.dtype == bool


@pytest.mark.parametrize("k", [1, 12])
def test_every_budget_is_possible(k: int) -> None:
    records = records_of(np.arange(2), np.ones((2, 1), dtype=bool))
    order = np.tile(np.arange(12)[::-1][:k], (2, 1))
    assert (Allocation(records, "mga", "", order).masks.sum(axis=1) == k).all()


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ([[3, 0], [3, 1]], "Policy mga chose for 2 records, but there are 3."),
        ([[3, 0]] * 4, "Policy mga chose for 4 records, but there are 3."),
        ([[3, 12], [3, 1], [3, 2]], "Policy mga chose leads that do not exist; they are numbered 0 to 11."),
        ([[3, 0], [3, -1], [3, 2]], "Policy mga chose leads that do not exist; they are numbered 0 to 11."),
        ([[]] * 3, "Policy mga chose leads that do not exist; they are numbered 0 to 11."),
        ([[*range(12), 0]] * 3, "Policy mga chose leads that do not exist; they are numbered 0 to 11."),
        ([[3, 0], [3, 1], [4, 4]], "Policy mga chose a lead twice for record 3; 2 different ones were due."),
        ([[3, 7], [0, 7], [4, 7]], "Policy mga chose V2 for record 2, which lacks it."),
    ],
)
def test_what_is_refused(records: Records, order: list[list[int]], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        Allocation(records, "mga", "controlled", np.array(order, dtype=int))
    assert str(refusal.value) == sentence
