from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.arms import READERS, REPLICATES, some_allocation, some_references
from analysis.coverage import Reader
from leadwise.analysis.bootstrap import Estimate, PatientBootstrap
from leadwise.analysis.contrasts import Contrast, estimate_contrasts
from leadwise.analysis.decomposition import decomposition_frame
from leadwise.analysis.interactions import estimate_interactions
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records

KEY = ["policy", "k", "metric", "statistic"]
NAMES = ("first", "second", "third", "fourth")


@pytest.fixture(scope="module")
def contrasts(records: Records) -> list[Contrast]:
    """Of four evaluators, the fourth of which is searched at one budget; the first does badly in NLL, for certain."""
    several = [*READERS.values(), Reader("second")]
    several[-1].name = "fourth"
    readings = Readings(records, several, PatientBootstrap(records, REPLICATES))
    references = [some_references(name, seed) for seed, name in enumerate(NAMES)]
    allocations = [some_allocation(records, "mga", k, k) for k in (2, 3)]
    found = estimate_contrasts(readings, allocations, references)
    found = [each for each in found if (each.evaluator, each.allocation.k) != ("fourth", 3)]
    return [_worse(each) if (each.evaluator, each.metric) == ("first", "nll") else each for each in found]


def _worse(contrast: Contrast) -> Contrast:
    chosen = contrast.adaptive
    return replace(contrast, adaptive=Estimate(chosen.value + 0.4, chosen.replicates + 0.4))


def test_parts_by_hand(contrasts: list[Contrast]) -> None:
    frame = decomposition_frame(contrasts, ("first", "second"), ("third", "fourth")).set_index(KEY)
    assert set(frame["recalibrated_evaluator"]) == {"third"}
    assert set(frame["recalibrated_baseline"]) == {"fourth"}
    assert len(frame) == 3 * 4  # the fourth has no contrasts of three leads
    delta = {(each.evaluator, each.metric): each.delta for each in contrasts if each.allocation.k == 2}
    for metric in ("nll", "brier", "ece"):
        first, second, third, fourth = (delta[name, metric] for name in NAMES)
        whole, remaining = first.value - second.value, third.value - fourth.value
        wholes, rest = first.replicates - second.replicates, third.replicates - fourth.replicates
        expected = {
            "whole": (whole, wholes),
            "remaining": (remaining, rest),
            "removed": (whole - remaining, wholes - rest),
            "share": ((whole - remaining) / whole, (wholes - rest) / wholes),
        }
        for statistic, (value, replicates) in expected.items():
            row = frame.loc[("mga", 2, metric, statistic)]
            assert row["value"] == pytest.approx(value, abs=1e-12)
            sure = np.ptp(np.sign(np.percentile(wholes, [2.5, 97.5]))) == 0
            if statistic != "share" or sure:
                np.testing.assert_allclose([row["lo"], row["hi"]], np.percentile(replicates, [2.5, 97.5]), atol=1e-12)
            else:
                assert np.isnan([row["lo"], row["hi"]]).all()
    shares = frame.xs("share", level="statistic")
    assert 0 < shares["lo"].isna().sum() < len(shares)  # of both kinds


def test_the_whole_is_the_interaction(contrasts: list[Contrast]) -> None:
    frame = decomposition_frame(contrasts, ("first", "second"), ("third", "fourth"))
    whole = frame[frame["statistic"] == "whole"].set_index(["k", "metric"])
    for each in estimate_interactions(contrasts, "first", "second"):
        if each.key.k == 2:
            row = whole.loc[(2, each.key.metric)]
            assert (row["value"], row["lo"], row["hi"]) == (each.estimate.value, *each.estimate.interval)


def test_recalibration_that_changes_nothing_removes_nothing(contrasts: list[Contrast]) -> None:
    frame = decomposition_frame(contrasts, ("first", "third"), ("first", "third"))
    parts = frame[frame["statistic"].isin(["removed", "share"])]
    assert (parts["value"] == 0).all()
    assert (parts["lo"].dropna() == 0).all()


def test_of_nothing_at_all_there_is_no_share(contrasts: list[Contrast]) -> None:
    """Two evaluators that read alike, and are compared with the same sets."""
    twins = [each for each in contrasts if each.evaluator == "second"]
    twins += [replace(each, evaluator="twin", reference_evaluator="twin") for each in twins]
    frame = decomposition_frame([*contrasts, *twins], ("twin", "second"), ("third", "first"))
    assert set(frame["statistic"]) == {"whole", "remaining", "removed"}
    assert (frame[frame["statistic"] == "whole"]["value"] == 0).all()


def test_other_leads_are_not_taken_for_the_same(contrasts: list[Contrast], records: Records) -> None:
    """A policy of the same name that chose otherwise shares no row with it."""
    other = estimate_contrasts(
        Readings(records, [READERS["first"], READERS["third"]], PatientBootstrap(records, REPLICATES)),
        [some_allocation(records, "mga", 2, 99)],
        [some_references("first", 0), some_references("third", 2)],
    )
    mixed = [each for each in contrasts if each.evaluator in ("second", "fourth")]
    assert decomposition_frame([*mixed, *other], ("second", "fourth"), ("first", "third")).empty
    assert isinstance(decomposition_frame([], ("a", "b"), ("c", "d")), pd.DataFrame)
