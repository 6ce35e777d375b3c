"""The control that chooses one set for everyone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.coverage import Reader, records_of, varied_records
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, PlanError
from leadwise.evaluators.scoring import score
from leadwise.evaluators.statistics import lead_statistics
from leadwise.policies.cohort_state import CohortState
from leadwise.policies.contract import Material
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.mga import MGA
from leadwise.policies.observation import Observation
from leadwise.policies.random_subset import RandomSubset
from leadwise.policies.rollout import allocate
from leadwise.policies.state_network import StateNetwork


@pytest.fixture(scope="module")
def train() -> Records:
    return varied_records(60, seed=1)


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(30, seed=2)


def small() -> dict[str, Any]:
    return {"states": 800, "budgets": (2, 3, 4), "network": StateNetwork(hidden=32, epochs=4)}


@pytest.fixture(scope="module", params=[MGA, ECGOnDemand], ids=lambda kind: kind.kind)
def policy(request: pytest.FixtureRequest, train: Records) -> Any:
    return request.param(Reader("first"), ["V3"], **small()).fit(train, train)


def test_one_set_for_everyone(policy: Any, train: Records, records: Records) -> None:
    control = CohortState(policy).fit(train)
    for k in range(1, 13):
        assert len({tuple(row) for row in allocate(control, records, k).order.tolist()}) == 1
    assert len({str(leads) for leads in allocate(policy, records, 4).lead_sets}) > 1
    allocation = allocate(control, records, 3)
    assert (allocation.policy, allocation.trained_on) == ("cohort-state", "first")
    assert (allocation.order[:, 0] == 8).all()


def test_it_chooses_as_the_policy_would_for_the_average_record(policy: Any, train: Records, records: Records) -> None:
    control = CohortState(policy).fit(train)
    k, order = 5, [8]
    while len(order) < k:
        mask = np.isin(np.arange(12), order)
        average = Observation(
            ids=np.array([1]),
            statistics=(lead_statistics(train).mean(axis=0) * mask[:, None])[None],
            mask=mask[None],
            available=np.ones((1, 12), dtype=bool),
            probabilities=score(Reader("first"), train, np.tile(mask, (len(train), 1))).mean(axis=0)[None],
            remaining=k - len(order),
            waveforms=lambda: np.zeros((1, 12, 0)),
        )
        order.append(int(policy.choose(average)[0]))
    assert allocate(control, records, k).order[0].tolist() == order


def test_records_that_lack_leads_get_a_set_by_what_they_have(policy: Any, train: Records, records: Records) -> None:
    control = CohortState(policy).fit(train)
    usual = allocate(control, records, 3).order[0]
    missing = np.zeros((len(records), 12), dtype=int)
    missing[:10, usual[1]] = records.length
    poor = records_of(records.patients, records.labels, records.signals[:], missing)
    order = allocate(control, poor, 3).order
    assert (order[10:] == usual).all()
    assert (order[:10] == order[0]).all()
    assert usual[1] not in order[0]


@pytest.mark.parametrize(("kind", "more"), [(MGA, {}), (ECGOnDemand, {"redundancy": 0.3})])
def test_what_stands_where_a_training_record_lacks_a_lead_does_not_matter(
    kind: Any, more: dict[str, float], train: Records, records: Records, tmp_path: Path
) -> None:
    """aVR is missing everywhere, V3 here and there; the control still has an average for all that it may meet."""
    rng = np.random.default_rng(0)
    missing = 3 * (rng.random((len(train), 12)) < 0.1)
    missing[:, 3] = 3
    orders, files = [], []
    for content in (0, rng.integers(-9000, 9000, train.signals.shape)):
        signals = np.where(missing[..., None] > 0, content, train.signals[:]).astype(np.int16)
        gapped = records_of(train.patients, train.labels, signals, missing)
        policy = kind(Reader("first"), ["V3"], **small(), **more).fit(gapped, gapped)
        control = CohortState(policy).fit(gapped)
        orders.append([allocate(each, records, 4).order.tolist() for each in (policy, control)])
        control.save(tmp_path / f"{len(files)}.safetensors")
        files.append((tmp_path / f"{len(files)}.safetensors").read_bytes())
        assert np.isfinite(control.statistics_).all()
        assert np.isfinite(list(control.averages_.values())).all()
    assert orders[0] == orders[1]
    assert files[0] == files[1]


def test_an_average_under_leads_that_no_training_record_has_together(policy: Any, train: Records) -> None:
    missing = np.zeros((len(train), 12), dtype=int)
    missing[::2, 5], missing[1::2, 6], missing[:, 7] = 3, 3, 3
    gapped = records_of(train.patients, train.labels, train.signals[:], missing)
    control = CohortState(policy).fit(gapped)
    each = np.zeros((len(train), 12), dtype=bool)
    each[1::2, 5], each[::2, 6] = True, True
    expected = score(Reader("first"), gapped, each).mean(axis=0)
    np.testing.assert_allclose(control._probabilities(1 << 5 | 1 << 6), expected, rtol=1e-12)
    with pytest.raises(InputError, match=r"^No record that cohort-state was fitted on has V2; fit it on others\.$"):
        control._probabilities(1 << 7)


def test_a_plan_names_the_policy_that_it_is_of(policy: Any, train: Records, records: Records) -> None:
    material = Material("my-control", train, train, [2], ["V3"], policies={"mine": policy})
    control = CohortState.make(CohortState.Settings(of="mine"), material)
    assert (control.name, control.policy) == ("my-control", policy)
    expected = allocate(CohortState(policy).fit(train), records, 4).order
    np.testing.assert_array_equal(allocate(control, records, 4).order, expected)
    assert CohortState.Settings(of="mine").policies == ["mine"]


def test_a_policy_that_sees_no_probabilities_has_no_average_state(train: Records) -> None:
    material = Material("mine", train, train, [2], ["V3"], policies={"random": RandomSubset()})
    with pytest.raises(PlanError, match=r"^'policies\.mine\.of' is random, which sees no probabilities, so it has"):
        CohortState.make(CohortState.Settings(of="random"), material)


def test_no_average_of_nobody(policy: Any, train: Records) -> None:
    with pytest.raises(InputError, match="There are no records to score"):
        CohortState(policy).fit(train.select(slice(0, 0)))
