"""Twelve leads on paper, as a clinician expects them."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from leadwise.cohort.cohort import Records
from leadwise.errors import LeadwiseError
from leadwise.leads import ALL_LEADS, LEADS, LeadSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = (("I", "aVR", "V1", "V4"), ("II", "aVL", "V2", "V5"), ("III", "aVF", "V3", "V6"))
_MM_PER_SECOND, _MM_PER_MILLIVOLT = 25, 10
_ROW_MM, _PULSE_MM, _MARGIN_MM, _SQUARE_MM = 35, 8, 5, 5
_PAPER, _FINE, _COARSE, _INK, _DIM = "#fffaf8", "#f6d5ce", "#eaa89c", "#1a1a1a", "#c3b7b4"


def plot_ecg(record: Records, observed: LeadSet = ALL_LEADS, ax: "Axes | None" = None) -> "Axes":
    """Draw one record at 25 mm/s and 10 mm/mV: three rows of four leads, and lead II as a rhythm strip.

    Each lead of the upper rows shows its own quarter of the recording, so that time runs on along a row. Leads that
    are not in ``observed`` are dimmed. Paper is added above and below where a wave would leave it. Without ``ax`` the
    figure has the true size of the paper in print.
    """
    import matplotlib.pyplot as plt

    if not isinstance(observed, LeadSet):
        raise LeadwiseError(f"plot_ecg takes a lead set; write LeadSet.parse({observed!r}).")
    if record.length < 4:
        raise LeadwiseError(f"A recording of {record.length} samples cannot be drawn in four columns.")
    if len(record) != 1:
        raise LeadwiseError(f"plot_ecg draws one record; {record.name} has {len(record)}. Pick one, as in records[0].")
    millivolts = record.signals.millivolts(slice(None))[0].astype(np.float64)
    seconds = record.length / record.sampling_rate
    width = _PULSE_MM + seconds * _MM_PER_SECOND + 2 * _MARGIN_MM
    quarter = record.length // 4
    parts = [np.arange(column * quarter, (column + 1) * quarter) for column in range(4)]
    strips = [dict(zip(names, parts, strict=True)) for names in _GRID] + [{"II": np.arange(record.length)}]
    # the paper's baseline is a lead's own median, as an analogue recorder's high-pass filter would have it
    waves = (millivolts - np.median(millivolts, axis=1, keepdims=True)) * _MM_PER_MILLIVOLT
    baselines = np.array([_MARGIN_MM + (3.45 - row) * _ROW_MM for row in range(4)])
    ends = [
        base + extreme(waves[LEADS.index(name), part])
        for base, strip in zip(baselines, strips, strict=True)
        for name, part in strip.items()
        for extreme in (np.min, np.max)
    ]
    height = 4 * _ROW_MM + 2 * _MARGIN_MM
    below, above = (
        _SQUARE_MM * max(0, np.ceil(over / _SQUARE_MM))
        for over in (_MARGIN_MM - min(ends), max(ends) + _MARGIN_MM - height)
    )
    baselines, height = baselines + below, height + below + above
    if ax is None:
        figure = plt.figure(figsize=(width / 25.4, height / 25.4))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    _draw_paper(ax, width, height)
    pulse = np.array([[0, 1, 1, 6, 6, 7], [0, 0, 1, 1, 0, 0]])  # the calibration pulse: 1 mV for 0.2 s
    for baseline, strip in zip(baselines, strips, strict=True):
        ax.plot(_MARGIN_MM + pulse[0], baseline + pulse[1] * _MM_PER_MILLIVOLT, color=_INK, linewidth=0.8)
        for name, part in strip.items():
            x = _MARGIN_MM + _PULSE_MM + part / record.sampling_rate * _MM_PER_SECOND
            _draw_lead(ax, name, name in observed, x, baseline, waves[LEADS.index(name), part])
    caption = f"record {record.ids[0]}   25 mm/s   10 mm/mV"
    ax.text(width - _MARGIN_MM, 1.5, caption, ha="right", va="bottom", fontsize=7, color=_INK)
    return ax


def _draw_paper(ax: "Axes", width: float, height: float) -> None:
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal", xticks=[], yticks=[], facecolor=_PAPER)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for step, colour, line in ((1, _FINE, 0.3), (5, _COARSE, 0.5)):
        ax.vlines(np.arange(0, width + 1e-9, step), 0, height, colors=colour, linewidths=line, zorder=0)
        ax.hlines(np.arange(0, height + 1e-9, step), 0, width, colors=colour, linewidths=line, zorder=0)


def _draw_lead(
    ax: "Axes", name: str, seen: bool, x: Float[np.ndarray, " s"], baseline: float, wave: Float[np.ndarray, " s"]
) -> None:
    colour = _INK if seen else _DIM
    ax.plot(x, baseline + wave, color=colour, linewidth=0.7, solid_joinstyle="round")
    ax.text(x[0] + 0.8, baseline + 0.36 * _ROW_MM, name, va="center", fontsize=8, weight="bold", color=colour)
