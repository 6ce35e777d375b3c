"""What the tests of contrasts, interactions and pairs are about."""

import pytest

from analysis.arms import READERS, REPLICATES, some_allocation, some_references
from analysis.coverage import varied_records
from leadwise.analysis.bootstrap import SUM_METRICS, PatientBootstrap
from leadwise.analysis.contrasts import Contrast, estimate_contrasts
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.policies.allocation import Allocation
from leadwise.references import References


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
        reference: estimate_contrasts(readings, allocations, references.values(), reference, SUM_METRICS)
        for reference in ("own", "first")
    }
