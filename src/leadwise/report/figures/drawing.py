"""What all panels share: sizes, colours for every eye, names for print, and words where there is nothing to draw."""

from collections.abc import Hashable, Iterable, Sequence
from textwrap import fill
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure

SMALL, TITLE = 7.0, 8.0
"""Points. Nothing is smaller than `SMALL`: figures are printed as they are, without scaling."""

PAGE, COLUMN = 7.2, 3.5
"""Inches: the width of a page of two columns, and of one column."""

INK, GREY, PALE, FAINT = "#1a1a1a", "#767676", "#a3a3a3", "#d4d4d4"

# Okabe and Ito's colours, which the colour-blind can tell apart
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"


class Style(NamedTuple):
    """How an arm is drawn; the marker says the same as the colour, for print without colours."""

    colour: str
    marker: str


_STYLES = {
    "ecg-on-demand": Style(BLUE, "o"),
    "mga": Style(VERMILLION, "s"),
    "strong-mga": Style(GREEN, "^"),
    "strong-mga-controlled-state": Style(SKY, "^"),
    "ccga": Style(PURPLE, "D"),
    "strong-ecg-on-demand": Style(SKY, "v"),
    "cohort-state": Style(ORANGE, "P"),
    "random-subset": Style(GREY, "X"),
    "reference": Style(INK, "d"),
}
_SPARE = tuple(Style(colour, marker) for marker in "hp<>*" for colour in (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY))

_NAMES = {
    "ecg-on-demand": "ECG-on-Demand",
    "mga": "MGA",
    "ccga": "CCGA",
    "strong-mga": "Strong-MGA",
    "strong-mga-controlled-state": "Strong-MGA, controlled state",
    "strong-ecg-on-demand": "Strong-ECG-on-Demand",
    "cohort-state": "Cohort-state",
    "random-subset": "Random-subset",
    "reference": "Fixed set",
    "nll": "NLL",
    "brier": "Brier",
    "ece": "ECE",
    "auroc": "AUROC",
    "auprc": "AUPRC",
}

ROLES = ("evaluation", "audit")
"""The roles that results are shown for, the better first."""


def printed(name: str) -> str:
    """A policy's or a metric's name as people write it; a user's own stays as it is."""
    return _NAMES.get(name, name)


def signed(value: float, digits: int) -> str:
    """A number with its sign, and a minus that is as wide as the plus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def styles(policies: Iterable[str]) -> dict[str, Style]:
    """Known policies keep their look in every figure; a user's own get what is left, in the order of their names."""
    names = list(policies)
    spare = dict(zip(sorted(set(names) - set(_STYLES)), _SPARE, strict=False))
    return {name: _STYLES.get(name) or spare.get(name, _SPARE[-1]) for name in names}


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
        ax.legend(loc="best", fontsize=SMALL, labelcolor=INK, frameon=False, handletextpad=0.5)


def shared_legend(figure: Figure | SubFigure, panels: Sequence[Axes]) -> None:
    """The fullest of the panels' legends, the last of equals, under all of them."""
    handles, names = max((ax.get_legend_handles_labels() for ax in panels[::-1]), key=lambda found: len(found[0]))
    for ax in panels:
        if (own := ax.get_legend()) is not None:
            own.remove()
    if handles:
        figure.legend(
            handles,
            names,
            loc="outside lower center",
            ncols=min(len(names), max(1, int(figure.bbox.width / figure.dpi / 1.6))),
            fontsize=SMALL,
            labelcolor=INK,
            frameon=False,
            handletextpad=0.5,
        )


def in_thousandths(axis: Axis) -> None:
    """Tick labels of an axis of D, whose values are small, in the unit that I is written in."""
    axis.set_major_formatter(lambda value, _: f"{1e3 * value:.4g}".replace("-", "−"))


def dodge(index: int, count: int) -> float:
    """How far arm ``index`` of ``count`` stands beside its place, so that intervals do not hide each other."""
    return (index - (count - 1) / 2) * min(0.18, 0.76 / count)


def zero_line(ax: Axes, vertical: bool = False) -> None:
    """Where neither arm is better."""
    (ax.axvline if vertical else ax.axhline)(0, color=GREY, linewidth=0.8, zorder=1)


def say_nothing(ax: Axes, what: str) -> Axes:
    """A sentence in place of a picture: there are no rows for ``what``."""
    ax.set_axis_off()
    ax.text(
        0.5,
        0.5,
        fill(f"No rows for {what}.", 34, break_on_hyphens=False),
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize=SMALL,
        color=GREY,
    )
    return ax


def rows_of(frame: pd.DataFrame, **facts: Hashable) -> pd.DataFrame:
    """The rows that have these values; none where the frame does not even have the column."""
    for column, value in facts.items():
        frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
    return frame


def shown_role(frame: pd.DataFrame, preferred: Sequence[str] = ROLES) -> str:
    """The first preferred role that the frame has, else whichever it has."""
    return str(first_of(frame, "role", preferred) or preferred[-1])


def first_of(frame: pd.DataFrame, column: str, preferred: Sequence[Hashable]) -> Hashable:
    """The first preferred value that the column has, else the column's first, else None."""
    present = present_in(frame, column)
    return next((value for value in preferred if value in present), present[0] if present else None)


def present_in(frame: pd.DataFrame, column: str) -> list[Hashable]:
    """The distinct values of a column in order of appearance; none where there is no such column."""
    return list(frame[column].dropna().unique()) if column in frame else []


def budgets_in(frame: pd.DataFrame) -> list[int]:
    """The budgets of a frame, ascending."""
    return sorted(int(k) for k in frame["k"].dropna().unique()) if "k" in frame else []


def policies_in(frame: pd.DataFrame, preferred: Sequence[str] | None = None) -> list[str]:
    """The preferred policies that the frame has, in their order; all of the frame's where none is preferred."""
    present = [str(name) for name in present_in(frame, "policy")]
    return present if preferred is None else [name for name in preferred if name in present]
