"""Reliability diagrams: what probabilities say against how often it is so."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from leadwise.analysis.tidy import REFERENCE
from leadwise.report.figures.composition import Composition, Shown
from leadwise.report.figures.drawing import PAGE, TITLE, axes, dress, legend, say_nothing, shared_legend, where
from leadwise.report.figures.rows import budget_of, policies_in, present_in, reader_of, rows_of, shown_role
from leadwise.report.names import GREY, INK, evaluator_title, spoken, styles

POOLED = "pooled"
_LARGEST = 70.0
"""Area in square points of the marker of the fullest bin of a panel."""


def plot_reliability(
    reliability: pd.DataFrame,
    ax: Axes | None = None,
    label: str = POOLED,
    evaluator: str | None = None,
    k: int | None = None,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Observed frequency over mean probability in each bin that is not empty; larger markers hold more cases."""
    role, evaluator, k = shown_role(reliability), reader_of(reliability, evaluator), budget_of(reliability, k)
    rows = rows_of(reliability, role=role, evaluator=evaluator, k=k, label=label)
    rows = rows[rows["count"] > 0] if len(rows) else rows
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, 3.0, 3.7)
    if not shown:
        return say_nothing(ax, f"reliability ({label}){where(evaluator, k)}")
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    fullest = rows[rows["policy"].isin(shown)]["count"].max()
    for policy, style in styles(shown).items():
        arm = rows_of(rows, policy=policy).sort_values("bin")
        line = "--" if policy == REFERENCE else "-"
        x, y = arm["probability"], arm["frequency"]
        ax.plot(x, y, line, color=style.colour, linewidth=0.9, zorder=2)
        dots = ax.scatter(
            x, y, _LARGEST * arm["count"] / fullest, edgecolors=style.colour, marker=style.marker, zorder=3
        )
        dots.set(facecolors="none", linewidths=0.9, clip_on=False)  # open, because arms often lie on each other
        # for the legend alone: there, a marker's size means nothing
        (key,) = ax.plot([], [], f"{style.marker}{line}", color=style.colour, linewidth=0.9, label=_arm_name(policy))
        key.set(markersize=5, markerfacecolor="none")
    dress(ax, f"{label}, k = {k}\n{evaluator_title(evaluator)}, {role} role", "mean probability", "observed frequency")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    legend(ax, alone)
    return ax


def plot_reliability_labels(
    reliability: pd.DataFrame,
    figure: Figure | None = None,
    evaluator: str | None = None,
    k: int | None = None,
    policies: Sequence[str] | None = None,
    columns: int = 3,
) -> Figure:
    """A panel for each label, after the pooled one, with one legend for all."""
    role, evaluator, k = shown_role(reliability), reader_of(reliability, evaluator), budget_of(reliability, k)
    rows = rows_of(reliability, role=role, evaluator=evaluator, k=k)
    labels = sorted((str(label) for label in present_in(rows, "label")), key=lambda label: label != POOLED) or [POOLED]
    deep = -(-len(labels) // columns)
    figure = figure or Figure(figsize=(PAGE, 0.5 + 2.35 * deep), layout=ConstrainedLayoutEngine(h_pad=0.07))
    panels = list(figure.subplots(deep, min(columns, len(labels)), squeeze=False).flat)
    for ax, label in zip(panels, labels, strict=False):
        plot_reliability(reliability, ax, label, evaluator, k, policies)
        ax.set_title(label, loc="left", fontsize=TITLE)
    for ax in panels[len(labels) :]:
        ax.remove()
    shared_legend(figure, panels[: len(labels)])
    if len(rows):
        where = f"{evaluator_title(evaluator)}, k = {k}, {role} role; larger markers hold more cases"
        figure.suptitle(where, x=0.01, ha="left", fontsize=TITLE, color=INK)
    return figure


def _arm_name(policy: str) -> str:
    return "ECE-matched fixed set" if policy == REFERENCE else spoken(policy)


def _figure(shown: Shown) -> Figure:
    policies = shown.policies("reliability", [*shown.plan.studied, REFERENCE])
    frame, reader = shown.frame("reliability"), shown.reader("reliability")
    return plot_reliability_labels(frame, evaluator=reader, k=shown.budget("reliability"), policies=policies)


FIGURES = (
    Composition(
        40,
        "reliability",
        "Reliability diagrams",
        "Observed frequency over mean probability in ten bins, pooled and for each label, of policies and of the "
        "ECE-matched fixed set. Larger markers hold more cases; the diagonal is perfect calibration.",
        _figure,
    ),
)
