"""The report's page: all of the run is in it, nothing else is, and every number can be followed to its source."""

import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.errors import InputError
from leadwise.findings.hypotheses import hypotheses_frame
from leadwise.findings.protocol import Check
from leadwise.findings.verdicts import VERDICTS
from leadwise.report import page as page_module
from leadwise.report.figures import compositions
from leadwise.report.numbers import Estimate, Named, cell
from leadwise.report.page import write_report
from leadwise.report.page.cells import Shown
from leadwise.report.page.provenance import software_frame
from leadwise.report.tables import report_tables
from leadwise.run.contents import RunContents
from leadwise.run.ledger import read_receipts
from leadwise.store import file_sha256
from leadwise.study.scoring import write_frames
from receipts import SOFTWARE, history

HYPOTHESES = """
[[hypotheses]]
level = "primary"
quantity = "interaction"
policies = ["ecg-on-demand"]
evaluator = "strong"
baseline = "controlled"
budgets = [2]
metrics = ["nll"]
expected = "above zero"

[[hypotheses]]
level = "secondary"
quantity = "contrast"
policies = ["ecg-on-demand", "mga"]
evaluator = "controlled"
budgets = [2, 4]
metrics = ["nll", "ece"]
expected = "below zero"

[[hypotheses]]
level = "secondary"
quantity = "removed"
policies = ["mga"]
evaluator = "strong"
baseline = "controlled"
budgets = [2]
metrics = ["nll"]
expected = "above zero"

[[hypotheses]]
level = "secondary"
quantity = "contrast"
policies = ["strong-mga"]
evaluator = "strong"
budgets = [2]
metrics = ["nll"]
expected = "equivalent"

[[decompositions]]
policies = ["mga"]
evaluator = "strong"
baseline = "controlled"
recalibrated_evaluator = "strong-recalibrated"
recalibrated_baseline = "controlled-recalibrated"
"""
VOID = {"meta", "input", "br", "link", "img"}


class Read(HTMLParser):
    """A page taken apart: the text of every element with an id, the cells of tables by section, links and sources."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.cells: dict[str, list[list[tuple[str, str | None]]]] = {}
        self.feed(html)
        assert self.open == []  # whatever was opened was closed

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        section = next((each["id"] for name, each in reversed(self.open) if name == "section"), "")
        if tag == "tr":
            self.cells.setdefault(section, []).append([])
        elif tag in ("td", "th"):
            self.cells[section][-1].append(("", attributes.get("data-value")))
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1][0] == tag
        self.open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        for tag, attributes in self.open:
            if tag in ("title", "h1", "style", "script"):
                self.texts[tag] = self.texts.get(tag, "") + data
            if "id" in attributes:
                self.texts[attributes["id"]] = self.texts.get(attributes["id"], "") + data
        if any(tag in ("td", "th") for tag, _ in self.open):
            section = next(each["id"] for name, each in reversed(self.open) if name == "section")
            text, value = self.cells[section][-1][-1]
            self.cells[section][-1][-1] = (text + data, value)

    def all(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]


def read(run: Path) -> Read:
    return Read((run / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run(finished: Path) -> Path:
    """A finished run with its report; never change it."""
    return finished


@pytest.fixture(scope="module")
def contents(run: Path) -> RunContents:
    return RunContents.read(run)


@pytest.fixture(scope="module")
def html(run: Path) -> Read:
    return read(run)


@pytest.fixture
def changed(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Read]:
    """The report of a copy of the run in which the plan or results are others; without its figures, which take long."""
    monkeypatch.setattr(page_module, "draw_figures", lambda *_: {})

    def make(plan: Callable[[str], str] = str, results: Callable[[RunContents], Any] = lambda _: None) -> Read:
        copy = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("artifacts")))
        frozen = copy / "bundle" / "plan.toml"
        frozen.write_text(plan(frozen.read_text()))
        results(RunContents.read(copy))
        write_report(copy)
        return read(copy)

    return make


# all of it, and nothing else -----------------------------------------------------------------------------------------


def test_every_table_is_in_the_page_and_beside_it(run: Path, html: Read) -> None:
    shown = [name.removeprefix("table-") for name in html.all("id") if name.startswith("table-")]
    names = [table.name for table in report_tables(RunContents.read(run))]
    assert shown == names
    assert {file.name for file in (run / "tables").iterdir()} == {f"{name}.tex" for name in names}


def test_every_figure_is_in_the_page_and_beside_it(run: Path, html: Read) -> None:
    shown = [attributes["id"].removeprefix("figure-") for tag, attributes in html.elements if tag == "figure"]
    files = {file.name for file in (run / "figures").iterdir()}
    assert files == {f"{name}.{kind}" for name in shown for kind in ("svg", "pdf")}
    assert len(shown) == sum(tag == "svg" for tag, _ in html.elements) == len(compositions())
    for name in shown:
        assert html.texts[f"{name}-desc"] in html.texts[f"figure-{name}"].replace(html.texts[f"{name}-desc"], "", 1)


def test_ids_are_unique_and_links_lead_somewhere_in_the_page(html: Read) -> None:
    """The page is mailed alone: what lies beside it is named, not linked to."""
    ids = html.all("id")
    assert len(set(ids)) == len(ids)
    for link in html.all("href") + html.all("xlink:href"):
        assert link.startswith("#")
        assert link[1:] in ids
    assert "figures/*.pdf" in html.texts["figures"]


def test_nothing_is_fetched(html: Read) -> None:
    assert not {"src", "srcset", "data", "poster", "action", "background"} & {
        name for _, attributes in html.elements for name in attributes
    }
    assert not {"link", "iframe", "object", "embed", "img", "base"} & {tag for tag, _ in html.elements}
    assert re.findall(r"@import|url\((?!#)", html.texts["style"] + " ".join(html.all("style"))) == []
    (policy,) = [attributes["content"] for tag, attributes in html.elements if "http-equiv" in attributes]
    digest = b64encode(sha256(html.texts["script"].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_a_report_of_the_same_run_is_the_same(run: Path, tmp_path: Path) -> None:
    """Whatever order sets have in a process; and nothing of an older report, nor a draft, is left."""
    made = []
    for seed in "01":
        copy = Path(shutil.copytree(run, tmp_path / seed / "run"))
        for kind in ("figures", "tables"):
            (copy / kind / "of another time").write_text("")
        code = "import sys; from leadwise.report.page import write_report; write_report(sys.argv[1])"
        subprocess.run([sys.executable, "-c", code, copy], check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        made.append({str(file.relative_to(copy)): file_sha256(file) for file in copy.rglob("*") if file.is_file()})
    assert made[0] == made[1]
    assert set(made[0]) == {str(file.relative_to(run)) for file in run.rglob("*") if file.is_file()}


def test_where_a_report_cannot_be_made_the_old_one_stays(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("artifacts")))
    before = {file: file_sha256(file) for file in copy.rglob("*") if file.is_file()}

    def refuse(_table: Any) -> str:
        raise OSError("no room")

    monkeypatch.setattr(page_module, "draw_figures", lambda *_: {})
    monkeypatch.setattr(page_module, "latex", refuse)
    with pytest.raises(OSError, match="no room"):
        write_report(copy)
    assert {file: file_sha256(file) for file in copy.rglob("*") if file.is_file()} == before


def test_results_of_an_earlier_version_are_not_shown_with_these_verdicts(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("artifacts")))
    published = pd.read_parquet(copy / "results" / "published.parquet")
    published.drop(columns="table").to_parquet(copy / "results" / "published.parquet", index=False)
    with pytest.raises(InputError, match=r"results was written by an earlier version .* command again"):
        write_report(copy)


# numbers -------------------------------------------------------------------------------------------------------------


def test_numbers_in_the_page_are_those_of_the_tables(contents: RunContents, html: Read) -> None:
    for table in report_tables(contents):
        headers, *rows = html.cells.get(f"table-{table.name}", [[(name, None) for name in table.frame]])
        assert [text for text, _ in headers] == list(table.frame)
        assert len(rows) == len(table.frame)
        for shown, row in zip(rows, table.frame.itertuples(index=False), strict=True):
            for (text, number), value in zip(shown, row, strict=True):
                assert text == cell(value)
                if isinstance(value, int | float | np.number) and not isinstance(value, bool) and not pd.isna(value):
                    assert number is not None
                    assert float(number) == value


def test_numbers_of_a_table_stand_in_its_source(contents: RunContents) -> None:
    """To the last bit, so that nothing was computed on the way."""
    seen = 0
    for table in report_tables(contents):
        stems = [Path(name).stem for name in table.source.split(", ")]
        numeric = [contents.results[stem].select_dtypes("number") for stem in stems]
        known = {float(value) for frame in numeric for value in frame.to_numpy(dtype=float).ravel() if value == value}
        for column in table.frame.select_dtypes("float"):
            numbers = {float(value) for value in table.frame[column].dropna()}
            assert numbers <= known, (table.name, column)
            seen += len(numbers)
    assert seen > 500


def test_each_source_has_its_hash(run: Path, contents: RunContents, html: Read) -> None:
    titles = set(html.all("title"))
    for table in report_tables(contents):
        if table.name == "hypotheses":
            continue  # this plan has none
        for name in table.source.split(", "):
            digest = file_sha256(run / "results" / name)
            assert f"results/{name}, SHA-256 {digest[:16]}" in " ".join(html.texts[f"table-{table.name}"].split())
            assert digest in titles


def test_an_opened_seal_is_told(html: Read, changed: Callable[..., Read]) -> None:
    said = "the plan opens the sealed fold of PTB-XL"
    assert said not in html.texts["facts"]
    assert said in changed(lambda plan: f"unsealed = true\n{plan}").texts["facts"]


def test_every_artifact_bundle_and_result_has_its_hash(run: Path, contents: RunContents, html: Read) -> None:
    artifacts = {(row[0][0], row[1][0]): row[3][0] for row in html.cells["used"][1:]}
    places = [file.parent for file in (run / "artifacts").rglob("outputs.json")]
    made = {(str(place.parent.relative_to(run / "artifacts")), place.name): place for place in places}
    # nothing names the statistics as an input: they are kept in the cohort's cache
    assert set(made) - set(artifacts) == {key for key in made if key[0] == "statistics"}
    for key, digest in artifacts.items():
        assert digest == file_sha256(made[key] / "outputs.json")
    for section, directory in (("frozen", "bundle"), ("results", "results")):
        for (name, _), (digest, _) in html.cells[section][1:]:
            assert digest == file_sha256(run / directory / name)
        assert len(html.cells[section]) > 10
    assert html.texts["head"] == contents.history.head
    assert html.texts["head"] == read_receipts(run / "ledger.jsonl")[-2].sha256
    assert contents.bundle.sha256 in html.texts["artifacts"]
    assert f"{len(contents.history)} receipts" in html.texts["artifacts"]


# words ---------------------------------------------------------------------------------------------------------------


def test_a_title_is_shown_as_it_is_written(changed: Callable[..., Read]) -> None:
    nasty = "<script>alert('1')</script> & <b>more</b>"
    html = changed(lambda plan: plan.replace('"tiny"', f'"{nasty}"'))
    assert html.texts["h1"] == f"{nasty} (synthetic data)"
    assert html.texts["title"].startswith(html.texts["h1"])
    assert sum(tag == "script" for tag, _ in html.elements) == 1
    assert not any(tag == "b" for tag, _ in html.elements)


def test_synthetic_recordings_are_called_so(run: Path, html: Read) -> None:
    assert html.texts["h1"] == "tiny (synthetic data)"
    assert '<p class="banner">' in (run / "report.html").read_text(encoding="utf-8")


def test_a_run_with_the_audit_only_says_so(changed: Callable[..., Read], html: Read) -> None:
    def drop(contents: RunContents) -> None:
        frames = {
            name: frame[frame["role"] != "evaluation"] for name, frame in contents.results.items() if "role" in frame
        }
        write_frames(contents.directory.results, frames)

    audit = changed(results=drop)
    assert "Not scored" in audit.texts["facts"]
    assert "audit role, fold 9" in audit.texts["facts"].partition("Not scored")[0]
    assert "evaluation role, fold 8" in html.texts["facts"].partition("Scored too")[0]
    shown = [name.removeprefix("table-") for name in audit.all("id") if name.startswith("table-")]
    assert shown == [name.removeprefix("table-") for name in html.all("id") if name.startswith("table-")]


def test_hypotheses_have_their_verdicts(changed: Callable[..., Read], html: Read) -> None:
    found: list[pd.DataFrame] = []

    def add(contents: RunContents) -> None:
        found.append(hypotheses_frame(contents.plan, contents.results))
        write_frames(contents.directory.results, {"hypotheses": found[0]})

    text = " ".join(changed(lambda plan: plan + HYPOTHESES, add).texts["hypotheses"].split())
    assert "The plan names none." in html.texts["hypotheses"]
    assert "Source: results/hypotheses.csv, SHA-256" in text
    parts = re.split(r"\d\. (?=[IDW][a-z ]+of)", text)[1:]
    assert len(parts) == 4
    assert "What recalibration removes of I of MGA, the strong evaluator minus the controlled one, k = 2" in text
    assert "D of Strong-MGA under the strong evaluator, k = 2, NLL: equivalent" in text
    assert "Where equivalence is expected, the interval is of 90%" in text
    assert "I of ECG-on-Demand, the strong evaluator minus the controlled one, k = 2, NLL: above zero primary" in text
    assert "D of ECG-on-Demand and MGA under the controlled evaluator, k = 2 and 4, NLL and ECE: below zero" in text
    (first,) = found[0].query("number == 1 and role == 'evaluation'").to_dict("records")
    assert f"Evaluation role: {cell(first['value'])} [{cell(first['lo'])}, {cell(first['hi'])}]" in parts[0]
    (second,) = found[0].query("number == 2 and role == 'audit'").to_dict("records")
    assert f"Audit role: {second['holding']} of 8 cells hold {second['verdict']}" in parts[1]


def test_claims_are_counted_by_verdict(contents: RunContents, html: Read) -> None:
    counts = contents.results["claims"]["verdict"].value_counts()
    said = " · ".join(f"{verdict} {counts.get(verdict, 0)}" for verdict in VERDICTS)
    assert said in " ".join(html.texts["publication"].split())


def test_checks_that_failed_come_first(changed: Callable[..., Read], monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["passed", "not applicable", "failed", "passed", "failed"]
    checks = [Check(n, f"title {n}", "why", state, f"detail {n}") for n, state in enumerate(states, 1)]  # type: ignore[arg-type]
    monkeypatch.setattr(page_module, "protocol_checks", lambda _: checks)
    text = " ".join(changed().texts["checks"].split())
    assert "passed 2 · failed 2 · not applicable 1" in text
    assert re.findall(r"title (\d)", text) == ["3", "5", "1", "2", "4"]
    assert "failed 3. title 3 why detail 3" in text


# cells ---------------------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.floats(), st.integers(-(10**6), 10**6), st.text(), st.booleans(), st.none())))
def test_a_cell_sorts_by_its_number_and_shows_its_words(values: list[Any]) -> None:
    shown = Shown.of(pd.DataFrame({"values": pd.Series(values, dtype=object)}))
    assert len(shown.rows) == len(values)
    for (each,), value in zip(shown.rows, values, strict=True):
        assert each.text == cell(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            assert float(each.number or "nan") == value
        elif not isinstance(value, str):
            assert each.number is None


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (Estimate(lo=-0.0187, hi=-0.0029), -0.0187),
        (Estimate(0.041, 0.030, 0.050), 0.041),
        (Named((("", Estimate(0.5)), ("A", Estimate(0.1)))), 0.5),
        (Named((("A", Estimate(0.1)),)), None),
        ("4.2", None),
        ("aVR V1", None),
        ("", None),
    ],
)
def test_estimates_sort_as_numbers_and_words_do_not(value: object, number: float | None) -> None:
    found = Shown.of(pd.DataFrame({"printed": [value]})).rows[0][0]
    assert (None if found.number is None else float(found.number)) == number
    assert found.text == cell(value)


# provenance ----------------------------------------------------------------------------------------------------------


def test_each_machine_has_its_stages() -> None:
    begun = [
        {"event": "begin", "stage": stage, "software": SOFTWARE | {"threads": threads}}
        for stage, threads in (("controlled", 2), ("mga", 8), ("audit", 2))
    ]
    frame = software_frame(history(*begun))
    assert frame[["threads", "stages"]].to_numpy().tolist() == [[2, "controlled and audit"], [8, "mga"]]
    assert software_frame(history(begun[0]))["stages"].tolist() == ["all"]
