"""Every number of a study, from a frozen bundle and the records of one role. Nothing is fitted here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leadwise.analysis.alignment import alignment_frame, choice_frame, modal_sets, policies_alignment_frame
from leadwise.analysis.bootstrap import Estimate, PatientBootstrap
from leadwise.analysis.calibration import calibration_frame, reliability_frame
from leadwise.analysis.contrasts import (
    OWN,
    Contrast,
    Readings,
    comparable,
    contrasts,
    contrasts_frame,
    interactions_frame,
    paired_frame,
)
from leadwise.analysis.patients import overlap_frame, patient_effects, patients_frame
from leadwise.analysis.tidy import REFERENCE
from leadwise.cohort.cohort import Records
from leadwise.evaluators.masks import frozen_masks, possible_masks
from leadwise.leads import LEADS, LeadSet, lead_names, mask_bits
from leadwise.metrics import METRICS, record_brier, record_nll
from leadwise.policies.allocation import Allocation
from leadwise.policies.rollout import allocate_budgets
from leadwise.run.bundle import Bundle
from leadwise.run.stage import Work
from leadwise.store import write_csv

MATCHED = ("nll", "brier", "ece")
PAIRS = (
    ("ecg-on-demand", "mga"),
    ("ecg-on-demand", "ccga"),
    ("ecg-on-demand", "cohort-state"),
    ("ecg-on-demand", "random-subset"),
    ("strong-mga", "mga"),
    ("strong-mga-controlled-state", "mga"),
    ("strong-mga-controlled-state", "strong-mga"),
)
"""Policies that are compared with each other."""
INTERACTIONS = (
    ("strong", "controlled", OWN),
    ("strong", "controlled", "controlled"),
    ("strong", "controlled", "strong"),
    ("mask-robust", "controlled", "controlled"),
    ("mask-robust", "controlled", "strong"),
    ("strong", "controlled-unbalanced", OWN),
    ("strong", "controlled-recalibrated", OWN),
)
"""Evaluator, baseline and reference of each family of interactions."""
ALIGNED = ("strong-mga", "strong-mga-controlled-state")
"""Policies that were trained on the strong evaluator, and are compared with the one that was not."""
STUDIED = ("ecg-on-demand", "mga")
"""Policies whose calibration and patients are looked at one by one, and whose interactions are the study's."""
ALL_LEADS = " ".join(LEADS)


def score_role(work: Work, role: str) -> None:
    """Score a role with everything that was frozen. The receipt of this stage is the receipt of having looked."""
    bundle = Bundle(work.study.plan_path.parent / "bundle")
    cohort = bundle.open(work.study.cohort, role)
    write_frames(work.out, RoleResults(bundle, cohort.role(role), work.scratch).frames())


@dataclass
class RoleResults:
    """All results of one role, as frames by the name of their file."""

    bundle: Bundle
    records: Records
    memory: Path
    """Where readings are kept as they are made."""

    def __post_init__(self) -> None:
        plan = self.plan = self.bundle.plan
        self.bootstrap = PatientBootstrap(self.records, plan.bootstrap.replicates, plan.bootstrap.seed)
        self.readings = Readings(self.records, self.bundle.evaluators.values(), self.bootstrap, self.memory)
        self.allocations: dict[tuple[str, int], Allocation] = {}
        for name, policy in self.bundle.policies.items():
            for allocation in allocate_budgets(policy, self.records, plan.budgets):
                self.allocations[name, allocation.k] = allocation
        references = self.bundle.references.values()
        self.compared = {key: comparable(each, references) for key, each in self.allocations.items()}
        """Of the allocations, what is for records that have every reference's leads: those that are compared."""

    def frames(self) -> dict[str, pd.DataFrame]:
        """Every table, in an order in which what was read before serves what comes next."""
        found = self._contrasts()
        tables = {
            "splits": split_frame([self.records]),
            "resamples": self._resample(),
            "left_out": self._left_out(),
            "contrasts": contrasts_frame(found),
            "interactions": self._interactions(found),
            "gap_closed": _gap_closed(found),
            "paired": self._paired(),
            "evaluator_quality": quality_frame(self.readings, self.records),
            "calibration": self._calibration(),
            "reliability": self._reliability(),
            "alignment": self._alignment(),
            "modal_sets": pd.concat([modal_sets(allocation) for allocation in self.allocations.values()]),
        }
        tables["patients"], tables["patient_effects"] = self._patients()
        tables["allocations"] = self._allocation_rows()
        tables["replicates"] = _replicates(found, tables["interactions"])
        tables["records"] = self._reading_rows()  # last, because it lists what the others have read
        return tables

    def _resample(self) -> pd.DataFrame:
        """``resamples.csv``: which draw of patients all intervals of the role share."""
        plan, drawn = self.plan.bootstrap, self.bootstrap
        facts = {"role": self.records.role, "patients": len(drawn.patients), "replicates": plan.replicates}
        return pd.DataFrame([facts | {"seed": plan.seed, "sha256": drawn.sha256}])

    def _left_out(self) -> pd.DataFrame:
        """``left_out.csv``: at each k, the records that no contrast with a reference is about."""
        rows = []
        for k, compared in {k: each.records for (_, k), each in self.compared.items()}.items():
            absent = self.records.select(~np.isin(self.records.rows, compared.rows))
            fewer = absent.lead_counts < k
            reason = np.where(fewer, f"fewer than {k} leads", "lacks a lead of a reference")
            rows.append(pd.DataFrame({"role": self.records.role, "k": k, "id": absent.ids, "reason": reason}))
        return pd.concat(rows, ignore_index=True)

    def _contrasts(self) -> list[Contrast]:
        """Own references for every evaluator that has some, and for the study's policies common ones."""
        found = []
        for evaluator in self.bundle.references:
            if evaluator in self.bundle.evaluators:
                found += self._against(evaluator, OWN, [evaluator], self.bundle.policies)
        for owner in ("controlled", "strong"):
            others = [name for name in ("controlled", "strong", "mask-robust") if name != owner]
            found += self._against(owner, owner, others, STUDIED)
        return found

    def _against(self, owner: str, reference: str, evaluators: list[str], policies: Iterable[str]) -> list[Contrast]:
        """Contrasts with one evaluator's references, at the budgets that were searched for it."""
        budgets = self.bundle.references[owner].budgets
        named = set(policies)
        allocations = [each for (name, k), each in self.compared.items() if name in named and k in budgets]
        if not allocations:
            return []
        references = self.bundle.references.values()
        return contrasts(self.readings, allocations, references, reference, evaluators=evaluators)

    def _interactions(self, found: list[Contrast]) -> pd.DataFrame:
        studied = [each for each in found if each.allocation.policy in STUDIED]
        frames = []
        for evaluator, baseline, reference in INTERACTIONS:
            present = {each.evaluator for each in studied}
            if {evaluator, baseline} <= present:
                frames.append(interactions_frame(studied, evaluator, baseline, reference))
        return pd.concat(frames, ignore_index=True)

    def _paired(self) -> pd.DataFrame:
        pairs = [
            (self.allocations[a, k], self.allocations[b, k])
            for a, b in PAIRS
            for k in self.plan.budgets
            if (a, k) in self.allocations and (b, k) in self.allocations
        ]
        return paired_frame(self.readings, pairs, evaluators=["controlled", "strong"])

    def _ece_matched(self, evaluator: str) -> dict[int, LeadSet]:
        references = self.bundle.references[evaluator]
        return {k: references.best("ece", k) for k in self.plan.budgets if k in references.budgets}

    def _calibration(self) -> pd.DataFrame:
        frames = []
        for evaluator in ("controlled", "strong"):
            for k, leads in self._ece_matched(evaluator).items():
                studied = [self.compared[name, k] for name in STUDIED]
                frames.append(calibration_frame(self.readings, evaluator, studied, leads))
        return pd.concat(frames, ignore_index=True)

    def _reliability(self) -> pd.DataFrame:
        frames = []
        for evaluator in ("controlled", "strong"):
            for k, leads in self._ece_matched(evaluator).items():
                studied = [self.compared[name, k] for name in STUDIED]
                records = studied[0].records
                masks = [each.masks for each in studied] + [np.tile(leads.mask, (len(records), 1))]
                said = self.readings.probabilities(evaluator, records, masks)
                arms = dict(zip((*STUDIED, REFERENCE), said, strict=True))
                curves = reliability_frame(records.labels, arms, records.label_names)
                frames.append(curves.assign(role=records.role, evaluator=evaluator, k=k))
        return pd.concat(frames, ignore_index=True)

    def _patients(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        tables, effects = [], []
        first = self.bundle.policies["ecg-on-demand"].first_lead
        for evaluator in ("controlled", "strong"):
            references = self.bundle.references[evaluator]
            for k in [k for k in self.plan.budgets if k in references.budgets]:
                both = [
                    patient_effects(self.readings, evaluator, self.compared[name, k], references.best("nll", k), first)
                    for name in STUDIED
                ]
                tables += [patients_frame(each) for each in both] + [overlap_frame(*both)]
                for each in both:
                    facts = {
                        "role": self.records.role,
                        "policy": each.allocation.policy,
                        "evaluator": evaluator,
                        "k": k,
                    }
                    patients = np.unique(each.allocation.records.patients)
                    numbers = {"patient": patients, "delta": each.delta, "uncertainty": each.uncertainty}
                    effects.append(pd.DataFrame(numbers).assign(**facts))
        return pd.concat(tables, ignore_index=True), pd.concat(effects, ignore_index=True)

    def _alignment(self) -> pd.DataFrame:
        frames = []
        for (_, k), allocation in self.allocations.items():
            frames.append(choice_frame(self.bootstrap, allocation))
            for evaluator in ("controlled", "strong"):
                references = self.bundle.references[evaluator]
                if k in references.budgets:
                    leads = references.best("nll", k)
                    frames.append(alignment_frame(self.bootstrap, allocation, leads, evaluator, "nll"))
        for a, b in PAIRS:
            for k in self.plan.budgets:
                if (a, k) in self.allocations and (b, k) in self.allocations:
                    pair = self.allocations[a, k], self.allocations[b, k]
                    frames.append(policies_alignment_frame(self.bootstrap, *pair))
        return pd.concat(frames, ignore_index=True)

    def _allocation_rows(self) -> pd.DataFrame:
        names = np.array(LEADS)
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "role": each.records.role,
                        "policy": each.policy,
                        "trained_on": each.trained_on,
                        "k": each.k,
                        "id": each.records.ids,
                        "leads": [" ".join(row) for row in names[each.order]],
                    }
                )
                for each in self.allocations.values()
            ],
            ignore_index=True,
        )

    def _reading_rows(self) -> pd.DataFrame:
        """Every (evaluator, record, lead set) that was read, once."""
        frames = []
        for evaluator, scorer in self.readings.scorers.items():
            positions, masks, probabilities = scorer.remembered
            records = scorer.records
            labels = records.labels[positions]
            columns: dict[str, Any] = {
                "role": records.role,
                "evaluator": evaluator,
                "id": records.ids[positions],
                "patient": records.patients[positions],
                "leads": lead_names(mask_bits(masks)),
            }
            columns |= {f"y_{name}": labels[:, i] for i, name in enumerate(records.label_names)}
            columns |= {f"p_{name}": probabilities[:, i] for i, name in enumerate(records.label_names)}
            columns |= {"nll": record_nll(labels, probabilities), "brier": record_brier(labels, probabilities)}
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)


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


def quality_frame(readings: Readings, records: Records) -> pd.DataFrame:
    """``evaluator_quality.csv``: every evaluator with all leads, and under the frozen draw of random masks."""
    everything = records.available
    random = possible_masks(frozen_masks(len(records)), everything)
    rows = []
    for evaluator in readings.evaluators:
        for leads, masks in ((ALL_LEADS, everything), ("random masks", random)):
            (said,) = readings.probabilities(evaluator, records, [masks])
            estimates = readings.bootstrap.metrics(records, records.labels, {"": said}, MATCHED)
            for metric in (*MATCHED, "auroc", "auprc"):
                facts = {"role": records.role, "evaluator": evaluator, "leads": leads, "metric": metric}
                if metric in MATCHED:
                    low, high = estimates["", metric].interval
                    rows.append(facts | {"value": estimates["", metric].value, "lo": low, "hi": high})
                else:
                    rows.append(
                        facts | {"value": METRICS[metric](records.labels, said, None), "lo": np.nan, "hi": np.nan}
                    )
    return pd.DataFrame(rows)


def _gap_closed(found: Sequence[Contrast]) -> pd.DataFrame:
    """``gap_closed.csv``: which share of a policy's D a policy that was trained on the evaluator itself makes up for.

    (D of the one − D of the other) / D of the one, replicate by replicate; it says something where D is above zero.
    """
    gaps = {
        (each.allocation.policy, each.allocation.k, each.metric): each
        for each in found
        if each.evaluator == each.reference_evaluator == "strong"
    }
    rows = []
    for (policy, k, metric), after in gaps.items():
        before = gaps.get(("mga", k, metric))
        if policy not in ALIGNED or before is None:
            continue
        change = before.delta - after.delta
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = change.replicates / before.delta.replicates
            share = Estimate(float(np.divide(change.value, before.delta.value)), shares)
        facts = {"role": after.allocation.records.role, "evaluator": "strong", "k": k, "metric": metric}
        facts |= {"policy": policy, "baseline_policy": "mga"}
        values = {"d_baseline": before.delta.value, "d_policy": after.delta.value, "share": share.value}
        rows.append(facts | values | dict(zip(("lo", "hi"), share.interval, strict=True)))
    columns = ["role", "evaluator", "k", "metric", "policy", "baseline_policy", "d_baseline", "d_policy", "share"]
    return pd.DataFrame(rows, columns=[*columns, "lo", "hi"])


def _replicates(found: Sequence[Contrast], interactions: pd.DataFrame) -> pd.DataFrame:
    """The bootstrap values of every contrast, then of every interaction: the differences of two contrasts'."""
    frames, by_cell = [], {}
    for each in found:
        facts = {key: value for key, value in each.row.items() if key not in ("adaptive", "fixed", "delta", "lo", "hi")}
        values = each.delta.replicates
        frames.append(pd.DataFrame({"replicate": np.arange(len(values)), "delta": values}).assign(**facts))
        allocation = each.allocation
        by_cell[allocation.policy, allocation.k, each.metric, each.evaluator, each.reference_evaluator] = values
    named = ["role", "policy", "trained_on", "evaluator", "baseline_evaluator", "reference", "k", "metric"]
    for row in interactions[named].itertuples(index=False, name=None):
        _, policy, _, evaluator, baseline, reference, k, metric = row
        read, base = (
            by_cell[policy, k, metric, name, name if reference == OWN else reference] for name in (evaluator, baseline)
        )
        replicates = pd.DataFrame({"replicate": np.arange(len(read)), "interaction": read - base})
        frames.append(replicates.assign(**dict(zip(named, row, strict=True))))
    return pd.concat(frames, ignore_index=True)


def write_frames(directory: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """Tables as CSV and Parquet; what has a row for every record as Parquet only."""
    for name, frame in frames.items():
        # numbers among lead names are text in Parquet, whose columns have one type
        mixed = [str(column) for column, cells in frame.items() if cells.dtype == object]
        one_type = frame.assign(**{column: frame[column].map(str, na_action="ignore") for column in mixed})
        one_type.to_parquet(directory / f"{name}.parquet", index=False)
        if name not in PARQUET_ONLY:
            write_csv(frame, directory / f"{name}.csv")


PARQUET_ONLY = ("allocations", "records", "replicates", "patient_effects")
