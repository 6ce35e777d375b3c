"""Verdicts on differences: each by a case of its own, and how often «equivalent» is said where the truth is known."""

import numpy as np
import pytest
from scipy.stats import norm

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.contrasts import Contrast
from leadwise.analysis.equivalence import detectable, equivalence_rows, verdict

MARGIN = 0.002
SPREAD = np.linspace(-1, 1, 2001)
"""Replicates about an estimate: the 90% interval is ±0.9, the 95% interval ±0.95."""


def difference(value: float, scale: float) -> Estimate:
    return Estimate(value, value + scale * SPREAD)


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [
        (0.0, 0.001, "equivalent"),
        (0.0, 0.0, "equivalent"),
        (-0.001, 0.0005, "equivalent"),  # below zero, and too small to matter
        (0.001, 0.0005, "equivalent"),  # above zero, and too small to matter
        (0.0002, 0.00199, "equivalent"),  # the 90% interval decides, not the 95% interval
        (-0.003, 0.002, "better"),
        (-0.0015, 0.001, "better"),  # below zero, and it may matter
        (-0.010, 0.001, "better"),
        (0.003, 0.002, "worse"),
        (0.0015, 0.001, "worse"),
        (0.010, 0.001, "worse"),
        (-0.001, 0.003, "not worse"),
        (-0.0019, 0.00201, "not worse"),  # of which the 90% interval lies below zero, and the 95% interval does not
        (0.001, 0.003, "undecided"),
        (0.0, 0.01, "undecided"),
        (np.nan, np.nan, "undecided"),
    ],
)
def test_each_verdict(value: float, scale: float, expected: str) -> None:
    assert verdict(difference(value, scale), MARGIN) == expected


def test_an_interval_that_touches_the_margin_shows_nothing() -> None:
    assert verdict(Estimate(0.0, np.full(20, MARGIN)), MARGIN) == "worse"
    assert verdict(Estimate(0.0, np.full(20, -MARGIN)), MARGIN) == "better"
    assert verdict(Estimate(0.0, np.repeat([-1.0, MARGIN], 10)), MARGIN) == "undecided"


def test_better_and_worse_mirror_each_other() -> None:
    mirror = {"better": "worse", "worse": "better", "equivalent": "equivalent"}
    for value, scale in np.random.default_rng(3).uniform((-0.01, 0), (0.01, 0.005), (200, 2)):
        one, other = (verdict(difference(sign * value, scale), MARGIN) for sign in (1, -1))
        assert mirror.get(one, other) == other
        assert {one, other} not in ({"not worse"}, {"equivalent", "undecided"})


def rate(truth: float, sd: float, simulations: int = 2000) -> float:
    """How often «equivalent» is said of the mean of 500 patients, with replicates of the package's own bootstrap."""
    rng, patients = np.random.default_rng(17), 500
    drawn = rng.multinomial(patients, [1 / patients] * patients, size=2000) / patients
    effects = rng.normal(truth, sd * np.sqrt(patients), (patients, simulations))
    replicates = drawn @ effects
    said = [verdict(Estimate(float(m), r), MARGIN) for m, r in zip(effects.mean(axis=0), replicates.T, strict=True)]
    return float(np.mean(np.array(said) == "equivalent"))


@pytest.mark.parametrize("truth", [MARGIN, -MARGIN])
@pytest.mark.parametrize("sd", [MARGIN / 8, MARGIN / 3])
def test_a_difference_as_large_as_the_margin_is_rarely_called_equivalent(truth: float, sd: float) -> None:
    assert rate(truth, sd) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_a_wide_interval_is_never_called_equivalent() -> None:
    assert rate(0.0, MARGIN) == 0


@pytest.mark.parametrize("sd", [MARGIN / 4, MARGIN / 3, MARGIN / 2.5])
def test_no_difference_is_called_equivalent_as_often_as_the_normal_formula_says(sd: float) -> None:
    power = 2 * norm.cdf(MARGIN / sd - norm.ppf(0.95)) - 1
    assert rate(0.0, sd) == pytest.approx(power, abs=3 * np.sqrt(power * (1 - power) / 2000) + 0.015)


def test_what_is_detectable_is_found_in_80_percent() -> None:
    rng = np.random.default_rng(9)
    estimate = Estimate(0.0, rng.normal(0, 0.0014, 4000))
    smallest = detectable(estimate)
    assert smallest == pytest.approx((norm.ppf(0.975) + norm.ppf(0.8)) * estimate.replicates.std(ddof=1), rel=1e-6)
    found = np.abs(rng.normal(smallest, estimate.sd, 100_000)) > norm.ppf(0.975) * estimate.sd
    assert found.mean() == pytest.approx(0.8, abs=0.005)


def test_rows_have_the_key_of_their_contrast(found: dict[str, list[Contrast]]) -> None:
    contrasts = [each for each in found["own"] if each.metric == "nll"]
    rows = equivalence_rows(contrasts, 0.3)
    assert len(rows) == len(contrasts) > 5
    for row, each in zip(rows, contrasts, strict=True):
        assert {name: row[name] for name in each.key._fields} == each.key._asdict()
        assert (row["delta"], row["margin"]) == (each.delta.value, 0.3)
        assert [row["lo"], row["hi"]] == np.percentile(each.delta.replicates, [5, 95]).tolist()
        assert row["sd"] == np.std(each.delta.replicates, ddof=1)
        assert row["verdict"] == verdict(each.delta, 0.3)
