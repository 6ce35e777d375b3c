import numpy as np
import pandas as pd
import pytest

from analysis import coverage


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """40 cohorts of 100 patients; each share below has a standard error of about three percent."""
    found = coverage.summary(list(coverage.simulate(40, patients=100, replicates=200, seed=3)))
    return found.set_index(["interval", "estimand"])


@pytest.mark.parametrize("estimand", ["D of NLL", "D of Brier", "I of NLL", "I of Brier"])
def test_pointwise_intervals_of_patients_hold_and_those_of_records_do_not(table: pd.DataFrame, estimand: str) -> None:
    held = table.loc[("pointwise", estimand)]
    assert 0.88 < held["patients"] < 0.985
    assert held["records"] < 0.92
    assert held["records"] < held["patients"] - 0.04


def test_ece_is_nearly_covered(table: pd.DataFrame) -> None:
    assert 0.80 < table.loc[("pointwise", "D of ECE"), "patients"] < 0.985


@pytest.mark.parametrize("family", list(coverage.FAMILIES))
def test_simultaneous_intervals_hold_all_cells_at_once(table: pd.DataFrame, family: str) -> None:
    together, apart = (
        table.loc[("simultaneous", f"I of {family}")],
        table.loc[("all pointwise at once", f"I of {family}")],
    )
    assert 0.88 < together["patients"] <= 1
    assert apart["patients"] < 0.85  # what pointwise intervals do not promise
    assert together["records"] < together["patients"] - 0.1


def test_the_truth_is_what_a_large_cohort_shows() -> None:
    """One cohort of 10,000 patients; its own intervals say how far off chance may take it."""
    truth = coverage.true_contrasts()
    records, u = coverage.draw(10_000, np.random.default_rng(0))
    clusters = records.patients % 500  # patients in groups at random: an interval from 500 clusters is enough
    grouped = coverage.records_of(clusters, records.labels, records.signals[:])
    for each in coverage.contrasts_on(grouped, u, replicates=60):
        true = truth[(each.allocation.policy, each.allocation.k, each.metric), each.evaluator]
        assert abs(each.delta.value - true) < 4 * each.delta.replicates.std()
        assert each.delta.replicates.std() < 0.006


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    coverage.main(["--simulations", "2", "--patients", "20", "--replicates", "20"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| interval | estimand | cells |")
    assert len([line for line in lines if line.startswith("|")]) == 2 + 6 + 4
    assert lines[-1].startswith("2 simulations of 20 patients, 20 replicates each, seed 1")
