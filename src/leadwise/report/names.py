"""Printed names, their order, colours and markers; nothing else knows a name.

A name that is not here stays as it is, takes its place after those that are known, and gets a look from a cycle.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from leadwise.run.plan import Plan

_NAMES = {
    "ecg-on-demand": "ECG-on-Demand",
    "mga": "MGA",
    "ccga": "CCGA",
    "strong-mga": "Strong-MGA",
    "strong-mga-controlled-state": "Strong-MGA, controlled state",
    "strong-ecg-on-demand": "Strong-ECG-on-Demand",
    "cohort-state": "Cohort-state",
    "random-subset": "Random-subset",
    "controlled-unbalanced": "unbalanced controlled",
    "controlled-recalibrated": "recalibrated controlled",
    "strong-recalibrated": "recalibrated strong",
    **{
        f"{policy}-{evaluator}": f"{name}, {other}"
        for policy, name in (("ecg-on-demand", "ECG-on-Demand"), ("mga", "MGA"))
        for evaluator, other in (
            *(("unbalanced", "unbalanced"), ("recalibrated", "recalibrated")),
            *(("strong-recalibrated", "recalibrated strong"), ("mask-robust", "mask-robust")),
        )
    },
    "reference": "Fixed set",
    "brier": "Brier",
    **{metric: metric.upper() for metric in ("nll", "ece", "auroc", "auprc")},
}
_ADJECTIVES = (
    *("controlled", "controlled-unbalanced", "controlled-recalibrated"),
    *("strong", "strong-recalibrated", "mask-robust"),
)
"""Evaluators whose names say what they are like."""
_ORDER = (
    *("nll", "brier", "ece", "ece5", "ece15", "ece20", "auroc", "auprc"),
    *("macro |intercept|", "macro |slope - 1|", "variance", "entropy"),
)
"""The order of metrics and of statistics."""

INK, GREY, PALE, FAINT = "#1a1a1a", "#767676", "#a3a3a3", "#d4d4d4"

# Okabe and Ito's colours, which the colour-blind can tell apart
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"


class Style(NamedTuple):
    """Look of an arm; the marker says the same as the colour, for print without colours."""

    colour: str
    marker: str


_STYLES = {
    "ecg-on-demand": Style(BLUE, "o"),
    "mga": Style(VERMILLION, "s"),
    "strong-mga": Style(GREEN, "^"),
    "strong-mga-controlled-state": Style(SKY, "^"),
    "ccga": Style(PURPLE, "D"),
    "strong-ecg-on-demand": Style(SKY, "v"),
    "cohort-state": Style(ORANGE, "P"),
    "random-subset": Style(GREY, "X"),
    "reference": Style(INK, "d"),
}
_SPARE = tuple(Style(colour, marker) for marker in "hp<>*" for colour in (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY))


def spoken(name: str) -> str:
    """A policy, metric, evaluator or reference as people write it.

    >>> spoken("ecg-on-demand"), spoken("ece15"), spoken("controlled-unbalanced"), spoken("my-own")
    ('ECG-on-Demand', 'ECE, 15 bins', 'unbalanced controlled', 'my-own')
    """
    if bins := re.fullmatch(r"ece(\d+)", name):
        return f"ECE, {bins[1]} bins"
    return _NAMES.get(name, name)


def the_evaluator(name: str) -> str:
    """An evaluator as a sentence speaks of it.

    >>> the_evaluator("strong"), the_evaluator("b")
    ('the strong evaluator', 'evaluator b')
    """
    return f"the {spoken(name)} evaluator" if name in _ADJECTIVES else f"evaluator {spoken(name)}"


def evaluator_title(name: str) -> str:
    """An evaluator as a title or a legend has it.

    >>> evaluator_title("strong"), evaluator_title("b")
    ('strong evaluator', 'evaluator b')
    """
    return the_evaluator(name).removeprefix("the ")


def the_other(name: str) -> str:
    """An evaluator as a sentence speaks of it that has just spoken of another.

    >>> the_other("strong"), the_other("b")
    ('the strong one', 'evaluator b')
    """
    return f"the {spoken(name)} one" if name in _ADJECTIVES else the_evaluator(name)


def over(source: str) -> str:
    """What an interval is over: the patients, and what else varies.

    >>> over("seeds of the network"), over("")
    ('patients and seeds of the network', 'patients')
    """
    return f"patients and {source}" if source else "patients"


def in_order(plan: Plan) -> list[str]:
    """Roles, evaluators and policies as the plan has them, then metrics and statistics."""
    return list(dict.fromkeys([*plan.roles, *plan.evaluators, *plan.policies, "reference", *_ORDER]))


def styles(policies: Iterable[str]) -> dict[str, Style]:
    """Known policies keep their look in every figure; others get what is left, in the order of their names."""
    names = list(policies)
    spare = dict(zip(sorted(set(names) - set(_STYLES)), _SPARE, strict=False))
    return {name: _STYLES.get(name) or spare.get(name, _SPARE[-1]) for name in names}
