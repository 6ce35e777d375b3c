"""Which leads are chosen: a policy's most frequent sets, and what an oracle that sees the labels would do."""

from collections.abc import Sequence
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from leadwise.leads import LEADS, LeadSet
from leadwise.report.plots.drawing import (
    BLUE,
    COLUMN,
    FAINT,
    INK,
    PALE,
    PURPLE,
    SMALL,
    VERMILLION,
    axes,
    budgets_in,
    dress,
    legend,
    policies_in,
    printed,
    rows_of,
    say_nothing,
    shown_role,
    styles,
)

_ORACLES = {
    # statistic of headroom.csv: what the legend calls it, colour, marker, line
    "fixed": ("best fixed set", INK, "d", "-"),
    "oracle": ("greedy oracle: not deployable", BLUE, "o", "--"),
    "exhaustive oracle": ("exhaustive oracle: not deployable", PURPLE, "s", ":"),
}


def plot_modal_sets(
    modal_sets: pd.DataFrame,
    ax: Axes | None = None,
    policies: Sequence[str] | None = None,
    k: int = 4,
    top: int = 2,
) -> Axes:
    """Figure 1(c): the lead sets that each policy chooses most often, as rows of dots, with their shares of records."""
    role = shown_role(modal_sets, ("audit", "evaluation"))
    rows = rows_of(modal_sets, role=role, k=k)
    rows = rows[rows["rank"] <= top] if len(rows) else rows
    names = policies_in(rows, policies)
    rows = pd.concat([rows_of(rows, policy=name).sort_values("rank") for name in names]) if names else rows.iloc[:0]
    ax = axes(ax, COLUMN, 0.8 + 0.16 * len(rows))
    if rows.empty:
        return say_nothing(ax, f"the lead sets of policies at k = {k}")
    dress(ax, f"Most frequent lead sets of each policy\nk = {k}, {role} role")
    looks = styles(names)
    bar_start, bar_room = len(LEADS) - 0.2, 3.0
    for y, (policy, leads, share) in enumerate(zip(rows["policy"], rows["leads"], rows["share"], strict=True)):
        chosen, colour = LeadSet.parse(leads).indices, looks[policy].colour
        ax.plot(range(len(LEADS)), [y] * len(LEADS), "o", color=FAINT, markersize=3.5, markeredgewidth=0)
        ax.plot(chosen, [y] * len(chosen), "o-", color=colour, markersize=5.5, linewidth=0.8, markeredgewidth=0)
        width = bar_room * share / rows["share"].max()
        ax.barh(y, width, left=bar_start, height=0.55, color=colour)
        ax.text(bar_start + width + 0.25, y, f"{100 * share:.1f}%", va="center", fontsize=SMALL, color=INK)
    _lead_columns(ax, bar_start + bar_room + 3.2, len(rows))
    first = [list(rows["policy"]).index(name) for name in names]
    ax.set_yticks(first, [fill(printed(name), 18, break_on_hyphens=False) for name in names])
    ax.tick_params(axis="y", length=0)
    for y in first[1:]:
        ax.axhline(y - 0.5, color=FAINT, linewidth=0.6)
    return ax


def _lead_columns(ax: Axes, width: float, rows: int) -> None:
    """Lead names over their columns of dots, the most frequent set on top."""
    ax.set(xlim=(-0.6, width), ylim=(rows - 0.4, -0.6))
    ax.set_xticks(range(len(LEADS)), LEADS, rotation=90)
    ax.tick_params(axis="x", top=False, bottom=False, labeltop=True, labelbottom=False, pad=1)
    ax.spines[:].set_visible(False)


def plot_headroom(headroom: pd.DataFrame, ax: Axes | None = None, evaluator: str = "controlled") -> Axes:
    """Figure 1(e): NLL of the best fixed set and of oracles over budgets; what lies between is the headroom."""
    role = shown_role(headroom, ("selection", "audit"))
    rows = rows_of(headroom, role=role, evaluator=evaluator)
    rows = rows[rows["statistic"].isin(list(_ORACLES))] if len(rows) else rows
    ax = axes(ax, COLUMN, 2.4)
    if rows.empty:
        return say_nothing(ax, f"headroom under the {evaluator} evaluator")
    budgets = budgets_in(rows)
    for statistic, (name, colour, marker, line) in _ORACLES.items():
        points = rows_of(rows, statistic=statistic).sort_values("k")
        if points.empty:
            continue
        face = colour if statistic == "fixed" else "white"  # open markers: nobody can acquire like this
        ax.plot(
            [budgets.index(k) for k in points["k"]],
            points["value"],
            linestyle=line,
            marker=marker,
            color=colour,
            markerfacecolor=face,
            markersize=4.5,
            linewidth=1.2,
            label=name,
        )
    dress(ax, f"NLL headroom\n{evaluator} evaluator, {role} role", "budget k (leads)", "mean NLL (nats)")
    ax.set_xticks(range(len(budgets)), [str(k) for k in budgets])
    ax.margins(y=0.12)
    legend(ax, alone=False)  # there is room between the curves
    return ax


def plot_first_lead(headroom: pd.DataFrame, ax: Axes | None = None, evaluator: str = "controlled") -> Axes:
    """Figure 1(d): with which lead the oracle would begin, as shares of records."""
    role = shown_role(headroom, ("selection", "audit"))
    rows = rows_of(headroom, role=role, evaluator=evaluator, statistic="first lead")
    ax = axes(ax, COLUMN, 2.4)
    if rows.empty:
        return say_nothing(ax, f"the oracle's first lead under the {evaluator} evaluator")
    share = rows.set_index("label")["value"].reindex(list(LEADS), fill_value=0.0)
    most = share == share.max()
    bars = ax.bar(range(len(LEADS)), share, color=[VERMILLION if each else PALE for each in most], width=0.7)
    ax.bar_label(bars, [f"{100 * each:.0f}" for each in share], fontsize=SMALL, color=INK, padding=1)
    dress(
        ax,
        f"First lead of the oracle: not deployable\n{evaluator} evaluator, {role} role",
        "",
        "records (%)",
    )
    ax.set_xticks(range(len(LEADS)), LEADS)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    ax.margins(x=0.02, y=0.12)
    return ax
