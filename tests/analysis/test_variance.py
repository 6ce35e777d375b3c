"""Variance components against a known mixed model, against the analysis of variance, and how often intervals hold."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from scipy import stats

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.contrasts import Contrast
from leadwise.analysis.interactions import Interaction, estimate_interactions
from leadwise.analysis.variance import Cell, Replications, cells_of, conditional_row, spread
from leadwise.errors import InputError

PATIENTS, SEEDS = 1900, 5
PATIENT, SEED_AND_PATIENT = 0.12, 0.08
"""Deviations of the mixed model: of patients, and of each seed on each patient."""


@cache
def shares(patients: int, replicates: int) -> np.ndarray:
    """Multiplicities over the number of patients."""
    return np.random.default_rng(1).multinomial(patients, [1 / patients] * patients, size=replicates) / patients


def mixed(rng: np.random.Generator, seed_sd: float, seeds: int = SEEDS, patients: int = PATIENTS) -> np.ndarray:
    """(patients, seeds): y = seed + patient + seed × patient, of mean zero."""
    shared = rng.normal(0, seed_sd, seeds) + rng.normal(0, PATIENT, (patients, 1))
    return shared + rng.normal(0, SEED_AND_PATIENT, (patients, seeds))


def estimates_of(y: np.ndarray, replicates: int = 1000) -> list[Estimate]:
    """The mean of each column, with the replicates of one draw of patients."""
    drawn = shares(len(y), replicates) @ y
    return [Estimate(float(value), column) for value, column in zip(y.mean(axis=0), drawn.T, strict=True)]


def exact(y: np.ndarray) -> list[Estimate]:
    """The mean of each column, with replicates whose covariance is exactly that of all possible draws of patients."""
    centred = (y - y.mean(axis=0)) / np.sqrt(len(y))
    drawn = np.vstack([centred, -centred]) * np.sqrt((2 * len(y) - 1) / (2 * len(y)))
    covariance = np.cov(drawn.T)
    np.testing.assert_allclose(covariance, np.cov(y.T, ddof=0) / len(y), atol=1e-15)
    return [Estimate(float(value), value + column) for value, column in zip(y.mean(axis=0), drawn.T, strict=True)]


def by_anova(y: np.ndarray) -> tuple[float, float, float]:
    """Variance of the grand mean, the part of the seeds, and degrees of freedom, by expected mean squares.

    E MS(seeds) = P σ_s² + σ_sp², E MS(patients) = S σ_p² + σ_sp², E MS(rest) = σ_sp².
    """
    patients, seeds = y.shape
    rows, columns, grand = y.mean(axis=1, keepdims=True), y.mean(axis=0), y.mean()
    of_seeds = patients * ((columns - grand) ** 2).sum() / (seeds - 1)
    of_patients = seeds * ((rows - grand) ** 2).sum() / (patients - 1)
    rest = ((y - rows - columns + grand) ** 2).sum() / ((patients - 1) * (seeds - 1))
    common = max((of_patients - rest) / seeds, 0)
    variance = of_seeds / (patients * seeds) + common / patients
    # as Hillis has it, in mean squares
    df = (of_seeds + max(of_patients - rest, 0)) ** 2 / (of_seeds**2 / (seeds - 1))
    return variance, max((of_seeds - rest) / patients, 0), df


@pytest.mark.parametrize("seed_sd", [0.0, 0.004, 0.1])
@pytest.mark.parametrize(("seeds", "patients"), [(2, 7), (3, 40), (5, 300)])
def test_balanced_means_give_the_analysis_of_variance(seed_sd: float, seeds: int, patients: int) -> None:
    for number in range(5):
        y = mixed(np.random.default_rng(number), seed_sd, seeds, patients)
        found = spread(exact(y), patients)
        variance, of_source, df = by_anova(y)
        assert found.value == pytest.approx(y.mean(), abs=1e-15)
        np.testing.assert_allclose([found.sd**2, found.sd_source**2, found.df], [variance, of_source, df], rtol=1e-9)
        margin = stats.t(df).ppf(0.975) * np.sqrt(variance)
        np.testing.assert_allclose(found.interval, (y.mean() - margin, y.mean() + margin), rtol=1e-9)


def test_replicates_of_the_bootstrap_come_close_to_it() -> None:
    y = mixed(np.random.default_rng(4), 0.006)
    found, (variance, of_source, df) = spread(estimates_of(y, 10_000), PATIENTS), by_anova(y)
    np.testing.assert_allclose([found.sd, found.sd_source, found.df], [variance**0.5, of_source**0.5, df], rtol=0.05)


def test_components_of_a_known_model_are_recovered() -> None:
    """Unbiased but for what is cut off at zero: of the mean's variance, and of the seeds'."""
    rng, seed_sd, patients = np.random.default_rng(6), 0.02, 60
    spreads = [spread(exact(mixed(rng, seed_sd, SEEDS, patients)), patients) for _ in range(3000)]
    of_mean = seed_sd**2 / SEEDS + PATIENT**2 / patients + SEED_AND_PATIENT**2 / (patients * SEEDS)
    for values, truth in (([s.sd**2 for s in spreads], of_mean), ([s.sd_source**2 for s in spreads], seed_sd**2)):
        assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(len(values)))
        assert np.std(values) / np.sqrt(len(values)) < 0.02 * truth  # the correction P / (P − 1) is 0.017 of it
    errors = [s.value for s in spreads]
    assert np.var(errors) == pytest.approx(of_mean, rel=4 * np.sqrt(2 / len(errors)))


@cache
def coverage(seed_sd: float, simulations: int = 500, replicates: int = 400) -> tuple[float, float]:
    """How often the interval over seeds and patients has the truth, and how often that over patients alone."""
    rng = np.random.default_rng(int(1e6 * seed_sd))
    both, patients_alone = 0, 0
    for _ in range(simulations):
        estimates = estimates_of(mixed(rng, seed_sd), replicates)
        low, high = spread(estimates, PATIENTS).interval
        both += low <= 0 <= high
        mean = Estimate(0.0, np.mean([each.replicates for each in estimates], axis=0))
        patients_alone += mean.interval[0] <= 0 <= mean.interval[1]
    return both / simulations, patients_alone / simulations


@pytest.mark.parametrize("seed_sd", [0.002, 0.004, 0.008])
def test_intervals_over_seeds_and_patients_hold(seed_sd: float) -> None:
    held, _ = coverage(seed_sd)
    assert held == pytest.approx(0.95, abs=3 * np.sqrt(0.05 * 0.95 / 500))


def test_intervals_over_patients_alone_do_not() -> None:
    assert coverage(0.008)[1] < 0.85
    assert coverage(0.002)[1] > 0.90


def test_replications_that_agree_leave_the_patients() -> None:
    """As where policies of two seeds choose alike: a normal interval of the patients' own deviation."""
    (one,) = estimates_of(mixed(np.random.default_rng(2), 0, seeds=1))
    found = spread([one, one, one], PATIENTS)
    assert (found.value, found.sd_source, found.df) == (one.value, 0, np.inf)
    assert found.sd == pytest.approx(np.sqrt(PATIENTS / (PATIENTS - 1)) * one.sd)
    np.testing.assert_allclose(found.interval, (one.value - 1.959964 * found.sd, one.value + 1.959964 * found.sd))


def test_a_negative_covariance_counts_as_none() -> None:
    replicates = np.random.default_rng(0).normal(size=1000)
    pair = [Estimate(0.1, replicates), Estimate(-0.2, -replicates)]
    found = spread(pair, 50)
    assert found.sd == pytest.approx(np.sqrt(0.045 / 2))
    assert found.df == pytest.approx(1)


def test_draws_in_which_a_replication_is_undefined_are_left_out() -> None:
    estimates = estimates_of(mixed(np.random.default_rng(8), 0.004, 3, 30), 200)
    holed = [Estimate(each.value, each.replicates.copy()) for each in estimates]
    holed[1].replicates[::3] = np.nan
    keep = ~np.isnan(holed[1].replicates)
    assert spread(holed, 30) == spread([Estimate(each.value, each.replicates[keep]) for each in estimates], 30)


def test_one_replication_tells_nothing() -> None:
    with pytest.raises(InputError, match="needs two or more; there are 1"):
        spread(estimates_of(np.ones((20, 1))), 20)


# the tables -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def interactions(found: dict[str, list[Contrast]]) -> list[Interaction]:
    return estimate_interactions([each for each in found["own"] if each.allocation.policy == "mga"], "second", "first")


def test_an_interaction_has_three_cells(interactions: list[Interaction]) -> None:
    cells = cells_of(interactions, "p", "e", "b")
    assert len(cells) == 3 * len(interactions)
    for each in interactions:
        k, metric = each.key.k, each.key.metric
        role = each.key.role
        difference = cells[Cell(role, "interaction", "p", "e", "b", k, metric)]
        one, other = (cells[Cell(role, "contrast", "p", name, "", k, metric)] for name in "eb")
        assert difference is each.estimate
        assert (one - other).value == difference.value
        np.testing.assert_array_equal((one - other).replicates, difference.replicates)


def made(standing: Mapping[str, str]) -> dict[Cell, Estimate]:
    """Estimates that tell whose they are: I of two policies between e and b, and their contrasts."""
    cells = {}
    for policy in ("p", "q"):
        who = {name: standing.get(name, name) for name in (policy, "e", "b")}
        for k in (2, 4):
            if k == 4 and who["e"] == "e2":  # searched at fewer budgets
                continue
            for quantity, names in (("interaction", "eb"), ("contrast", "e"), ("contrast", "b")):
                seed = [*"".join([who[policy], *(who[name] for name in names)]).encode(), k]
                replicates = np.random.default_rng(seed).normal(size=50)
                evaluator, baseline = (*names, "")[:2]
                cells[Cell("audit", quantity, policy, evaluator, baseline, k, "nll")] = Estimate(
                    replicates.mean(), replicates
                )
    return cells


SOURCES = {
    "networks": {"e": ["e1", "e2"]},
    "both": {"p": ["p1", "p2", "p3"], "b": ["b1", "b", "b3"]},
    "nobody": {"x": ["x1", "x2"]},
}


def test_sources_give_rows_for_what_they_vary() -> None:
    every = Replications.make(made, SOURCES, patients=30)
    rows = list(every.variance)
    own = [row for row in rows if row["interval_kind"] == "conditional"]
    assert [tuple(row[name] for name in Cell._fields) for row in own] == list(made({}))
    assert {(row["source"], row["replications"], row["replicates"]) for row in own} == {("", 1, 50)}
    for row in own:
        estimate = made({})[Cell(*(row[name] for name in Cell._fields))]
        assert (row["value"], row["lo"], row["hi"]) == (estimate.value, *estimate.interval)
        assert row["sd"] == estimate.sd
    with_seeds = [row for row in rows if row["interval_kind"] == "with_seeds"]
    assert len(own) + len(with_seeds) == len(rows)
    about: dict[str, set[tuple[object, ...]]] = {source: set() for source in SOURCES}
    for row in with_seeds:
        about[str(row["source"])].add(tuple(row[name] for name in ("quantity", "policy", "evaluator", "k")))
    assert about["nobody"] == set()
    # e2 has no references at k = 4, and a contrast under the baseline does not vary with networks
    assert about["networks"] == {(quantity, p, "e", 2) for quantity in ("interaction", "contrast") for p in "pq"}
    # all of p, and of q what the baseline has a part in
    of_all = {
        (what, p, name, k) for what, name in (("interaction", "e"), ("contrast", "b")) for p in "pq" for k in (2, 4)
    }
    assert about["both"] == of_all | {("contrast", "p", "e", 2), ("contrast", "p", "e", 4)}


def test_replications_are_taken_together_and_keep_the_names_of_the_plan() -> None:
    every = Replications.make(made, SOURCES, patients=30)
    rows = [row for row in every.replications if row["source"] == "both" and row["quantity"] == "interaction"]
    expected = [made({"p": f"p{j}", "b": b}) for j, b in ((1, "b1"), (2, "b"), (3, "b3"))]
    for row in rows:
        estimate = expected[int(row["replication"]) - 1][Cell(*(row[name] for name in Cell._fields))]
        assert (row["value"], row["lo"], row["hi"]) == (estimate.value, *estimate.interval)
    assert len(rows) == 3 * 4
    for row in every.variance:
        if row["interval_kind"] == "with_seeds":
            cell = Cell(*(row[name] for name in Cell._fields))
            several = every.sources[str(row["source"])][cell]
            result = spread(several, 30)
            assert (row["value"], row["sd"], row["sd_source"], row["df"]) == (
                result.value,
                result.sd,
                result.sd_source,
                result.df,
            )
            assert (row["lo"], row["hi"]) == result.interval
            assert row["replications"] == len(several)


def test_degrees_of_freedom_without_end_are_blank() -> None:
    every = Replications.make(lambda _: made({}), {"nothing": {"e": ["e1", "e2"]}}, patients=30)
    blank = [row["df"] for row in every.variance if row["interval_kind"] == "with_seeds"]
    assert len(blank) == 8
    assert np.isnan(blank).all()


def test_rows_of_other_kinds_may_stand_beside() -> None:
    (cell, estimate), *_ = made({}).items()
    row = conditional_row(cell, estimate, "with_selection", "references")
    assert (row["interval_kind"], row["source"]) == ("with_selection", "references")
    assert row.keys() == next(iter(Replications.make(made, SOURCES, 30).variance)).keys()
