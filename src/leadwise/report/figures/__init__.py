"""The report's figures: panels put together, and written as SVG and PDF.

Every panel is a function of tidy results, ``plot_x(frame, ax=None) -> Axes``; all of them are reachable from here. What
a run does not have is left out, and where a panel has nothing to show, it says so.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadwise.report.plots.choices import plot_first_lead, plot_headroom, plot_modal_sets
from leadwise.report.plots.contrasts import (
    OWN,
    largest_interaction,
    plot_controlled_effects,
    plot_interaction_rows,
    plot_paired_contrasts,
    plot_policy_contrasts,
)
from leadwise.report.plots.diagrams import plot_acquisition_loop, plot_transfer
from leadwise.report.plots.drawing import (
    PAGE,
    TITLE,
    budgets_in,
    first_of,
    policies_in,
    rows_of,
    shared_legend,
    shown_role,
)
from leadwise.report.plots.patients import plot_cumulative_benefit, plot_effect_quartiles, plot_sorted_effects
from leadwise.report.plots.reliability import ARMS, plot_reliability, plot_reliability_labels
from leadwise.store import atomic_file

__all__ = [
    "draw_figures",
    "plot_acquisition_loop",
    "plot_controlled_effects",
    "plot_cumulative_benefit",
    "plot_effect_quartiles",
    "plot_first_lead",
    "plot_headroom",
    "plot_interaction_rows",
    "plot_modal_sets",
    "plot_paired_contrasts",
    "plot_policy_contrasts",
    "plot_reliability",
    "plot_reliability_labels",
    "plot_sorted_effects",
    "plot_transfer",
]

_METRICS = ("nll", "brier", "ece")
_PAIR = ("ecg-on-demand", "mga")
_TRIO = ("ecg-on-demand", "mga", "strong-mga")
_K = 4


def draw_figures(results: Mapping[str, pd.DataFrame], directory: Path) -> dict[str, Path]:
    """Draw every figure of the report and write it as SVG and PDF; returns the files by name.

    Parameters
    ----------
    results
        Frames by the names of their files: contrasts, interactions, modal_sets, headroom, reliability, patients,
        patient_effects, and references (for the name of the first lead). Any of them may be missing.
    directory
        Where the figures go.
    """
    shown = _Shown.of(results)
    written: dict[str, Path] = {}
    with _our_style():
        for name, (compose, title, description) in _FIGURES.items():
            figure = compose(shown)
            for suffix in ("svg", "pdf"):
                path = directory / f"{name}.{suffix}"
                _write(figure, path, title, description.format(baseline=shown.baseline, evaluator=shown.evaluator))
                written[path.name] = path
    return written


@dataclass(frozen=True, eq=False)
class _Shown:
    """The frames of a run, and which two evaluators its figures compare."""

    results: Mapping[str, pd.DataFrame]
    baseline: str
    evaluator: str

    @classmethod
    def of(cls, results: Mapping[str, pd.DataFrame]) -> "_Shown":
        """The published pair where the run has it, else the first pair that it has."""
        own = rows_of(results.get("interactions", pd.DataFrame()), reference=OWN)
        published = rows_of(own, baseline_evaluator="controlled", evaluator="strong")
        if own.empty or len(published):
            return cls(results, "controlled", "strong")
        return cls(results, str(own["baseline_evaluator"].iloc[0]), str(own["evaluator"].iloc[0]))

    def frame(self, name: str) -> pd.DataFrame:
        return self.results.get(name, pd.DataFrame())

    def policies(self, name: str, preferred: Sequence[str]) -> list[str]:
        """Those that the paper shows, else all that the frame's role has."""
        frame = self.frame(name)
        rows = rows_of(frame, role=shown_role(frame))
        return policies_in(rows, preferred) or policies_in(rows)

    def reader(self, name: str) -> str:
        """The baseline evaluator where the frame has it, else the frame's first."""
        return str(first_of(self.frame(name), "evaluator", [self.baseline]) or self.baseline)

    def budget(self, name: str) -> int:
        """The budget nearest to the paper's."""
        return min(budgets_in(self.frame(name)), key=lambda k: (abs(k - _K), k), default=_K)

    @property
    def first_lead(self) -> str:
        """The baseline evaluator's best single lead."""
        rows = rows_of(self.frame("references"), evaluator=self.baseline, metric="nll", k=1)
        return str(rows["leads"].iloc[0]) if len(rows) else "aVR"


def _figure1(shown: _Shown) -> Figure:
    figure = Figure(figsize=(PAGE, 7.2), layout="constrained")
    # rows of their own, so that the diagrams need not leave room for the labels of the axes below them
    diagrams, choices = figure.subfigures(2, 1, squeeze=False, height_ratios=(2.5, 4.3)).ravel()
    sets, oracle = choices.subfigures(1, 2, squeeze=False, width_ratios=(1.15, 1)).ravel()
    panels = [*diagrams.subplots(1, 2), sets.subplots(), *oracle.subplots(2, 1)]
    plot_acquisition_loop(panels[0], shown.first_lead)
    plot_transfer(panels[1], shown.baseline, shown.evaluator)
    modal_sets = shown.frame("modal_sets")
    plot_modal_sets(modal_sets, panels[2], _in_order(policies_in(modal_sets)), shown.budget("modal_sets"))
    plot_first_lead(shown.frame("headroom"), panels[3], shown.reader("headroom"))
    plot_headroom(shown.frame("headroom"), panels[4], shown.reader("headroom"))
    _letter(panels)
    return figure


def _in_order(policies: Sequence[str]) -> list[str]:
    """Those of the paper first."""
    return sorted(policies, key=lambda name: _TRIO.index(name) if name in _TRIO else len(_TRIO))


def _figure2(shown: _Shown) -> Figure:
    contrasts, interactions = shown.frame("contrasts"), shown.frame("interactions")
    figure = Figure(layout="constrained")
    panels = list(figure.subplots(1, len(_METRICS)))
    pair = rows_of(interactions, evaluator=shown.evaluator, baseline_evaluator=shown.baseline, reference=OWN)
    policies = policies_in(pair) or policies_in(contrasts)  # a row without I would be half empty
    for ax, metric in zip(panels, _METRICS, strict=True):
        plot_paired_contrasts(contrasts, interactions, ax, metric, shown.baseline, shown.evaluator, policies)
        if ax is not panels[0]:
            ax.set_yticklabels([])
    rows = max(len(ax.get_yticks()) for ax in panels) + len(policies)
    figure.set_size_inches(PAGE, 1.2 + 0.16 * rows)
    _letter(panels)
    shared_legend(figure, panels)
    return figure


def _figure3(shown: _Shown) -> Figure:
    contrasts, interactions = shown.frame("contrasts"), shown.frame("interactions")
    figure = Figure(figsize=(PAGE, 5.4), layout="constrained")
    panels = list(figure.subplots(2, 2, width_ratios=(1.35, 1)).T.ravel())
    pair = (shown.policies("interactions", _PAIR) + list(_PAIR))[:2]
    limit = largest_interaction(interactions)
    for ax, policy in zip(panels[:2], pair, strict=True):
        plot_interaction_rows(
            interactions, policy, "nll", ax, baseline=shown.baseline, evaluator=shown.evaluator, limit=limit
        )
    trio = shown.policies("contrasts", _TRIO)
    for ax, metric in zip(panels[2:], ("nll", "brier"), strict=True):
        plot_policy_contrasts(contrasts, shown.evaluator, metric, ax, trio)
    _letter(panels)
    shared_legend(figure, panels[2:])
    return figure


def _reliability(shown: _Shown) -> Figure:
    return plot_reliability_labels(
        shown.frame("reliability"),
        evaluator=shown.reader("reliability"),
        k=shown.budget("reliability"),
        policies=shown.policies("reliability", ARMS),
    )


def _patients(shown: _Shown) -> Figure:
    figure = Figure(figsize=(PAGE, 3.0), layout="constrained")
    panels = list(figure.subplots(1, 3))
    effects, patients = shown.frame("patient_effects"), shown.frame("patients")
    policy = next(iter(shown.policies("patient_effects", _PAIR)), _PAIR[0])
    evaluator, k = shown.reader("patient_effects"), shown.budget("patient_effects")
    plot_sorted_effects(effects, panels[0], policy, evaluator, k)
    plot_effect_quartiles(patients, panels[1], shown.reader("patients"), shown.budget("patients"))
    plot_cumulative_benefit(effects, panels[2], evaluator, k)
    _letter(panels)
    shared_legend(figure, panels)
    return figure


def _controlled(shown: _Shown) -> Figure:
    figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
    panels = list(figure.subplots(1, len(_METRICS)))
    for ax, metric in zip(panels, _METRICS, strict=True):
        plot_controlled_effects(shown.frame("contrasts"), metric, ax, shown.baseline)
    _letter(panels)
    shared_legend(figure, panels)
    return figure


_FIGURES: dict[str, tuple[Callable[[_Shown], Figure], str, str]] = {
    "figure1": (
        _figure1,
        "How leads are acquired, what is frozen, and the headroom",
        "Diagrams of (a) the acquisition loop and (b) the frozen policy read by another evaluator; (c) the most "
        "frequent lead sets of each policy; (d) the oracle's first lead; (e) NLL of the best fixed set and of oracles "
        "over budgets. Oracles see the labels and cannot be deployed.",
    ),
    "figure2": (
        _figure2,
        "Adaptive minus fixed under two evaluators",
        "Contrasts D of every policy and budget in NLL, Brier and ECE under the {baseline} and the {evaluator} "
        "evaluator, with 95% intervals, and the interaction I beside them. Negative D favours adaptation.",
    ),
    "figure3": (
        _figure3,
        "Interactions as reference and evaluator vary, and contrasts of policies",
        "Interactions I in NLL of two policies over budgets with four kinds of reference and evaluator; NLL and Brier "
        "contrasts of policies under the {evaluator} evaluator with 95% intervals. Negative D favours adaptation.",
    ),
    "reliability": (
        _reliability,
        "Reliability diagrams",
        "Observed frequency over mean probability in ten bins, pooled and for each label, of policies and of the "
        "ECE-matched fixed set. Larger markers hold more cases; the diagonal is perfect calibration.",
    ),
    "patients": (
        _patients,
        "Effects patient by patient",
        "Patients' effects on NLL in order; mean effects by quartile of uncertainty after the first lead, with 95% "
        "intervals; cumulative benefit with patients ranked within each policy.",
    ),
    "controlled": (
        _controlled,
        "Adaptive minus fixed under the evaluator that policies were trained on",
        "Contrasts D of every policy over budgets in NLL, Brier and ECE under the {baseline} evaluator, with 95% "
        "intervals. Negative D favours adaptation.",
    ),
}


def _letter(panels: Sequence[Axes]) -> None:
    """(a), (b), … before the titles; a panel without a picture has its letter too."""
    for letter, ax in zip("abcdefgh", panels, strict=False):
        title = ax.get_title(loc="left")
        ax.set_title(f"({letter}) {title}", loc="left", fontsize=TITLE)


@contextmanager
def _our_style() -> Iterator[None]:
    """Matplotlib's own defaults, whatever the user's settings are, and what makes files the same every time."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # glyphs as paths: the same picture on every machine; a fixed salt: the same ids, hence bytes, every time
        matplotlib.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "leadwise", "pdf.fonttype": 42})
        yield


def _write(figure: Figure, path: Path, title: str, description: str) -> None:
    """One file, without a date; an SVG also says in words what it shows."""
    kind = path.suffix[1:]
    date = {"svg": "Date", "pdf": "CreationDate"}[kind]
    with atomic_file(path) as draft:
        figure.savefig(draft, format=kind, metadata={"Title": title, date: None})
        if kind == "svg":
            draft.write_text(_accessible(draft.read_text("utf-8"), path.stem, title, description), "utf-8")


def _accessible(svg: str, name: str, title: str, description: str) -> str:
    """Words for those who cannot see the picture, and ids that stay apart when several stand on one page."""
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    words = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    svg = re.sub(r"<title>.*?</title>", lambda _: words, svg, count=1, flags=re.DOTALL)
    return svg.replace("<svg ", f'<svg role="img" aria-labelledby="{name}-title {name}-desc" ', 1)
