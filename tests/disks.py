"""Disks on which little can be written."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_files_only(size: int) -> Iterator[None]:
    """As on a full disk: the system itself refuses to write on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
