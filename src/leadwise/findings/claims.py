"""Verdicts on the publication's claims in words.

A claim is one statement or several, the rows of ``published/claims.csv`` with the same words. Statements about the same
policy, budget and metric, such as one under each of two evaluators, decide that cell together.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import pandas as pd

from leadwise.cohort.roles import AUDIT, PTBXL_ROLES
from leadwise.findings.estimates import Findings
from leadwise.findings.statements import IDENTICAL, LEAD, Decided, Place, Statement
from leadwise.findings.verdicts import CONTRADICTED, HOLDS, NOT_ANSWERABLE, TRIVIAL, joint_verdict
from leadwise.run.results import TABLES


def claims_frame(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """``claims.csv``: of each claim the verdict, and how many of its cells are there, hold, or contradict it.

    A claim is put to the fold that it is about. Where that fold was not scored the claim is not answerable; then what
    the audit role says stands beside it for orientation, and decides nothing.
    """
    findings = Findings(results, roles)
    rows = []
    for claim, title, role, beside in _asked(findings):
        cells = claim.decided(findings, role)
        verdict = TRIVIAL if claim.trivial(findings) else joint_verdict([cell.verdict for cell in cells])
        orientation = _counts(claim.decided(findings, beside)) if beside else (pd.NA,) * 3
        rows.append((claim.text, claim.where, title, *_counts(cells), verdict, beside, *orientation))
    table = TABLES["claims"]
    counts = {column: table.type_of(column) for column in table.columns if table.type_of(column)}
    return pd.DataFrame(rows, columns=list(table.columns)).astype(counts)


def claim_cells(results: Mapping[str, pd.DataFrame], roles: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """``claim_cells.csv``: the cells that are there of each claim; those for orientation do not decide.

    A cell has a row for each of its estimates; ``cell`` counts the cells of a claim in a role, and all rows of a cell
    have its verdict.
    """
    findings = Findings(results, roles)
    rows = [
        (claim.text, at, at == role, *place, *estimate, cell.verdict, number)
        for claim, _, role, beside in _asked(findings)
        for at in (role, beside)
        for number, cell in enumerate(_present(claim.decided(findings, at)), 1)
        for place, estimate in cell.estimates
    ]
    return pd.DataFrame(rows, columns=list(TABLES["claim_cells"].columns))


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, as statements that must all hold."""

    text: str
    where: str
    fold: int
    statements: list[Statement]

    def decided(self, findings: Findings, role: str | None) -> list[Decided]:
        """Every cell in a role, with the verdict of all statements about it."""
        cells: dict[Place, list[Decided]] = {}
        for statement in self.statements:
            for place in statement.places:
                # contrasts under two evaluators are one cell, interactions between other pairs of them are others
                cell = place if place.baseline else place._replace(evaluator="")
                cells.setdefault(cell, []).append(statement.decide(findings, role, place))
        return [
            Decided(
                [each for part in parts for each in part.estimates], joint_verdict([each.verdict for each in parts])
            )
            for parts in cells.values()
        ]

    def trivial(self, findings: Findings) -> bool:
        """True if it could not be otherwise, whatever the records are."""
        return all(_could_not_be_otherwise(findings, place) for each in self.statements for place in each.places)


def read_claims() -> list[Claim]:
    """The claims as they ship with the package."""
    text = (files("leadwise") / "published" / "claims.csv").read_text(encoding="utf-8")
    claims: dict[str, Claim] = {}
    for row in csv.DictReader(text.splitlines()):
        claim = claims.setdefault(row["claim"], Claim(row["claim"], row["where"], int(row["fold"]), []))
        policies = row["policies"].split() or [""]  # what is said of evaluators alone has no policy
        evaluator, baseline, reference = (row[name] for name in ("evaluator", "baseline", "reference"))
        budgets, metrics = [int(k) for k in row["budgets"].split()], row["metrics"].split()
        about = Statement(row["quantity"], policies, evaluator, baseline, reference, budgets, metrics, row["expected"])
        claim.statements.append(about)
    return list(claims.values())


def _asked(findings: Findings) -> Iterator[tuple[Claim, str, str | None, str | None]]:
    """Every claim, what the role that it is about is called, that role, and the one beside it for orientation."""
    for claim in read_claims():
        role = findings.role(claim.fold)
        # a fold that no role of ours has is unanswerable, even where a role is called as the paper calls its own
        title = role or next(name for name, folds in PTBXL_ROLES.folds.items() if claim.fold in folds)
        yield claim, title, role, None if title == AUDIT else findings.orientation(claim.fold)


def _present(cells: Sequence[Decided]) -> list[Decided]:
    return [cell for cell in cells if cell.verdict != NOT_ANSWERABLE]


def _counts(cells: Sequence[Decided]) -> tuple[int, int, int]:
    """Number of cells that are there, that hold, and that contradict the claim."""
    verdicts = [cell.verdict for cell in _present(cells)]
    return len(verdicts), verdicts.count(HOLDS), verdicts.count(CONTRADICTED)


def _could_not_be_otherwise(findings: Findings, at: Place) -> bool:
    """True if a cell follows from the lead that its policy begins with.

    A set cannot equal a reference that lacks the lead, and cannot lack the lead itself.
    """
    if at.quantity not in (IDENTICAL, LEAD):
        return False
    first = _first_leads(findings, at.policy)
    if at.quantity == LEAD:
        return first == {at.metric}
    fixed = _reference_leads(findings, at)
    return bool(first and fixed and not first & fixed)


def _first_leads(findings: Findings, policy: str) -> set[str]:
    """The leads that a policy begins with, in any role."""
    frame = findings.results.get("allocations")
    if frame is None or not {"policy", "leads"} <= set(frame.columns):
        return set()
    return set(frame["leads"][frame["policy"] == policy].str.split().str[0])


def _reference_leads(findings: Findings, at: Place) -> set[str]:
    """The leads of an evaluator's best fixed set; none where it is not among the results."""
    leads = findings.find("references", "leads", evaluator=at.reference, metric=at.metric, k=at.k)
    return set() if leads.missing else set(leads.value.split())
