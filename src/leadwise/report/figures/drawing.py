"""Sizes, frames and legends that all panels share, and words where there is nothing to draw."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure

from leadwise.report.names import GREY, INK, SKY, the_evaluator

SMALL, TITLE = 7.0, 8.0
"""Points. Nothing is smaller than `SMALL`: figures are printed as they are, without scaling."""

PAGE, COLUMN = 7.2, 3.5
"""Inches: the width of a page of two columns, and of one column."""

# pale enough at both ends for black figures on it
FAVOURS = LinearSegmentedColormap.from_list("favours", [SKY, "#ffffff", "#f3a871"])
"""Colours of cells, from what favours adaptation to what favours the fixed set."""

_LEGEND: dict[str, Any] = {"fontsize": SMALL, "labelcolor": INK, "frameon": False, "handletextpad": 0.5}


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The given Axes, or new ones on a figure of this size that pyplot knows nothing of."""
    return Figure(figsize=(width, height), layout="constrained").subplots() if ax is None else ax


def dress(ax: Axes, title: str, xlabel: str = "", ylabel: str = "") -> None:
    """Title, labels and frame in our style, whatever the user's settings are."""
    ax.set_title(title, loc="left", fontsize=TITLE, color=INK)
    ax.set_xlabel(xlabel, fontsize=SMALL, color=INK)
    ax.set_ylabel(ylabel, fontsize=SMALL, color=INK)
    ax.tick_params(labelsize=SMALL, colors=INK, width=0.6, length=2.5)
    ax.set_facecolor("white")
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=INK, linewidth=0.6)


def legend(ax: Axes, alone: bool) -> None:
    """A small legend: under a panel that has the figure for itself, else where it hides least."""
    if alone:
        shared_legend(ax.figure, [ax])
    else:
        ax.legend(loc="best", **_LEGEND)


def shared_legend(figure: Figure | SubFigure, panels: Sequence[Axes]) -> None:
    """The fullest of the panels' legends, the last of equals, under all of them."""
    handles, names = max((ax.get_legend_handles_labels() for ax in panels[::-1]), key=lambda found: len(found[0]))
    for ax in panels:
        if (own := ax.get_legend()) is not None:
            own.remove()
    if handles:
        columns = min(len(names), max(1, int(figure.bbox.width / figure.dpi / 1.6)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns, **_LEGEND)


def in_thousandths(axis: Axis) -> None:
    """Tick labels of an axis of D, whose values are small, in the unit that I is written in."""
    axis.set_major_formatter(lambda value, _: f"{1e3 * value:.4g}".replace("-", "−"))


def dodge(index: int, count: int) -> float:
    """Shift of arm ``index`` of ``count`` beside its place, so that intervals do not hide each other."""
    return (index - (count - 1) / 2) * min(0.18, 0.76 / count)


def zero_line(ax: Axes, vertical: bool = False) -> None:
    """A line where neither arm is better."""
    (ax.axvline if vertical else ax.axhline)(0, color=GREY, linewidth=0.8, zorder=1)


def where(evaluator: str, k: int = 0) -> str:
    """The end of a sentence that says what there is nothing of.

    >>> where("strong", 4), where("")
    (' under the strong evaluator at k = 4', '')
    """
    return f" under {the_evaluator(evaluator)}" * bool(evaluator) + f" at k = {k}" * bool(k)


def say_nothing(ax: Axes, what: str) -> Axes:
    """A sentence in place of a picture: there are no rows for ``what``."""
    ax.set_axis_off()
    words = fill(f"No rows for {what}.", 34, break_on_hyphens=False)
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", fontsize=SMALL, color=GREY)
    return ax
