import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from analysis.arms import READERS, fixed_masks, read, some_allocation
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.contrasts import Contrast, contrasts_frame, estimate_contrasts
from leadwise.analysis.readings import Readings
from leadwise.analysis.transfer import estimate_areas, transfer_frame
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.policies.allocation import Allocation
from leadwise.references import References


@pytest.fixture(scope="module")
def areas(readings: Readings, allocations: list[Allocation], references: dict[str, References]) -> list[Contrast]:
    return [each for name in READERS for each in estimate_areas(readings, allocations, references, name)]


def test_auroc_is_compared_with_the_readers_set_for_nll(
    areas: list[Contrast], records: Records, references: dict[str, References]
) -> None:
    assert len(areas) == 3 * 4
    for each in areas:
        assert (each.reference_evaluator, each.reference_metric) == (each.evaluator, "nll")
        leads = references[each.evaluator].best("nll", each.allocation.k)
        arms = [each.allocation.masks, fixed_masks(records, leads)]
        adaptive, fixed = (roc_auc_score(records.labels, read(each.evaluator, records, masks)) for masks in arms)
        np.testing.assert_allclose([each.adaptive.value, each.fixed.value], [adaptive, fixed], rtol=0, atol=1e-12)
        low, high = each.delta.interval
        assert low <= high


def test_where_a_label_is_never_there_auroc_is_left_out(records: Records, references: dict[str, References]) -> None:
    without = records.select(~records.labels[:, 0])
    readings = Readings(without, READERS.values(), PatientBootstrap(without, 10))
    assert not estimate_areas(readings, [some_allocation(without, "mga", 2, 0)], references, "first")


def test_auroc_has_no_references_of_its_own(
    readings: Readings, allocations: list[Allocation], references: dict[str, References]
) -> None:
    with pytest.raises(InputError, match="References are matched to nll, brier, ece; 'auroc' is none of them"):
        estimate_contrasts(readings, allocations, references, metrics=["auroc"])


def test_the_matrix_holds_own_references_in_the_order_asked_for(
    found: dict[str, list[Contrast]], areas: list[Contrast]
) -> None:
    policies, evaluators = ["ccga", "mga"], ["third", "first"]
    others = [each for each in found["first"] if each.evaluator != "first"]
    everything = [*others, *found["own"], *areas]
    frame = transfer_frame(everything, policies, evaluators)
    assert list(dict.fromkeys(zip(frame["policy"], frame["evaluator"], strict=True))) == [
        (policy, evaluator) for policy in policies for evaluator in evaluators
    ]
    every = contrasts_frame([*found["own"], *areas])
    every = every[every["evaluator"].isin(evaluators)]
    key = ["policy", "evaluator", "k", "metric"]
    assert not frame.duplicated(key).any()
    columns = [*key, "adaptive", "fixed", "delta", "lo", "hi"]
    pd.testing.assert_frame_equal(
        frame[columns].sort_values(key, ignore_index=True), every[columns].sort_values(key, ignore_index=True)
    )
    assert transfer_frame(everything, [], evaluators).empty
