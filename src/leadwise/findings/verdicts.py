"""Verdicts on statements, in five words, for the paper's claims and a plan's hypotheses alike.

"holds"
    Every interval lies wholly on the side of zero that the statement names.
"contradicted"
    Some interval lies wholly on another side.
"inconclusive"
    Neither. A statement that an estimate cannot be told from zero never holds, because an interval that includes zero
    does not show equality. That takes a margin: `equivalence_verdict`.
"trivial"
    It could not be otherwise, whatever the records are.
"not answerable"
    Estimates that the statement needs are missing.
"""

from collections.abc import Sequence

import pandas as pd

from leadwise.findings.estimates import INCLUDES, NO_INTERVAL, Found, side

HOLDS, CONTRADICTED, INCONCLUSIVE = "holds", "contradicted", "inconclusive"
TRIVIAL, NOT_ANSWERABLE = "trivial", "not answerable"
EQUIVALENT = "equivalent"
"""An expectation, and the verdict of ``equivalence.csv`` that meets it."""
VERDICTS = (HOLDS, CONTRADICTED, INCONCLUSIVE, TRIVIAL, NOT_ANSWERABLE)


def cell_verdict(found: Found, expected: str) -> str:
    """The verdict on one estimate, expected "above zero", "below zero", "includes zero" or exactly "zero".

    >>> cell_verdict(Found(0.2, 0.1, 0.3), "above zero"), cell_verdict(Found(0.2, -0.1, 0.5), "above zero")
    ('holds', 'inconclusive')
    >>> cell_verdict(Found(0.2, 0.1, 0.3), "includes zero"), cell_verdict(Found(0.2, -0.1, 0.5), "includes zero")
    ('contradicted', 'inconclusive')
    """
    if expected == "zero":  # said of the records themselves, so there is nothing to infer
        return NOT_ANSWERABLE if found.missing else HOLDS if found.value == 0 else CONTRADICTED
    where = side(found)
    if where == NO_INTERVAL:
        return NOT_ANSWERABLE
    if where == INCLUDES:
        return INCONCLUSIVE
    return HOLDS if where == f"lies {expected}" else CONTRADICTED


def equivalence_verdict(found: Found, margin: float, verdict: str) -> str:
    """The verdict on an expected equivalence, from the 90% interval, the margin and the verdict of ``equivalence.csv``.

    An interval wholly beyond the margin contradicts it, on either side.

    >>> equivalence_verdict(Found(0.0, -0.001, 0.001), 0.002, "equivalent")
    'holds'
    >>> equivalence_verdict(Found(0.002, 0.001, 0.003), 0.002, "worse")
    'inconclusive'
    >>> equivalence_verdict(Found(0.004, 0.003, 0.005), 0.002, "worse")
    'contradicted'
    """
    if found.missing or pd.isna([found.lo, found.hi, margin]).any():
        return NOT_ANSWERABLE
    if verdict == EQUIVALENT:
        return HOLDS
    return CONTRADICTED if found.lo > margin or found.hi < -margin else INCONCLUSIVE


def joint_verdict(verdicts: Sequence[str]) -> str:
    """The verdict on a statement about several cells: one contradicts it, and it takes all of them to hold."""
    worst = (CONTRADICTED, NOT_ANSWERABLE, INCONCLUSIVE)
    return next((each for each in worst if each in verdicts), HOLDS if verdicts else NOT_ANSWERABLE)
