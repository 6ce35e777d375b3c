import numpy as np
import pytest

from analysis.arms import PAIRED, REPLICATES, by_hand, read, some_allocation
from leadwise.analysis.paired import paired_frame
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation


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
    with pytest.raises(InputError, match="has no patient-cluster interval"):
        paired_frame(readings, [(allocations[0], allocations[2])], ["auprc"])
