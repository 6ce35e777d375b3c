"""What was claimed in words, and whether our results say so too.

A claim is a line of `claims.csv`: its columns say which cells decide it, and under which condition a cell holds. A
condition compares numbers of the cell, as in ``lo < 0 < hi``. A name before a number means the same cell of another
evaluator or policy, as in ``delta > 0 and controlled delta < 0``; a bare name means the value there.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leadwise.analysis.tidy import REFERENCE
from leadwise.cohort.roles import PTBXL_ROLES
from leadwise.report.findings import MISSING, Findings, Found
from leadwise.report.published import read_published

HOLDS, FAILS, NOT_ANSWERABLE = "holds", "fails", "not answerable"
AUDIT = "audit"

CLAIM_COLUMNS = ("claim", "where", "role", "cells", "holding", "verdict")
CELL_COLUMNS = (
    *("claim", "role", "policy", "evaluator", "reference", "k", "metric"),
    *("value", "lo", "hi", "holds", "cell"),
)


def claims_frame(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """``claims.csv``: how many of the cells that decide a claim are there, how many hold, and the verdict.

    A claim fails when any cell fails; it holds when all its cells are there and hold. A claim about a role that was not
    scored is not answerable; then the same claim is put to the audit role, in a row of its own below.
    """
    rows = [
        (claim.text, claim.where, role, len(holds), sum(holds), verdict(holds, len(claim.cells(role))))
        for claim, role, decided in _decided(Findings(results, roles))
        for holds in [[cell.holds for cell in decided]]
    ]
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))


def claim_cells(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """The cells that decide each claim, as far as they are there.

    A cell whose condition names several evaluators or policies has a row for each; ``cell`` counts the cells of a claim
    in a role, and all rows of a cell agree in ``holds``.
    """
    rows = [
        (claim.text, *place, *estimate, cell.holds, number)
        for claim, _, decided in _decided(Findings(results, roles))
        for number, cell in enumerate(decided, 1)
        for place, estimate in cell.estimates
    ]
    return pd.DataFrame(rows, columns=list(CELL_COLUMNS))


class Place(NamedTuple):
    """Where an estimate stands: a cell of a claim. What a claim does not name is blank."""

    role: str
    policy: str
    evaluator: str
    reference: str
    k: int
    metric: str


class Decided(NamedTuple):
    """A cell that is there: the estimates that decide it, and whether it holds."""

    estimates: list[tuple[Place, Found]]
    holds: bool


@dataclass(frozen=True)
class Claim:
    """A line of ``claims.csv``."""

    text: str
    where: str
    fold: int
    policies: str
    evaluator: str
    quantity: str
    reference: str
    k: str
    metrics: str
    holds_when: str

    @classmethod
    def of(cls, cells: Mapping[str, str]) -> "Claim":
        names = ("where", "policies", "evaluator", "quantity", "reference", "k", "metrics", "holds_when")
        return cls(text=cells["claim"], fold=int(cells["fold"]), **{name: cells[name] for name in names})

    def cells(self, role: str) -> list[Place]:
        """All cells that the claim is about: each policy, reference, budget and metric with each other."""
        each = (self.policies, self.evaluator, self.reference, self.k, self.metrics)
        return [
            Place(role, policy, evaluator, reference, int(k), metric)
            for policy, evaluator, reference, k, metric in product(*map(_each, each))
        ]

    def decide(self, findings: Findings, place: Place) -> Decided | None:
        """Whether a cell holds; None where a number that the condition needs is missing."""
        terms = [term for term in _terms(self.holds_when) if term.metric in ("", place.metric)]
        names = dict.fromkeys(operand.name for term in terms for operand in term.operands if operand.number is None)
        places = {name: self._named(place, name) for name in names}
        found = {name: _ESTIMATES.get(self.quantity, _unknown)(findings, places[name]) for name in names}
        holding = [term.holds(found) for term in terms]
        if not holding or None in holding:
            return None
        return Decided([(places[name], found[name]) for name in names], all(holding))

    def _named(self, place: Place, name: str) -> Place:
        """The same cell of the policy or evaluator that a condition names."""
        if not name:
            return place
        return place._replace(policy=name) if name in self.policies.split() else place._replace(evaluator=name)


def _decided(findings: Findings) -> Iterator[tuple[Claim, str, list[Decided]]]:
    """Every claim in its own role, and in the audit role where its own was not scored."""
    for claim in map(Claim.of, read_published("claims")):
        role = findings.role(claim.fold)
        # a fold that no role of ours has is unanswerable, even where a role is called as the paper calls its own
        title = role or _published_role(claim.fold)
        yield claim, title, _cells_there(findings, claim, role) if role else []
        if title != AUDIT and not findings.scored(role) and findings.scored(AUDIT):
            yield claim, AUDIT, _cells_there(findings, claim, AUDIT)


def _cells_there(findings: Findings, claim: Claim, role: str) -> list[Decided]:
    decided = (claim.decide(findings, place) for place in claim.cells(role))
    return [cell for cell in decided if cell is not None]


def _published_role(fold: int) -> str:
    return next(role for role, folds in PTBXL_ROLES.folds.items() if fold in folds)


def verdict(holds: Sequence[bool], needed: int) -> str:
    if not all(holds):
        return FAILS
    return HOLDS if len(holds) == needed else NOT_ANSWERABLE


def _each(text: str) -> list[str]:
    """Names that count one by one, unless they are joined: "a minus b", "a and b"."""
    return [text] if " minus " in text or " and " in text else text.split() or [""]


class _Operand(NamedTuple):
    """A number, or a field of the estimate of a name ("" is the cell itself)."""

    number: float | None
    name: str = ""
    field: str = "value"


@dataclass(frozen=True)
class _Term:
    """A chain of comparisons, such as lo < 0 < hi; it may be for one metric only, and may be denied."""

    operands: tuple[_Operand, ...]
    operators: tuple[str, ...]
    metric: str = ""
    denied: bool = False

    def holds(self, found: Mapping[str, Found]) -> bool | None:
        """Whether the term holds; None where a number is missing."""
        numbers = [
            float(getattr(found[operand.name], operand.field)) if operand.number is None else operand.number
            for operand in self.operands
        ]
        if np.isnan(numbers).any():
            return None
        pairs = zip(self.operators, pairwise(numbers), strict=True)
        return all(_OPERATORS[sign](*pair) for sign, pair in pairs) != self.denied


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, ">": operator.gt, "=": operator.eq}
_FIELDS = {"delta": "value", "value": "value", "lo": "lo", "hi": "hi"}


def _terms(condition: str) -> list[_Term]:
    """The terms of a condition, all of which must hold."""
    return [_term(text) for text in condition.split(" and ")]


def _term(text: str) -> _Term:
    if versus := re.fullmatch(r"(\w+) (above|below)(?: the ECE-matched set)?", text):
        # estimates of this quantity are differences from that set
        sign = ">" if versus[2] == "above" else "<"
        return _Term((_Operand(None), _Operand(0.0)), (sign,), metric=versus[1])
    denied = text.startswith("not ")
    text = re.sub(r"^equals ", "value = ", text.removeprefix("not "))
    operands = re.split(r" [<>=] ", text)
    return _Term(tuple(map(_operand, operands)), tuple(re.findall(r" ([<>=]) ", text)), denied=denied)


def _operand(text: str) -> _Operand:
    if re.fullmatch(r"-?[\d.]+", text):
        return _Operand(float(text))
    *name, last = text.split()
    if last in _FIELDS:
        return _Operand(None, " ".join(name), _FIELDS[last])
    return _Operand(None, text)


def _contrast(findings: Findings, at: Place) -> Found:
    return findings.contrast(at.role, at.policy, at.evaluator, at.k, at.metric, at.reference)


def _interaction(findings: Findings, at: Place) -> Found:
    evaluator, baseline = at.evaluator.split(" minus ")
    return findings.interaction(at.role, at.policy, evaluator, baseline, at.reference, at.k, at.metric)


def _paired(findings: Findings, at: Place) -> Found:
    first, second = at.policy.split(" minus ")
    return findings.paired(at.role, first, second, at.evaluator, at.k, at.metric)


def _label_ece(findings: Findings, at: Place) -> Found:
    return findings.calibration(at.role, at.policy, at.evaluator, at.k, "ece difference", at.metric, REFERENCE)


def _dispersion(findings: Findings, at: Place) -> Found:
    """The policy's variance or entropy minus that of the ECE-matched set; it has no interval."""
    policy, fixed = (
        findings.calibration(at.role, arm, at.evaluator, at.k, at.metric).value for arm in (at.policy, REFERENCE)
    )
    return Found(policy - fixed)


def _spearman(findings: Findings, at: Place) -> Found:
    return findings.patients(at.role, at.policy, at.evaluator, at.k, "spearman", reference_metric=at.metric)


def _identical(findings: Findings, at: Place) -> Found:
    return findings.reference_alignment(at.role, at.policy, at.reference, at.k, "identical", metric=at.metric or "nll")


def _quality(findings: Findings, at: Place) -> Found:
    return findings.quality(at.role, at.evaluator, at.metric) if at.k == 12 else MISSING


def _unknown(_findings: Findings, _at: Place) -> Found:
    return MISSING


_ESTIMATES: dict[str, Callable[[Findings, Place], Found]] = {
    "contrast": _contrast,
    "interaction": _interaction,
    "paired": _paired,
    "label-wise ece difference": _label_ece,
    "probability variance and entropy": _dispersion,
    "spearman": _spearman,
    "share of identical sets": _identical,
    "evaluator quality": _quality,
}
"""Where the estimate of each kind of quantity stands."""
