import os
import pty
import sys

import pytest

from leadwise import progress as module
from leadwise.progress import progress


def drawn(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What a progress bar writes to a terminal."""
    main, secondary = pty.openpty()
    with os.fdopen(secondary, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress("Counting leads", 12) as advance:
            advance(12)
        terminal.write(".")
        terminal.flush()
        return os.read(main, 100_000)


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_draws_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"Counting leads" in drawn(monkeypatch)


def test_is_silent_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert drawn(monkeypatch) == b"."


def test_is_silent_when_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "enabled", False)
    assert drawn(monkeypatch) == b"."


def test_is_silent_on_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Counting leads", 12) as advance:
        advance(12)
    assert capfd.readouterr() == ("", "")
