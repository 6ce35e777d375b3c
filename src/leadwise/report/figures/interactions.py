"""Interactions I: how much less adaptation pays under another evaluator, as evaluators and references vary."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadwise.analysis.contrasts import OWN
from leadwise.report.figures.composition import Composition, Shown, letter
from leadwise.report.figures.contrasts import bounds_text, plot_policy_contrasts
from leadwise.report.figures.drawing import COLUMN, FAVOURS, PAGE, SMALL, axes, dress, say_nothing, shared_legend
from leadwise.report.figures.rows import budgets_in, first_of, policies_in, present_in, rows_of, shown_role
from leadwise.report.names import INK, spoken
from leadwise.report.numbers import signed

Family = tuple[str, str, str]
_FAMILY = ["evaluator", "baseline_evaluator", "reference"]


def plot_interaction_rows(
    interactions: pd.DataFrame,
    policy: str | None = None,
    metric: str = "nll",
    ax: Axes | None = None,
    families: Sequence[Family] | None = None,
    limit: float | None = None,
) -> Axes:
    """Figure 3(a, b): 10³ · I of a policy over budgets, as the reference or the evaluator varies.

    ``families`` are triples of evaluator, baseline and reference; without them, all that begin with the baseline of
    the frame's first row. ``limit`` is the size of I at which the colour is fullest; give the same to panels that are
    compared.
    """
    role, policy = shown_role(interactions), policy or next(iter(policies_in(interactions)), "")
    rows = rows_of(interactions, role=role, policy=policy, metric=metric)
    if families is None:
        first = rows_of(rows, baseline_evaluator=first_of(rows, "baseline_evaluator"))
        families = list(first.filter(_FAMILY).drop_duplicates().itertuples(index=False, name=None))
    found = {each: rows_of(rows, **dict(zip(_FAMILY, each, strict=True))) for each in families}
    parts = {_label(each, families[0]): part for each, part in found.items() if len(part)}
    ax = axes(ax, 1.2 * COLUMN, 0.9 + 0.4 * len(parts))
    if not parts:
        return say_nothing(ax, f"{spoken(metric)} interactions{f' of {spoken(policy)}' * bool(policy)}")
    budgets = budgets_in(pd.concat(parts.values()))
    values = np.array([[_cell(part, k)[0] for k in budgets] for part in parts.values()])
    scale = limit or float(np.nanmax(np.abs(values))) or 1.0
    ax.pcolormesh(
        np.ma.masked_invalid(values), cmap=FAVOURS, vmin=-scale, vmax=scale, edgecolors="white", linewidth=1.5
    )
    for row, part in enumerate(parts.values()):
        for column, k in enumerate(budgets):
            words = ax.text(column + 0.5, row + 0.5, _cell_text(*_cell(part, k)), fontsize=SMALL, color=INK)
            words.set(ha="center", va="center", linespacing=1.2)
    note = "10³ · I with its 95% interval; positive: adaptation fares worse"
    dress(ax, f"{spoken(policy)}: I in {spoken(metric)}, {role} role", f"budget k (leads)\n{note}")
    ax.set_xticks(np.arange(len(budgets)) + 0.5, [str(k) for k in budgets])
    ax.set_yticks(np.arange(len(parts)) + 0.5, list(parts))
    ax.tick_params(length=0)
    ax.invert_yaxis()
    ax.spines[:].set_visible(False)
    return ax


def _label(family: Family, first: Family) -> str:
    """Differences from the first family of the panel: the references, and the evaluators where they are others."""
    evaluator, baseline, reference = family
    if family[:2] == first[:2]:
        return "own\nreferences" if reference == OWN else f"both: {spoken(reference)}\nreferences"
    other = evaluator if evaluator != first[0] else f"minus {spoken(baseline)}"
    return f"{fill(spoken(other), 18)},\n{spoken(reference)} ref."


def _cell(part: pd.DataFrame, k: int) -> tuple[float, float, float]:
    """I and its interval at a budget; missing where there is no row."""
    found = rows_of(part, k=k)
    if found.empty:
        return np.nan, np.nan, np.nan
    first = found.iloc[0]
    return float(first["interaction"]), float(first["lo"]), float(first["hi"])


def _cell_text(value: float, low: float, high: float) -> str:
    return "–" if np.isnan(value) else f"{signed(1e3 * value, 1)}\n{bounds_text(low, high)}"


def largest_interaction(interactions: pd.DataFrame, metric: str = "nll") -> float | None:
    """The largest |I| of a metric in the shown role: one colour scale for panels that are compared."""
    rows = rows_of(interactions, role=shown_role(interactions), metric=metric)
    return float(rows["interaction"].abs().max()) if present_in(rows, "interaction") else None


def _figure(shown: Shown) -> Figure:
    """Interactions of up to two policies as far as the plan has any, and contrasts under the last of the readers."""
    contrasts, interactions, plan = shown.frame("contrasts"), shown.frame("interactions"), shown.plan
    studied = plan.studied[:2] if plan.interactions else []
    families = [(each.evaluator, each.baseline, each.reference) for each in plan.interactions]
    families = [each for each in families if each[1] == shown.baseline]
    figure = Figure(figsize=(PAGE, 1.8 + 0.9 * max(len(families), 2)), layout="constrained")
    if studied:
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.35, 1)).ravel()
        rows = list(np.ravel(left.subplots(len(studied), 1)))
        columns = list(right.subplots(2, 1))
    else:
        rows, columns = [], list(figure.subplots(1, 2))
    limit = largest_interaction(interactions)
    for ax, policy in zip(rows, studied, strict=True):
        plot_interaction_rows(interactions, policy, "nll", ax, families, limit)
    trained_on_it = [name for each in plan.hypotheses if each.quantity == "paired" for name in each.policies]
    policies = shown.policies("contrasts", [*dict.fromkeys([*plan.studied, *trained_on_it])])
    for ax, metric in zip(columns, ("nll", "brier"), strict=True):
        plot_policy_contrasts(contrasts, shown.evaluator, metric, ax, policies)
    letter([*rows, *columns])
    shared_legend(figure, columns)
    return figure


FIGURES = (
    Composition(
        30,
        "figure3",
        "Contrasts of policies, and interactions as reference and evaluator vary",
        "NLL and Brier contrasts of policies under {evaluator} with 95% intervals; where the plan compares evaluators, "
        "interactions I in NLL over budgets beside them, a row for each evaluator and reference. Negative D favours "
        "adaptation.",
        _figure,
    ),
)
