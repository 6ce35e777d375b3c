"""The best fixed lead set for an evaluator, a metric and a budget, found by trying every one.

Ties are broken by the metric, then by NLL, both rounded to 1e-12, then by the lexicographic order of the lead indices.
"""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, LeadwiseError
from leadwise.evaluators.contract import Evaluator, evaluator_name
from leadwise.evaluators.scoring import Scorer
from leadwise.leads import CLINICAL_SETS, LeadSet, bits_masks, lead_names, mask_bits, subsets
from leadwise.metrics import CLIP, Labels, bin_of
from leadwise.notebook import html_table
from leadwise.progress import progress
from leadwise.search_ledger import SearchLedger
from leadwise.store import atomic_file, text_of_csv, write_csv

MATCHED_METRICS = ("nll", "brier", "ece")
"""Metrics that a reference can be optimal for."""
BUDGETS = (1, 2, 3, 4, 6, 8)

_BYTES_AT_ONCE = 8 << 20
"""Probabilities of so many lead sets are held at once that they take about this much: it fits the processor's cache."""


@dataclass(frozen=True, eq=False, repr=False)
class References:
    """Every candidate of a search with its metrics, and so the best of them."""

    evaluator: str
    candidates: pd.DataFrame
    """One row a lead set: k, bits, nll, brier, ece; by k, then in lexicographic order, whatever order was given."""
    left_out: dict[int, int]
    """For each k, how many records were left out because they have fewer leads."""

    def __post_init__(self) -> None:
        candidates = self.candidates.astype({"k": np.int64, "bits": np.int64})  # those of no lead set are of no type
        bits = candidates["bits"].to_numpy()
        # of two sets of one size, that comes first which has the first lead in which they differ
        lexicographic = -mask_bits(bits_masks(bits)[:, ::-1])
        order = np.lexsort((lexicographic, candidates["k"]))
        twice = np.flatnonzero(np.diff(bits[order]) == 0)
        if len(twice):
            leads = LeadSet(int(bits[order][twice[0]]))
            raise InputError(f"The lead set '{leads}' is twice among the candidates of {self.evaluator}.")
        object.__setattr__(self, "candidates", candidates.iloc[order].reset_index(drop=True))

    def __repr__(self) -> str:
        best = "; ".join(f"{k}: {self.best('nll', k)}" for k in self.budgets)
        return f"<References of {self.evaluator}, best by NLL for each k: {best}>"

    def _repr_html_(self) -> str:
        """The best lead set for each budget and metric, with its value."""
        rows = []
        for k, best in self.frame.groupby("k"):
            each = [f"{leads}: {value:.4f}" for leads, value in zip(best["leads"], best["value"], strict=True)]
            rows.append([k, *each, best["candidates"].iloc[0]])
        columns = ("k", *(f"best {metric}" for metric in MATCHED_METRICS), "candidates")
        return html_table(f"References of {self.evaluator}", columns, rows)

    def best(self, metric: str, k: int) -> LeadSet:
        """The reference for a metric and a budget."""
        return LeadSet(int(self._ranked(metric, k)["bits"].iloc[0]))

    def ranking(self, metric: str, k: int) -> pd.DataFrame:
        """All candidates of size k, best first: leads, metrics, margin to the best, and k and bits."""
        ranked = self._ranked(metric, k)
        ranked = ranked.assign(
            leads=lead_names(ranked["bits"].to_numpy()), margin=ranked[metric] - ranked[metric].iloc[0]
        )
        return ranked[["leads", *MATCHED_METRICS, "margin", "k", "bits"]]

    def _ranked(self, metric: str, k: int) -> pd.DataFrame:
        """The candidates of size k, best first."""
        if metric not in MATCHED_METRICS:
            raise InputError(f"References are matched to {', '.join(MATCHED_METRICS)}; '{metric}' is none of them.")
        of_size = self.candidates[self.candidates["k"] == k].reset_index(drop=True)
        if of_size.empty:
            raise InputError(f"The search for {self.evaluator} has no sets of {k} leads; search that budget too.")
        # candidates are in lexicographic order within k, and a stable sort keeps it
        order = np.lexsort((of_size["nll"].round(12), of_size[metric].round(12)))
        return of_size.iloc[order].reset_index(drop=True)

    @property
    def frame(self) -> pd.DataFrame:
        """evaluator, metric, k, leads, value, candidates: one row a reference."""
        rows = []
        for k, metric in product(self.budgets, MATCHED_METRICS):
            ranked = self.ranking(metric, k)
            rows.append(
                (self.evaluator, metric, k, ranked["leads"].iloc[0], float(ranked[metric].iloc[0]), len(ranked))
            )
        return pd.DataFrame(rows, columns=["evaluator", "metric", "k", "leads", "value", "candidates"])

    def save(self, path: str | Path) -> None:
        """Write every candidate as CSV: evaluator, k, left_out, leads, nll, brier, ece."""
        leads, left_out = lead_names(self.candidates["bits"].to_numpy()), self.candidates["k"].map(self.left_out)
        table = self.candidates.assign(evaluator=self.evaluator, leads=leads, left_out=left_out)
        with atomic_file(Path(path)) as draft:
            write_csv(table[["evaluator", "k", "left_out", "leads", *MATCHED_METRICS]], draft)

    @classmethod
    def load(cls, path: str | Path) -> "References":
        """Read what `save` wrote, to the bit."""
        try:
            with Path(path).open(newline="") as file:
                rows = list(csv.DictReader(file))
            candidates, left_out = [], {int(row["k"]): int(row["left_out"]) for row in rows}
            for line, row in enumerate(rows, start=2):
                k, leads, values = int(row["k"]), LeadSet.parse(row["leads"]), [float(row[m]) for m in MATCHED_METRICS]
                if len(leads) != k or not all(0 <= value < float("inf") for value in values):
                    raise ValueError(f"line {line} needs {k} leads, and metrics that are finite and not negative")
                if row["evaluator"] != rows[0]["evaluator"] or int(row["left_out"]) != left_out[k]:
                    raise ValueError(f"line {line} is of another search than the lines before")
                candidates.append((k, leads.bits, *values))
            table = pd.DataFrame(candidates, columns=["k", "bits", *MATCHED_METRICS])
            return cls(text_of_csv(rows[0]["evaluator"]), table, left_out)
        except (OSError, ValueError, KeyError, IndexError, TypeError, LeadwiseError, csv.Error) as error:
            reason = str(error).removesuffix(".")
            raise InputError(f"{path} is not a table of references ({reason}); search them again.") from None

    @classmethod
    def merged(cls, searches: Sequence["References"]) -> "References":
        """Searches of one evaluator on the same records as one; they may have lead sets in common."""
        names = sorted({each.evaluator for each in searches})
        if len(names) != 1:
            raise InputError(f"Searches of one evaluator can be merged; these are of {', '.join(names) or 'none'}.")
        left_out: dict[int, int] = {}
        for k, count in (item for each in searches for item in each.left_out.items()):
            if left_out.setdefault(k, count) != count:
                raise InputError(
                    f"Searches of {names[0]} cannot be merged: at k = {k} one left out {left_out[k]} records and "
                    f"another {count}, so they are of different records."
                )
        candidates = pd.concat([each.candidates for each in searches], ignore_index=True).drop_duplicates()
        differing = candidates["bits"][candidates["bits"].duplicated()]
        if len(differing):
            raise InputError(
                f"Searches of {names[0]} cannot be merged: they differ in '{LeadSet(int(differing.iloc[0]))}', so "
                "they are of different records or of another evaluator of that name."
            )
        return cls(names[0], candidates, left_out)

    @property
    def budgets(self) -> list[int]:
        """Budgets that were searched."""
        return sorted(int(k) for k in self.candidates["k"].unique())

    def clinical(self) -> pd.DataFrame:
        """The named clinical sets among the candidates: name, leads, k, metrics, and rank among sets of their size."""
        rows = []
        for name, leads in CLINICAL_SETS.items():
            if leads.bits in self.candidates["bits"].to_numpy():
                row: dict[str, Any] = {"name": name, "leads": str(leads), "k": len(leads)}
                for metric in MATCHED_METRICS:
                    ranked = self.ranking(metric, len(leads))
                    at = int(np.flatnonzero(ranked["bits"] == leads.bits)[0])
                    row |= {metric: float(ranked[metric].iloc[at]), f"{metric}_rank": at + 1}
                rows.append(row)
        return pd.DataFrame(rows)


Several = References | Mapping[str, References] | Iterable[References]
"""References of one evaluator or of several, by themselves, in a list or in a mapping."""


def by_evaluator(references: Several) -> dict[str, References]:
    """References by the name of their evaluator; several searches of one evaluator are merged."""
    if isinstance(references, References):
        return {references.evaluator: references}
    given = references.values() if isinstance(references, Mapping) else references
    groups: dict[str, list[References]] = {}
    for each in given if isinstance(given, Iterable) else [given]:
        if not isinstance(each, References):
            raise InputError(f"References are what search_references gives, one or several; this is {each!r}.")
        groups.setdefault(each.evaluator, []).append(each)
    return {name: References.merged(group) if len(group) > 1 else group[0] for name, group in groups.items()}


def search_references(
    evaluator: Evaluator,
    records: Records,
    budgets: Sequence[int] = BUDGETS,
    ledger: str | Path | None = None,
    answers: str | Path | None = None,
) -> References:
    """Score every lead set of every budget on ``records``.

    Where records lack leads, those with fewer than k are left out at budget k, and candidates come from the leads that
    all others have. With a ``ledger`` file each finished lead set is a line that no kill can take back: an interrupted
    search of the same evaluator on the same records goes on from there. With a file for ``answers``, too, the logits
    of an evaluator that reads one lead set after the other are kept, 4 bytes a label, record and lead set:
    `answers_of_search` has them.
    """
    budgets = sorted(set(budgets))
    groups = list(_groups(records, budgets))
    done = SearchLedger(Path(ledger), evaluator, records, Path(answers) if answers else None) if ledger else None
    rows = []
    with progress("Searching lead sets", sum(len(masks) for _, _, masks in groups)) as advance:
        for k, kept, masks in groups:
            scorer, bits = Scorer(evaluator, kept), mask_bits(masks)
            found = dict(done.values) if done else {}
            todo = np.array([b not in found for b in bits], dtype=bool)
            advance(int((~todo).sum()))
            for part, values, probabilities in _metrics_of(scorer, kept.labels, masks[todo]):
                new = dict(zip(bits[todo][part].tolist(), values.tolist(), strict=True))
                found |= new
                if done:
                    done.add(new, probabilities, np.isin(records.rows, kept.rows))
                advance(len(values))
            rows += [(k, int(b), *found[int(b)]) for b in bits]
    left_out = {k: len(records) - len(kept) for k, kept, _ in groups}
    return References(evaluator_name(evaluator), pd.DataFrame(rows, columns=["k", "bits", *MATCHED_METRICS]), left_out)


def quick_metrics(evaluator: Evaluator, records: Records, leads: LeadSet) -> dict[str, float]:
    """Metrics of one lead set without a search.

    There are none under an evaluator that takes its time, which reads one lead set after the other, nor where a record
    with as many leads lacks one of these.
    """
    kept = with_enough(records, leads)
    if not len(kept) or not (scorer := Scorer(evaluator, kept)).at_once:
        return {}
    (values,) = subset_metrics(kept.labels, scorer.subsets(leads.mask[None]))
    return dict(zip(MATCHED_METRICS, values.tolist(), strict=True))


def with_enough(records: Records, leads: LeadSet) -> Records:
    """The records with at least as many leads as a set; none where one of them lacks a lead of it."""
    enough = records.lead_counts >= len(leads)
    return records.select(enough & records.available[enough][:, leads.mask].all())


def subset_metrics(labels: Labels, probabilities: Float64[np.ndarray, "s n l"]) -> Float64[np.ndarray, "s 3"]:
    """NLL, Brier and ten-bin ECE of each lead set, as `leadwise.metrics` has them, for many sets at once.

    The NLL is Σ log q over q, the probability of what was the case, here as |(1 − y) − p|. A logarithm costs as much as
    ten products, so it is taken of products of a few q each: with q ≥ 1e-12, twenty of them stay far above the smallest
    double. Their sign is taken away last, where there are fewest.
    """
    sets, n, n_labels = probabilities.shape
    bins = 10
    cell = bin_of(probabilities, bins)
    cell += bins * np.arange(n_labels)
    cell += bins * n_labels * np.arange(sets)[:, None, None]
    residual = probabilities - labels
    sums = np.bincount(cell.ravel(), residual.ravel(), minlength=sets * n_labels * bins)
    ece = np.abs(sums.reshape(sets, n_labels * bins)).sum(axis=1) / (n * n_labels)
    brier = np.einsum("snl,snl->s", residual, residual) / (n * n_labels)
    q = np.clip(probabilities, CLIP, 1 - CLIP, out=residual)
    q -= ~labels
    q = q.reshape(sets, -1)
    block = 20
    whole = q.shape[1] // block * block
    nll = -np.log(np.abs(q[:, :whole].reshape(sets, -1, block).prod(axis=2))).sum(axis=1)
    nll -= np.log(np.abs(q[:, whole:])).sum(axis=1)
    return np.stack([nll / (n * n_labels), brier, ece], axis=1)


def _metrics_of(
    scorer: Scorer, labels: Labels, masks: Bool[np.ndarray, "s 12"]
) -> Iterator[tuple[slice, Float64[np.ndarray, "m 3"], Float64[np.ndarray, "m n l"] | None]]:
    """Metrics of all lead sets, some at a time, in order, on all cores (NumPy lets go of the interpreter).

    Beside them are the probabilities, of an evaluator that reads one lead set after the other.

    Without a shortcut they go one by one: each is then safe as soon as it is scored, and nobody promised that such an
    evaluator may be called from two threads.
    """
    at_once = max(1, _BYTES_AT_ONCE // (8 * labels.size)) if scorer.at_once else 1
    parts = [slice(start, start + at_once) for start in range(0, len(masks), at_once)]

    def read(part: slice) -> tuple[slice, Float64[np.ndarray, "m 3"], Float64[np.ndarray, "m n l"] | None]:
        probabilities = scorer.subsets(masks[part])
        return part, subset_metrics(labels, probabilities), None if scorer.at_once else probabilities

    with ThreadPoolExecutor(os.cpu_count() if scorer.at_once else 1) as pool:
        yield from pool.map(read, parts)


def _groups(records: Records, budgets: Iterable[int]) -> Iterator[tuple[int, Records, Bool[np.ndarray, "s 12"]]]:
    """For each budget, the records that have enough leads, and the lead sets that all of those have."""
    for k in budgets:
        masks, kept = subsets(k), records.with_leads(k)
        possible = masks[~(masks & ~kept.available.all(axis=0)).any(axis=1)]
        if not len(possible):
            raise InputError(f"The records of {records.name} share fewer than {k} leads; search smaller budgets.")
        yield k, kept, possible
