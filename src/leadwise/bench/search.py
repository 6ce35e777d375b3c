"""The exhaustive search of the controlled evaluator, beside scikit-learn's `predict_proba` for every candidate."""

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from leadwise.bench import row, timed
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.statistics import lead_statistics
from leadwise.leads import subsets
from leadwise.metrics import brier, ece, nll
from leadwise.references import BUDGETS, MATCHED_METRICS, search_references


def measure(cohort: Path) -> list[dict[str, Any]]:
    from sklearn.linear_model import LogisticRegression

    whole = read_ptbxl(cohort)
    evaluator, records = LogisticEvaluator().fit(whole["train"]), whole["selection"]
    labels = records.labels

    references, ours = timed(lambda: search_references(evaluator, records))
    start = perf_counter()
    z = np.clip((lead_statistics(records) - evaluator.mean_) / evaluator.scale_, -evaluator.clip, evaluator.clip)
    models = []
    for column in range(labels.shape[1]):
        model = LogisticRegression()
        model.coef_ = np.concatenate([evaluator.weights_[column].ravel(), evaluator.mask_weights_[column]])[None]
        model.intercept_, model.classes_ = evaluator.intercept_[column : column + 1], np.array([False, True])
        models.append(model)
    values = []
    for mask in np.concatenate([subsets(k) for k in BUDGETS]):
        inputs = np.concatenate([(z * mask[:, None]).reshape(len(z), -1), np.tile(mask, (len(z), 1))], axis=1)
        p = np.stack([model.predict_proba(inputs)[:, 1] for model in models], axis=1)
        values.append([metric(labels, p) for metric in (nll, brier, ece)])
    theirs = perf_counter() - start

    found = references.candidates.copy()
    if not np.allclose(found[list(MATCHED_METRICS)], values, atol=1e-11):
        raise LeadwiseError("Our search and scikit-learn's disagree; this is a bug, please report it.")
    found[list(MATCHED_METRICS)] = values
    same = (type(references)(references.evaluator, found, {}).frame["leads"] == references.frame["leads"]).all()
    what = f"{len(found):,} lead sets on {len(records):,} records, against predict_proba for each"
    return [row("search", "s", ours, theirs, what, same_argmins=bool(same))]
