"""The choice of references made anew: what a search would have found on other patients of the selection role.

A nested bootstrap. The patients of the selection role are resampled, and in each resample the best lead set is chosen
by the rule of `References`. Nothing is read for it but what the search has read. It tells how often each set is chosen;
what the chosen sets are worth to patients whom their resample does not hold (bootstrap bias correction), which no
search has flattered; and how much is lost, on all patients, by a set that a resample chose.

For an interval of a contrast that includes the choice, replicate b takes resample b of the scored role's patients, and
the set that resample b of the selection role chose as the fixed arm. The two roles share no patient, so their resamples
are independent. The estimate in the middle stays that of the frozen reference.

NLL and Brier of all sets in all resamples are one product, of multiplicities and per-patient sums. An ECE is no such
sum, but has a lower bound that is one: with T_c the sum of y − p over the records of cell c (a label and a bin),
Σ_c |T_c| ≥ Σ_c s_c T_c for any signs s_c, and those of T_c on all patients are seldom wrong in a resample. So a set's
ECE is computed only in resamples where its bound does not rule it out; the choice is exact.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int

from leadwise.analysis.bootstrap import SEED, Estimate, PatientBootstrap
from leadwise.analysis.contrasts import Contrast
from leadwise.analysis.interactions import estimate_interactions
from leadwise.analysis.readings import Readings
from leadwise.analysis.variance import WITH_SELECTION, Row, cells_of, conditional_row
from leadwise.cohort.cohort import Records
from leadwise.evaluators.contract import Evaluator
from leadwise.evaluators.scoring import Scorer
from leadwise.leads import LeadSet, bits_masks, lead_names
from leadwise.metrics import bin_of, record_brier, record_nll
from leadwise.references import MATCHED_METRICS, References

LISTED = 0.005
"""Sets that at least this share of the resamples chooses are listed."""
KEPT = 0.01
"""Sets that at least this share chooses are read on a scored role; see `Reselection.kept`."""

Chosen = Mapping[tuple[str, str, int], Int[np.ndarray, " r"]]
"""Bits of the set that each resample chose, by evaluator, metric and k."""

SOURCE = "references"
"""What varies in an interval with selection, as ``variance.csv`` has it."""

_BINS = 10
_BYTES_AT_ONCE = 8 << 20
"""About as many bytes of probabilities are asked for at a time."""


@dataclass(frozen=True, eq=False)
class Reselection:
    """The reference of one metric and budget, chosen anew in every resample."""

    references: References
    role: str
    metric: str
    k: int
    chosen: Int[np.ndarray, " r"]
    """Bits of the set that each resample chooses."""
    kept: Int[np.ndarray, " r"]
    """The same, chosen among those sets only that at least `KEPT` of the resamples choose, and the reference.

    Every set that is ever chosen would have to be read on each scored role, and a flat optimum has hundreds. A resample
    whose choice is rarer takes the best of the sets that are kept, by its own patients, which is nearly as good there.
    """
    corrected: float
    """Mean over resamples of the value of the chosen set for the patients whom the resample does not hold."""

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """All candidates, best first, with ``probability``, the share of resamples that choose each."""
        ranked = self.references.ranking(self.metric, self.k)
        sets, counts = np.unique(self.chosen, return_counts=True)
        share = dict(zip(sets.tolist(), (counts / len(self.chosen)).tolist(), strict=True))
        return ranked.assign(
            rank=np.arange(1, len(ranked) + 1),
            value=ranked[self.metric],
            probability=[share.get(bits, 0.0) for bits in ranked["bits"].tolist()],
        )

    @property
    def regret(self) -> float:
        """Mean over resamples of the value, on all patients, of the set chosen there minus that of the best."""
        return float(self.ranking["probability"].to_numpy() @ self.ranking["margin"].to_numpy())


def reselect(
    evaluator: Evaluator, references: References, k: int, records: Records, replicates: int, seed: int = SEED
) -> list[Reselection]:
    """The references of budget k chosen anew in every resample of the patients, one answer a metric.

    ``records`` are those of the search, which may have left some out. The evaluator reads every candidate twice; one
    that takes its time is given as the table that its search has left.
    """
    kept = records.with_leads(k)
    bits = references.candidates.loc[references.candidates["k"] == k, "bits"].to_numpy()
    sums, found = _Sums(Scorer(evaluator, kept), bits_masks(bits), PatientBootstrap(kept, replicates, seed)), []
    for metric in MATCHED_METRICS:
        chosen = sums.best(metric, np.arange(len(bits)))
        often = np.bincount(chosen, minlength=len(bits)) >= KEPT * len(chosen)
        often |= bits == references.best(metric, k).bits
        rare, stands = ~often[chosen], chosen.copy()
        if rare.any():
            stands[rare] = sums.best(metric, np.flatnonzero(often))[rare]
        outside = sums.outside(metric, chosen)
        outside = outside[~np.isnan(outside)]
        corrected = float(outside.mean()) if len(outside) else np.nan
        found.append(Reselection(references, records.role, metric, k, bits[chosen], bits[stands], corrected))
    return found


class _Sums:
    """Per-patient sums that the metrics of all candidates are made of, and the choices that follow from them."""

    def __init__(self, scorer: Scorer, masks: Bool[np.ndarray, "s 12"], bootstrap: PatientBootstrap) -> None:
        records = scorer.records
        self.scorer, self.candidates, self.labels, self.bootstrap = scorer, masks, records.labels, bootstrap
        self.cluster = bootstrap.cluster(records.patients)
        self.shape = (len(bootstrap.patients), self.labels.shape[1] * _BINS)
        self.cells = _BINS * np.arange(self.labels.shape[1])
        losses = {metric: np.empty((len(records), len(masks))) for metric in MATCHED_METRICS}
        self.ece = np.empty(len(masks))
        """ECE of each set on all patients, times the number of records."""
        for at, probabilities in self._each(np.arange(len(masks))):
            losses["nll"][:, at] = record_nll(self.labels, probabilities)
            losses["brier"][:, at] = record_brier(self.labels, probabilities)
            residual, cell = self.labels - probabilities, bin_of(probabilities, _BINS) + self.cells
            totals = np.bincount(cell.ravel(), residual.ravel(), minlength=self.shape[1])
            self.ece[at] = np.abs(totals).sum() / self.labels.shape[1]
            losses["ece"][:, at] = (np.sign(totals)[cell] * residual).mean(axis=1)  # sums of it are the lower bound
        self.records = bootstrap.patient_sums(records.patients, np.ones((len(records), 1)))
        self.counts = bootstrap.totals(self.records)[:, 0]
        self.sums = {metric: bootstrap.patient_sums(records.patients, each) for metric, each in losses.items()}

    def _each(self, sets: Int[np.ndarray, " s"]) -> Iterator[tuple[int, Float64[np.ndarray, "n l"]]]:
        """Each set with its probabilities, of which some are read at a time."""
        size = max(1, _BYTES_AT_ONCE // (8 * self.labels.size))
        for start in range(0, len(sets), size):
            part = sets[start : start + size]
            yield from zip(part.tolist(), self.scorer.subsets(self.candidates[part]), strict=True)

    def best(self, metric: str, sets: Int[np.ndarray, " s"]) -> Int[np.ndarray, " r"]:
        """The best of these sets in each resample, by the rule of `References`: by metric, NLL, and the order given."""
        values = np.ascontiguousarray(self.bootstrap.totals(self.sums[metric][:, sets]).T)
        if metric == "ece":
            values = self._ece(values, sets)
        values /= self.counts
        np.round(values, 12, out=values)
        tied = values == values.min(axis=0)
        several = np.flatnonzero(tied.sum(axis=0) > 1)
        if len(several):
            weights = self.bootstrap.multiplicities[several].astype(np.float64)
            nll = (weights @ self.sums["nll"][:, sets] / self.counts[several, None]).round(12).T
            nll[~tied[:, several]] = np.inf
            tied[:, several] = nll == nll.min(axis=0)
        return sets[tied.argmax(axis=0)]

    def _ece(self, bounds: Float64[np.ndarray, "s r"], sets: Int[np.ndarray, " s"]) -> Float64[np.ndarray, "s r"]:
        """ECE of each set in each resample, times its records; without end where lower bounds rule the set out.

        Sets that are good on all patients come first, so that bounds rule out most of the others.
        """
        values, least = np.full(bounds.shape, np.inf), np.full(bounds.shape[1], np.inf)
        order = np.argsort(self.ece[sets], kind="stable")
        for place, (_, probabilities) in zip(order, self._each(sets[order]), strict=True):
            # what is within a tie of the best, and what rounding could put there, is not ruled out
            possible = np.flatnonzero(bounds[place] <= least + 1e-9)
            if len(possible):
                weights = self.bootstrap.multiplicities[possible].astype(np.float64)
                values[place, possible] = self._ece_totals(weights, probabilities)
                least[possible] = np.minimum(least[possible], values[place, possible])
        return values

    def _ece_totals(
        self, weights: Float64[np.ndarray, "r p"], probabilities: Float64[np.ndarray, "n l"]
    ) -> Float64[np.ndarray, " r"]:
        """ECE of one set, times the number of records, under each row of patients' weights."""
        cell = bin_of(probabilities, _BINS) + self.cells + self.shape[1] * self.cluster[:, None]
        residual = (self.labels - probabilities).ravel()
        sums = np.bincount(cell.ravel(), residual, minlength=self.shape[0] * self.shape[1]).reshape(self.shape)
        return np.abs(weights @ sums[:, sums.any(axis=0)]).sum(axis=1) / self.labels.shape[1]

    def outside(self, metric: str, chosen: Int[np.ndarray, " r"]) -> Float64[np.ndarray, " r"]:
        """For the patients whom each resample does not hold, the metric of its set; NaN where it holds them all."""
        values = np.empty(len(chosen))
        for at, probabilities in self._each(np.unique(chosen)):
            rows = chosen == at
            outside = (self.bootstrap.multiplicities[rows] == 0).astype(np.float64)
            totals = outside @ self.sums[metric][:, at]
            if metric == "ece":
                totals = self._ece_totals(outside, probabilities)
            with np.errstate(invalid="ignore"):
                values[rows] = totals / (outside @ self.records[:, 0])
        return values


def selection_frame(found: Iterable[Reselection]) -> pd.DataFrame:
    """``selection.csv``: the reference of each evaluator, metric and k, and every set that resamples often choose."""
    rows = []
    for each in found:
        ranked = each.ranking
        listed = ranked[(ranked["rank"] == 1) | (ranked["probability"] >= LISTED)]
        facts = {"role": each.role, "evaluator": each.references.evaluator, "metric": each.metric}
        rows += [facts | row for row in listed[["leads", "k", "rank", "value", "probability"]].to_dict("records")]
    return pd.DataFrame(rows)


def selection_summary_frame(found: Iterable[Reselection]) -> pd.DataFrame:
    """``selection_summary.csv``: how stable each reference is, and how far its value flatters it.

    ``sets`` are ever chosen; ``kept`` of them stand for all in an interval with selection: they are the own choice of a
    ``share`` of the resamples.
    """
    return pd.DataFrame(
        {
            "role": each.role,
            "evaluator": each.references.evaluator,
            "metric": each.metric,
            "k": each.k,
            "sets": len(np.unique(each.chosen)),
            "kept": len(np.unique(each.kept)),
            "share": float((each.chosen == each.kept).mean()),
            "replicates": len(each.chosen),
            "probability": float(each.ranking["probability"].iloc[0]),
            "value": float(each.ranking["value"].iloc[0]),
            "corrected": each.corrected,
            "regret": each.regret,
        }
        for each in found
    )


def choices_frame(found: Iterable[Reselection]) -> pd.DataFrame:
    """``selection_choices.parquet``: the set that stands for each resample's choice, row by row."""
    frames = []
    for each in found:
        facts = {"role": each.role, "evaluator": each.references.evaluator, "metric": each.metric, "k": each.k}
        frames.append(pd.DataFrame(facts | {"replicate": np.arange(len(each.kept)), "leads": lead_names(each.kept)}))
    return pd.concat(frames, ignore_index=True)


def read_choices(frame: pd.DataFrame) -> Chosen:
    """The choices of ``selection_choices.parquet``, resample by resample."""
    bits = {leads: LeadSet.parse(leads).bits for leads in frame["leads"].unique()}
    ordered = frame.sort_values("replicate").assign(bits=lambda rows: rows["leads"].map(bits))
    cells = ordered.groupby(["evaluator", "metric", "k"])["bits"]
    return {(str(cell[0]), str(cell[1]), int(str(cell[2]))): rows.to_numpy(np.int64) for cell, rows in cells}


def reselected(
    readings: Readings, contrasts: Iterable[Contrast], chosen: Chosen
) -> Iterator[tuple[Contrast, Contrast]]:
    """Contrasts whose fixed arm is, in replicate b, the set that resample b of the selection role chose.

    Each comes with another in which the scored patients stay as they are, so that its replicates vary with the choice
    alone. Contrasts are left out if their reference was not chosen anew. Where some of the compared records lack a lead
    of a chosen set, the frozen reference stays in its place.
    """
    arms: dict[tuple[object, ...], tuple[Float64[np.ndarray, " r"], Float64[np.ndarray, " r"]]] = {}
    for each in contrasts:
        records, k = each.allocation.records, each.allocation.k
        sets = chosen.get((each.reference_evaluator, each.reference_metric, k))
        if sets is None:
            continue
        about = (each.evaluator, each.reference_evaluator, each.reference_metric, k, each.metric)
        key = (*about, records.rows.tobytes())  # policies share it
        if key not in arms:
            arms[key] = _fixed_arm(readings, each, sets)
        picked, values = arms[key]
        constant = np.full(len(sets), each.adaptive.value)
        yield (
            replace(each, fixed=Estimate(each.fixed.value, picked)),
            replace(each, adaptive=Estimate(each.adaptive.value, constant), fixed=Estimate(each.fixed.value, values)),
        )


def _fixed_arm(
    readings: Readings, contrast: Contrast, sets: Int[np.ndarray, " r"]
) -> tuple[Float64[np.ndarray, " r"], Float64[np.ndarray, " r"]]:
    """Metric of the set that each resample chose: in the same replicate of the scored patients, and for all of them."""
    records = contrast.allocation.records
    distinct, place = np.unique(sets, return_inverse=True)
    masks = bits_masks(distinct)
    readable = ~(masks & ~records.available.all(axis=0)).any(axis=1)
    answers = readings.probabilities(
        contrast.evaluator, records, [np.tile(mask, (len(records), 1)) for mask in masks[readable]]
    )
    found = readings.bootstrap.metrics(records, records.labels, dict(enumerate(answers)), (contrast.metric,))
    estimates = np.full(len(distinct), contrast.fixed)
    estimates[readable] = [found[arm, contrast.metric] for arm in range(len(answers))]
    replicates = np.stack([each.replicates for each in estimates])
    return replicates[place, np.arange(len(sets))], np.array([each.value for each in estimates])[place]


def with_selection_rows(
    readings: Readings, contrasts: Iterable[Contrast], chosen: Chosen, evaluator: str, baseline: str
) -> Iterator[Row]:
    """Rows of ``variance.csv`` whose intervals include the choice of references: of each I, and of both of its D.

    ``sd_source`` is the standard deviation that comes from the choice alone, ``replications`` the number of resamples
    that chose.
    """
    both = list(reselected(readings, contrasts, chosen))
    whole, alone = (estimate_interactions([each[arm] for each in both], evaluator, baseline) for arm in (0, 1))
    for policy in dict.fromkeys(each.key.policy for each in whole):
        cells, deviations = (
            cells_of([each for each in found if each.key.policy == policy], policy, evaluator, baseline)
            for found in (whole, alone)
        )
        for cell, estimate in cells.items():
            row = conditional_row(cell, estimate, WITH_SELECTION, SOURCE)
            yield row | {"replications": len(estimate.replicates), "sd_source": deviations[cell].sd}
