"""Records, patients and prevalences of each role."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from leadwise.cohort.cohort import Records


def split_frame(roles: Iterable[Records]) -> pd.DataFrame:
    """``splits.csv``: who is studied, role by role; of a role under the seal only how many there are."""
    rows = []
    for records in roles:
        cohort, folds = records.cohort, records.cohort.roles.folds[records.role]
        elsewhere = np.isin(cohort.folds, [fold for every in cohort.roles.folds.values() for fold in every])
        elsewhere &= ~np.isin(cohort.folds, folds)
        counts: dict[str, Any] = {"role": records.role, "folds": " ".join(map(str, folds)), "records": len(records)}
        counts["patients"] = len(np.unique(records.patients))
        counts["shared_patients"] = len(np.intersect1d(records.patients, cohort.patients[elsewhere]))
        if not records.sealed:
            labels = records.labels
            counts["all_zero"] = int((~labels.any(axis=1)).sum())
            counts |= {f"prevalence_{name}": labels[:, i].mean() for i, name in enumerate(records.label_names)}
        rows.append(counts)
    return pd.DataFrame(rows)
