"""One seed by itself: another name for the chosen one, or a candidate that was not chosen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.contract import Material
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.masks import frozen_masks
from leadwise.evaluators.saved import load_evaluator
from leadwise.evaluators.scoring import Scorers, score
from leadwise.evaluators.seed import OneSeed, SeedSettings


def one_seed(cohort: Cohort, chosen: LogisticEvaluator, candidate: LogisticEvaluator) -> Any:
    settings = SeedSettings(of="controlled", seed=1)
    return OneSeed.make(
        settings, Material("mine", cohort["train"], cohort["validation"], {"controlled": chosen}, candidate)
    )


def test_the_chosen_one_is_kept_once(small_cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    made, file = one_seed(small_cohort, controlled, controlled), tmp_path / "mine.safetensors"
    made.save(file)
    assert file.stat().st_size < 1000
    records = small_cohort["validation"]
    masks = frozen_masks(len(records))
    scorers = Scorers(records)
    read = scorers.of(controlled).masks(masks)
    for each in (made, load_evaluator(file, {"controlled": controlled})):
        assert (each.name, each.sha256) == ("mine", controlled.sha256)
        np.testing.assert_array_equal(score(each, records, masks), read)
    np.testing.assert_array_equal(scorers.of(made).masks(masks), read)
    assert scorers.of(controlled).readings == len(records)
    other = LogisticEvaluator(repeats=1, seed=5).fit(small_cohort["train"])
    for others, sentence in (
        ({}, r"needs 'controlled', which is not here; there are none\.$"),
        ({"controlled": other}, r"was made of another evaluator 'controlled' than this one; make it again\.$"),
    ):
        with pytest.raises(InputError, match=sentence):
            load_evaluator(file, others)


def test_another_seed_is_an_evaluator_of_its_own(
    small_cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path
) -> None:
    other = LogisticEvaluator(repeats=1, seed=5).fit(small_cohort["train"])
    made = one_seed(small_cohort, controlled, other)
    assert (made.name, made.sha256, other.name) == ("mine", other.sha256, "controlled")
    made.save(tmp_path / "mine.safetensors")
    loaded = OneSeed.load(tmp_path / "mine.safetensors", {"controlled": controlled})
    assert (loaded.name, loaded.sha256) == ("mine", other.sha256)
