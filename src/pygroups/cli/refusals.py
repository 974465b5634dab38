"""The end of a command that fails: one line on standard error and an exit code, without a traceback.  Also the warnings
about damaged journals."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from pygroups.core.errors import Error, Refused, UsageError

FAILED = 1
"""A promise was broken, a check failed, or a member failed."""
CALL_WAS_WRONG = 2
"""The call or its input was wrong, or the group refused the member."""
INTERRUPTED = 130
READER_WENT_AWAY = 141
"""The exit code of a program that SIGPIPE ended; `pygroups ... | head` is not an error."""


def guarded(work: Callable[[], int], *, verbose: bool) -> int:
    """Do `work` and return its exit code.  An Error becomes one line and an exit code.

    With `verbose` the traceback is printed above the line.  Any other exception is a bug in pygroups and keeps its
    traceback.
    """
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()  # here, because at exit a closed pipe would be reported as an exception
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
    """`text` on one line, without control characters, so that a name from a peer cannot control the terminal."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


class DamagedPlace(Protocol):
    """A place of a journal that could not be read."""

    @property
    def file(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def reason(self) -> str: ...


def warn_of_damage(places: Sequence[DamagedPlace], shown: int) -> None:
    """Print a warning for each of the first `shown` places, and the number of the others."""
    for place in places[:shown]:
        print(one_line(f"warning: {place.file} at byte {place.offset}: {place.reason}"), file=sys.stderr)
    if len(places) > shown:
        print(f"warning: {len(places) - shown} more damaged places", file=sys.stderr)


def warn_of(reasons: Sequence[tuple[str, str]], shown: int, what: str) -> None:
    """Print a warning for each of the first `shown` paths with their reasons, and the number of the others (`what`)."""
    for path, reason in reasons[:shown]:
        print(one_line(f"warning: {path}: {reason}"), file=sys.stderr)
    if len(reasons) > shown:
        print(f"warning: {len(reasons) - shown} more {what}", file=sys.stderr)


def _reader_is_gone() -> bool:
    # Otherwise another pipe broke, which is a bug that must be visible.
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))


def _let_the_rest_vanish() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
