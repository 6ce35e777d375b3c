from pathlib import Path

import numpy as np
import pytest

from analysis.arms import read, some_allocation
from analysis.coverage import Reader, records_of, varied_records
from leadwise.analysis.contrasts import estimate_contrasts
from leadwise.analysis.readings import Readings, readings_frame
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LeadSet
from leadwise.policies.random_subset import RandomSubset
from leadwise.policies.rollout import allocate_budgets
from leadwise.references import References


class Counting(Reader):
    """How many recordings it has read."""

    count = 0

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        self.count += len(masks)
        return super().probabilities(signals, masks)


class Following(RandomSubset):
    """Random leads, for all that its state evaluator says."""

    def __init__(self, state_evaluator: Reader) -> None:
        super().__init__()
        self.state_evaluator = state_evaluator  # type: ignore[assignment]


def test_what_a_rollout_reads_is_read_once_and_listed_only_where_a_result_uses_it(
    records: Records, references: dict[str, References], tmp_path: Path
) -> None:
    counting = Counting("first")
    readings = Readings(records, [counting], memory=tmp_path)
    policy = Following(counting)
    (longest,) = allocate_budgets(policy, records, [3], readings.scorers)
    on_the_way = counting.count
    assert on_the_way == 2 * len(records)  # one lead, and two
    (shorter,) = allocate_budgets(policy, records, [2], readings.scorers)
    assert counting.count == on_the_way
    readings.probabilities("first", records, [shorter.masks])
    assert counting.count == on_the_way
    (used,) = readings.used()
    assert used[0] == "first"
    assert len(used[1]) == len(records)  # not those with one lead
    estimate_contrasts(readings, [longest], references)
    table = readings_frame(readings)
    assert not table.duplicated(["evaluator", "id", "leads"]).any()
    assert set(table["leads"].map(lambda leads: len(LeadSet.parse(leads)))) == {2, 3}
    of_two = table[table["leads"].map(lambda leads: len(LeadSet.parse(leads))) == 2].sort_values("id")
    np.testing.assert_array_equal(of_two["id"], np.sort(records.ids))
    expected = read("first", records, shorter.masks)[np.argsort(records.ids)]
    np.testing.assert_array_equal(of_two.filter(like="p_").to_numpy(), expected)
    # after a kill, nothing is read again
    again = Counting("first")
    resumed = Readings(records, [again], memory=tmp_path)
    (same,) = allocate_budgets(Following(again), records, [3], resumed.scorers)
    estimate_contrasts(resumed, [same], references)
    assert again.count == 0
    assert len(next(resumed.used())[1]) == len(table) - len(records)  # the allocation of two leads was not asked for


def test_what_there_is_no_evaluator_for(readings: Readings, records: Records) -> None:
    with pytest.raises(InputError, match="no evaluator 'strong' here; there are first, second, third"):
        readings.probabilities("strong", records, [some_allocation(records, "mga", 2, 0).masks])
    impostor = Following(Reader("first"))
    readings.probabilities("first", records, [some_allocation(records, "mga", 2, 0).masks])
    with pytest.raises(InputError, match="Two evaluators are called 'first'; give each a name of its own"):
        allocate_budgets(impostor, records, [2], readings.scorers)


def test_records_of_another_role_are_not_read(readings: Readings, references: dict[str, References]) -> None:
    some = estimate_contrasts(
        readings, [some_allocation(readings.records.select(slice(0, 40)), "mga", 2, 0)], references
    )
    assert len(some) == 9
    for others in (varied_records(patients=60, seed=5), varied_records(patients=60, seed=5).select(slice(0, 40))):
        with pytest.raises(InputError, match=r"^Record 1 of .* is not among those of the whole cohort\.$"):
            estimate_contrasts(readings, [some_allocation(others, "mga", 2, 0)], references)
    doubled = records_of(np.repeat(readings.records.patients, 2), np.repeat(readings.records.labels, 2, axis=0))
    with pytest.raises(InputError, match=rf"^Record {len(readings.records) + 1} of .* is not among those of"):
        estimate_contrasts(
            readings, [some_allocation(doubled.select(doubled.ids > len(readings.records)), "mga", 2, 0)], references
        )
