"""The transfer matrix as a heat map: what policies trained on each evaluator are worth to all that read their leads."""

from collections.abc import Mapping, Sequence
from math import ceil
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from leadwise.report.figures.composition import Composition, Shown, letter
from leadwise.report.figures.drawing import COLUMN, FAVOURS, PAGE, SMALL, axes, dress, say_nothing
from leadwise.report.figures.rows import budget_of, budgets_in, policies_in, present_in, rows_of, shown_role
from leadwise.report.names import INK, spoken
from leadwise.report.numbers import signed

_GAP = 0.35
"""Height between kinds of policies, in rows."""
_NOTE = "read by; blue favours adaptation, * the 95% interval excludes zero, framed: what the policy was trained on"


def plot_transfer_matrix(
    transfer: pd.DataFrame,
    metric: str = "nll",
    k: int | None = None,
    ax: Axes | None = None,
    kinds: Mapping[str, str] | None = None,
    evaluators: Sequence[str] | None = None,
    limit: float | None = None,
) -> Axes:
    """10³ · D of each policy (a row) under each evaluator (a column), as colour and number.

    Blue is where adaptive choice pays, for AUROC, too, of which more is better. A star marks a D whose interval
    excludes zero, a frame the evaluator that a policy was trained on. ``kinds`` has the kind of each policy that is
    shown, in order; a gap parts one kind from the next. ``limit`` is the size of D at which the colour is fullest.
    """
    role, k = shown_role(transfer), budget_of(transfer, k)
    rows = rows_of(transfer, role=role, metric=metric, k=k)
    policies = policies_in(rows, [*kinds] if kinds else None)
    readers = list(evaluators or map(str, present_in(rows, "evaluator")))
    tops = _tops([(kinds or {}).get(name, "") for name in policies])
    ax = axes(ax, 1.3 * COLUMN, 1.3 + 0.22 * len(policies))
    if not policies:
        return say_nothing(ax, f"the transfer matrix in {spoken(metric)} at k = {k}")
    found = {(row["policy"], row["evaluator"]): row for row in rows.to_dict("records")}
    better = -1 if metric.startswith("au") else 1
    scale = limit or max(abs(row["delta"]) for row in found.values()) or 1.0
    for policy, top in zip(policies, tops, strict=True):
        for column, reader in enumerate(readers):
            row = found.get((policy, reader))
            colour = FAVOURS((better * row["delta"] / scale + 1) / 2) if row else "white"
            ax.add_patch(Rectangle((column, top), 1, 1, facecolor=colour, edgecolor="white", linewidth=1))
            at_home = row is not None and row["trained_on"] == reader
            if at_home:
                inset = Rectangle((column + 0.03, top + 0.05), 0.94, 0.9, fill=False, edgecolor=INK, linewidth=0.8)
                ax.add_patch(inset)
            words = "–" if row is None else _cell_text(row["delta"], row["lo"], row["hi"])
            ax.text(column + 0.5, top + 0.5, words, fontsize=SMALL, color=INK, ha="center", va="center")
    dress(ax, f"10³ · D in {spoken(metric)}, k = {k}{'; more is better' * (better < 0)}")
    ax.set_xlim(0, len(readers))
    ax.set_ylim(tops[-1] + 1, 0)
    ax.set_xticks(np.arange(len(readers)) + 0.5, [fill(spoken(name), 14) for name in readers], rotation=45, ha="right")
    ax.tick_params(axis="x", pad=0)
    ax.set_yticks(np.array(tops) + 0.5, [spoken(name) for name in policies])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _tops(kinds: Sequence[str]) -> list[float]:
    """Where each row begins, with a gap where the kind changes.

    >>> _tops(["a", "a", "b"])
    [0.0, 1.0, 2.35]
    """
    changes = np.cumsum([0, *(one != other for one, other in zip(kinds[1:], kinds, strict=False))])[: len(kinds)]
    return [float(place + _GAP * change) for place, change in enumerate(changes)]


def _cell_text(value: float, low: float, high: float) -> str:
    star = "*" if low > 0 or high < 0 else ""
    return f"{signed(1e3 * value, 1)}{star}"


def _panels(shown: Shown, cells: Sequence[tuple[str, int]]) -> Figure:
    """A panel for each metric and budget, two in a row; those of one metric share their colours."""
    frame, plan = shown.frame("transfer"), shown.plan
    policies, evaluators = (plan.transfer.policies, plan.transfer.evaluators) if plan.transfer else ([], [])
    kinds = _by_kind({name: plan.policies[name].kind for name in policies})
    lines = max(1, ceil(len(cells) / 2))
    height = 0.4 + 0.2 * (len(kinds) + _GAP * len(set(kinds.values())))
    figure = Figure(figsize=(PAGE, 1.3 + lines * height), layout="constrained")
    panels = list(np.ravel(figure.subplots(lines, 2)))
    rows = rows_of(frame, role=shown_role(frame))
    for place, (ax, (metric, k)) in enumerate(zip(panels, cells, strict=False)):
        budgets = [k for other, k in cells if other == metric]
        sizes = [
            abs(row["delta"]) for row in rows.to_dict("records") if row["metric"] == metric and row["k"] in budgets
        ]
        plot_transfer_matrix(frame, metric, k, ax, kinds, evaluators, max(sizes, default=None))
        if place % 2:
            ax.tick_params(axis="y", labelleft=False)
        if place + 2 < len(cells):
            ax.tick_params(axis="x", labelbottom=False)
    for ax in panels[len(cells) :]:
        ax.set_axis_off()
    letter(panels[: len(cells)])
    figure.supxlabel(_NOTE, fontsize=SMALL, color=INK)
    return figure


def _by_kind(kinds: Mapping[str, str]) -> dict[str, str]:
    """The same, policies of one kind beside each other, in the order in which kinds first appear."""
    places = list(kinds.values())
    return dict(sorted(kinds.items(), key=lambda item: places.index(item[1])))


def _metrics(shown: Shown) -> Figure:
    """Every metric at the budget that the study is about."""
    present = present_in(shown.frame("transfer"), "metric")
    return _panels(shown, [(str(metric), shown.budget("transfer")) for metric in present])


def _budgets(shown: Shown) -> Figure:
    """NLL at every budget."""
    return _panels(shown, [("nll", k) for k in budgets_in(shown.frame("transfer"))])


_DESCRIPTION = (
    "Contrasts D of policies, each a row, under every evaluator of the matrix, each a column and against its own best "
    "fixed sets. Blue favours adaptation, orange the fixed set; a star marks a 95% interval that excludes zero, a "
    "frame the evaluator that a policy was trained on."
)

FIGURES = (
    Composition(
        34,
        "transfer",
        "Policies trained on each evaluator, read by all of them",
        _DESCRIPTION + " A panel for each metric.",
        _metrics,
        needs="transfer",
    ),
    Composition(
        36,
        "transfer-budgets",
        "Policies trained on each evaluator, read by all of them, at every budget",
        _DESCRIPTION + " NLL, a panel for each budget.",
        _budgets,
        needs="transfer",
    ),
)
