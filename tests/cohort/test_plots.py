from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from analysis.coverage import records_of
from leadwise.cohort.plots import plot_ecg
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import LeadwiseError
from leadwise.leads import LEADS, LeadSet


def test_paper_speed_gain_and_dimming(pristine_tree: Path) -> None:
    record = read_ptbxl(pristine_tree)["train"][0]
    observed = LeadSet.parse("III V2")
    ax = plot_ecg(record, observed)
    figure = ax.figure
    width_mm, height_mm = np.array(figure.get_size_inches()) * 25.4
    assert ax.get_xlim() == pytest.approx((0, width_mm))
    assert ax.get_ylim() == pytest.approx((0, height_mm))

    traces = [line for line in ax.lines if len(line.get_xdata()) > 100]
    assert len(traces) == 13, "twelve leads and the rhythm strip"
    labels = [text.get_text() for text in ax.texts[:-1]]
    assert sorted(labels) == sorted([*LEADS, "II"])
    millivolts = record.signals.millivolts(slice(None))[0]
    for label, line in zip(labels, traces, strict=True):
        x, y = np.array(line.get_xdata()), np.array(line.get_ydata())
        assert np.diff(x) == pytest.approx(0.25), "25 mm/s at 100 Hz"
        start = round((x[0] - min(t.get_xdata()[0] for t in traces)) / 0.25)
        signal = millivolts[LEADS.index(label), start : start + len(y)]
        np.testing.assert_allclose(np.diff(y), 10 * np.diff(signal), atol=1e-4, err_msg="10 mm/mV")
        assert (line.get_color() == "#1a1a1a") == (label in observed)
    plt.close(figure)


@pytest.mark.parametrize("millivolts", [6.0, -6.0])
@pytest.mark.parametrize("lead", ["V4", "II"])
def test_no_wave_leaves_the_paper(lead: str, millivolts: float) -> None:
    """However high the wave of an upper lead or deep that of the rhythm strip, the paper is made to hold it."""
    signals = np.zeros((1, 12, 1000), dtype=np.int16)
    signals[0, LEADS.index(lead), 760:765] = 1000 * millivolts
    ax = plot_ecg(records_of(np.arange(1), np.zeros((1, 2), dtype=bool), signals))
    low, high = ax.get_ylim()
    traces = np.concatenate([np.array(line.get_ydata()) for line in ax.lines])
    assert low + 5 <= traces.min()
    assert traces.max() <= high - 5
    assert (high - 150) % 5 == 0
    assert np.array(ax.figure.get_size_inches())[1] * 25.4 == pytest.approx(high)
    plt.close(ax.figure)


def test_draws_into_given_axes(pristine_tree: Path) -> None:
    record = read_ptbxl(pristine_tree)["train"][0]
    figure, ax = plt.subplots()
    assert plot_ecg(record, ax=ax) is ax
    plt.close(figure)


def test_a_lead_set_is_wanted(pristine_tree: Path) -> None:
    with pytest.raises(LeadwiseError, match=r"write LeadSet\.parse\('I II'\)"):
        plot_ecg.__wrapped__(read_ptbxl(pristine_tree)["train"][0], "I II")  # past the type checker of the tests


def test_one_record_at_a_time(pristine_tree: Path) -> None:
    with pytest.raises(LeadwiseError, match="draws one record"):
        plot_ecg(read_ptbxl(pristine_tree)["train"])
