"""Contrasts D: of policies under one evaluator, and under two with the interaction I beside."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadwise.analysis.contrasts import OWN
from leadwise.report.figures.composition import METRICS, Composition, Shown, letter
from leadwise.report.figures.drawing import (
    COLUMN,
    PAGE,
    SMALL,
    axes,
    dodge,
    dress,
    in_thousandths,
    legend,
    say_nothing,
    shared_legend,
    where,
    zero_line,
)
from leadwise.report.figures.rows import budgets_in, first_of, policies_in, reader_of, rows_of, shown_role
from leadwise.report.names import FAINT, INK, VERMILLION, evaluator_title, spoken, styles
from leadwise.report.numbers import signed


class _Row(NamedTuple):
    """A policy at a budget, and where it stands."""

    policy: str
    k: int
    y: int


def plot_paired_contrasts(
    contrasts: pd.DataFrame,
    interactions: pd.DataFrame,
    ax: Axes | None = None,
    metric: str = "nll",
    baseline: str | None = None,
    evaluator: str | None = None,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Figure 2: D under two evaluators, each against its own reference, paired, with 10³ · I beside.

    Without names, the evaluators are those of the first interaction, or the one that the contrasts begin with.

    Every policy and budget has a row, whatever the metric, so that panels of several metrics line up.
    """
    role = shown_role(contrasts)
    own = _own(rows_of(contrasts, role=role))
    baseline = baseline or str(first_of(interactions, "baseline_evaluator") or reader_of(own, None))
    evaluator = evaluator or str(first_of(interactions, "evaluator") or baseline)
    own = own[own["evaluator"].isin([baseline, evaluator])] if len(own) else own
    rows, headers = _layout(own, policies)
    alone = ax is None
    ax = axes(ax, 1.3 * COLUMN, 0.9 + 0.16 * (len(rows) + len(headers)))
    drawn = rows_of(own, metric=metric)
    if drawn.empty or not rows:
        return say_nothing(ax, f"{spoken(metric)} contrasts{where(baseline)}")
    _draw_arms(ax, drawn, rows, baseline, evaluator)
    pair = rows_of(interactions, baseline_evaluator=baseline, evaluator=evaluator, reference=OWN)
    found = rows_of(pair, role=role, metric=metric)
    _write_interactions(ax, found, rows)
    dress(ax, f"{spoken(metric)}, {role} role", f"10³ · D ({_unit(metric)})\nnegative favours adaptation")
    _label_rows(ax, rows, headers)
    legend(ax, alone)
    return ax


def _own(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Contrasts against the evaluator's own set that is optimal for the same metric (ten bins for every ECE)."""
    if not {"evaluator", "reference_evaluator", "reference_metric", "metric"} <= set(contrasts):
        return contrasts.iloc[:0]
    matched = contrasts["metric"].where(~contrasts["metric"].str.startswith("ece"), "ece")
    same = (contrasts["evaluator"] == contrasts["reference_evaluator"]) & (contrasts["reference_metric"] == matched)
    return contrasts[same]


def _layout(own: pd.DataFrame, policies: Sequence[str] | None) -> tuple[list[_Row], dict[str, int]]:
    """A row for every policy and budget, and one above each policy for its name."""
    rows: list[_Row] = []
    headers: dict[str, int] = {}
    for policy in policies_in(own, policies):
        headers[policy] = len(rows) + len(headers)
        budgets = budgets_in(rows_of(own, policy=policy))
        rows += [_Row(policy, k, headers[policy] + 1 + index) for index, k in enumerate(budgets)]
    return rows, headers


def _draw_arms(ax: Axes, drawn: pd.DataFrame, rows: list[_Row], baseline: str, evaluator: str) -> None:
    """Filled circles for the baseline, open squares for the other, a grey line between the two of a row."""
    place = {(row.policy, row.k): row.y for row in rows}
    means = {}
    arms = [(baseline, -0.13, INK, INK, "o")]
    arms += [(evaluator, 0.13, VERMILLION, "white", "s")] if evaluator != baseline else []
    for name, shift, colour, face, marker in arms:
        arm = rows_of(drawn, evaluator=name)
        shown = [key in place for key in zip(arm["policy"], arm["k"], strict=True)]
        arm = arm[np.array(shown, dtype=bool)]
        keys = list(zip(arm["policy"], arm["k"], strict=True))
        y = np.array([place[key] for key in keys]) + shift
        ax.hlines(y, arm["lo"], arm["hi"], colors=colour, linewidths=1.0, zorder=3)
        (dots,) = ax.plot(arm["delta"], y, marker, color=colour, zorder=4, label=evaluator_title(name))
        dots.set(markerfacecolor=face, markersize=3.8, markeredgewidth=1.0)
        means[name] = dict(zip(keys, zip(arm["delta"], y, strict=True), strict=True))
    for key in [key for key in means[baseline] if key in means[evaluator] and baseline != evaluator]:
        (x0, y0), (x1, y1) = means[baseline][key], means[evaluator][key]
        ax.plot([x0, x1], [y0, y1], color=FAINT, linewidth=1.6, zorder=2)
    zero_line(ax, vertical=True)


def _write_interactions(ax: Axes, found: pd.DataFrame, rows: list[_Row]) -> None:
    """The column of 10³ · I beside the panel; its heading stands in the row of the first policy's name."""

    def write(y: float, points: float, side: str, text: str) -> None:
        across = ax.get_yaxis_transform()
        note = ax.annotate(text, (1.0, y), (points, 0), xycoords=across, textcoords="offset points")
        note.set(ha=side, va="center", fontsize=SMALL, color=INK)

    if found.empty:
        return
    write(rows[0].y - 1, 5, "left", "10³ · I [95% interval]")
    for row in rows:
        cell = rows_of(found, policy=row.policy, k=row.k)
        for value, low, high in zip(*(cell.get(name, []) for name in ("interaction", "lo", "hi")), strict=True):
            write(row.y, 29, "right", signed(1e3 * value, 1))
            write(row.y, 33, "left", f"[{bounds_text(low, high)}]")


def _label_rows(ax: Axes, rows: list[_Row], headers: dict[str, int]) -> None:
    """Budgets at the side, and the name of each policy above its rows."""
    for policy, y in headers.items():
        if y > 0:
            ax.axhline(y - 0.5, color=FAINT, linewidth=0.6, zorder=0)
        name = ax.text(0.02, y, spoken(policy), transform=ax.get_yaxis_transform(), va="center", color=INK, zorder=5)
        name.set(fontsize=SMALL, weight="bold")
        name.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # the zero line ends where a name begins
    ax.set_yticks([row.y for row in rows], [f"k = {row.k}" for row in rows])
    ax.set_ylim(rows[-1].y + 0.6, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=4, steps=[1, 2, 4, 5, 10])
    in_thousandths(ax.xaxis)


def plot_policy_contrasts(
    contrasts: pd.DataFrame,
    evaluator: str | None = None,
    metric: str = "nll",
    ax: Axes | None = None,
    policies: Sequence[str] | None = None,
) -> Axes:
    """Figure 3(c, d): D of policies over budgets under one evaluator, against its own references.

    ``policies`` names whom to show, None everybody. Intervals are for gaps to the fixed set, not between policies.
    """
    role, evaluator = shown_role(contrasts), reader_of(contrasts, evaluator)
    rows = rows_of(_own(rows_of(contrasts, role=role)), evaluator=evaluator, metric=metric)
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.8)
    if not shown:
        return say_nothing(ax, f"{spoken(metric)} contrasts{where(evaluator)}")
    rows = rows[rows["policy"].isin(shown)]
    budgets = budgets_in(rows)
    for index, (policy, style) in enumerate(styles(shown).items()):
        arm = rows_of(rows, policy=policy).sort_values("k")
        x = np.array([budgets.index(k) for k in arm["k"]]) + dodge(index, len(shown))
        ax.vlines(x, arm["lo"], arm["hi"], colors=style.colour, linewidths=1.1, zorder=3)
        ax.plot(x, arm["delta"], style.marker, color=style.colour, markersize=4.2, zorder=4, label=spoken(policy))
    zero_line(ax)
    for between in range(1, len(budgets)):
        ax.axvline(between - 0.5, color=FAINT, linewidth=0.5, zorder=0)
    title = f"{spoken(metric)}, {evaluator_title(evaluator)}\n{role} role"
    dress(ax, title, "budget k (leads)", f"10³ · D ({_unit(metric)})\nnegative favours adaptation")
    ax.set_xticks(range(len(budgets)), [str(k) for k in budgets])
    ax.set_xlim(-0.5, len(budgets) - 0.5)
    in_thousandths(ax.yaxis)
    legend(ax, alone)
    return ax


def _unit(metric: str) -> str:
    return f"{spoken(metric)}, nats" if metric == "nll" else spoken(metric)


def bounds_text(low: float, high: float) -> str:
    """An interval of I in thousandths."""
    return f"{1e3 * low:.1f}, {1e3 * high:.1f}".replace("-", "−")


def _two_evaluators(shown: Shown) -> Figure:
    contrasts, interactions = shown.frame("contrasts"), shown.frame("interactions")
    figure = Figure(layout="constrained")
    panels = list(figure.subplots(1, len(METRICS)))
    policies = shown.policies("contrasts", shown.plan.studied)
    for ax, metric in zip(panels, METRICS, strict=True):
        plot_paired_contrasts(contrasts, interactions, ax, metric, shown.baseline, shown.evaluator, policies)
        if ax is not panels[0]:
            ax.set_yticklabels([])
    rows = max(len(ax.get_yticks()) for ax in panels) + len(policies)
    figure.set_size_inches(PAGE, 1.2 + 0.16 * rows)
    letter(panels)
    shared_legend(figure, panels)
    return figure


def _baseline(shown: Shown) -> Figure:
    figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
    panels = list(figure.subplots(1, len(METRICS)))
    policies = shown.policies("contrasts", [*shown.plan.policies])
    for ax, metric in zip(panels, METRICS, strict=True):
        plot_policy_contrasts(shown.frame("contrasts"), shown.baseline, metric, ax, policies)
    letter(panels)
    shared_legend(figure, panels)
    return figure


FIGURES = (
    Composition(
        20,
        "figure2",
        "Adaptive minus fixed",
        "Contrasts D of the studied policies at every budget in NLL, Brier and ECE under {readers}, with 95% "
        "intervals, and, where there are two evaluators, the interaction I beside them. Negative D favours "
        "adaptation.",
        _two_evaluators,
    ),
    Composition(
        60,
        "baseline",
        "Adaptive minus fixed, all policies under the first evaluator",
        "Contrasts D of every policy over budgets in NLL, Brier and ECE under {baseline}, with 95% intervals. Negative "
        "D favours adaptation.",
        _baseline,
    ),
)
