"""The small table that a notebook shows for an object."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in HTML with everything escaped; without a head where no columns are named.

    >>> html_table("a & b", [], [[1, "<x>"]])
    '<table><caption>a &amp; b</caption><tbody><tr><td>1</td><td>&lt;x&gt;</td></tr></tbody></table>'
    """
    named = "".join(f"<th>{escape(column)}</th>" for column in columns)
    head = f"<thead><tr>{named}</tr></thead>" if columns else ""
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"
