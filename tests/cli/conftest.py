"""The command line, run in the tests' own process."""

import sys

import pytest

from cli.answers import Verb


@pytest.fixture
def leadwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Verb:
    """Run ``leadwise WORDS`` in this process; returns exit code, standard output and standard error."""
    from leadwise.cli import main

    monkeypatch.delenv("LEADWISE_PTBXL", raising=False)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["leadwise", *map(str, words)])
        with pytest.raises(SystemExit) as exited:
            main()
        out, err = capsys.readouterr()
        code = exited.value.code
        return code if isinstance(code, int) else 0, out, err

    return run
