"""What an interval of I is of: patients alone, the choice of references too, or seeds too."""

from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadwise.report.figures.composition import Composition, Shown
from leadwise.report.figures.contrasts import bounds_text
from leadwise.report.figures.drawing import (
    PAGE,
    SMALL,
    axes,
    dress,
    in_thousandths,
    legend,
    say_nothing,
    shared_legend,
    zero_line,
)
from leadwise.report.figures.rows import budget_of, policies_in, rows_of, shown_role
from leadwise.report.names import BLUE, FAINT, INK, PALE, over, spoken
from leadwise.report.numbers import signed

_KEY = ["evaluator", "baseline_evaluator", "k", "metric"]
_ESTIMATE = ["value", "lo", "hi"]


def plot_variance(
    variance: pd.DataFrame,
    replications: pd.DataFrame,
    ax: Axes | None = None,
    policy: str | None = None,
    metric: str = "nll",
    k: int | None = None,
) -> Axes:
    """I of a policy with each of its intervals, and every replication's own estimate as a point beside its source.

    Without names, it is the frame's first policy, at the budget in the middle.
    """
    role, policy = shown_role(variance), policy or next(iter(policies_in(variance)), "")
    of_policy = rows_of(variance, role=role, quantity="interaction", policy=policy, metric=metric)
    k = budget_of(of_policy, k)
    rows = rows_of(of_policy, k=k)
    alone = ax is None
    ax = axes(ax, 0.8 * PAGE, 1.1 + 0.42 * len(rows))
    if rows.empty:
        return say_nothing(ax, f"intervals of I{f' of {spoken(policy)}' * bool(policy)}{f' at k = {k}' * bool(k)}")
    first = rows.iloc[0]
    points = rows_of(
        replications, role=role, quantity="interaction", policy=policy, **{column: first[column] for column in _KEY}
    )
    x: list[float] = []
    y: list[float] = []
    for place, (source, estimate) in enumerate(zip(rows["source"], rows[_ESTIMATE].to_numpy(float), strict=True)):
        (value, low, high), colour = estimate.tolist(), BLUE if source else INK
        ax.hlines(place, low, high, colors=colour, linewidths=1.4, zorder=3)
        ax.plot(value, place, "s" if source else "o", color=colour, markersize=4.6, zorder=4, label="_")
        own = rows_of(points, source=source)["value"].to_list()
        x, y = [*x, *own], [*y, *[place + 0.3] * len(own)]
        if place:
            ax.axhline(place - 0.5, color=FAINT, linewidth=0.5, zorder=0)
        text = f"{signed(1e3 * value, 1)} [{bounds_text(low, high)}]"
        note = ax.annotate(text, (1.0, place), (5, 0), xycoords=ax.get_yaxis_transform(), textcoords="offset points")
        note.set(ha="left", va="center", fontsize=SMALL, color=INK)
    (dots,) = ax.plot(x, y, "o", color=PALE, markersize=3.6, zorder=4)
    dots.set(markerfacecolor="white", label="each replication’s own estimate" if x else "_")
    zero_line(ax, vertical=True)
    between = f"{spoken(first['evaluator'])} minus {spoken(first['baseline_evaluator'])}"
    dress(
        ax,
        f"{spoken(policy)}, k = {k}: I in {spoken(metric)}, {role} role",
        f"10³ · I with its 95% interval; {between}\npositive: adaptation fares worse",
    )
    ax.set_yticks(range(len(rows)), [fill(over(source), 30) for source in rows["source"]])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    in_thousandths(ax.xaxis)
    legend(ax, alone)
    return ax


def _figure(shown: Shown) -> Figure:
    """The policy and budget that the study is about first of all."""
    variance, replications = shown.frame("variance"), shown.frame("replications")
    policy, k = next(iter(shown.policies("variance", shown.primary)), None), shown.budget("variance")
    figure = Figure(figsize=(PAGE, 1.9 + 0.42 * len(shown.plan.variance)), layout="constrained")
    ax = plot_variance(variance, replications, figure.subplots(), policy, k=k)
    shared_legend(figure, [ax])
    return figure


FIGURES = (
    Composition(
        35,
        "variance",
        "What the intervals are of",
        "The interaction I of one policy at one budget in NLL, {evaluator} minus {baseline}: its 95% interval over "
        "patients, with the choice of references where the run has it, and over each source of variation that the plan "
        "names, with every replication's own estimate as a point.",
        _figure,
        needs="replications",
    ),
)
