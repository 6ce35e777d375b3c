"""Tables as LaTeX, to be put into a paper with ``\\input``; needs the packages booktabs, longtable and lscape."""

from collections.abc import Sequence
from re import findall
from textwrap import wrap
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from leadwise.report.numbers import cell
from leadwise.report.tables.view import ReportTable

LINES_ON_A_PAGE = 40
NO_ROWS = "no rows in this run"

_SIZES = {95: r"\small", 105: r"\footnotesize", 115: r"\scriptsize", 135: r"\tiny"}
"""Type for lines of so many characters across a page."""
_TURNED = 200
"""Characters across a page that is turned."""
_WRAPS = (34, 22, 14)
"""Characters of a line in cells with much text: the first that makes the table narrow enough."""
_HEADING = 12
"""Characters of a line of a heading."""

_TEXT = (
    r"\ backslash ~ asciitilde ^ asciicircum ` asciigrave < less > greater | bar ° degree µ mu μ mu – endash — emdash "
    "‘ quoteleft ’ quoteright “ quotedblleft ” quotedblright"
)
"""Characters, each with the end of the command that prints it in text, such as ``\\textless{}``."""
_MATHS = r"− - ± \pm × \times ≤ \leq ≥ \geq · \cdot α \alpha Δ \Delta λ \lambda ρ \rho"
"""Characters, each with what prints it between dollar signs."""
_ESCAPES = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    # in braces, because a row may begin with them, and then the end of the row above would take them for its own
    **{char: f"{{{char}}}" for char in "[]*"},
    **{char: f"{char}{{}}" for char in "-'"},  # two of them would become another character
    **{char: rf"\text{name}{{}}" for char, name in findall(r"(\S+) (\S+)", _TEXT)},
    **{char: f"${sign}$" for char, sign in findall(r"(\S+) (\S+)", _MATHS)},
    "²": r"\textsuperscript{2}",
    "…": r"\ldots{}",
}
_LETTERS = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
"""Letters that every LaTeX reads as they are."""


def latex(table: ReportTable) -> str:
    """A table with caption and label, over several pages where it is long, on a turned page where it is wide."""
    frame = table.frame
    headings = [
        wrap(str(heading), _HEADING, break_long_words=False, break_on_hyphens=False) or [""]
        for heading in frame.columns
    ]
    texts = [[cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    least = [max(map(len, lines)) for lines in headings]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)] if texts else least
    numeric = [_is_numeric(frame.iloc[:, at]) for at in range(len(widths))]

    def across(wrapped: int) -> int:
        each = zip(widths, least, numeric, strict=True)
        return sum(max(width if number else min(width, wrapped), heading) + 2 for width, heading, number in each)

    wrapped = next((most for most in _WRAPS if across(most) <= _TURNED), _WRAPS[-1])
    size = next((size for most, size in _SIZES.items() if across(wrapped) <= most), r"\tiny")
    layout = [
        "r" if number else "l" if width <= wrapped else rf"p{{{wrapped // 2}em}}"
        for width, number in zip(widths, numeric, strict=True)
    ]
    said = f"{escape(table.title)}. {escape(table.caption)} Source: {escape(table.source)}."
    caption = rf"\caption[{{{escape(table.title)}}}]{{{said}}}\label{{tab:{table.name}}}"
    head = " & ".join(map(_heading, headings)) + r" \\"
    body = [" & ".join(map(escape, row)) + r" \\" for row in texts]
    deep = sum(max(-(-len(text) // wrapped) for text in row) for row in texts)
    made = _long if deep > LINES_ON_A_PAGE else _short
    nothing = [rf"\multicolumn{{{len(headings)}}}{{l}}{{{NO_ROWS}}} \\"]
    dress = rf"{size}\setlength{{\tabcolsep}}{{3pt}}"
    lines = made(caption, dress, "".join(layout), head, body or nothing)
    if across(wrapped) > max(_SIZES):
        lines = [r"\begin{landscape}", *lines, r"\end{landscape}"]
    return "\n".join([r"% needs \usepackage{booktabs,longtable,lscape}", *lines, ""])


def escape(text: str) -> str:
    """Text as LaTeX prints it; a character that not every LaTeX knows becomes a question mark.

    >>> escape("58.3% of [−0.1, ρ]")
    '58.3\\\\% of {[}$-$0.1, $\\\\rho${]}'
    """
    return "".join(_ESCAPES.get(char, char if _known(char) else "?") for char in " ".join(text.split()))


def _known(char: str) -> bool:
    return " " <= char <= "~" or char in _LETTERS


def _heading(lines: Sequence[str]) -> str:
    stacked = r" \\ ".join(map(escape, lines))
    return stacked if len(lines) == 1 else rf"\shortstack{{{stacked}}}"


def _is_numeric(column: "pd.Series[Any]") -> bool:
    numbers = column.dropna().infer_objects()
    return len(numbers) > 0 and is_numeric_dtype(numbers) and not is_bool_dtype(numbers)


def _short(caption: str, dress: str, layout: str, head: str, body: Sequence[str]) -> list[str]:
    rows = [r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    tabular = [rf"\begin{{tabular}}{{{layout}}}", *rows, r"\end{tabular}"]
    # a float begins with the document's own type, so the table's must come after
    return [r"\begin{table}[htbp]", r"\centering", dress, caption, *tabular, r"\end{table}"]


def _long(caption: str, dress: str, layout: str, head: str, body: Sequence[str]) -> list[str]:
    heading = [r"\toprule", head, r"\midrule"]
    first = [rf"{caption} \\", *heading, r"\endfirsthead", *heading, r"\endhead", r"\bottomrule", r"\endfoot"]
    rows = [rf"\begin{{longtable}}{{{layout}}}", *first, *body, r"\end{longtable}"]
    return [r"\begingroup", dress + r"\setlength{\LTcapwidth}{\linewidth}", *rows, r"\endgroup"]
