"""Which device computes, and with what memory."""

import ctypes

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


def keep_freed_memory() -> None:
    """Let this process keep large blocks that it frees, for the next step to use again.

    The C library would hand them back to the system, which clears every page before it gives it out anew: with whole
    records, a fifth of a training step.
    """
    trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it
    if mallopt is not None:
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(mmap_threshold, 2**30)
