"""What an estimate varies with beside the patients: seeds of networks, draws of masks, seeds of policies.

Of S replications the estimates are θ_s, and C is the S × S covariance of their bootstrap replicates, which share one
draw of the P patients. Two-way random effects, replications × patients, are those of MRMC studies (readers × cases:
Obuchowski and Rockette, with the degrees of freedom of Hillis):

    MS  = sample variance of θ_1 … θ_S
    Var = P / (P − 1) · mean of the diagonal of C,        Cov = P / (P − 1) · mean of the rest of C
    variance of the mean    v  = MS / S + max(Cov, 0)
    part of the source      σ² = max(0, MS − (Var − Cov))
    degrees of freedom      df = v² / ((MS / S)² / (S − 1))
    interval                mean ± t(97.5%; df) · √v

Why: with θ_s = μ + a_s + e_s, a_s of the source, e_s of the patients and of source × patients, E MS = σ² + Var − Cov,
and the mean varies by σ² / S + Var / S + (S − 1) / S · Cov = E MS / S + Cov.

Why P / (P − 1): a bootstrap draws from the patients at hand, whose covariance divides by P. For a mean over patients C
is (P − 1) / P of the unbiased covariance of the means, exactly, and for a ratio of means to first order. With the
factor, balanced data and plain means all of this equals the analysis of variance with expected mean squares. With
1,900 patients the factor changes a deviation by 0.03%. C itself has no further bias: replicates are R independent
draws, and their covariance divides by R − 1.

What the interval is of: the mean over all replications that the source could give, over all patients, so «the method»
and not «these models». Any metric that has replicates will do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.interactions import Interaction
from leadwise.errors import InputError

CONDITIONAL, WITH_SEEDS, WITH_SELECTION = "conditional", "with_seeds", "with_selection"
"""Kinds of intervals: given the trained models and the references, over replications, over choices of references."""
Row = dict[str, str | int | float]


class Cell(NamedTuple):
    """What an estimate is of: the key columns that ``variance.csv`` and ``replications.csv`` share."""

    role: str
    quantity: str
    """``"interaction"`` or ``"contrast"``."""
    policy: str
    evaluator: str
    baseline_evaluator: str
    """Blank for a contrast."""
    k: int
    metric: str


@dataclass(frozen=True)
class Spread:
    """Mean of replications, with its interval over replications and patients."""

    value: float
    sd: float
    """Standard deviation of the mean: √v."""
    sd_source: float
    """Standard deviation from one replication to another, σ, apart from that which comes from patients."""
    df: float
    """Degrees of freedom; without end where all replications agree."""

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval, of Student's t."""
        from scipy.special import stdtrit

        margin = float(stdtrit(self.df, 0.975)) * self.sd
        return self.value - margin, self.value + margin


def spread(replications: Sequence[Estimate], patients: int) -> Spread:
    """The mean of two or more replications, by two-way random effects.

    All of them share one draw of ``patients`` patients. Draws in which any of them is undefined are left out.
    """
    count = len(replications)
    if count < 2:
        raise InputError(f"Variance between replications needs two or more; there are {count}.")
    values = np.array([each.value for each in replications])
    draws = np.stack([each.replicates for each in replications])
    covariance = np.cov(draws[:, ~np.isnan(draws).any(axis=0)]) * patients / (patients - 1)
    own = float(covariance.trace()) / count
    common = float(covariance.sum() - covariance.trace()) / (count * (count - 1))
    between = float(values.var(ddof=1))
    variance = between / count + max(common, 0.0)
    df = variance**2 / ((between / count) ** 2 / (count - 1)) if between > 0 else np.inf
    of_source = max(0.0, between - (own - common))
    return Spread(float(values.mean()), float(np.sqrt(variance)), float(np.sqrt(of_source)), df)


def cells_of(found: Iterable[Interaction], policy: str, evaluator: str, baseline: str) -> dict[Cell, Estimate]:
    """Each interaction of one policy and both of its contrasts, under the names of those whom others stand in for."""
    cells: dict[Cell, Estimate] = {}
    for each in found:
        role, k, metric = each.key.role, each.key.k, each.key.metric
        cells[Cell(role, "interaction", policy, evaluator, baseline, k, metric)] = each.estimate
        cells[Cell(role, "contrast", policy, evaluator, "", k, metric)] = each.read.delta
        cells[Cell(role, "contrast", policy, baseline, "", k, metric)] = each.base.delta
    return cells


Replicate = Callable[[Mapping[str, str]], Mapping[Cell, Estimate]]
"""Estimates by cell, with members of the plan replaced by those that stand in for them."""


@dataclass(frozen=True)
class Replications:
    """Estimates of the members of a plan, and again with others that stand in for them."""

    own: Mapping[Cell, Estimate]
    sources: Mapping[str, Mapping[Cell, Sequence[Estimate]]]
    """By what varies: all replications of every cell of which it varies something."""
    patients: int
    """Number of patients that are drawn."""

    @classmethod
    def make(
        cls, replicate: Replicate, sources: Mapping[str, Mapping[str, Sequence[str]]], patients: int
    ) -> "Replications":
        """Make every replication. ``sources`` has, by what varies, the stand-ins of each member, one after the other.

        A cell that some replication does not have (its evaluator was searched at fewer budgets) is left out for that
        source, and so is one that is not about any of the members for whom others stand in.
        """
        own, made = replicate({}), {}
        for source, stand_ins in sources.items():
            about = [cell for cell in own if {cell.policy, cell.evaluator, cell.baseline_evaluator} & set(stand_ins)]
            together = zip(*stand_ins.values(), strict=True) if about else ()
            several = [replicate(dict(zip(stand_ins, names, strict=True))) for names in together]
            common = [cell for cell in about if all(cell in each for each in several)]
            made[source] = {cell: [each[cell] for each in several] for cell in common}
        return cls(own, made, patients)

    @property
    def variance(self) -> Iterator[Row]:
        """Rows of ``variance.csv``: the plan's own estimates, then the mean over each source's replications."""
        for cell, estimate in self.own.items():
            yield conditional_row(cell, estimate)
        for source, cells in self.sources.items():
            for cell, several in cells.items():
                found = spread(several, self.patients)
                low, high = found.interval
                facts = cell._asdict() | {"interval_kind": WITH_SEEDS, "source": source}
                facts |= {"replications": len(several), "replicates": len(several[0].replicates)}
                facts |= {"value": found.value, "lo": low, "hi": high, "sd": found.sd, "sd_source": found.sd_source}
                yield facts | {"df": found.df if np.isfinite(found.df) else np.nan}

    @property
    def replications(self) -> Iterator[Row]:
        """Rows of ``replications.csv``: every replication's own estimate, with its interval over patients."""
        for source, cells in self.sources.items():
            for cell, several in cells.items():
                for number, each in enumerate(several, 1):
                    low, high = each.interval
                    facts = {"source": source, "replication": number, **cell._asdict()}
                    yield facts | {"value": each.value, "lo": low, "hi": high}


def conditional_row(cell: Cell, estimate: Estimate, kind: str = CONDITIONAL, source: str = "") -> Row:
    """A row of ``variance.csv`` whose interval is made of percentiles of replicates, of whatever ``kind`` they are."""
    low, high = estimate.interval
    facts = cell._asdict() | {"interval_kind": kind, "source": source, "replications": 1}
    facts |= {"replicates": len(estimate.replicates), "value": estimate.value, "lo": low, "hi": high}
    return facts | {"sd": estimate.sd, "sd_source": np.nan, "df": np.nan}
