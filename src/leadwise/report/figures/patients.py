"""Whom choosing helps: effects patient by patient. A patient's delta below zero means that choosing helped him."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from leadwise.report.plots.drawing import (
    BLUE,
    COLUMN,
    INK,
    SMALL,
    VERMILLION,
    axes,
    dodge,
    dress,
    legend,
    policies_in,
    printed,
    rows_of,
    say_nothing,
    shown_role,
    signed,
    styles,
    zero_line,
)

_CENTRAL = (0.01, 0.99)
"""What a sorted curve shows of the patients: its ends are a few extreme ones who would flatten the rest."""


def plot_sorted_effects(
    effects: pd.DataFrame,
    ax: Axes | None = None,
    policy: str = "ecg-on-demand",
    evaluator: str = "controlled",
    k: int = 4,
) -> Axes:
    """Every patient's delta NLL in order, over the central 98%; the full range is said in words."""
    role = shown_role(effects)
    rows = rows_of(effects, role=role, policy=policy, evaluator=evaluator, k=k)
    ax = axes(ax, COLUMN, 2.4)
    if rows.empty:
        return say_nothing(ax, f"patient effects of {printed(policy)} under the {evaluator} evaluator at k = {k}")
    delta = np.sort(rows["delta"].to_numpy(dtype=float))
    share = (np.arange(len(delta)) + 0.5) / len(delta)
    central = (share >= _CENTRAL[0]) & (share <= _CENTRAL[1])
    x, y = share[central], delta[central]
    ax.fill_between(x, y, 0, where=y <= 0, color=BLUE, alpha=0.35, linewidth=0)
    ax.fill_between(x, y, 0, where=y >= 0, color=VERMILLION, alpha=0.35, linewidth=0)
    ax.plot(x, y, color=INK, linewidth=1.2)
    zero_line(ax)
    facts = (
        f"central 98% of\n{len(delta):,} patients,",
        f"full range\n{signed(delta[0], 2)} to {signed(delta[-1], 2)}",
    )
    ax.text(0.04, 0.96, "\n".join(facts), transform=ax.transAxes, va="top", fontsize=SMALL, color=INK, linespacing=1.3)
    dress(
        ax,
        title=f"{printed(policy)}, k = {k}\n{evaluator} evaluator, {role} role",
        xlabel="patients (%),\nsorted by effect",
        ylabel="patient’s delta NLL (nats)\nnegative favours adaptation",
    )
    _percent(ax)
    return ax


def plot_effect_quartiles(
    patients: pd.DataFrame,
    ax: Axes | None = None,
    evaluator: str = "controlled",
    k: int = 4,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Mean effect in each quartile of the uncertainty that the first lead leaves, with intervals."""
    role = shown_role(patients)
    rows = rows_of(patients, role=role, evaluator=evaluator, k=k, versus="reference")
    means = [f"Q{q} mean" for q in range(1, 5)]
    rows = rows[rows["statistic"].isin(means)] if len(rows) else rows
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.8)
    if not shown:
        return say_nothing(ax, f"uncertainty quartiles under the {evaluator} evaluator at k = {k}")
    for index, (policy, style) in enumerate(styles(shown).items()):
        arm = rows_of(rows, policy=policy)
        x = np.array([means.index(name) for name in arm["statistic"]]) + dodge(index, len(shown))
        ax.vlines(x, arm["lo"], arm["hi"], colors=style.colour, linewidths=1.1, zorder=3)
        ax.plot(x, arm["value"], style.marker, color=style.colour, markersize=4.2, zorder=4, label=printed(policy))
    zero_line(ax)
    dress(
        ax,
        title=f"By first-lead uncertainty, k = {k}\n{evaluator} evaluator, {role} role",
        xlabel="quartile of uncertainty,\nleast to most",
        ylabel="mean delta NLL (nats)\nnegative favours adaptation",
    )
    ax.set_xticks(range(4), ["Q1", "Q2", "Q3", "Q4"])
    ax.set_xlim(-0.5, 3.5)
    legend(ax, alone)
    return ax


def plot_cumulative_benefit(
    effects: pd.DataFrame,
    ax: Axes | None = None,
    evaluator: str = "controlled",
    k: int = 4,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Benefit summed over patients, who benefits most first, divided by all; patients are ranked within each policy."""
    role = shown_role(effects)
    rows = rows_of(effects, role=role, evaluator=evaluator, k=k)
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.8)
    if not shown:
        return say_nothing(ax, f"patient effects under the {evaluator} evaluator at k = {k}")
    for policy, style in styles(shown).items():
        delta = np.sort(rows_of(rows, policy=policy)["delta"].to_numpy(dtype=float))
        share = np.arange(len(delta) + 1) / len(delta)
        benefit = np.concatenate([[0.0], -np.cumsum(delta) / len(delta)])
        ax.plot(
            share,
            benefit,
            color=style.colour,
            marker=style.marker,
            markevery=0.125,
            markersize=4.2,
            linewidth=1.2,
            clip_on=False,
            label=printed(policy),
        )
    zero_line(ax)
    dress(
        ax,
        title=f"Cumulative benefit, k = {k}\n{evaluator} evaluator, {role} role",
        xlabel="patients (%),\nranked within each policy",
        ylabel="cumulative mean benefit (nats)\npositive favours adaptation",
    )
    _percent(ax)
    legend(ax, alone)
    return ax


def _percent(ax: Axes) -> None:
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
