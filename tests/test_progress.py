import os
import pty
import sys
import time

import pytest

from leadwise import progress as module
from leadwise.progress import progress, stage

END = b"<end>"


def drawn(monkeypatch: pytest.MonkeyPatch, *lines: str, by: int = 12) -> bytes:
    """What a progress bar writes to a terminal, advanced and made to say something."""
    main, secondary = pty.openpty()
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress("Counting leads", 12) as advance:
            advance(by)
            for line in lines:
                advance.say(line)
        terminal.write(END.decode())
        terminal.flush()
        shown = b""
        while not shown.endswith(END):  # a terminal hands over in pieces
            shown += os.read(main, 100_000)
        return shown.removesuffix(END)


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_draws_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"Counting leads" in drawn(monkeypatch)


def test_is_silent_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert drawn(monkeypatch) == b""


def test_is_silent_when_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "enabled", False)
    assert drawn(monkeypatch) == b""


def test_is_silent_on_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Counting leads", 12) as advance:
        advance(12)
    assert capfd.readouterr() == ("", "")


def test_says_nothing_on_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Counting leads", 12) as advance:
        advance.say("epoch 1")
    assert capfd.readouterr() == ("", "")


def test_what_is_said_stays_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = drawn(monkeypatch, "epoch 1  NLL 0.3052 *", "epoch 2").decode()
    assert "epoch 1  NLL 0.3052 *\r\n" in shown, "as it was said, without colours"
    assert shown.index("epoch 1") < shown.index("epoch 2") < shown.rindex("Counting leads"), "the bar is drawn again"


@pytest.mark.parametrize(("by", "share"), [(0, b" 0%"), (3, b" 25%"), (12, b"100%")])
def test_advances(monkeypatch: pytest.MonkeyPatch, by: int, share: bytes) -> None:
    assert share in drawn(monkeypatch, "done", by=by)


def test_brackets_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"loss [0.1] of [/mnt]" in drawn(monkeypatch, "loss [0.1] of [/mnt]")


def test_a_bar_within_a_bar_stays_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    main, secondary = pty.openpty()
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress("Counting leads", 12), progress("Counting samples", 3) as advance:
            advance(3)
            advance.say("three")
        with pytest.raises(KeyError), progress("Losing leads", 12):
            raise KeyError
        terminal.write(END.decode())
        terminal.flush()
        shown = b""
        while not shown.endswith(END):  # a terminal hands over in pieces
            shown += os.read(main, 100_000)
    assert b"Counting leads" in shown
    assert b"samples" not in shown
    assert b"three" not in shown
    assert b"Losing leads" in shown, "the next one is shown again"
    assert b"Counting leads" in drawn(monkeypatch), "also after an error"


# where no bar can be drawn ------------------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute of a twentieth of a second."""
    monkeypatch.setattr(module, "line_seconds", 0.05)


def until_told(capfd: pytest.CaptureFixture[str], words: str) -> str:
    """The lines that are printed up to one with these words."""
    told, deadline = "", time.monotonic() + 20
    while words not in told and time.monotonic() < deadline:
        time.sleep(0.02)
        told += capfd.readouterr().err
    return told


@pytest.mark.usefixtures("often")
def test_a_line_a_minute_on_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with stage("mask-robust", 28, 43):
        assert "mask-robust (stage 28 of 43): 1 min so far\n" in until_told(capfd, "so far")
        with progress("Training mask-robust", 100) as advance:
            assert "mask-robust (stage 28 of 43): Training mask-robust, 0%\n" in until_told(capfd, "0%")
            advance(40)
            with progress("Reading", 3) as within:
                within(3)
                told = until_told(capfd, "40%")
            assert "(stage 28 of 43): Training mask-robust, 40%\n" in told
            assert "Reading" not in told
    with progress("Counting leads", 12):
        assert until_told(capfd, "0%").startswith("Counting leads, 0%\n")
    capfd.readouterr()
    time.sleep(0.2)
    assert capfd.readouterr() == ("", ""), "nothing more when all is done"


@pytest.mark.usefixtures("often")
def test_no_line_when_switched_off(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "enabled", False)
    with stage("mask-robust", 28, 43), progress("Training", 100):
        time.sleep(0.2)
    assert capfd.readouterr() == ("", "")


def test_the_time_left_is_told_by_what_was_done_now() -> None:
    bar = module._Counting("Training", 100)
    bar(40)  # found done: a training goes on
    assert str(bar) == "Training, 40%"
    bar.start -= 600
    bar(20)
    assert str(bar) == "Training, 60%, about 20 min left"
