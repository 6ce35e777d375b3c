"""The report's figures, written as SVG and PDF. A module here that has ``FIGURES`` adds its own.

Every panel is a function of tidy results, ``plot_x(frame, ax=None) -> Axes``. What a run does not have is left out, and
where a panel has nothing to show, it says so.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from leadwise.report.figures.composition import Composition, Shown
from leadwise.run.plan import Plan
from leadwise.store import atomic_file


def compositions() -> list[Composition]:
    """All figures, in the order of their places."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    return sorted((each for module in modules for each in getattr(module, "FIGURES", ())), key=lambda each: each.place)


def draw_figures(results: Mapping[str, pd.DataFrame], plan: Plan, directory: Path) -> dict[str, Path]:
    """Draw every figure of the report and write it as SVG and PDF; returns the files by name.

    Any of the results (frames by the names of their files) may be missing; the plan says which policies and evaluators
    are shown, and in what order, and whether a figure belongs to the study at all.
    """
    shown = Shown(results, plan)
    written: dict[str, Path] = {}
    with _our_style():
        for each in compositions():
            if each.needs and shown.frame(each.needs).empty:
                continue
            figure = each.compose(shown)
            for suffix in ("svg", "pdf"):
                path = directory / f"{each.name}.{suffix}"
                _write(figure, path, each.title, each.described(shown))
                written[path.name] = path
    return written


@contextmanager
def _our_style() -> Iterator[None]:
    """Matplotlib's own defaults, whatever the user's settings are, and what makes files the same every time."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # glyphs as paths: the same picture on every machine; a fixed salt: the same ids, hence bytes, every time
        matplotlib.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "leadwise", "pdf.fonttype": 42})
        yield


def _write(figure: Figure, path: Path, title: str, description: str) -> None:
    """One file, without a date; an SVG also says in words what it shows."""
    kind = path.suffix[1:]
    date = {"svg": "Date", "pdf": "CreationDate"}[kind]
    with atomic_file(path) as draft:
        figure.savefig(draft, format=kind, metadata={"Title": title, date: None})
        if kind == "svg":
            draft.write_text(_accessible(draft.read_text("utf-8"), path.stem, title, description), "utf-8")


def _accessible(svg: str, name: str, title: str, description: str) -> str:
    """Words for those who cannot see the picture, and ids that stay apart when several stand on one page."""
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    words = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    svg = re.sub(r"<title>.*?</title>", lambda _: words, svg, count=1, flags=re.DOTALL)
    return svg.replace("<svg ", f'<svg role="img" aria-labelledby="{name}-title {name}-desc" ', 1)
