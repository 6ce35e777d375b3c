"""Lines in logits against statsmodels and scipy, around any evaluator, at no reading of their own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import expit, logit

from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.recalibrated import RecalibratedEvaluator, recalibrate
from leadwise.evaluators.saved import load_evaluator
from leadwise.evaluators.scoring import Scorers, score, score_subsets
from leadwise.evaluators.temperature import fit_temperature
from leadwise.leads import subsets
from leadwise.metrics import auroc, calibration_line, nll


@pytest.fixture(scope="module")
def cohort(small_cohort: Cohort) -> Cohort:
    return small_cohort


class Plain:
    """A logistic evaluator that does not let on that it is one, and counts what it is asked."""

    name, sha256 = "plain", "of the plain evaluator"

    def __init__(self, inner: LogisticEvaluator, labels: Any = None) -> None:
        self.inner, self.labels, self.asked = inner, labels or inner.labels, 0
        self.order = [list(inner.labels).index(label) for label in self.labels]

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        self.asked += len(signals)
        return self.inner.probabilities(signals, masks)[:, self.order]


@pytest.fixture
def plain(controlled: LogisticEvaluator) -> Plain:
    return Plain(controlled)


def test_lines_are_those_of_statsmodels(cohort: Cohort, plain: Plain) -> None:
    validation = cohort["validation"]
    before = score(plain, validation, frozen_masks(len(validation)))
    made: Any = recalibrate(plain, validation, "mine")
    for column in range(5):
        inputs = sm.add_constant(logit(before[:, column]))
        fit = sm.Logit(validation.labels[:, column].astype(float), inputs).fit(disp=0, tol=1e-12)
        np.testing.assert_allclose([made.intercepts[column], made.slopes[column]], fit.params, rtol=1e-6)
    after = score(made, validation, frozen_masks(len(validation)))
    np.testing.assert_allclose(after, expit(made.intercepts + made.slopes * logit(before)), rtol=0, atol=1e-12)
    assert nll(validation.labels, after) < nll(validation.labels, before) - 0.01
    # the line of what lies on its line is the diagonal
    np.testing.assert_allclose(np.array(calibration_line(validation.labels, after)), [[0] * 5, [1] * 5], atol=1e-7)
    # the order of a label's probabilities is left as it was
    assert auroc(validation.labels, after) == auroc(validation.labels, before)


def test_a_logistic_evaluator_stays_one(cohort: Cohort, controlled: LogisticEvaluator, plain: Plain) -> None:
    folded, around = (recalibrate(each, cohort["validation"], "mine") for each in (controlled, plain))
    assert isinstance(folded, LogisticEvaluator)
    assert isinstance(around, RecalibratedEvaluator)
    selection, masks = cohort["selection"], frozen_masks(len(cohort["selection"]))[::-1]
    np.testing.assert_allclose(score(folded, selection, masks), score(around, selection, masks), atol=1e-12)
    assert (folded.name, controlled.name) == ("mine", "controlled")


def test_a_temperature_has_the_lowest_nll(cohort: Cohort, plain: Plain) -> None:
    validation = cohort["validation"]
    before = score(plain, validation, frozen_masks(len(validation)))
    made: Any = fit_temperature(plain, validation, "mine")
    assert not made.intercepts.any()
    assert len(set(made.slopes)) == 1
    best = minimize(lambda t: nll(validation.labels, expit(logit(before) / t[0])), [1.0], tol=1e-12)
    np.testing.assert_allclose(1 / made.slopes[0], best.x[0], rtol=1e-4)


@pytest.mark.parametrize("fit", [recalibrate, fit_temperature])
def test_labels_in_another_order(cohort: Cohort, controlled: LogisticEvaluator, fit: Any) -> None:
    validation, selection = cohort["validation"], cohort["selection"]
    masks = frozen_masks(len(selection))
    one, other = (fit(Plain(controlled, labels), validation, "mine") for labels in (None, controlled.labels[::-1]))
    assert other.labels == tuple(controlled.labels[::-1])
    np.testing.assert_allclose(score(one, selection, masks), score(other, selection, masks), atol=1e-12)
    shared = [Scorers(selection).of(each).masks(masks) for each in (one, other)]
    np.testing.assert_allclose(*shared, atol=1e-12)


def test_what_the_source_has_read_is_not_read_again(cohort: Cohort, plain: Plain) -> None:
    selection, masks = cohort["selection"], frozen_masks(len(cohort["selection"]))
    made = recalibrate(plain, cohort["validation"], "mine")
    alone = score(made, selection, masks)
    scorers = Scorers(selection)
    scorers.of(plain).masks(masks)
    asked = plain.asked
    np.testing.assert_array_equal(scorers.of(made).masks(masks), alone)
    assert plain.asked == asked
    twice = recalibrate(made, cohort["validation"], "of mine")
    np.testing.assert_allclose(scorers.of(twice).masks(masks), alone, atol=1e-6)  # what is calibrated is left alone


def test_many_lead_sets_at_once(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    around = RecalibratedEvaluator(controlled, "mine", np.arange(5.0), np.linspace(0.5, 2, 5))
    folded = controlled.with_lines("mine", around.intercepts, around.slopes)
    both = [score_subsets(each, cohort["selection"], subsets(2)) for each in (around, folded)]
    np.testing.assert_allclose(*both, atol=1e-12)


def test_certain_answers_stay_finite(controlled: LogisticEvaluator) -> None:
    around = RecalibratedEvaluator(controlled, "mine", np.zeros(5), np.full(5, 0.5))
    derived = around.derive(np.array([[0.0, 1.0, 0.5, 1e-300, 1 - 1e-16]]))
    assert np.isfinite(derived).all()
    assert ((derived > 0) & (derived < 1)).all()


def test_a_label_that_no_line_fits(cohort: Cohort, plain: Plain) -> None:
    labels = cohort._labels.copy()
    labels[cohort["validation"].rows, 1] = False
    never = replace(cohort, _labels=labels, cache=None)["validation"]
    with pytest.raises(InputError, match=r"^plain cannot be recalibrated for HYP on the validation role: no finite"):
        recalibrate(plain, never, "mine")


def test_records_without_a_lead_of_their_mask_are_left_out(cohort: Cohort, plain: Plain) -> None:
    validation = cohort["validation"]
    missing = cohort.missing.copy()
    missing[validation.rows[5]] = 1000  # no lead at all
    missing[validation.rows[::3], 6:] = 1000
    partial = replace(cohort, missing=missing)["validation"]
    masks = frozen_masks(len(partial)) & partial.available
    kept = masks.any(axis=1)
    assert 0 < (~kept).sum() < len(partial)
    a, s = calibration_line(validation.labels[kept], score(plain, validation.select(kept), masks[kept]))
    made: Any = recalibrate(plain, partial, "mine")
    np.testing.assert_allclose([made.intercepts, made.slopes], [a, s], rtol=1e-12)


def test_it_is_found_again_around_its_own_source(cohort: Cohort, plain: Plain, tmp_path: Path) -> None:
    made, file = recalibrate(plain, cohort["validation"], "mine"), tmp_path / "mine.safetensors"
    made.save(file)
    loaded = load_evaluator(file, {"plain": plain})
    assert (loaded.name, loaded.sha256) == ("mine", made.sha256)
    with pytest.raises(InputError, match=r"needs 'plain', which is not here; there are none\.$"):
        load_evaluator(file)
    other = Plain(plain.inner)
    other.sha256 = "of another"
    with pytest.raises(InputError, match=r"was made of another evaluator 'plain' than this one; make it again\.$"):
        load_evaluator(file, {"plain": other})
