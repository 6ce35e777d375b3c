"""Quality of evaluators, with all leads and with random ones."""

import numpy as np
import pandas as pd

from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.evaluators.masks import frozen_masks, possible_masks
from leadwise.leads import LEADS
from leadwise.metrics import METRICS
from leadwise.references import MATCHED_METRICS

ALL_LEADS = " ".join(LEADS)


def quality_frame(readings: Readings, records: Records) -> pd.DataFrame:
    """``evaluator_quality.csv``: every evaluator with all leads, and under the frozen draw of random masks."""
    everything = records.available
    random = possible_masks(frozen_masks(len(records)), everything)
    rows = []
    for evaluator in readings.evaluators:
        for leads, masks in ((ALL_LEADS, everything), ("random masks", random)):
            (probabilities,) = readings.probabilities(evaluator, records, [masks])
            estimates = readings.bootstrap.metrics(records, records.labels, {"": probabilities}, MATCHED_METRICS)
            facts = (records.role, evaluator, leads)
            rows += [(*facts, metric, one.value, *one.interval) for (_, metric), one in estimates.items()]
            for metric in ("auroc", "auprc"):
                rows.append((*facts, metric, METRICS[metric](records.labels, probabilities, None), np.nan, np.nan))
    return pd.DataFrame(rows, columns=["role", "evaluator", "leads", "metric", "value", "lo", "hi"])
