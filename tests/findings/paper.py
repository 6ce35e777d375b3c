"""Results as they would be if a run had found exactly what was published; what the paper leaves out is made up."""

from typing import Any

import pandas as pd

from leadwise.findings.paper import published_numbers
from leadwise.run.results import KEYS

ROLES = {"train": [1, 2, 3, 4, 5, 6], "validation": [7], "selection": [10], "audit": [9], "evaluation": [8]}

BUDGETS, METRICS, LABELS = (2, 3, 4, 6, 8), ("nll", "brier", "ece"), ("CD", "HYP", "MI", "NORM", "STTC")
DEMAND = "ecg-on-demand"

_TIDY = ["role", "policy", "versus", "evaluator", "reference_metric", "k", "statistic", "label"]
_KEYS = {
    "splits": ["role"],
    "resamples": ["role"],
    "contrasts": ["role", "policy", "evaluator", "reference_evaluator", "reference_metric", "k", "metric"],
    "interactions": ["role", "policy", "evaluator", "baseline_evaluator", "reference", "k", "metric"],
    "evaluators": ["evaluator"],
    "references": ["evaluator", "metric", "k"],
    "paired": ["role", "evaluator", "k", "metric", "policy_a", "policy_b"],
    "gap_closed": ["role", "evaluator", "k", "metric", "policy", "baseline_policy"],
    "evaluator_quality": ["role", "evaluator", "leads", "metric"],
    "seeds": ["evaluator", "role", "metric", "chosen"],
    "calibration": _TIDY,
    "patients": _TIDY,
    "alignment": _TIDY,
}


def published_rows() -> list[dict[str, Any]]:
    """The published numbers, those with the fewest digits first: the paper gives some of them twice."""
    rows = published_numbers().to_dict("records")
    return sorted(
        ({str(key): cell for key, cell in row.items()} for row in rows), key=lambda row: len(repr(row["published"]))
    )


class Paper:
    """Frames under construction: putting a number where one is already replaces it."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in _KEYS}
        self._make_up()
        for row in published_rows():
            self._put_published(row)
        self._add_bounds()

    @property
    def results(self) -> dict[str, pd.DataFrame]:
        return {name: pd.DataFrame(list(rows.values())) for name, rows in self.rows.items()}

    def put(self, frame: str, **cells: Any) -> None:
        key = tuple(cells.get(name, "") for name in _KEYS[frame])
        row = self.rows[frame].setdefault(key, dict(zip(_KEYS[frame], key, strict=True)))
        row.update({name: value for name, value in cells.items() if not pd.isna(value)})  # no bound replaces none

    def _put_published(self, row: dict[str, Any]) -> None:
        """A published number where ours would stand."""
        if row["unit"] == "patients" or row["folds"].endswith("9 10"):
            return  # these follow from others
        folds = [int(fold) for fold in row["folds"].split()] or [row["fold"]]
        role = next((role for role, own in ROLES.items() if own == folds), "")
        key = {name: role if name == "role" else row[name] for name in KEYS if name in _KEYS[row["table"]]}
        scale = 0.01 if row["unit"] == "percent" else 1
        value, lo, hi = (scale * row[name] for name in ("published", "published_lo", "published_hi"))
        self.put(row["table"], **key, **{row["column"]: row["published_leads"] if pd.isna(value) else value})
        self.put(row["table"], **key, lo=lo, hi=hi)

    def contrast(self, role: str, policy: str, evaluator: str, k: int, metric: str, **cells: Any) -> None:
        place = {"role": role, "policy": policy, "evaluator": evaluator, "reference_evaluator": evaluator}
        self.put("contrasts", **place, reference_metric=metric, k=k, metric=metric, **cells)

    def _make_up(self) -> None:
        """What the paper says in words only, or draws."""
        for role, folds in ROLES.items():
            self.put("splits", role=role, folds=" ".join(map(str, folds)))
        for role in ("audit", "evaluation"):
            for k in BUDGETS:
                for metric in METRICS:
                    self._make_up_contrasts(role, k, metric)
        for metric in METRICS:
            for k in (6, 8):
                where = {"role": "audit", "evaluator": "controlled", "k": k, "metric": metric}
                self.put(
                    "paired", **where, policy_a=DEMAND, policy_b="mga", a=0.5, b=0.45, delta=0.05, lo=0.01, hi=0.09
                )
            for k in (1, *BUDGETS):
                for evaluator in ("controlled", "strong"):
                    self.put("references", evaluator=evaluator, metric=metric, k=k)
        for k in BUDGETS:
            where = {"role": "evaluation", "evaluator": "strong", "k": k, "metric": "nll"}
            self.put("paired", **where, policy_a="strong-mga", policy_b="mga", delta=-0.02, lo=-0.03, hi=-0.01)
        tidy = {"role": "audit", "policy": DEMAND, "versus": "reference", "evaluator": "controlled", "k": 4}
        for metric in ("ece", "ece5", "ece15", "ece20"):
            for label in ("", *LABELS) if metric == "ece" else ("",):
                cells = {"reference_metric": "ece", "statistic": f"{metric} difference", "label": label}
                self.put("calibration", **tidy, **cells, value=-0.02, lo=-0.05, hi=-0.01)
        for label, count in {"no label": 30, "one label": 1500, "several labels": 412}.items():  # 1942 in all
            self.put("patients", **tidy, reference_metric="nll", statistic="patients", label=label, value=count)
        for q in range(1, 4):
            cells = {"reference_metric": "nll", "statistic": f"Q4 minus Q{q} benefit rate"}
            self.put("patients", **tidy, **cells, value=-0.02, lo=-0.05, hi=-0.01)
        for role in ("validation", "selection"):
            self.put("seeds", evaluator="strong", role=role, metric="nll", chosen=False, seed=1, epoch=2, value=0.4)
            place = {"evaluator": "strong", "role": role, "metric": "nll", "chosen": True}
            self.put("seeds", **place, seed=20060928, epoch=54, value=0.2976)

    def _make_up_contrasts(self, role: str, k: int, metric: str) -> None:
        for policy in (DEMAND, "mga"):
            self.contrast(
                role, policy, "controlled", k, metric, adaptive=0.5, fixed=0.6, delta=-0.1, lo=-0.2, hi=-0.001
            )
            ece = {"delta": -0.01 if k < 6 else 0.01, "lo": -0.03, "hi": 0.03}
            strong = ece if metric == "ece" else {"delta": 0.05, "lo": 0.001, "hi": 0.09}
            self.contrast(role, policy, "strong", k, metric, adaptive=0.3, fixed=0.2, **strong)
            for reference in ("own", "controlled", "strong"):
                place = {"role": role, "policy": policy, "reference": reference, "k": k, "metric": metric}
                pair = {"evaluator": "strong", "baseline_evaluator": "controlled"}
                self.put("interactions", **place, **pair, interaction=0.03, lo=0.01, hi=0.05)
        residual = {"delta": 0.01, "lo": -0.01 if k == 8 else 0.001, "hi": 0.02}
        self.contrast(role, "strong-mga", "strong", k, metric, adaptive=0.3, fixed=0.2, **residual)

    def _add_bounds(self) -> None:
        """Intervals of single numbers, which the paper gives for differences only."""
        for name in ("evaluator_quality", "calibration", "patients", "alignment"):
            for row in self.rows[name].values():
                if row.get("statistic", "mean") not in ("patients", "range", "jaccard range"):
                    row.setdefault("lo", row["value"] - 0.001)
                    row.setdefault("hi", row["value"] + 0.001)
