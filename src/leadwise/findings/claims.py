"""What was claimed in words, and what our results say to it.

A claim is a line of `claims.csv`: its columns say which cells decide it, and under which condition a cell holds. A
condition says on which side of zero the cell's estimate lies, as in ``hi < 0``, or that it includes zero, as in
``lo < 0 < hi``. A name before a number means the same cell of another evaluator or policy, as in
``delta > 0 and controlled delta < 0``; a bare name means the value there. Whichever bound a condition names, what
decides is the whole interval (see `leadwise.findings.verdicts`).
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from typing import NamedTuple

import pandas as pd

from leadwise.analysis.tidy import REFERENCE
from leadwise.cohort.roles import PTBXL_ROLES
from leadwise.findings.estimates import MISSING, Findings, Found
from leadwise.findings.paper import AUDIT
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, NOT_ANSWERABLE, TRIVIAL, cell_verdict, joint_verdict

IDENTICAL = "share of identical sets"

CLAIM_COLUMNS = (
    *("claim", "where", "role", "cells", "holding", "contradicted", "verdict"),
    *("orientation_role", "orientation_cells", "orientation_holding", "orientation_contradicted"),
)
CELL_COLUMNS = (
    *("claim", "role", "decides", "policy", "evaluator", "reference", "k", "metric"),
    *("value", "lo", "hi", "verdict", "cell"),
)


def claims_frame(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """``claims.csv``: of each claim the verdict, and how many of its cells are there, hold, or contradict it.

    A claim is put to the fold that it is about. Where that fold was not scored the claim is not answerable; then what
    the audit role says stands beside it for orientation, and decides nothing.
    """
    findings = Findings(results, roles)
    rows = []
    for claim, title, role, beside in _put(findings):
        cells = claim.decided(findings, role)
        row = (claim.text, claim.where, title, *_counts(cells), claim.verdict(findings, cells))
        orientation = _counts(claim.decided(findings, beside)) if beside else (pd.NA,) * 3
        rows.append((*row, beside, *orientation))
    counts = [column for column in CLAIM_COLUMNS if column.startswith("orientation_") and column != "orientation_role"]
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS)).astype(dict.fromkeys(counts, "Int64"))


def claim_cells(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """The cells of each claim, as far as they are there; those that stand beside it for orientation do not decide.

    A cell whose condition names several evaluators or policies has a row for each; ``cell`` counts the cells of a claim
    in a role, and all rows of a cell have its verdict.
    """
    findings = Findings(results, roles)
    rows = [
        (claim.text, place.role, at == role, *place[1:], *estimate, cell.verdict, number)
        for claim, _, role, beside in _put(findings)
        for at in (role, beside)
        for number, cell in enumerate(filter(None, claim.decided(findings, at)), 1)
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
    """A cell that is there: the estimates that decide it, and the verdict on it."""

    estimates: list[tuple[Place, Found]]
    verdict: str


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

    def decided(self, findings: Findings, role: str | None) -> list[Decided | None]:
        """Every cell in a role; None where an estimate that its condition needs is missing."""
        return [self._decide(findings, place) if role else None for place in self.cells(role or "")]

    def verdict(self, findings: Findings, cells: Sequence[Decided | None]) -> str:
        """The verdict on the claim, from its cells in its own role."""
        if self._trivial(findings):
            return TRIVIAL
        return joint_verdict([NOT_ANSWERABLE if cell is None else cell.verdict for cell in cells])

    def _decide(self, findings: Findings, place: Place) -> Decided | None:
        terms = [term for term in _terms(self.holds_when) if term.metric in ("", place.metric)]
        names = dict.fromkeys(name for term in terms for name in term.names)
        places = {name: self._named(place, name) for name in names}
        found = {name: _ESTIMATES.get(self.quantity, _unknown)(findings, places[name]) for name in names}
        verdict = joint_verdict([term.verdict(found) for term in terms])
        if verdict == NOT_ANSWERABLE:
            return None
        return Decided([(places[name], found[name]) for name in names], verdict)

    def _named(self, place: Place, name: str) -> Place:
        """The same cell of the policy or evaluator that a condition names."""
        if not name:
            return place
        return place._replace(policy=name) if name in self.policies.split() else place._replace(evaluator=name)

    def _trivial(self, findings: Findings) -> bool:
        """Whether no set can equal the reference, because no policy begins with a lead of the reference."""
        if self.quantity != IDENTICAL or self.holds_when != "equals 0":
            return False
        first = set().union(*(findings.first_leads(policy) for policy in self.policies.split()))
        references = [
            findings.reference_leads(place.reference, place.metric or "nll", place.k) for place in self.cells("")
        ]
        return bool(first) and all(leads and not first & leads for leads in references)


def read_claims() -> list[dict[str, str]]:
    """The claims as they ship with the package."""
    text = (files("leadwise") / "published" / "claims.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _put(findings: Findings) -> Iterator[tuple[Claim, str, str | None, str | None]]:
    """Every claim, what the role that it is about is called, that role, and the one beside it for orientation."""
    for claim in map(Claim.of, read_claims()):
        role = findings.role(claim.fold)
        # a fold that no role of ours has is unanswerable, even where a role is called as the paper calls its own
        title = role or _published_role(claim.fold)
        orients = title != AUDIT and not findings.scored(role) and findings.scored(AUDIT)
        yield claim, title, role, AUDIT if orients else None


def _published_role(fold: int) -> str:
    return next(role for role, folds in PTBXL_ROLES.folds.items() if fold in folds)


def _counts(cells: Sequence[Decided | None]) -> tuple[int, int, int]:
    """How many cells are there, hold, and contradict the claim."""
    verdicts = [cell.verdict for cell in cells if cell is not None]
    return len(verdicts), verdicts.count(HOLDS), verdicts.count(CONTRADICTED)


def _each(text: str) -> list[str]:
    """Names that count one by one, unless they are joined: "a minus b", "a and b"."""
    return [text] if " minus " in text or " and " in text else text.split() or [""]


@dataclass(frozen=True)
class _Term:
    """Where an estimate, or the difference of two, is said to lie; it may be said of one metric only.

    ``names`` say whose estimates they are; "" is the cell itself.
    """

    names: tuple[str, ...]
    expected: str
    metric: str = ""

    def verdict(self, found: Mapping[str, Found]) -> str:
        estimate, *others = (found[name] for name in self.names)
        for other in others:
            estimate = estimate.minus(other)
        return cell_verdict(estimate, self.expected)


_SIDES = {"<": "below zero", ">": "above zero", "above": "above zero", "below": "below zero"}
_OPPOSITE = {"<": ">", ">": "<"}
_FIELDS = ("delta", "value", "lo", "hi")


def _terms(condition: str) -> list[_Term]:
    """The terms of a condition, all of which must hold."""
    return [_term(text) for text in condition.split(" and ")]


def _term(text: str) -> _Term:
    if versus := re.fullmatch(r"(\w+) (above|below)(?: the ECE-matched set)?", text):
        return _Term(("",), _SIDES[versus[2]], metric=versus[1])  # the estimates are differences from that set
    if text == "equals 0":
        return _Term(("",), "zero")
    if text == "lo < 0 < hi":
        return _Term(("",), "includes zero")
    first, sign, second = re.fullmatch(r"(?:not )?(.+) ([<>]) (.+)", text).groups()  # type: ignore[union-attr]  # ours
    sign = _OPPOSITE[sign] if text.startswith("not ") else sign
    return _Term((_whose(first),) if second == "0" else (_whose(first), _whose(second)), _SIDES[sign])


def _whose(operand: str) -> str:
    """Whose estimate an operand means: "controlled delta" and "controlled" that of controlled, "hi" the cell's own."""
    return re.sub(rf"(?:^| )({'|'.join(_FIELDS)})$", "", operand)


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
    """The policy's variance over that of the ECE-matched set, minus one; its entropy minus that of the set."""
    if at.metric == "variance":
        kept = findings.calibration(at.role, at.policy, at.evaluator, at.k, "variance retention", versus=REFERENCE)
        return kept.minus(Found(1.0, 1.0, 1.0))
    policy, fixed = (
        findings.calibration(at.role, arm, at.evaluator, at.k, at.metric) for arm in (at.policy, REFERENCE)
    )
    return policy.minus(fixed)


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
    IDENTICAL: _identical,
    "evaluator quality": _quality,
}
"""Where the estimate of each kind of quantity stands."""
