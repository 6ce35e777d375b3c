"""Reliability diagrams: what probabilities say against how often it is so."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from leadwise.report.plots.drawing import (
    GREY,
    INK,
    PAGE,
    TITLE,
    axes,
    dress,
    legend,
    policies_in,
    present_in,
    printed,
    rows_of,
    say_nothing,
    shared_legend,
    shown_role,
    styles,
)

ARMS = ("ecg-on-demand", "mga", "reference")
POOLED = "pooled"
_LARGEST = 70.0
"""Area in square points of the marker of the fullest bin of a panel."""


def plot_reliability(
    reliability: pd.DataFrame,
    ax: Axes | None = None,
    label: str = POOLED,
    evaluator: str = "controlled",
    k: int = 4,
    policies: Sequence[str] | None = ARMS,
) -> Axes:
    """Observed frequency over mean probability in each bin that is not empty; larger markers hold more cases."""
    role = shown_role(reliability)
    rows = rows_of(reliability, role=role, evaluator=evaluator, k=k, label=label)
    rows = rows[rows["count"] > 0] if len(rows) else rows
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, 3.0, 3.7)
    if not shown:
        return say_nothing(ax, f"reliability ({label}) under the {evaluator} evaluator at k = {k}")
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    fullest = rows[rows["policy"].isin(shown)]["count"].max()
    for policy, style in styles(shown).items():
        arm = rows_of(rows, policy=policy).sort_values("bin")
        line = "--" if policy == "reference" else "-"
        ax.plot(arm["probability"], arm["frequency"], line, color=style.colour, linewidth=0.9, zorder=2)
        ax.scatter(
            arm["probability"],
            arm["frequency"],
            s=_LARGEST * arm["count"] / fullest,
            facecolors="none",  # open, because arms often lie on each other
            edgecolors=style.colour,
            marker=style.marker,
            linewidths=0.9,
            zorder=3,
            clip_on=False,
        )
        # for the legend alone: there, a marker's size means nothing
        ax.plot(
            [],
            [],
            linestyle=line,
            linewidth=0.9,
            color=style.colour,
            marker=style.marker,
            markersize=5,
            markerfacecolor="none",
            label=_arm_name(policy),
        )
    dress(ax, f"{label}, k = {k}\n{evaluator} evaluator, {role} role", "mean probability", "observed frequency")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    legend(ax, alone)
    return ax


def plot_reliability_labels(
    reliability: pd.DataFrame,
    figure: Figure | None = None,
    evaluator: str = "controlled",
    k: int = 4,
    policies: Sequence[str] | None = ARMS,
    columns: int = 3,
) -> Figure:
    """A panel for each label, after the pooled one, with one legend for all."""
    role = shown_role(reliability)
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
        where = f"{evaluator} evaluator, k = {k}, {role} role; larger markers hold more cases"
        figure.suptitle(where, x=0.01, ha="left", fontsize=TITLE, color=INK)
    return figure


def _arm_name(policy: str) -> str:
    return "ECE-matched fixed set" if policy == "reference" else printed(policy)
