"""Headroom: what the best fixed sets reach, beside oracles that look at labels."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64

from leadwise.cohort.cohort import Records
from leadwise.evaluators.contract import Evaluator, evaluator_name
from leadwise.evaluators.scoring import Scorer
from leadwise.leads import LEADS
from leadwise.metrics import record_nll
from leadwise.policies.oracle import exhaustive_oracle, greedy_oracle
from leadwise.references import References


def headroom_frame(
    evaluator: Evaluator, records: Records, references: References, budgets: Sequence[int]
) -> pd.DataFrame:
    """``headroom.csv``: what the best fixed set reaches and what the oracles would reach, and the oracle's first lead.

    Columns: role, evaluator, statistic, k, label, value, deployable. ``fixed`` is the NLL of the reference, ``oracle``
    that of the greedy oracle, ``exhaustive oracle`` that of the exhaustive one (budgets up to 4); ``first lead`` is the
    share of records for which the oracle would begin with the lead in ``label``.
    """
    rows = []

    def add(statistic: str, k: int, value: float, label: str = "", deployable: bool = False) -> None:
        facts = {"role": records.role, "evaluator": evaluator_name(evaluator), "statistic": statistic, "k": k}
        rows.append(facts | {"label": label, "value": value, "deployable": deployable})

    first = greedy_oracle(evaluator, records, 1).order[:, 0]
    for lead, share in zip(LEADS, np.bincount(first, minlength=12) / len(first), strict=True):
        add("first lead", 1, float(share), lead)
    for k in budgets:
        kept = records.with_leads(k)  # those with fewer leads are left out of every arm
        scorer = Scorer(evaluator, kept)
        fixed = scorer.subsets(references.best("nll", k).mask[None])[0]
        add("fixed", k, _mean_nll(kept, fixed), str(references.best("nll", k)), deployable=True)
        add("oracle", k, _mean_nll(kept, scorer.masks(greedy_oracle(evaluator, kept, k).masks)))
        if k <= 4:
            add("exhaustive oracle", k, _mean_nll(kept, scorer.masks(exhaustive_oracle(evaluator, kept, k).masks)))
    return pd.DataFrame(rows)


def _mean_nll(records: Records, probabilities: Float64[np.ndarray, "n l"]) -> float:
    return float(record_nll(records.labels, probabilities).mean())
