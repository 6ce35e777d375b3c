"""Contrasts D and interactions I: does choosing pay, and does it still pay under another evaluator?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from leadwise.report.plots.drawing import (
    COLUMN,
    FAINT,
    INK,
    SKY,
    SMALL,
    VERMILLION,
    axes,
    budgets_in,
    dodge,
    dress,
    in_thousandths,
    legend,
    policies_in,
    present_in,
    printed,
    rows_of,
    say_nothing,
    shown_role,
    signed,
    styles,
    zero_line,
)

OWN = "own"
"""As in ``interactions.csv``: each evaluator's contrast is against its own references."""

# pale enough at both ends for black figures on it
_SCALE = LinearSegmentedColormap.from_list("favours", [SKY, "#ffffff", "#f3a871"])


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
    baseline: str = "controlled",
    evaluator: str = "strong",
    policies: Sequence[str] | None = None,
) -> Axes:
    """Figure 2: D under two evaluators, each against its own reference, paired, with 10³ · I beside.

    Every policy and budget has a row, whatever the metric, so that panels of several metrics line up.
    """
    role = shown_role(contrasts)
    own = _own(rows_of(contrasts, role=role))
    own = own[own["evaluator"].isin([baseline, evaluator])] if len(own) else own
    rows, headers = _layout(own, policies)
    alone = ax is None
    ax = axes(ax, 1.3 * COLUMN, 0.9 + 0.16 * (len(rows) + len(headers)))
    drawn = rows_of(own, metric=metric)
    if drawn.empty or not rows:
        return say_nothing(ax, f"{printed(metric)} contrasts under the {baseline} and {evaluator} evaluators")
    _draw_arms(ax, drawn, rows, baseline, evaluator)
    pair = rows_of(interactions, baseline_evaluator=baseline, evaluator=evaluator, reference=OWN)
    found = rows_of(pair, role=role, metric=metric)
    _write_interactions(ax, found, rows)
    dress(ax, f"{printed(metric)}, {role} role", f"10³ · D ({_unit(metric)})\nnegative favours adaptation")
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
    arms = ((baseline, -0.13, INK, INK, "o"), (evaluator, 0.13, VERMILLION, "white", "s"))
    for name, shift, colour, face, marker in arms:
        arm = rows_of(drawn, evaluator=name)
        arm = arm[[key in place for key in zip(arm["policy"], arm["k"], strict=True)]]
        keys = list(zip(arm["policy"], arm["k"], strict=True))
        y = np.array([place[key] for key in keys]) + shift
        ax.hlines(y, arm["lo"], arm["hi"], colors=colour, linewidths=1.0, zorder=3)
        ax.plot(
            arm["delta"],
            y,
            marker,
            color=colour,
            markerfacecolor=face,
            markersize=3.8,
            markeredgewidth=1.0,
            zorder=4,
            label=f"{name} evaluator",
        )
        means[name] = dict(zip(keys, zip(arm["delta"], y, strict=True), strict=True))
    for key in [key for key in means[baseline] if key in means[evaluator]]:
        (x0, y0), (x1, y1) = means[baseline][key], means[evaluator][key]
        ax.plot([x0, x1], [y0, y1], color=FAINT, linewidth=1.6, zorder=2)
    zero_line(ax, vertical=True)


def _write_interactions(ax: Axes, found: pd.DataFrame, rows: list[_Row]) -> None:
    """The column of 10³ · I beside the panel; its heading stands in the row of the first policy's name."""

    def write(y: float, points: float, side: str, text: str) -> None:
        ax.annotate(
            text,
            (1.0, y),
            xycoords=ax.get_yaxis_transform(),
            xytext=(points, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=SMALL,
            color=INK,
        )

    write(rows[0].y - 1, 5, "left", "10³ · I [95% interval]")
    for row in rows:
        cell = rows_of(found, policy=row.policy, k=row.k)
        for value, low, high in zip(*(cell.get(name, []) for name in ("interaction", "lo", "hi")), strict=True):
            write(row.y, 29, "right", signed(1e3 * value, 1))
            write(row.y, 33, "left", f"[{_bounds(low, high)}]")


def _label_rows(ax: Axes, rows: list[_Row], headers: dict[str, int]) -> None:
    """Budgets at the side, and the name of each policy above its rows."""
    for policy, y in headers.items():
        if y > 0:
            ax.axhline(y - 0.5, color=FAINT, linewidth=0.6, zorder=0)
        ax.text(
            0.02,
            y,
            printed(policy),
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize=SMALL,
            weight="bold",
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # the zero line ends where a name begins
            zorder=5,
        )
    ax.set_yticks([row.y for row in rows], [f"k = {row.k}" for row in rows])
    ax.set_ylim(rows[-1].y + 0.6, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=4, steps=[1, 2, 4, 5, 10])
    in_thousandths(ax.xaxis)


def plot_interaction_rows(
    interactions: pd.DataFrame,
    policy: str = "ecg-on-demand",
    metric: str = "nll",
    ax: Axes | None = None,
    baseline: str = "controlled",
    evaluator: str = "strong",
    robust: str = "mask-robust",
    limit: float | None = None,
) -> Axes:
    """Figure 3(a, b): 10³ · I of a policy over budgets, as the reference or the evaluator varies.

    ``limit`` is the size of I at which the colour is fullest; give the same to panels that are compared.
    """
    role = shown_role(interactions)
    rows = rows_of(interactions, role=role, policy=policy, metric=metric, baseline_evaluator=baseline)
    kinds = {
        "own\nreferences": (evaluator, OWN),
        f"both: {baseline}\nreferences": (evaluator, baseline),
        f"both: {evaluator}\nreferences": (evaluator, evaluator),
        f"{robust},\n{baseline} ref.": (robust, baseline),
    }
    parts = {name: rows_of(rows, evaluator=kind[0], reference=kind[1]) for name, kind in kinds.items()}
    parts = {name: part for name, part in parts.items() if len(part)}
    ax = axes(ax, 1.2 * COLUMN, 0.9 + 0.4 * len(parts))
    if not parts:
        return say_nothing(ax, f"{printed(metric)} interactions of {printed(policy)}")
    budgets = budgets_in(pd.concat(parts.values()))
    values = np.array([[_cell(part, k)[0] for k in budgets] for part in parts.values()])
    scale = limit or float(np.nanmax(np.abs(values))) or 1.0
    ax.pcolormesh(np.ma.masked_invalid(values), cmap=_SCALE, vmin=-scale, vmax=scale, edgecolors="white", linewidth=1.5)
    for row, part in enumerate(parts.values()):
        for column, k in enumerate(budgets):
            ax.text(
                column + 0.5,
                row + 0.5,
                _cell_text(*_cell(part, k)),
                ha="center",
                va="center",
                fontsize=SMALL,
                color=INK,
                linespacing=1.2,
            )
    note = "10³ · I with its 95% interval; positive: adaptation fares worse"
    dress(ax, f"{printed(policy)}: I in {printed(metric)}, {role} role", f"budget k (leads)\n{note}")
    ax.set_xticks(np.arange(len(budgets)) + 0.5, [str(k) for k in budgets])
    ax.set_yticks(np.arange(len(parts)) + 0.5, list(parts))
    ax.tick_params(length=0)
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)
    return ax


def _cell(part: pd.DataFrame, k: int) -> tuple[float, float, float]:
    """I and its interval at a budget; missing where there is no row."""
    found = rows_of(part, k=k)
    if found.empty:
        return np.nan, np.nan, np.nan
    first = found.iloc[0]
    return float(first["interaction"]), float(first["lo"]), float(first["hi"])


def _cell_text(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{signed(1e3 * value, 1)}\n{_bounds(low, high)}"


def _bounds(low: float, high: float) -> str:
    """An interval of I in thousandths."""
    return f"{1e3 * low:.1f}, {1e3 * high:.1f}".replace("-", "−")


def plot_policy_contrasts(
    contrasts: pd.DataFrame,
    evaluator: str = "strong",
    metric: str = "nll",
    ax: Axes | None = None,
    policies: Sequence[str] | None = ("ecg-on-demand", "mga", "strong-mga"),
) -> Axes:
    """Figure 3(c, d): D of policies over budgets under one evaluator, against its own references.

    ``policies`` names whom to show, None everybody. Intervals are for gaps to the fixed set, not between policies.
    """
    role = shown_role(contrasts)
    rows = rows_of(_own(rows_of(contrasts, role=role)), evaluator=evaluator, metric=metric)
    shown = policies_in(rows, policies)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.8)
    if not shown:
        return say_nothing(ax, f"{printed(metric)} contrasts under the {evaluator} evaluator")
    rows = rows[rows["policy"].isin(shown)]
    budgets = budgets_in(rows)
    for index, (policy, style) in enumerate(styles(shown).items()):
        arm = rows_of(rows, policy=policy).sort_values("k")
        x = np.array([budgets.index(k) for k in arm["k"]]) + dodge(index, len(shown))
        ax.vlines(x, arm["lo"], arm["hi"], colors=style.colour, linewidths=1.1, zorder=3)
        ax.plot(x, arm["delta"], style.marker, color=style.colour, markersize=4.2, zorder=4, label=printed(policy))
    zero_line(ax)
    for between in range(1, len(budgets)):
        ax.axvline(between - 0.5, color=FAINT, linewidth=0.5, zorder=0)
    title = f"{printed(metric)}, {evaluator} evaluator\n{role} role"
    dress(ax, title, "budget k (leads)", f"10³ · D ({_unit(metric)})\nnegative favours adaptation")
    ax.set_xticks(range(len(budgets)), [str(k) for k in budgets])
    ax.set_xlim(-0.5, len(budgets) - 0.5)
    in_thousandths(ax.yaxis)
    legend(ax, alone)
    return ax


def plot_controlled_effects(
    contrasts: pd.DataFrame, metric: str = "nll", ax: Axes | None = None, evaluator: str = "controlled"
) -> Axes:
    """Effects of every policy over budgets under the evaluator that most of them were trained on."""
    return plot_policy_contrasts(contrasts, evaluator, metric, ax, policies=None)


def largest_interaction(interactions: pd.DataFrame, metric: str = "nll") -> float | None:
    """The largest |I| of a metric in the shown role: one colour scale for panels that are compared."""
    rows = rows_of(interactions, role=shown_role(interactions), metric=metric)
    return float(rows["interaction"].abs().max()) if present_in(rows, "interaction") else None


def _unit(metric: str) -> str:
    return f"{printed(metric)}, nats" if metric == "nll" else printed(metric)
