"""LaTeX that holds whatever the cells say: nothing is lost, nothing is taken for a command, everything is closed."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.report.numbers import cell
from leadwise.report.tables.latex import LINES_ON_A_PAGE, NO_ROWS, escape, latex
from leadwise.report.tables.view import ReportTable

NASTY = st.text(alphabet="&%$#_{}[]*\\~^`<>|\"'-−µ²ρ…–—“”×≤°éß漢☃\n\t\x00 aZ09.,;:!?/()+=@", max_size=30)
CELL = st.one_of(NASTY, st.floats(-1e3, 1e3), st.integers(-(10**6), 10**6), st.booleans(), st.none())
PACKAGES = ("booktabs.sty", "longtable.sty", "lscape.sty")


@st.composite
def reports(draw: st.DrawFn, most_rows: int = 50) -> ReportTable:
    headings = draw(st.lists(NASTY, min_size=1, max_size=5, unique=True))
    rows = draw(st.integers(0, most_rows))
    line = st.lists(CELL, min_size=len(headings), max_size=len(headings))
    some = draw(st.lists(line, min_size=1, max_size=3))
    frame = pd.DataFrame([some[i % len(some)] for i in range(rows)], columns=headings, dtype=object)
    return ReportTable("some-name", draw(NASTY), draw(NASTY), "x_y.csv", frame, "")


def report(frame: pd.DataFrame) -> ReportTable:
    return ReportTable("name", "Title", "Caption.", "x.csv", frame, "")


READ = {
    **{f"\\{char}": char for char in "&%$#_{}"},
    **{f"{{{char}}}": char for char in "[]*"},
    "\\textbackslash{}": "\\",
    "\\textasciitilde{}": "~",
    "\\textasciicircum{}": "^",
    "\\textasciigrave{}": "`",
    "\\textless{}": "<",
    "\\textgreater{}": ">",
    "\\textbar{}": "|",
    "-{}": "-",
    "$-$": "−",
    "\\textmu{}": "µ",
    "\\textsuperscript{2}": "²",
    "$\\rho$": "ρ",
    "\\ldots{}": "…",
    "$\\times$": "×",
    "$\\leq$": "≤",
    "\\textdegree{}": "°",
    "'{}": "'",
    "\\textendash{}": "–",
    "\\textemdash{}": "—",
    "\\textquotedblleft{}": "“",
    "\\textquotedblright{}": "”",
}
TOKEN = re.compile("|".join(map(re.escape, sorted(READ, key=len, reverse=True))) + r"|[^&%$#_{}\[\]*\\~^`<>|'\-]")
"""What a reader of the escapes knows, longest first, and every character that means itself."""


def read(text: str) -> str:
    """Text as it is printed; an AssertionError where something is left that means more than itself."""
    assert "".join(TOKEN.findall(text)) == text, text
    return TOKEN.sub(lambda match: READ.get(match[0], match[0]), text)


def cells(line: str) -> list[str]:
    """The cells of a row."""
    assert line.endswith(r" \\")
    return re.split(r"(?<!\\) ?& ?", line.removesuffix(r" \\"))


def body(text: str) -> list[str]:
    """The rows under the headings."""
    last = r"\endfoot" if "longtable" in text.split("\n", 2)[2] else r"\midrule"
    lines = text.split("\n")
    begin = lines.index(last) + 1
    return [line for line in lines[begin:] if line.endswith(r" \\")]


@given(NASTY)
def test_what_is_escaped_can_be_read_back(text: str) -> None:
    known = " ".join(text.split()).translate({ord(char): "?" for char in "漢☃\x00"})
    assert read(escape(text)) == known


@given(st.text())
def test_no_character_is_too_strange(text: str) -> None:
    escaped = escape(text)
    assert not re.search(r"[^ -~À-ÿ]", escaped)
    assert "\n" not in escaped


@given(reports())
def test_everything_that_is_opened_is_closed(table: ReportTable) -> None:
    text = latex(table)
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    assert text.count(r"\begingroup") == text.count(r"\endgroup")
    braces = re.sub(r"\\[{}]", "", re.sub(r"\\\\", "", text))
    depth = np.cumsum([{"{": 1, "}": -1}.get(char, 0) for char in braces])
    assert depth.min() >= 0
    assert depth[-1] == 0
    assert re.sub(r"\\\$", "", text).count("$") % 2 == 0


@given(reports())
def test_every_row_has_as_many_cells_as_there_are_columns(table: ReportTable) -> None:
    text, columns = latex(table), len(table.frame.columns)
    layout = re.search(r"\\begin\{(?:tabular|longtable)\}\{((?:[lr]|p\{\d+em\})*)\}", text)
    assert layout
    assert len(re.findall(r"[lr]|p\{\d+em\}", layout[1])) == columns
    heads = [lines[1] for lines in re.findall(r"(\\toprule)\n(.*)\n\\midrule", text)]
    assert {len(cells(head)) for head in heads} == {columns}
    rows = body(text)
    if table.frame.empty:
        assert rows == [rf"\multicolumn{{{columns}}}{{l}}{{{NO_ROWS}}} \\"]
        return
    assert len(rows) == len(table.frame)
    for row, values in zip(rows, table.frame.itertuples(index=False, name=None), strict=True):
        assert [read(each) for each in cells(row)] == [read(escape(cell(value))) for value in values]
        assert row[0] not in "[*", "the end of the row above would take it for its own"


def test_long_tables_go_over_pages() -> None:
    for rows in (1, LINES_ON_A_PAGE, LINES_ON_A_PAGE + 1, 300):
        text = latex(report(pd.DataFrame({"k": range(rows)})))
        assert (r"\begin{longtable}" in text) == (rows > LINES_ON_A_PAGE)
        assert (r"\begin{table}" in text) == (rows <= LINES_ON_A_PAGE)
    text = latex(report(pd.DataFrame({"claim": ["many words " * 20] * 20})))
    assert r"\begin{longtable}" in text, "cells of several lines take more room"


def test_wide_tables_turn_the_page_and_others_do_not() -> None:
    narrow, wide = (
        pd.DataFrame([[0.12345] * columns], columns=[f"c{i}" for i in range(columns)]) for columns in (5, 20)
    )
    assert "landscape" not in latex(report(narrow)).split("\n", 1)[1]
    assert r"\begin{landscape}" in latex(report(wide))


def test_numbers_stand_to_the_right_and_are_formatted_as_everywhere() -> None:
    frame = pd.DataFrame({"role": ["audit"], "D": [-0.01112], "n": [13069], "chosen": [True], "seed": ["7"]})
    frame["mixed"] = pd.Series([0.5], dtype=object)
    text = latex(report(frame))
    assert r"\begin{tabular}{lrrllr}" in text
    assert body(text) == [r"audit & $-$0.0111 & 13,069 & yes & 7 & 0.5000 \\"]


def test_caption_label_and_source_are_there() -> None:
    table = ReportTable("pairs", "A & B", "50% of [them].", "a_b.csv", pd.DataFrame({"k": [1]}), "")
    text = latex(table)
    assert r"\label{tab:pairs}" in text
    assert r"\caption[{A \& B}]{A \& B. 50\% of {[}them{]}. Source: a\_b.csv.}" in text


def test_it_compiles(tmp_path: Path) -> None:
    """Where there is a TeX; the tests above need none."""
    if not shutil.which("pdflatex") or subprocess.run(["kpsewhich", *PACKAGES], capture_output=True).returncode:
        pytest.skip("there is no LaTeX with booktabs, longtable and lscape")
    every = "&%$#_{}[]*\\~^`<>|\"'-−µμ²ρ…–—“”‘’×≤≥±·°αΔλéßÿ漢☃"
    line = [every, "[−0.1, 0.2]", -0.5, True, None]
    tables = [pd.DataFrame([["[*", *line]] * rows, columns=[every, *"abcde"]) for rows in (0, 2, 60)]
    text = "\n".join(latex(ReportTable(f"t{i}", every, every, every, frame, "")) for i, frame in enumerate(tables))
    begin = "\\documentclass{article}\\usepackage{booktabs,longtable,lscape}\\begin{document}"
    (tmp_path / "all.tex").write_text(f"{begin}\n{text}\n\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
