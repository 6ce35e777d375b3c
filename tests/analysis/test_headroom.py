"""What oracles would gain, against losses that are added up by hand."""

import numpy as np
import pandas as pd
import pytest

from analysis.coverage import Reader, records_of, varied_records
from leadwise.analysis.headroom import headroom_frame
from leadwise.cohort.cohort import Records
from leadwise.errors import SealedRole
from leadwise.evaluators.scoring import score
from leadwise.leads import LEADS
from leadwise.metrics import record_nll
from leadwise.policies.oracle import exhaustive_oracle, greedy_oracle
from leadwise.references import search_references


@pytest.fixture(scope="module")
def records() -> Records:
    return varied_records(12, seed=3)


@pytest.fixture(scope="module")
def poor() -> Records:
    """Records that lack leads: one has a single one, one has two, the others all or nearly all."""
    whole, rng = varied_records(12, seed=4), np.random.default_rng(1)
    lacking = rng.random((len(whole), 12)) < 0.2
    lacking[0], lacking[1] = np.arange(12) != 9, ~np.isin(np.arange(12), [2, 7])
    lacking[2:, [1, 4, 6, 8, 10]] = False
    return records_of(whole.patients, whole.labels, whole.signals[:], np.where(lacking, whole.length, 0))


def losses(records: Records, masks: np.ndarray) -> np.ndarray:
    return record_nll(records.labels, score(Reader("first"), records, masks))


def value(frame: pd.DataFrame, statistic: str, k: int) -> float:
    found = frame[(frame["statistic"] == statistic) & (frame["k"] == k)]
    assert len(found) == 1
    return float(found["value"].iloc[0])


@pytest.mark.parametrize("which", ["records", "poor"])
def test_headroom(which: str, request: pytest.FixtureRequest) -> None:
    records = request.getfixturevalue(which)
    budgets = [1, 2, 3, 5] if which == "records" else [3, 4]  # no lead is in all of the poor records
    references = search_references(Reader("first"), records, budgets=budgets)
    frame = headroom_frame(Reader("first"), records, references, budgets)
    assert list(frame.columns) == ["role", "evaluator", "statistic", "k", "label", "value", "deployable"]
    assert set(frame["role"]) == {"audit"}
    assert set(frame["evaluator"]) == {"first"}
    assert set(frame.loc[frame["deployable"], "statistic"]) == {"fixed"}
    for k in budgets:
        kept = records.select(records.available.sum(axis=1) >= k)
        best = references.best("nll", k)
        fixed = losses(kept, np.tile(best.mask, (len(kept), 1))).mean()
        assert value(frame, "fixed", k) == pytest.approx(fixed, abs=1e-12)
        assert frame.loc[(frame["statistic"] == "fixed") & (frame["k"] == k), "label"].tolist() == [str(best)]
        greedy = losses(kept, greedy_oracle(Reader("first"), kept, k).masks).mean()
        assert value(frame, "oracle", k) == pytest.approx(greedy, abs=1e-12)
        assert greedy < fixed
        if k <= 4:
            exhaustive = losses(kept, exhaustive_oracle(Reader("first"), kept, k).masks).mean()
            assert value(frame, "exhaustive oracle", k) == pytest.approx(exhaustive, abs=1e-12)
            assert exhaustive <= greedy
    assert frame.loc[frame["statistic"] == "exhaustive oracle", "k"].tolist() == [k for k in budgets if k <= 4]
    first = frame[frame["statistic"] == "first lead"]
    assert first["label"].tolist() == list(LEADS)
    order = greedy_oracle(Reader("first"), records, 1).order[:, 0]
    np.testing.assert_allclose(first["value"], np.bincount(order, minlength=12) / len(order))
    assert first["value"].sum() == pytest.approx(1)


def test_a_sealed_role_is_not_looked_at(records: Records) -> None:
    sealed = records_of(records.patients, records.labels, records.signals[:], folds=np.full(len(records), 8))
    references = search_references(Reader("first"), records, budgets=[2])
    with pytest.raises(SealedRole):
        headroom_frame(Reader("first"), sealed, references, [2])
