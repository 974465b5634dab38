"""How a command ends when it cannot do what was asked: one line on standard error and an exit code, no traceback."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

from pygroups.core.errors import Error, Refused, UsageError

FAILED = 1
"""A promise was broken, a check failed, or a member could not do what was asked."""
CALL_WAS_WRONG = 2
"""The call or its input was wrong, or the group refused the member."""
INTERRUPTED = 130
READER_WENT_AWAY = 141
"""As for a program that SIGPIPE ended; `pygroups ... | head` is no error."""


def guarded(work: Callable[[], int], *, verbose: bool) -> int:
    """Do `work` and return its exit code; what it raises on purpose becomes one line and a code.

    With `verbose` the traceback stands above the line.  What was not raised on purpose is a fault of ours and keeps its
    traceback.
    """
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()  # here, and not at exit, where a reader that is gone would be told as an exception
    except Error as error:
        if verbose:
            sys.excepthook(type(error), error, error.__traceback__)
        print(one_line(f"pygroups: {error}"), file=sys.stderr)
        return CALL_WAS_WRONG if isinstance(error, UsageError | Refused) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        _let_the_rest_vanish()
        return READER_WENT_AWAY
    return code


def one_line(text: str) -> str:
    """`text` on one line, without control characters: a name that a peer or a file gave cannot steer the terminal."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _reader_is_gone() -> bool:
    # Otherwise the pipe that broke was another one, a fault that must be seen.
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))


def _let_the_rest_vanish() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
