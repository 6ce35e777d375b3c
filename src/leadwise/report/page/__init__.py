"""The report as one HTML file that opens anywhere, offline: what was found, and where every number comes from."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leadwise.analysis.contrasts import OWN
from leadwise.cohort.identity import PTBXL
from leadwise.cohort.roles import SCORED
from leadwise.findings.protocol import protocol_checks
from leadwise.findings.verdicts import VERDICTS
from leadwise.report.figures import draw_figures
from leadwise.report.names import spoken, the_evaluator, the_other
from leadwise.report.numbers import estimate, listing, number
from leadwise.report.page.cells import Shown
from leadwise.report.page.provenance import hash_frames, software_frame
from leadwise.report.prose.methods import describe_methods
from leadwise.report.prose.summary import summarise
from leadwise.report.tables import report_tables
from leadwise.report.tables.latex import latex
from leadwise.report.tables.publication import NAMES as PUBLISHED
from leadwise.report.tables.view import ReportTable
from leadwise.run.contents import RunContents
from leadwise.store import atomic_file, replacing


def write_report(path: str | Path) -> Path:
    """Write ``report.html`` of a finished run, with ``figures`` (SVG and PDF) and ``tables`` (LaTeX) beside it."""
    contents = RunContents.read(path)
    directory, tables = contents.directory, report_tables(contents)
    # all is made before anything takes the place of what was there
    with (
        replacing(directory.figures) as figures,
        replacing(directory.tables) as texts,
        atomic_file(directory.report) as page,
    ):
        drawn = draw_figures(contents.results, contents.plan, figures)
        for table in tables:
            (texts / f"{table.name}.tex").write_text(latex(table), encoding="utf-8")
        pictures = [Picture.read(file) for file in drawn.values() if file.suffix == ".svg"]
        page.write_text(_template().render(_facts(contents, pictures, tables)), encoding="utf-8")
    return directory.report


@dataclass(frozen=True)
class Picture:
    """A figure to stand in the page; title and description are those that it carries for people who cannot see it."""

    name: str
    title: Markup
    description: Markup
    svg: Markup

    @classmethod
    def read(cls, file: Path) -> "Picture":
        text = file.read_text(encoding="utf-8")
        title, description = (
            Markup(re.search(rf"<{tag} [^>]*>(.*?)</{tag}>", text, re.DOTALL)[1])  # type: ignore[index]  # always there
            for tag in ("title", "desc")
        )
        # HTML knows neither the prologue of an XML file nor RDF
        svg = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
        return cls(file.stem, title, description, Markup(svg))


def _facts(contents: RunContents, pictures: Sequence[Picture], tables: Sequence[ReportTable]) -> dict[str, Any]:
    """All that the template shows."""
    script = _asset("page.js")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    checks, shown = protocol_checks(contents), {table.name: (table, Shown.of(table.frame)) for table in tables}
    expected, expected_rows = shown.pop("hypotheses")
    return {
        "title": contents.title,
        "synthetic": contents.synthetic,
        "made_on": contents.made_on if contents.foreign else None,
        "about_ptbxl": PTBXL in (contents.cohort.kind, contents.made_on.kind),
        "facts": list(_first_facts(contents)),
        "summary": summarise(contents),
        "hypotheses": list(_hypotheses(contents)),
        # those that failed first: nobody should have to look for them
        "checks": sorted(checks, key=lambda check: (check.state != "failed", check.number)),
        "states": Counter(check.state for check in checks),
        "figures": pictures,
        "expected": expected,
        "expected_rows": expected_rows,
        "published": [shown.pop(name) for name in PUBLISHED],
        "verdict_words": VERDICTS,
        "verdicts": Counter(row["verdict"] for row in _rows(contents, "claims")),
        "tables": list(shown.values()),
        "methods": describe_methods(contents),
        "hashes": contents.gathered.files,
        "software": Shown.of(software_frame(contents.history)),
        "hash_tables": [(*words, Shown.of(frame, digits=1)) for words, frame in hash_frames(contents)],
        "bundle": contents.bundle.sha256,
        "head": contents.history.head,
        "receipts": number(len(contents.history)),
        "version": contents.history.receipts[-1].software.leadwise,
        "style": Markup(_asset("style.css")),
        "script": Markup(script),
        "script_hash": f"sha256-{digest}",
    }


def _first_facts(contents: RunContents) -> Iterator[tuple[str, str]]:
    """The facts under the title."""
    plan, role = contents.plan, contents.role
    named = {role: f"{role} role, fold{'s'[: len(folds) > 1]} {listing(folds)}" for role, folds in plan.roles.items()}
    yield "This report is about", named[role]
    for counts in _rows(contents, "splits"):
        if counts["role"] == role:
            yield "Its size", f"{number(counts['records'])} records of {number(counts['patients'])} patients"
    for other in SCORED:
        if other != role and other in named:
            yield "Scored too" if other in contents.scored else "Not scored", named[other]
    yield "Cohort", contents.cohort.title
    if contents.foreign:
        yield "Made on", contents.made_on.title
    if plan.unsealed:
        yield "Seal", "the plan opens the sealed fold of PTB-XL"
    yield "Budgets", f"{listing(plan.budgets)} leads"
    yield "Intervals", f"95%, {number(plan.bootstrap.replicates)} resamples of patients"
    yield "Last receipt", f"{contents.history.receipts[-1].time[:16].replace('T', ' ')} UTC"


def _hypotheses(contents: RunContents) -> Iterator[dict[str, Any]]:
    """Each hypothesis in words, and what came out in every scored role, that of the report first."""
    rows = sorted(_rows(contents, "hypotheses"), key=lambda row: (row["number"], row["role"] != contents.role))
    for which, group in groupby(rows, key=itemgetter("number")):
        answers = list(group)
        yield {
            "number": which,
            "level": answers[0]["level"],
            "sentence": _expectation(answers[0]),
            "answers": [(row["role"], row["verdict"], _outcome(row)) for row in answers],
        }


def _expectation(row: Mapping[str, Any]) -> str:
    """A hypothesis in words."""
    policies, metrics = ([spoken(name) for name in row[column].split()] for column in ("policies", "metrics"))
    evaluator = the_evaluator(row["evaluator"])
    interaction = f"I of {listing(policies)}, {evaluator} minus {the_other(row['baseline'])}"
    subject = {
        "interaction": interaction,
        "removed": f"What recalibration removes of {interaction}",
        "remaining": f"What recalibration leaves of {interaction}",
        "contrast": f"D of {listing(policies)} under {evaluator}",
        "paired": f"{' minus '.join(policies)} under {evaluator}",
    }[row["quantity"]]
    against = "" if row["reference"] == OWN else f", against the references of {the_evaluator(row['reference'])}"
    return f"{subject}{against}, k = {listing(row['budgets'].split())}, {listing(metrics)}: {row['expected']}"


def _outcome(row: Mapping[str, Any]) -> str:
    """Estimate of a hypothesis in a role, or how many of its cells hold."""
    held = f"{row['holding']} of {row['cells']} cells hold"
    if row["present"] < row["cells"]:
        held += f", {row['cells'] - row['present']} not among the results"
    return estimate(row["value"], row["lo"], row["hi"]) or held


def _rows(contents: RunContents, name: str) -> list[dict[Any, Any]]:
    """A frame's rows; none where the run has no such frame."""
    return contents.results[name].to_dict("records") if name in contents.results else []


def _asset(name: str) -> str:
    return (files("leadwise.report.page") / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("leadwise.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
