"""The command line: one file a verb."""

import atexit
import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def main() -> None:
    """Run the command line: 2 and one sentence for what the user can put right, 130 for Ctrl-C."""
    with _ending_at_once():  # what the verbs import takes a while
        from leadwise.cli import verbs
        from leadwise.errors import LeadwiseError, LeadwiseWarning, one_line
        from leadwise.store import error_number

    # what is imported is never garbage, nor is it worth while to look for any before the process ends
    gc.freeze()
    atexit.register(gc.freeze)
    warnings.simplefilter("ignore")  # what libraries say to their own developers
    warnings.simplefilter("always", LeadwiseWarning)
    warnings.showwarning = lambda message, *_: print(f"leadwise: warning: {message}", file=sys.stderr)
    try:
        verbs.app()
    except LeadwiseError as error:
        _fail(str(error))
    except OSError as error:
        number, where = error_number(error), error.filename2 or error.filename
        what = one_line(error.strerror or (os.strerror(number) if number else error))
        _fail(f"{where}: {what}." if where else f"{what}.")
    except KeyboardInterrupt:
        sys.exit(130)


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process with 130 on the spot: nothing is open yet, and an interrupted import is garbled."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell's background job ignores it
    if heeded:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    yield
    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _fail(sentence: str) -> None:
    print(f"leadwise: {sentence}", file=sys.stderr)
    sys.exit(2)
