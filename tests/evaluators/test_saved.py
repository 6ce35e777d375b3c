"""Any evaluator's file is read by what it holds."""

from pathlib import Path

import numpy as np
import pytest

from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.network import NetworkEvaluator
from leadwise.evaluators.recipe import Recipe
from leadwise.evaluators.saved import load_evaluator
from leadwise.evaluators.scoring import score
from leadwise.evaluators.training import Training
from leadwise.store import write_tensors


def test_each_kind_comes_back_as_it_was(small_cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    recipe = Recipe(epochs=1, full_epochs=1, batch=64, norm_batches=0)
    train, validation = (small_cohort[role] for role in ("train", "validation"))
    network = Training(train, validation, name="mine", recipe=recipe, widths=(4, 4, 8, 8)).run()
    masks = np.tile(np.arange(12) < 3, (len(validation), 1))
    for kind, evaluator in ((LogisticEvaluator, controlled), (NetworkEvaluator, network)):
        path = tmp_path / "any-name.safetensors"
        evaluator.save(path)
        loaded = load_evaluator(path)
        assert isinstance(loaded, kind)
        assert (loaded.name, loaded.sha256) == (evaluator.name, evaluator.sha256)
        np.testing.assert_array_equal(score(loaded, validation, masks), score(evaluator, validation, masks))
        loaded.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_what_is_no_evaluator_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    write_tensors(path, {"a": np.zeros(2)}, "something else 1", {})
    with pytest.raises(InputError, match=r"file\.safetensors is no evaluator of leadwise; it holds 'something else 1'"):
        load_evaluator(path)
    path.write_text("nothing of the kind")
    for each in (path, tmp_path / "none.safetensors"):
        with pytest.raises(InputError, match=r"is no evaluator of leadwise; it holds 'None'"):
            load_evaluator(each)
