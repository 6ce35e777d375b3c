"""Effects patient by patient. A patient's delta below zero means that adaptation helped them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from leadwise.report.figures.composition import Composition, Shown, letter
from leadwise.report.figures.drawing import (
    COLUMN,
    PAGE,
    SMALL,
    axes,
    dodge,
    dress,
    legend,
    say_nothing,
    shared_legend,
    where,
    zero_line,
)
from leadwise.report.figures.rows import budget_of, policies_in, reader_of, rows_of, shown_role
from leadwise.report.names import BLUE, INK, VERMILLION, evaluator_title, spoken, styles
from leadwise.report.numbers import signed

_CENTRAL = (0.01, 0.99)
"""Share of patients that a sorted curve shows: the few extreme ones at its ends would flatten the rest."""


def plot_sorted_effects(
    effects: pd.DataFrame,
    ax: Axes | None = None,
    policy: str | None = None,
    evaluator: str | None = None,
    k: int | None = None,
) -> Axes:
    """Every patient's delta NLL in order, over the central 98%; the full range is said in words."""
    role, evaluator, k = shown_role(effects), reader_of(effects, evaluator), budget_of(effects, k)
    policy = policy or next(iter(policies_in(effects)), "")
    rows = rows_of(effects, role=role, policy=policy, evaluator=evaluator, k=k)
    ax = axes(ax, COLUMN, 2.4)
    if rows.empty:
        return say_nothing(ax, f"patient effects{f' of {spoken(policy)}' * bool(policy)}{where(evaluator, k)}")
    delta = np.sort(rows["delta"].to_numpy(dtype=float))
    share = (np.arange(len(delta)) + 0.5) / len(delta)
    central = (share >= _CENTRAL[0]) & (share <= _CENTRAL[1])
    x, y = share[central], delta[central]
    ax.fill_between(x, y, 0, where=y <= 0, color=BLUE, alpha=0.35, linewidth=0)
    ax.fill_between(x, y, 0, where=y >= 0, color=VERMILLION, alpha=0.35, linewidth=0)
    ax.plot(x, y, color=INK, linewidth=1.2)
    zero_line(ax)
    facts = f"central 98% of\n{len(delta):,} patients,\nfull range\n{signed(delta[0], 2)} to {signed(delta[-1], 2)}"
    ax.text(0.04, 0.96, facts, transform=ax.transAxes, va="top", fontsize=SMALL, color=INK, linespacing=1.3)
    title = f"{spoken(policy)}, k = {k}\n{evaluator_title(evaluator)},\n{role} role"
    dress(ax, title, "patients (%),\nsorted by effect", "patient’s delta NLL (nats)\nnegative favours adaptation")
    _percent(ax)
    return ax


def plot_effect_quartiles(
    patients: pd.DataFrame,
    ax: Axes | None = None,
    evaluator: str | None = None,
    k: int | None = None,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Mean effect in each quartile of the uncertainty that the first lead leaves, with intervals."""
    role, evaluator, k = shown_role(patients), reader_of(patients, evaluator), budget_of(patients, k)
    rows = rows_of(patients, role=role, evaluator=evaluator, k=k, versus="reference")
    means = [f"Q{q} mean" for q in range(1, 5)]
    rows = rows[rows["statistic"].isin(means)] if len(rows) else rows
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.8)
    if not shown:
        return say_nothing(ax, f"uncertainty quartiles{where(evaluator, k)}")
    for index, (policy, style) in enumerate(styles(shown).items()):
        arm = rows_of(rows, policy=policy)
        x = np.array([means.index(name) for name in arm["statistic"]]) + dodge(index, len(shown))
        ax.vlines(x, arm["lo"], arm["hi"], colors=style.colour, linewidths=1.1, zorder=3)
        ax.plot(x, arm["value"], style.marker, color=style.colour, markersize=4.2, zorder=4, label=spoken(policy))
    zero_line(ax)
    title = f"By first-lead uncertainty, k = {k}\n{evaluator_title(evaluator)},\n{role} role"
    dress(ax, title, "quartile of uncertainty,\nleast to most", "mean delta NLL (nats)\nnegative favours adaptation")
    ax.set_xticks(range(4), ["Q1", "Q2", "Q3", "Q4"])
    ax.set_xlim(-0.5, 3.5)
    legend(ax, alone)
    return ax


def plot_cumulative_benefit(
    effects: pd.DataFrame,
    ax: Axes | None = None,
    evaluator: str | None = None,
    k: int | None = None,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Benefit summed over patients, who benefits most first, divided by all; patients are ranked within each policy."""
    role, evaluator, k = shown_role(effects), reader_of(effects, evaluator), budget_of(effects, k)
    rows = rows_of(effects, role=role, evaluator=evaluator, k=k)
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.8)
    if not shown:
        return say_nothing(ax, f"patient effects{where(evaluator, k)}")
    for policy, style in styles(shown).items():
        delta = np.sort(rows_of(rows, policy=policy)["delta"].to_numpy(dtype=float))
        share = np.arange(len(delta) + 1) / len(delta)
        benefit = np.concatenate([[0.0], -np.cumsum(delta) / len(delta)])
        (curve,) = ax.plot(share, benefit, color=style.colour, linewidth=1.2, clip_on=False, label=spoken(policy))
        curve.set(marker=style.marker, markevery=0.125, markersize=4.2)
    zero_line(ax)
    title = f"Cumulative benefit, k = {k}\n{evaluator_title(evaluator)},\n{role} role"
    benefit_axis = "cumulative mean benefit (nats)\npositive favours adaptation"
    dress(ax, title, "patients (%),\nranked within each policy", benefit_axis)
    _percent(ax)
    legend(ax, alone)
    return ax


def _percent(ax: Axes) -> None:
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))


def _figure(shown: Shown) -> Figure:
    figure = Figure(figsize=(PAGE, 3.2), layout="constrained")
    panels = list(figure.subplots(1, 3))
    effects, patients = shown.frame("patient_effects"), shown.frame("patients")
    policies = shown.policies("patient_effects", shown.plan.studied)
    evaluator, k = shown.reader("patient_effects"), shown.budget("patient_effects")
    plot_sorted_effects(effects, panels[0], next(iter(policies), None), evaluator, k)
    of_quartiles = shown.policies("patients", shown.plan.studied)
    plot_effect_quartiles(patients, panels[1], shown.reader("patients"), shown.budget("patients"), of_quartiles)
    plot_cumulative_benefit(effects, panels[2], evaluator, k, policies)
    letter(panels)
    shared_legend(figure, panels)
    return figure


FIGURES = (
    Composition(
        50,
        "patients",
        "Effects patient by patient",
        "Patients' effects on NLL in order; mean effects by quartile of uncertainty after the first lead, with 95% "
        "intervals; cumulative benefit with patients ranked within each policy.",
        _figure,
    ),
)
