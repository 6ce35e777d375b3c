"""Is a difference too small to matter? Two one-sided tests against a margin that was set before anybody looked.

Two one-sided tests at 5% each find a difference within ±margin where its 90% interval lies wholly inside. The verdict
on a difference D, of which negative is good, is the first of these that holds:

    equivalent    the 90% interval lies inside ±margin
    better        the 95% interval lies below zero
    worse         the 95% interval lies above zero
    not worse     the upper end of the 90% interval lies below the margin
    undecided     nothing was shown

Equivalent comes first: the margin says which differences matter, so one that was shown to be smaller does not, on
whichever side of zero it lies. «Better» and «worse» are therefore said only of differences that may matter; how they
lie to zero, the interval says in any case. With this order «equivalent» is said where the two tests reject and nowhere
else, so it is wrong in at most 5% of cases.
"""

from collections.abc import Iterable

from leadwise.analysis.bootstrap import Estimate
from leadwise.analysis.contrasts import Contrast

EQUIVALENT, BETTER, WORSE, NOT_WORSE, UNDECIDED = "equivalent", "better", "worse", "not worse", "undecided"
ONE_SIDED = (5.0, 95.0)
"""Percentiles that bound a 90% interval, and so two one-sided tests at 5%."""
_DETECTABLE = 1.959964 + 0.841621
"""Standard normal quantiles of 97.5% and of 80%."""


def verdict(difference: Estimate, margin: float) -> str:
    """What was shown of a difference, of which negative is good.

    >>> import numpy as np
    >>> replicates = np.linspace(-1, 1, 1001)  # the 90% interval is D ± 0.9, the 95% interval D ± 0.95
    >>> [verdict(Estimate(d, d + replicates), margin=1) for d in (0.05, -2, 2, -0.5, 0.5)]
    ['equivalent', 'better', 'worse', 'not worse', 'undecided']
    >>> verdict(Estimate(-2, -2 + replicates), margin=3)  # below zero, and too small to matter
    'equivalent'
    """
    (low, high), (lower, upper) = difference.between(*ONE_SIDED), difference.interval
    if -margin < low and high < margin:
        return EQUIVALENT
    if upper < 0:
        return BETTER
    if lower > 0:
        return WORSE
    return NOT_WORSE if high < margin else UNDECIDED


def detectable(difference: Estimate) -> float:
    """The smallest true difference that is told from zero at a two-sided 5% with a power of 80%: (1.960 + 0.842) sd."""
    return _DETECTABLE * difference.sd


def equivalence_rows(found: Iterable[Contrast], margin: float) -> list[dict[str, str | int | float]]:
    """``equivalence.csv``: a row for each contrast, with its 90% interval."""
    rows = []
    for each in found:
        low, high = each.delta.between(*ONE_SIDED)
        facts = each.key._asdict() | {"delta": each.delta.value, "lo": low, "hi": high, "margin": margin}
        facts |= {"sd": each.delta.sd, "detectable": detectable(each.delta)}
        rows.append(facts | {"verdict": verdict(each.delta, margin)})
    return rows
