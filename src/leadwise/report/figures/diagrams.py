"""Two diagrams: how leads are acquired one at a time, and how a frozen policy is read by another evaluator."""

from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from leadwise.leads import LEADS
from leadwise.report.figures.drawing import COLUMN, SMALL, axes, dress
from leadwise.report.names import BLUE, FAINT, GREEN, GREY, INK, VERMILLION, spoken, the_evaluator

_WIDTH, _HEIGHT = 100.0, 70.0
"""The diagrams' own units, whatever the size of the Axes."""

_Point = tuple[float, float]


def plot_acquisition_loop(ax: Axes | None = None, first_lead: str = "", k: int = 4) -> Axes:
    """Figure 1(a): a policy sees what it has acquired, chooses the next lead, and stops at k."""
    ax = _canvas(ax, "How leads are acquired")
    first_lead = first_lead or LEADS[0]
    others = [lead for lead in ("V2", "V5", "III", "II") if lead != first_lead]
    _lead_strip(ax, 62.5, [first_lead, others[0]])
    _box(ax, (18, 44), (33, 21), f"Start\n{first_lead} is first and\ncounts towards k", INK)
    _box(ax, (78, 44), (42, 21), "Observation\nacquired leads only,\nprobabilities so far,\nbudget left", BLUE)
    _box(ax, (78, 17), (42, 16), "Policy\nscores the other leads,\ntakes the best", BLUE)
    _box(ax, (18, 17), (33, 16), "Evaluator\nreads them: one\nprobability a label", VERMILLION)
    _arrow(ax, (34.5, 44), (57, 44))
    _arrow(ax, (88, 33.5), (88, 25))
    _arrow(ax, (68, 25), (68, 33.5))
    _arrow(ax, (57, 17), (34.5, 17))
    _note(ax, (65, 29.2), f"fewer than {k}: record it", "right")
    _note(ax, (46, 20.5), f"{k} leads")
    _note(ax, (50, 3), "Neither policy nor evaluator sees a lead that is not recorded.")
    return ax


def plot_transfer(ax: Axes | None = None, baseline: str = "", evaluator: str = "") -> Axes:
    """Figure 1(b): the same frozen lead sets, read by two evaluators, each against its own best fixed set.

    Without a second evaluator, the diagram shows what one reads.
    """
    readers = [each for each in dict.fromkeys((baseline, evaluator)) if each] or ["any"]
    ax = _canvas(ax, f"The frozen policy, read by {'another evaluator' if len(readers) > 1 else 'its evaluator'}")
    trained = fill(f"trained with {the_evaluator(baseline) if baseline else 'an evaluator'}", 16)
    _box(ax, (15.5, 39), (30, 21), f"Frozen policy\n{trained}", BLUE)
    _note(ax, (15, 23), "one lead set a\nrecord, never\nchosen anew", top=True)
    places = (56, 22) if len(readers) > 1 else (39,)
    for height, name, colour in zip(places, readers, (INK, VERMILLION), strict=False):
        _box(ax, (51, height), (26, 14), f"Evaluator\n{spoken(name)}", colour)
        _box(ax, (85.5, height), (28, 18), f"$D_{{{_initial(name, readers)}}}$\nadaptive minus\nbest fixed set", colour)
        _arrow(ax, (30.5, 39), (38, height))
        _arrow(ax, (64, height), (71.5, height))
    meaning = "D < 0 favours adaptation"
    if len(readers) > 1:
        first, second = (_initial(name, readers) for name in readers)
        _note(ax, (85.5, 39), f"$I = D_{{{second}}} - D_{{{first}}}$", size=9.0)
        _note(ax, (51, 39), "same sets,\nsame patients")
        meaning += "; I > 0: less so when\nthe other evaluator reads"
    _note(ax, (50, 3), f"{meaning}.")
    return ax


def _initial(name: str, among: Sequence[str]) -> str:
    """The letter that stands for an evaluator, or its whole name where two begin alike."""
    alike = sum(other[:1].upper() == name[:1].upper() for other in among) > 1
    return rf"\mathrm{{{name}}}" if alike else name[:1].upper()


def _canvas(ax: Axes | None, title: str) -> Axes:
    ax = axes(ax, COLUMN, COLUMN * 0.75)
    dress(ax, title)
    ax.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def _box(ax: Axes, centre: _Point, size: _Point, text: str, colour: str) -> None:
    """A rounded box; the first line of its text, in bold, is what it is."""
    corner = (centre[0] - size[0] / 2, centre[1] - size[1] / 2)
    shape = FancyBboxPatch(
        corner, *size, boxstyle="round,pad=0,rounding_size=2.5", facecolor="white", edgecolor=colour, linewidth=1.1
    )
    ax.add_patch(shape)
    lines = text.split("\n")
    for index, line in enumerate(lines):
        up = ((len(lines) - 1) / 2 - index) * 1.3 * SMALL - 0.35 * SMALL  # from the centre to the line's baseline
        words = ax.annotate(line, centre, (0, up), textcoords="offset points", ha="center", va="baseline", color=INK)
        words.set(fontsize=SMALL, weight="normal" if index else "bold")


def _arrow(ax: Axes, start: _Point, end: _Point) -> None:
    arrow = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=8, shrinkA=1, shrinkB=1, color=INK)
    arrow.set_linewidth(1.0)
    ax.add_patch(arrow)


def _note(ax: Axes, at: _Point, text: str, side: str = "center", top: bool = False, size: float = SMALL) -> None:
    words = ax.text(*at, text, ha=side, va="top" if top else "center", fontsize=size, color=INK, linespacing=1.15)
    words.set_in_layout(False)  # a long note must not make the diagram smaller


def _lead_strip(ax: Axes, height: float, acquired: Sequence[str]) -> None:
    """The twelve leads as cells; those that are acquired are filled."""
    width = _WIDTH / len(LEADS)
    for index, lead in enumerate(LEADS):
        face, edge, colour = (GREEN, GREEN, "white") if lead in acquired else ("white", FAINT, GREY)
        corner = (index * width + 0.4, height - 3.5)
        ax.add_patch(Rectangle(corner, width - 0.8, 7, facecolor=face, edgecolor=edge, linewidth=0.8))
        ax.text((index + 0.5) * width, height, lead, ha="center", va="center", fontsize=SMALL, color=colour)
