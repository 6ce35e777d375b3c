"""Results as they would be if a run had found exactly what was published; what the paper leaves out is made up."""

import csv
from importlib.resources import files
from typing import Any

import pandas as pd

from leadwise.leads import LEADS

ROLES = {"train": [1, 2, 3, 4, 5, 6], "validation": [7], "selection": [10], "audit": [9], "evaluation": [8]}
FACTS = {"strong parameters": 2774685}

BUDGETS, METRICS, LABELS = (2, 3, 4, 6, 8), ("nll", "brier", "ece"), ("CD", "HYP", "MI", "NORM", "STTC")
DEMAND = "ecg-on-demand"

_TIDY = ["role", "policy", "versus", "evaluator", "reference_metric", "k", "statistic", "label"]
_KEYS = {
    "splits": ["role"],
    "contrasts": ["role", "policy", "evaluator", "reference_evaluator", "reference_metric", "k", "metric"],
    "interactions": ["role", "policy", "evaluator", "baseline_evaluator", "reference", "k", "metric"],
    "references": ["evaluator", "metric", "k"],
    "paired": ["role", "evaluator", "k", "metric", "policy_a", "policy_b"],
    "evaluator_quality": ["role", "evaluator", "leads", "metric"],
    "seeds": ["evaluator", "seed", "epoch", "role"],
    "calibration": _TIDY,
    "patients": _TIDY,
    "alignment": _TIDY,
}


def lines(name: str) -> list[dict[str, Any]]:
    """A published table, its numbers read as such."""
    with (files("leadwise") / "published" / f"{name}.csv").open(newline="") as file:
        return [{key: _read(text) for key, text in line.items()} for line in csv.DictReader(file)]


def _read(text: str) -> Any:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        return text


class Paper:
    """Frames under construction: putting a number where one is already replaces it."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in _KEYS}
        self._make_up()
        self._add_tables()
        self._add_scalars()

    @property
    def results(self) -> dict[str, pd.DataFrame]:
        return {name: pd.DataFrame(list(rows.values())) for name, rows in self.rows.items()}

    def put(self, frame: str, **cells: Any) -> None:
        key = tuple(cells.get(name, "") for name in _KEYS[frame])
        row = self.rows[frame].setdefault(key, dict(zip(_KEYS[frame], key, strict=True)))
        row.update({name: value for name, value in cells.items() if value == value})  # a missing bound replaces none

    def contrast(
        self, role: str, policy: str, evaluator: str, k: float, metric: str, owner: str = "", **cells: Any
    ) -> None:
        matched = "ece" if metric.startswith("ece") else metric
        place = {"role": role, "policy": policy, "evaluator": evaluator, "reference_evaluator": owner or evaluator}
        self.put("contrasts", **place, reference_metric=matched, k=int(k), metric=metric, **cells)

    def tidy(
        self, frame: str, role: str, policy: str, statistic: str, value: float, label: str = "", **cells: Any
    ) -> None:
        self.put(frame, role=role, policy=policy, statistic=statistic, label=label, k=4, value=value, **cells)

    def _make_up(self) -> None:
        """What the paper says in words only, or draws."""
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
        for k in BUDGETS:
            where = {"role": "evaluation", "evaluator": "strong", "k": k, "metric": "nll"}
            self.put("paired", **where, policy_a="strong-mga", policy_b="mga", delta=-0.02, lo=-0.03, hi=-0.01)
        for label in LABELS:
            where = {"evaluator": "controlled", "versus": "reference", "reference_metric": "ece"}
            self.tidy("calibration", "audit", DEMAND, "ece difference", -0.03, label, lo=-0.05, hi=-0.01, **where)
        for label, count in {"no label": 30, "one label": 1500, "several labels": 412}.items():  # 1942 in all
            where = {"evaluator": "controlled", "versus": "reference", "reference_metric": "nll"}
            self.tidy("patients", "audit", DEMAND, "patients", count, label, **where)

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
                self.put(
                    "interactions",
                    **place,
                    evaluator="strong",
                    baseline_evaluator="controlled",
                    interaction=0.03,
                    lo=0.01,
                    hi=0.05,
                )
        residual = {"delta": 0.01, "lo": -0.01 if k == 8 else 0.001, "hi": 0.02}
        self.contrast(role, "strong-mga", "strong", k, metric, adaptive=0.3, fixed=0.2, **residual)

    def _add_tables(self) -> None:
        folds = {"1-6": "train", "7.0": "validation", "8.0": "evaluation", "9.0": "audit", "10.0": "selection"}
        for line in lines("splits"):
            if str(line["folds"]) in folds:
                counts = {name: line[name] for name in ("records", "patients", "all_zero")}
                self.put("splits", role=folds[str(line["folds"])], **counts)
        for line in lines("adaptive_comparators_fold9_k4"):
            self.put(
                "paired",
                role="audit",
                evaluator="controlled",
                k=4,
                metric=line["metric"].lower(),
                policy_a=DEMAND,
                policy_b=line["comparator"].lower(),
                a=line["ecg_on_demand"],
                b=line["comparator_value"],
                **_interval(line),
            )
        for line in lines("fixed_subsets"):
            for evaluator in ("controlled", "strong"):
                place = {"evaluator": evaluator, "metric": line["metric"].lower(), "k": int(line["k"])}
                self.put("references", **place, leads=line[evaluator])
        for line in lines("controlled_deltas_fold9"):
            self.contrast("audit", DEMAND, "controlled", line["k"], line["metric"].lower(), **_interval(line))
        self._add_calibration()
        self._add_patients()
        for line in lines("evaluator_quality_fold9_full12"):
            for metric in ("NLL", "Brier", "ECE", "AUROC", "AUPRC"):
                self.quality("audit", line["evaluator"].split()[0].lower(), metric.lower(), line[metric])
        for line in lines("held_out_levels_fold8_k4"):
            for evaluator in ("controlled", "strong"):
                arms = {arm: line[f"{evaluator}_{arm}"] for arm in ("adaptive", "fixed")}
                self.contrast("evaluation", DEMAND, evaluator, 4, line["metric"].lower(), **arms)
        for line in lines("interactions_fold8"):
            self._interaction(line["policy"].lower(), line, "own", line["k"], line["metric"].lower())
        references = {"Evaluator-specific": "own", "Common F_C": "controlled", "Common F_S": "strong"}
        for line in lines("common_reference_fold8_k4_nll"):
            self._interaction(DEMAND, line, references[line["reference"]], 4, "nll")
        for line in lines("mask_robust_interactions_fold8"):
            place = {"role": "evaluation", "policy": line["policy"].lower(), "metric": line["metric"].lower()}
            place |= {"evaluator": "mask-robust", "baseline_evaluator": "controlled", "reference": "controlled"}
            found = {name: line[name] for name in ("interaction", "lo", "hi")}
            self.put("interactions", **place, k=int(line["k"]), **found)
        self._add_strong_mga()

    def quality(self, role: str, evaluator: str, metric: str, value: float, leads: str = " ".join(LEADS)) -> None:
        bounds = {"lo": value - 0.01, "hi": value + 0.01}
        self.put("evaluator_quality", role=role, evaluator=evaluator, leads=leads, metric=metric, value=value, **bounds)

    def _interaction(self, policy: str, line: dict[str, Any], reference: str, k: float, metric: str) -> None:
        for evaluator in ("controlled", "strong"):
            owner = evaluator if reference == "own" else reference
            self.contrast("evaluation", policy, evaluator, k, metric, owner, delta=line[f"d_{evaluator}"])
        place = {"role": "evaluation", "policy": policy, "k": int(k), "metric": metric, "reference": reference}
        found = {name: line[name] for name in ("interaction", "lo", "hi")}
        self.put("interactions", **place, evaluator="strong", baseline_evaluator="controlled", **found)

    def _add_calibration(self) -> None:
        names = ("nll", "brier", "ece", "macro |intercept|", "macro |slope - 1|", "variance", "entropy")
        arms = {"ecg_on_demand": DEMAND, "mga": "mga", "ece_matched_fixed": "reference"}
        for line, name in zip(lines("calibration_structure_fold9_k4"), names, strict=True):
            for column, arm in arms.items():
                where = {"evaluator": "controlled", "reference_metric": "ece"}
                self.tidy("calibration", "audit", arm, name, line[column], **where)

    def _add_patients(self) -> None:
        means = ("mean", "median", "mean trimmed 5%", "mean trimmed 10%", "mean winsorised 5%")
        names = (*means, "mean without largest 1%", "improved", "worsened", "unchanged")
        for line, name in zip(lines("patient_effects_fold9_k4"), names, strict=True):
            scale = 0.01 if name in names[-3:] else 1
            value, lo, hi = (scale * line[column] for column in ("estimate", "lo", "hi"))
            self._patients(name, value, lo=lo, hi=hi)

    def _patients(self, name: str, value: float, label: str = "", policy: str = DEMAND, **cells: Any) -> None:
        where = {"evaluator": "controlled", "versus": "reference", "reference_metric": "nll"} | cells
        self.tidy("patients", "audit", policy, name, value, label, **where)

    def _add_strong_mga(self) -> None:
        for line in lines("strong_mga_fold8_k4"):
            arms = {arm: line[arm] for arm in ("adaptive", "fixed")} | _interval(line)
            policy, metric = line["method"].split(" (")[0].lower(), line["metric"].lower()
            if policy == DEMAND:
                continue  # given with more digits elsewhere
            if policy == "mga":
                arms.pop("delta")
            self.contrast("evaluation", policy, "strong", 4, metric, **arms)
        for line in lines("strong_mga_minus_mga_fold8_k4"):
            place = {"role": "evaluation", "evaluator": "strong", "k": 4, "metric": line["metric"].lower()}
            self.put("paired", **place, policy_a="strong-mga", policy_b="mga", **_interval(line))

    def _add_scalars(self) -> None:
        """The name of each number, spelled out: the program finds them by the form of the name."""
        said = {line["name"]: line for line in lines("scalars")}

        def value(name: str) -> float:
            return said[name]["value"]

        for label in LABELS:
            self.put("splits", role="evaluation", **{f"prevalence_{label}": value(f"prevalence fold8 {label}")})
            line = said[f"label-wise ece difference {label} fold9 k4"]
            where = {"evaluator": "controlled", "versus": "reference", "reference_metric": "ece"}
            bounds = {"lo": line["lo"], "hi": line["hi"]}
            self.tidy("calibration", "audit", DEMAND, "ece difference", line["value"], label, **where, **bounds)
        kept = value("variance retention ratio fold9 k4")
        where = {"evaluator": "controlled", "versus": "reference", "reference_metric": "ece"}
        self.tidy("calibration", "audit", DEMAND, "variance retention", kept, **where, lo=kept - 0.01, hi=kept + 0.01)
        for arm, name in ((DEMAND, DEMAND), ("reference", "ece-matched fixed")):
            for statistic, title in (("variance", "probability variance"), ("entropy", "predictive entropy")):
                number, where = (
                    value(f"{title} {name} fold9 k4"),
                    {"evaluator": "controlled", "reference_metric": "ece"},
                )
                bounds = {"lo": number - 0.001, "hi": number + 0.001}
                self.tidy("calibration", "audit", arm, statistic, number, **where, **bounds)
        for bins in (5, 15, 20):
            delta = value(f"ece contrast {bins} bins ecg-on-demand fold9 k4")
            self.contrast("audit", DEMAND, "controlled", 4, f"ece{bins}", delta=delta, lo=-0.03, hi=-0.01)
        for metric in METRICS:
            self._add_contrasts(said, metric)
        self._add_patient_scalars(said)
        self._add_alignment(said)
        self.quality(
            "validation", "strong", "nll", value("strong random-mask nll fold7 at the chosen epoch"), "random masks"
        )
        for metric in (*METRICS, "auroc", "auprc"):
            for evaluator in ("mask-robust", "controlled"):
                self.quality("validation", evaluator, metric, value(f"{evaluator} full-12 fold7 {metric}"))
        seed, epoch = int(value("strong chosen seed")), int(value("strong chosen epoch"))
        for role, nll in (("validation", 0.2976), ("selection", value("strong random-mask nll fold10"))):
            place = {"evaluator": "strong", "role": role, "metric": "nll"}
            self.put("seeds", **place, seed=1, epoch=2, value=0.4, chosen=False)
            self.put("seeds", **place, seed=seed, epoch=epoch, value=nll, chosen=True)
        for k in (1, *BUDGETS):
            for metric in METRICS:
                candidates = value(f"candidates k{k}")
                self.put("references", evaluator="controlled", metric=metric, k=k, candidates=candidates)

    def _add_contrasts(self, said: dict[str, Any], metric: str) -> None:
        for role, fold, policy, evaluator in (
            ("audit", 9, DEMAND, "strong"),
            ("audit", 9, "mga", "strong"),
            ("evaluation", 8, DEMAND, "controlled"),
            ("evaluation", 8, DEMAND, "strong"),
        ):
            line = said[f"{evaluator} contrast {metric} {policy} fold{fold} k4"]
            found = {"delta": line["value"], "lo": line["lo"], "hi": line["hi"]}
            self.contrast(role, policy, evaluator, 4, metric, **found)
        for policy in ("mga", "ccga"):
            delta = said[f"controlled contrast {metric} {policy} fold9 k4 (derived)"]["value"]
            self.contrast("audit", policy, "controlled", 4, metric, delta=delta)
        adaptive, fixed = (said[f"controlled {arm} {metric} fold9 k4"]["value"] for arm in (DEMAND, "fixed"))
        self.contrast("audit", DEMAND, "controlled", 4, metric, adaptive=adaptive, fixed=fixed)
        line = said[f"mask-robust interaction {metric} ecg-on-demand fold8 k4"]
        place = {"role": "evaluation", "policy": DEMAND, "k": 4, "metric": metric, "reference": "controlled"}
        found = {"interaction": line["value"], "lo": line["lo"], "hi": line["hi"]}
        self.put("interactions", **place, evaluator="mask-robust", baseline_evaluator="controlled", **found)
        if metric == "nll":
            line = said["strong-mga contrast nll fold8 k4"]
            found = {"delta": line["value"], "lo": line["lo"], "hi": line["hi"]}
            self.contrast("evaluation", "strong-mga", "strong", 4, metric, **found)
            for evaluator, owner in (("strong", "controlled"), ("controlled", "strong")):
                fixed = said[f"{evaluator} nll of the {owner} reference fold8 k4 (derived)"]["value"]
                self.contrast("evaluation", DEMAND, evaluator, 4, metric, owner, fixed=fixed)
        if metric != "ece":
            line = said[f"strong-mga minus mga {metric} fold8 k4"]
            place = {"role": "evaluation", "evaluator": "strong", "k": 4, "metric": metric}
            found = {"delta": line["value"], "lo": line["lo"], "hi": line["hi"]}
            self.put("paired", **place, policy_a="strong-mga", policy_b="mga", **found)

    def _add_patient_scalars(self, said: dict[str, Any]) -> None:
        for policy in (DEMAND, "mga"):
            line = said[f"Spearman uncertainty vs benefit {policy} fold9 k4"]
            self._patients("spearman", line["value"], policy=policy, lo=line["lo"], hi=line["hi"])
        for quartile in (1, 2, 3, 4):
            mean = said[f"quartile {quartile} mean delta nll ecg-on-demand fold9 k4"]["value"]
            self._patients(f"Q{quartile} mean", mean)
        self._patients("Q4 benefit rate", said["quartile 4 benefit rate ecg-on-demand fold9 k4"]["value"])
        for statistic, name in {
            "benefit jaccard": "benefited sets Jaccard ecg-on-demand vs mga fold9 k4",
            "benefit under both": "benefit under both policies (share) fold9 k4",
            "benefit under the first only": "benefit under ecg-on-demand only (share) fold9 k4",
            "benefit under the second only": "benefit under mga only (share) fold9 k4",
            "benefit under neither": "benefit under neither (share) fold9 k4",
        }.items():
            self._patients(statistic, said[name]["value"], versus="mga")
        for (statistic, label), name in {
            ("range", "min"): "smallest patient delta nll fold9 k4",
            ("range", "max"): "largest patient delta nll fold9 k4",
            ("mean", "one label"): "mean delta nll patients with one superclass fold9 k4",
            ("mean", "several labels"): "mean delta nll patients with two or more superclasses fold9 k4",
            ("mean", "NORM positive"): "mean delta nll NORM-positive patients fold9 k4",
            ("mean", "NORM negative"): "mean delta nll NORM-negative patients fold9 k4",
        }.items():
            self._patients(statistic, said[name]["value"], label)

    def _add_alignment(self, said: dict[str, Any]) -> None:
        for statistic, name in {
            "identical": "identical final sets ecg-on-demand vs mga fold9 k4 (share)",
            "jaccard": "mean Jaccard ecg-on-demand vs mga fold9 k4",
        }.items():
            self.tidy("alignment", "audit", DEMAND, statistic, said[name]["value"], versus="mga")
        where = {"evaluator": "strong", "versus": "reference", "reference_metric": "nll"}
        for (statistic, label), name in {
            ("jaccard", ""): "mean Jaccard ecg-on-demand vs strong reference fold8 k4",
            ("jaccard range", "min"): "smallest Jaccard ecg-on-demand vs strong reference fold8 k4",
            ("jaccard range", "max"): "largest Jaccard ecg-on-demand vs strong reference fold8 k4",
            ("shared leads", "1"): "overlap of one lead with the strong reference fold8 k4 (share)",
            ("shared leads", "2"): "overlap of two leads with the strong reference fold8 k4 (share)",
            ("shared leads", "3"): "overlap of three leads with the strong reference fold8 k4 (share)",
            ("identical", ""): "sets identical to the strong reference ecg-on-demand fold8 k4 (share)",
        }.items():
            self.tidy("alignment", "evaluation", DEMAND, statistic, said[name]["value"], label, **where)
        near = said["mean Jaccard ecg-on-demand vs controlled reference fold8 k4"]["value"]
        self.tidy("alignment", "evaluation", DEMAND, "jaccard", near, **where | {"evaluator": "controlled"})
        for lead in ("aVR", "III", "V2", "V5", "I", "II", "V1", "V6"):
            share = said[f"lead share {lead} ecg-on-demand fold8 k4"]["value"]
            self.tidy("alignment", "evaluation", DEMAND, "lead frequency", share, lead)


def _interval(line: dict[str, Any]) -> dict[str, float]:
    return {name: line[name] for name in ("delta", "lo", "hi")}
