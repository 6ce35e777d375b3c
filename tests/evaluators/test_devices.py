"""Which device is taken, and what happens to those that are not there."""

import ctypes
import sys
import tomllib
from pathlib import Path

import pytest
import torch

from leadwise.errors import InputError
from leadwise.evaluators import devices
from leadwise.evaluators.devices import find_device, keep_freed_memory, one_thread


@pytest.fixture
def accelerator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device | None:
    """What this machine has, whatever it really has."""
    device: torch.device | None = request.param and torch.device(request.param)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: check_available and device)
    return device


@pytest.mark.parametrize(
    ("accelerator", "found"), [(None, "cpu"), ("cuda", "cuda"), ("mps", "mps")], indirect=["accelerator"]
)
@pytest.mark.usefixtures("accelerator")
def test_auto_takes_an_accelerator_if_there_is_one(found: str) -> None:
    assert find_device("auto") == torch.device(found)
    assert find_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("accelerator", [None], indirect=True)
@pytest.mark.parametrize("wanted", ["cuda", "cuda:1", "mps", "xpu", "meta"])
@pytest.mark.usefixtures("accelerator")
def test_a_device_that_is_not_there(wanted: str) -> None:
    with pytest.raises(InputError, match=rf"^There is no device '{wanted}' on this machine; use auto or cpu\.$"):
        find_device(wanted)


@pytest.mark.parametrize("accelerator", ["cuda"], indirect=True)
@pytest.mark.usefixtures("accelerator")
def test_an_accelerator_of_another_kind() -> None:
    assert find_device("cuda:0") == torch.device("cuda", 0)
    with pytest.raises(InputError, match="no device 'mps' on this machine"):
        find_device("mps")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one here")
def test_no_cuda_here() -> None:
    with pytest.raises(InputError, match="no device 'cuda' on this machine"):
        find_device("cuda")


@pytest.mark.parametrize("wanted", ["gpu", "", "CPU!", "cuda:x"])
def test_a_device_that_nobody_has(wanted: str) -> None:
    with pytest.raises(InputError, match=rf"^There is no device '{wanted}'; use auto, cpu, or an accelerator's name"):
        find_device(wanted)


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(MemoryError), one_thread() as threads:
            assert (threads, torch.get_num_threads()) == (2, 1)
            raise MemoryError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is about the GNU C library")
def test_the_c_library_takes_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """mallopt answers 1 when it has understood."""
    answers: list[int] = []
    library = ctypes.CDLL(None)

    class Listening:
        @staticmethod
        def mallopt(which: int, value: int) -> None:
            answers.append(library.mallopt(which, value))

    monkeypatch.setattr(devices.ctypes, "CDLL", lambda _name: Listening)
    keep_freed_memory()
    assert answers == [1, 1]


def test_a_c_library_without_such_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda _name: object())
    keep_freed_memory()


def test_the_oldest_torch_that_we_ask_for_knows_accelerators() -> None:
    """torch.accelerator came with 2.6, its ``check_available`` with 2.7."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (floor,) = [each.removeprefix("torch>=") for each in project["dependencies"] if each.startswith("torch>=")]
    assert tuple(map(int, floor.split("."))) >= (2, 7)
