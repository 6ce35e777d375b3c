"""`import leadwise` costs nothing, and everything it promises is there."""

import subprocess
import sys

import pytest

import leadwise

HEAVY = ("torch", "matplotlib", "wfdb", "pandas", "sklearn", "scipy", "pyarrow", "numpy", "rich", "typer", "requests")


def modules_after(statement: str) -> set[str]:
    program = f"{statement}\nimport sys; print(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_import_is_light() -> None:
    assert not modules_after("import leadwise") & set(HEAVY)


def test_reading_needs_no_heavy_library() -> None:
    statement = "import leadwise; leadwise.read_ptbxl, leadwise.LeadSet, leadwise.plot_ecg, leadwise.fetch_ptbxl"
    assert not modules_after(statement) & {"torch", "matplotlib", "wfdb", "pandas", "sklearn", "requests"}


def test_command_line_is_light_until_it_works() -> None:
    assert not modules_after("import leadwise.cli") & {"torch", "matplotlib", "wfdb", "sklearn"}


@pytest.mark.parametrize("name", [*leadwise.__all__, "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(leadwise, name) is not None
    assert name in dir(leadwise)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = leadwise.nothing  # type: ignore[attr-defined]
