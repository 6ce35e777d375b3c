"""Chosen leads: a policy's most frequent sets, and the choice of an oracle that sees the labels."""

from collections.abc import Sequence
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from leadwise.leads import LEADS, LeadSet
from leadwise.report.figures.composition import Composition, Shown, letter
from leadwise.report.figures.diagrams import plot_acquisition_loop, plot_transfer
from leadwise.report.figures.drawing import COLUMN, PAGE, SMALL, axes, dress, legend, say_nothing, where
from leadwise.report.figures.rows import budget_of, budgets_in, policies_in, reader_of, rows_of, shown_role
from leadwise.report.names import BLUE, FAINT, INK, PALE, PURPLE, VERMILLION, evaluator_title, spoken, styles

_MANY = 12
"""Number of policies that a page has room for."""
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
    k: int | None = None,
    top: int = 2,
) -> Axes:
    """Figure 1(c): the lead sets that each policy chooses most often, as rows of dots, with their shares of records."""
    role, k = shown_role(modal_sets, ("audit", "evaluation")), budget_of(modal_sets, k)
    rows = rows_of(modal_sets, role=role, k=k)
    rows = rows[rows["rank"] <= top] if len(rows) else rows
    names = policies_in(rows, policies)
    rows = pd.concat([rows_of(rows, policy=name).sort_values("rank") for name in names]) if names else rows.iloc[:0]
    ax = axes(ax, COLUMN, 0.8 + 0.16 * len(rows))
    if rows.empty:
        return say_nothing(ax, f"the lead sets of policies{where('', k)}")
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
    ax.set_yticks(first, [fill(spoken(name), 18) for name in names])
    ax.tick_params(axis="y", length=0)
    for y in first[1:]:
        ax.axhline(y - 0.5, color=FAINT, linewidth=0.6)
    return ax


def _lead_columns(ax: Axes, width: float, rows: int) -> None:
    """Lead names over their columns of dots, the most frequent set on top."""
    ax.set(xlim=(-0.6, width), ylim=(max(rows, 6) - 0.4, -0.6))
    ax.set_xticks(range(len(LEADS)), LEADS, rotation=90)
    ax.tick_params(axis="x", top=False, bottom=False, labeltop=True, labelbottom=False, pad=1)
    ax.spines[:].set_visible(False)


def plot_headroom(headroom: pd.DataFrame, ax: Axes | None = None, evaluator: str | None = None) -> Axes:
    """Figure 1(e): NLL of the best fixed set and of oracles over budgets; what lies between is the headroom."""
    role, evaluator = shown_role(headroom, ("selection", "audit")), reader_of(headroom, evaluator)
    rows = rows_of(headroom, role=role, evaluator=evaluator)
    rows = rows[rows["statistic"].isin(list(_ORACLES))] if len(rows) else rows
    ax = axes(ax, COLUMN, 2.4)
    if rows.empty:
        return say_nothing(ax, f"headroom{where(evaluator)}")
    budgets = budgets_in(rows)
    for statistic, (name, colour, marker, line) in _ORACLES.items():
        points = rows_of(rows, statistic=statistic).sort_values("k")
        if points.empty:
            continue
        face = colour if statistic == "fixed" else "white"  # open markers: nobody can acquire like this
        x = [budgets.index(k) for k in points["k"]]
        (curve,) = ax.plot(x, points["value"], f"{marker}{line}", color=colour, linewidth=1.2, label=name)
        curve.set(markerfacecolor=face, markersize=4.5)
    dress(ax, f"NLL headroom\n{evaluator_title(evaluator)}, {role} role", "budget k (leads)", "mean NLL (nats)")
    ax.set_xticks(range(len(budgets)), [str(k) for k in budgets])
    ax.margins(y=0.12)
    legend(ax, alone=False)  # there is room between the curves
    return ax


def plot_first_lead(headroom: pd.DataFrame, ax: Axes | None = None, evaluator: str | None = None) -> Axes:
    """Figure 1(d): with which lead the oracle would begin, as shares of records."""
    role, evaluator = shown_role(headroom, ("selection", "audit")), reader_of(headroom, evaluator)
    rows = rows_of(headroom, role=role, evaluator=evaluator, statistic="first lead")
    ax = axes(ax, COLUMN, 2.4)
    if rows.empty:
        return say_nothing(ax, f"the oracle's first lead{where(evaluator)}")
    share = rows.set_index("label")["value"].reindex(list(LEADS), fill_value=0.0)
    most = share == share.max()
    bars = ax.bar(range(len(LEADS)), share, color=[VERMILLION if each else PALE for each in most], width=0.7)
    ax.bar_label(bars, [f"{100 * each:.0f}" for each in share], fontsize=SMALL, color=INK, padding=1)
    dress(ax, f"First lead of the oracle: not deployable\n{evaluator_title(evaluator)}, {role} role", "", "records (%)")
    ax.set_xticks(range(len(LEADS)), LEADS)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    ax.margins(x=0.02, y=0.12)
    return ax


def _policies(shown: Shown) -> list[str]:
    """All policies, or of many those of the study's question and of its pairs; the tables have the others."""
    every, plan = shown.policies("modal_sets", [*shown.plan.policies]), shown.plan
    compared = {*plan.studied, *(name for pair in plan.pairs for name in pair.policies)}
    return every if len(every) <= _MANY else [name for name in every if name in compared] or every


def _figure(shown: Shown) -> Figure:
    policies = _policies(shown)
    heights = 2.65, max(4.55, 0.8 + 0.32 * len(policies))  # two sets for each policy
    figure = Figure(figsize=(PAGE, sum(heights)), layout="constrained")
    # rows of their own, so that the diagrams need not leave room for the labels of the axes below them
    diagrams, choices = figure.subfigures(2, 1, squeeze=False, height_ratios=heights).ravel()
    sets, oracle = choices.subfigures(1, 2, squeeze=False, width_ratios=(1.15, 1)).ravel()
    panels = [*diagrams.subplots(1, 2), sets.subplots(), *oracle.subplots(2, 1)]
    modal_sets, headroom, reader = shown.frame("modal_sets"), shown.frame("headroom"), shown.reader("headroom")
    k = shown.budget("modal_sets")
    plot_acquisition_loop(panels[0], shown.first_lead, k or max(shown.plan.budgets))
    plot_transfer(panels[1], shown.baseline, shown.evaluator)
    plot_modal_sets(modal_sets, panels[2], policies, k)
    plot_first_lead(headroom, panels[3], reader)
    plot_headroom(headroom, panels[4], reader)
    letter(panels)
    return figure


FIGURES = (
    Composition(
        10,
        "figure1",
        "How leads are acquired, what is frozen, and the headroom",
        "Diagrams of (a) the acquisition loop and (b) the frozen policy read by evaluators; (c) the most "
        "frequent lead sets of each policy, or, of many, of those that are compared in pairs; (d) the oracle's first "
        "lead; (e) NLL of the best fixed set and of oracles over budgets. Oracles see the labels and cannot be "
        "deployed.",
        _figure,
    ),
)
