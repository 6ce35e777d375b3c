"""Words after Ctrl-C: how to go on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def going_on() -> Iterator[None]:
    """Say, where Ctrl-C ends the work, that the same command goes on with it."""
    try:
        yield
    except KeyboardInterrupt:
        print("leadwise: Interrupted; the same command goes on where it was.", file=sys.stderr)
        raise
