"""The device that computes, its threads, and its memory. Threads and memory belong to the whole process."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from leadwise.errors import InputError


def find_device(wanted: str) -> torch.device:
    """The device to compute on: ``auto`` takes an accelerator if there is one."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if wanted == "auto":
        return accelerator or torch.device("cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise InputError(f"There is no device '{wanted}'; use auto, cpu, or an accelerator's name (cuda).") from None
    if device.type != "cpu" and (accelerator is None or accelerator.type != device.type):
        raise InputError(f"There is no device '{wanted}' on this machine; use auto or cpu.")
    return device


@contextmanager
def one_thread() -> Iterator[int]:
    """Let torch compute every operation on one thread inside; gives the number of threads before, and restores it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Let this process, from now on, keep large blocks that it frees, for the next training step to use again.

    The C library would hand them back to the system, which clears every page before it gives it out anew: with whole
    records, a fifth of a training step. It cannot tell its settings, so they cannot be put back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it
    if mallopt is not None:
        for threshold, size in ((-1, 2**31 - 1), (-3, 2**30)):  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
            mallopt(threshold, size)
