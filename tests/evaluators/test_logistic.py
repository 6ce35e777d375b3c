"""The controlled evaluator, against scikit-learn on a design matrix built here."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.logistic import FORMAT, LogisticEvaluator
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.recalibrated import recalibrate
from leadwise.evaluators.scoring import Scorer, score, score_subsets
from leadwise.evaluators.statistics import STATISTICS, lead_statistics
from leadwise.leads import LEADS, LeadSet, subsets
from leadwise.metrics import nll
from leadwise.store import write_tensors


@pytest.fixture(scope="module")
def cohort(small_cohort: Cohort) -> Cohort:
    return small_cohort


class Unprepared:
    """An evaluator without its shortcuts."""

    def __init__(self, evaluator: LogisticEvaluator) -> None:
        self.labels, self.sampling_rate = evaluator.labels, evaluator.sampling_rate
        self.probabilities = evaluator.probabilities


def by_hand(cohort: Cohort, test_masks: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """scikit-learn's own probabilities on the validation role."""
    names = settings.get("statistics", STATISTICS)
    columns = [STATISTICS.index(name) for name in names]
    train, test = cohort["train"], cohort["validation"]
    seen = lead_statistics(train)[:, :, columns]
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    bound = settings.get("clip", 3.0)

    def row(statistics: np.ndarray, mask: np.ndarray) -> list[float]:
        standard = ((statistics - mean) / deviation).clip(-bound, bound)
        # 12 × (a column a statistic), zero where the lead was not observed, and then the mask itself
        return [value if mask[lead] else 0.0 for lead in range(12) for value in standard[lead]] + list(
            mask.astype(float)
        )

    rng = np.random.default_rng(settings.get("seed", 20260901))
    design, rows = [], []
    for _ in range(settings.get("repeats", 4)):
        k = rng.choice([1, 2, 3, 4, 6, 8, 12], len(train))
        masks = rng.random((len(train), 12)).argsort(1).argsort(1) < k[:, None]
        for record in range(len(train)):
            design.append(row(seen[record], masks[record]))
            rows.append(record)
    inputs = np.array(design)
    asked = np.array([row(s, m) for s, m in zip(lead_statistics(test)[:, :, columns], test_masks, strict=True)])
    answers = []
    for column in range(len(cohort.label_names)):
        model = LogisticRegression(
            C=settings.get("strength", 0.1),
            class_weight=settings.get("class_weight", "balanced"),
            solver="newton-cholesky",
            tol=1e-10,
        )
        answers.append(model.fit(inputs, train.labels[rows, column]).predict_proba(asked)[:, 1])
    return np.stack(answers, axis=1)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"class_weight": None},
        {"repeats": 2, "strength": 1.0, "clip": 1.5, "seed": 5},
        {"statistics": ("kurtosis", "mean", "largest step")},
    ],
    ids=["default", "unbalanced", "other", "three statistics"],
)
def test_agrees_with_scikit_learn(cohort: Cohort, settings: dict[str, Any]) -> None:
    evaluator = LogisticEvaluator(**settings).fit(cohort["train"])
    validation = cohort["validation"]
    masks = frozen_masks(len(validation))
    ours, theirs = score(evaluator, validation, masks), by_hand(cohort, masks, settings)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert ours.std() > 0.05, "and they say something"


def test_the_logit_is_a_sum_over_leads(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    """b + Σ m_l (u_l + Σ_s w_ls z_ls), by loops."""
    validation = cohort["validation"].select(slice(0, 4))
    masks = frozen_masks(4)
    statistics = lead_statistics(validation)
    answer = score(controlled, validation, masks)
    for i in range(4):
        for c in range(5):
            z = controlled.intercept_[c]
            for lead in np.flatnonzero(masks[i]):
                standard = (statistics[i, lead] - controlled.mean_[lead]) / controlled.scale_[lead]
                z += controlled.mask_weights_[c, lead]
                z += sum(
                    w * min(3.0, max(-3.0, s)) for w, s in zip(controlled.weights_[c, lead], standard, strict=True)
                )
            assert answer[i, c] == pytest.approx(1 / (1 + np.exp(-z)), rel=1e-12)


def test_all_sets_at_once_are_the_same_as_one_by_one(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    selection = cohort["selection"]
    masks = np.concatenate([subsets(1), subsets(2), subsets(11), subsets(12), frozen_masks(50)])
    at_once = score_subsets(controlled, selection, masks)
    assert Scorer(controlled, selection).at_once
    for mask, together in zip(masks, at_once, strict=True):
        alone = score(controlled, selection, np.tile(mask, (len(selection), 1)))
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_from_signals_is_the_same_as_from_statistics(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    selection = cohort["selection"]
    masks = np.stack([frozen_masks(len(selection)), np.ones((len(selection), 12), dtype=bool)])
    plain = score(Unprepared(controlled), selection, masks)
    np.testing.assert_allclose(plain, score(controlled, selection, masks), rtol=0, atol=1e-12)


@settings(max_examples=20)
@given(st.lists(st.floats(-2000, 2000), min_size=5, max_size=5))
def test_no_logit_is_too_large(cohort_intercepts: list[float]) -> None:
    from leadwise.evaluators.logistic import _PreparedLogistic

    prepared = _PreparedLogistic(np.zeros((12, 3, 5)), np.array(cohort_intercepts))
    answer = prepared.probabilities(np.arange(3), np.ones((3, 12), dtype=bool))
    np.testing.assert_allclose(answer, np.tile(expit(cohort_intercepts), (3, 1)), rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(prepared.subsets(np.ones((1, 12), dtype=bool))[0], answer)


def test_it_has_learned_something(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    train, validation = cohort["train"], cohort["validation"]
    constant = np.tile(train.labels.mean(axis=0), (len(validation), 1))
    unbalanced = LogisticEvaluator(class_weight=None).fit(train)
    everything = np.ones((len(validation), 12), dtype=bool)
    assert nll(validation.labels, score(unbalanced, validation, everything)) < nll(validation.labels, constant)
    assert controlled.labels == cohort.label_names
    assert controlled.sampling_rate == cohort.sampling_rate


def test_unbalanced_differs_from_balanced(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    unbalanced = LogisticEvaluator("controlled-unbalanced", class_weight=None).fit(cohort["train"])
    validation = cohort["validation"]
    masks = frozen_masks(len(validation))
    balanced, plain = score(controlled, validation, masks), score(unbalanced, validation, masks)
    rare = cohort["train"].labels.mean(axis=0) < 0.4
    assert rare.any()
    # positives of a rare label weigh more when balanced, so its probabilities are higher
    assert (balanced.mean(axis=0) > plain.mean(axis=0) + 0.05)[rare].all()
    # unbalanced, the mean probability is the prevalence in the training role
    own = score(unbalanced, cohort["train"], frozen_masks(len(cohort["train"])))
    np.testing.assert_allclose(own.mean(axis=0), cohort["train"].labels.mean(axis=0), atol=0.04)


# seeds ---------------------------------------------------------------------------------------------------------------


def same_weights(one: LogisticEvaluator, other: LogisticEvaluator) -> bool:
    names = ("mean_", "scale_", "weights_", "mask_weights_", "intercept_")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_same_seed_same_weights(cohort: Cohort) -> None:
    one, again, other = (LogisticEvaluator(repeats=1, seed=seed).fit(cohort["train"]) for seed in (3, 3, 4))
    assert same_weights(one, again)
    assert one.sha256 == again.sha256
    assert not same_weights(one, other)
    assert one.sha256 != other.sha256


def test_the_hash_is_of_what_it_answers(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    renamed = LogisticEvaluator("another name").fit(cohort["train"])
    assert renamed.sha256 == controlled.sha256
    renamed.intercept_ = renamed.intercept_ + 1e-15
    assert renamed.sha256 != controlled.sha256
    assert controlled.with_lines("controlled", np.zeros(5), np.full(5, 1.1)).sha256 != controlled.sha256


def test_fit_returns_itself(cohort: Cohort) -> None:
    evaluator = LogisticEvaluator(repeats=1)
    assert evaluator.fit(cohort["train"]) is evaluator


# what is wrong -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [False, True])
def test_a_label_that_has_one_value(cohort: Cohort, value: bool) -> None:
    labels = cohort._labels.copy()
    labels[np.isin(cohort.folds, range(1, 7)), 2] = value
    with pytest.raises(
        InputError, match=r"^No evaluator can learn MI from the train role: it needs records with and wi"
    ):
        LogisticEvaluator().fit(replace(cohort, _labels=labels, cache=None)["train"])


def test_no_records(cohort: Cohort) -> None:
    with pytest.raises(InputError, match=r"^No evaluator can learn CD from a selection of the train role"):
        LogisticEvaluator().fit(cohort["train"].select(slice(0, 0)))


def test_training_masks_have_the_sizes_that_are_asked_for(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[np.ndarray] = []
    draw = LogisticEvaluator._random_masks
    monkeypatch.setattr(
        LogisticEvaluator,
        "_random_masks",
        lambda *asked: drawn.append(draw(*asked)) or drawn[-1],  # type: ignore[func-returns-value]
    )
    one = LogisticEvaluator(repeats=1, cardinalities=[2, 5]).fit(cohort["train"])
    assert set(drawn[0].sum(axis=1)) == {2, 5}
    assert not same_weights(one, LogisticEvaluator(repeats=1).fit(cohort["train"]))


def test_unknown_statistic() -> None:
    with pytest.raises(
        InputError, match=r"^'entropy' is no statistic; there are mean, deviation, .*, root mean square\.$"
    ):
        LogisticEvaluator(statistics=("mean", "entropy"))
    with pytest.raises(InputError, match=r"there are mean, deviation"):
        LogisticEvaluator(statistics=())


def test_records_without_any_lead_teach_nothing(cohort: Cohort) -> None:
    train = cohort["train"]
    blind = replace(train.cohort, missing=np.full((len(train.cohort), 12), train.length))
    with pytest.raises(InputError, match="needs records with and without, and leads that they have"):
        LogisticEvaluator().fit(blind["train"])


def test_missing_leads_are_not_learned_from(cohort: Cohort) -> None:
    """A lead that nobody has gets no weight, and a record with none at all is left out."""
    missing = cohort.missing.copy()
    missing[:, LEADS.index("V3")] = 1000
    missing[cohort["train"].rows[0]] = 1000
    evaluator = LogisticEvaluator(repeats=2).fit(replace(cohort, missing=missing)["train"])
    np.testing.assert_array_equal(evaluator.weights_[:, LEADS.index("V3")], 0)
    np.testing.assert_array_equal(evaluator.mask_weights_[:, LEADS.index("V3")], 0)
    assert np.isfinite(evaluator.weights_).all()


def test_what_stands_where_a_lead_is_missing_does_not_matter(cohort: Cohort) -> None:
    """Neither to the weights nor to what they are standardised with, aVR being missing everywhere."""
    rng = np.random.default_rng(0)
    missing = cohort.missing.copy()
    missing[rng.random(missing.shape) < 0.2] = 1000
    missing[:, LEADS.index("aVR")] = 1000
    fitted = []
    for content in (0, rng.integers(-3000, 3000, cohort._signals.shape)):
        signals = np.where(missing[..., None] == 1000, content, cohort._signals).astype(np.int16)
        gapped = replace(cohort, missing=missing, _signals=signals, cache=None)
        evaluator = LogisticEvaluator(repeats=2).fit(gapped["train"])
        fitted += [evaluator.sha256, recalibrate(evaluator, gapped["validation"], "other").sha256]
    assert fitted[:2] == fitted[2:]
    whole = lead_statistics(cohort["train"])[cohort.missing[cohort["train"].rows].max(axis=1) == 0]
    lead, has = LEADS.index("V2"), missing[cohort["train"].rows][:, LEADS.index("V2")] == 0
    np.testing.assert_allclose(evaluator.mean_[lead], whole[has, lead].mean(axis=0), rtol=1e-12)


# files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"name": "mine", "class_weight": None, "statistics": ("median", "skewness"), "clip": 2.0}]
)
def test_save_and_load(cohort: Cohort, tmp_path: Path, settings: dict[str, Any]) -> None:
    evaluator = LogisticEvaluator(repeats=1, **settings).fit(cohort["train"])
    path = tmp_path / "there" / "evaluator.safetensors"
    evaluator.save(path)
    loaded = LogisticEvaluator.load(path)
    masks = frozen_masks(len(cohort["selection"]))
    np.testing.assert_array_equal(
        score(loaded, cohort["selection"], masks), score(evaluator, cohort["selection"], masks)
    )
    sets = [LeadSet.parse("2-lead"), LeadSet.parse("V4")]
    np.testing.assert_array_equal(
        score_subsets(loaded, cohort["selection"], sets), score_subsets(evaluator, cohort["selection"], sets)
    )
    for name in (
        "name",
        "class_weight",
        "statistics",
        "repeats",
        "strength",
        "clip",
        "seed",
        "sampling_rate",
        "sha256",
    ):
        assert getattr(loaded, name) == getattr(evaluator, name)
    assert tuple(loaded.labels) == tuple(evaluator.labels)


def test_the_same_evaluator_is_the_same_file(controlled: LogisticEvaluator, tmp_path: Path) -> None:
    """Always: artifacts are known by the hash of their bytes."""
    paths = [tmp_path / f"{i}.safetensors" for i in range(8)]
    for path in paths:
        controlled.save(path)
    LogisticEvaluator.load(paths[0]).save(tmp_path / "again.safetensors")
    assert len({path.read_bytes() for path in tmp_path.glob("*.safetensors")}) == 1


@pytest.fixture
def saved(controlled: LogisticEvaluator, tmp_path: Path) -> Path:
    controlled.save(tmp_path / "evaluator.safetensors")
    return tmp_path / "evaluator.safetensors"


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x00" * 100, b"\xff" * 4096, b"{}", b"PK\x03\x04"])
def test_load_garbage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "evaluator.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"^{path} is not a readable .*: "):
        LogisticEvaluator.load(path)


def test_load_what_is_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=rf"^{path} is not a readable .*: "):
            LogisticEvaluator.load(path)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.99])
def test_load_truncated(saved: Path, share: float) -> None:
    os.truncate(saved, int(saved.stat().st_size * share))
    with pytest.raises(InputError, match=r"is not a readable .*: "):
        LogisticEvaluator.load(saved)


@pytest.mark.parametrize(
    "metadata", [None, {"format": "pt"}, {"facts": "no JSON"}, {"facts": "[1, 2]"}, {"facts": "{}"}], ids=str
)
def test_load_a_file_of_somebody_else(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"mean": np.zeros(3)}, path, metadata)
    with pytest.raises(InputError, match=rf"^{path} holds '\w+', not 'leadwise logistic evaluator 1'; "):
        LogisticEvaluator.load(path)


def test_load_another_format(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    write_tensors(path, {"mean": np.zeros(3)}, "another 2", {})
    with pytest.raises(InputError, match=rf"^{path} holds 'another 2', not 'leadwise logistic evaluator 1'; "):
        LogisticEvaluator.load(path)


HALF: dict[str, dict[str, Any]] = {
    "nothing": {},
    "unknown setting": {"settings": {"unheard": 1}, "labels": [], "sampling_rate": 100},
    "no labels": {"settings": {}, "sampling_rate": 100},
    "no tensors": {"settings": {}, "labels": ["A"], "sampling_rate": 100},
}


@pytest.mark.parametrize("kind", HALF)
def test_load_half_an_evaluator(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "half.safetensors"
    write_tensors(path, {"mean": np.zeros((12, 10))}, FORMAT, HALF[kind])
    with pytest.raises(InputError, match=rf"^{path} is not a whole logistic evaluator \(.*\); save it again\.$"):
        LogisticEvaluator.load(path)
