"""Words for cells, folds and budgets, and for how many cells agree."""

from collections.abc import Iterable, Sequence

from leadwise.findings.estimates import ABOVE, BELOW, INCLUDES, NO_INTERVAL, side
from leadwise.findings.question import Cell
from leadwise.report.names import spoken
from leadwise.report.numbers import listing

FEW = 4
"""So many cells are named one by one."""
_SIDES = (ABOVE, INCLUDES, BELOW, NO_INTERVAL)
_ALL = {1: "the only cell", 2: "both cells"}


def tally(cells: Sequence[Cell], arm: str) -> str:
    """On which side the intervals of ``arm`` lie: all groups are counted, few that are not in the largest are named."""
    groups = {where: [cell for cell in cells if side(getattr(cell, arm)) == where] for where in _SIDES}
    largest = max(groups, key=lambda where: len(groups[where]))
    if len(groups[largest]) == len(cells):
        return f"{largest} in {_ALL.get(len(cells), f'all {len(cells)} cells')}"
    parts = [f"{largest} in {len(groups[largest])} of {len(cells)} cells"]
    parts += [f"{where} in {len(some)}{_few(some)}" for where, some in groups.items() if some and where != largest]
    return listing(parts)


def share(some: Sequence[Cell], every: Sequence[Cell], noun: str) -> str:
    """A count of several, with the names of the few: those that are meant, or the exceptions."""
    counted = f"{len(some)} of {len(every)} {noun}"
    if not some or len(some) == len(every):
        return counted
    rest = [cell for cell in every if cell not in some]
    return counted + (_few(rest, "all but ") if len(some) > len(rest) else _few(some))


def _few(cells: Sequence[Cell], before: str = "") -> str:
    """Their names in brackets, if they are few enough for a sentence; the tables have the others."""
    return f" ({before}{names(cells)})" if len(cells) <= FEW else ""


def names(cells: Iterable[Cell]) -> str:
    """Cells as people speak of them: "MGA in NLL at k = 2 and 3"."""
    budgets: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        budgets.setdefault((cell.policy, cell.metric), []).append(cell.k)
    return "; ".join(
        f"{spoken(policy)} in {spoken(metric)} at {at_budgets(some)}" for (policy, metric), some in budgets.items()
    )


def metrics_of(cells: Iterable[Cell]) -> str:
    """The metrics of cells, as a sentence lists them."""
    return listing(dict.fromkeys(spoken(cell.metric) for cell in cells))


def at_budgets(budgets: Iterable[int]) -> str:
    return f"k = {listing(budgets)}"


def folds_in_words(folds: Sequence[int]) -> str:
    """Folds, many in a row by the first and the last.

    >>> folds_in_words([7]), folds_in_words([1, 2, 3, 4]), folds_in_words([3, 5])
    ('fold 7', 'folds 1–4', 'folds 3 and 5')
    """
    if len(folds) > 2 and list(folds) == list(range(folds[0], folds[-1] + 1)):
        return f"folds {folds[0]}–{folds[-1]}"
    return f"fold{'s' * (len(folds) > 1)} {listing(folds)}"
