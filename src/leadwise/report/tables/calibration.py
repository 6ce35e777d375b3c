"""Calibration with a policy's leads, beside the fixed set that is best for ECE."""

from collections.abc import Iterator

from leadwise.analysis.tidy import REFERENCE
from leadwise.report.names import spoken
from leadwise.report.tables.view import INTERVAL, NEGATIVE, ReportTable, View, exploratory, pivoted, same

PLACE = 80
_SOURCE = ["calibration"]
_MATCHED = "ECE-matched set"
_STRUCTURE = ("nll", "brier", "ece", "macro |intercept|", "macro |slope - 1|", "variance", "entropy")


def tables(view: View) -> Iterator[ReportTable]:
    yield _structure(view)
    yield _differences(view)
    yield _labels(view)


def _structure(view: View) -> ReportTable:
    """The studied policies and the fixed set side by side."""
    keys = ["role", "evaluator", "k", "statistic"]
    arms = {name: spoken(name) for name in view.plan.studied} | {REFERENCE: _MATCHED}
    rows = pivoted(view.rows("calibration", versus="", label="", statistic=_STRUCTURE), keys, "policy", arms)
    shown = view.table(
        "calibration-structure",
        "Calibration and dispersion",
        "The studied policies beside the fixed set that is best for ECE, the reference in all rows, on the "
        f"{view.roles}. Intercepts (with the slope fixed at one) and distances of slopes from one are means of "
        "absolute values over labels; variance and entropy (in nats) say how far apart and how undecided the "
        f"probabilities are.{exploratory(view.further)}",
        _SOURCE,
        rows,
        same(*keys, *arms.values()),
        keys,
        view.further,
    )
    shown.frame["statistic"] = shown.frame["statistic"].map(spoken)
    return shown


def _differences(view: View) -> ReportTable:
    """Metrics and binnings of the studied policies minus those of the fixed set, and the variance that they keep."""
    shown = view.table(
        "calibration-differences",
        "Calibration by number of bins, and variance retained",
        "Each policy minus the fixed set that is best for ten-bin ECE, also for other numbers of bins, on the "
        f"{view.roles}: negative differences favour adaptation. Variance retention is the policy's variance of "
        "probabilities divided by the fixed set's; above one, they did not collapse."
        f"{exploratory(view.further)}",
        _SOURCE,
        view.rows("calibration", versus=REFERENCE, label=""),
        same("role", "evaluator", "policy", "k", "statistic", "value", INTERVAL),
        ["role", "evaluator", "policy", "k"],
        view.further,
    )
    shown.frame["statistic"] = shown.frame["statistic"].map(_difference)
    return shown


def _difference(statistic: str) -> str:
    metric = statistic.removesuffix(" difference")
    return statistic if metric == statistic else f"difference in {spoken(metric)}"


def _labels(view: View) -> ReportTable:
    """ECE of each label, policy minus fixed set."""
    rows = view.rows("calibration", versus=REFERENCE, statistic="ece difference")
    return view.table(
        "calibration-labels",
        "Calibration by label",
        "ECE of each label with the leads that a policy chose minus ECE with the fixed set that is best for ECE, on "
        f"the {view.roles}: {NEGATIVE}.{exploratory(view.further)}",
        _SOURCE,
        rows[rows["label"] != ""] if len(rows) else rows,
        same("role", "evaluator", "policy", "k", "label") | {"value": "ECE difference", INTERVAL: INTERVAL},
        ["role", "evaluator", "policy", "k"],
        view.further,
    )
