"""The lines of the library's log that a user of the command line sees."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
from typing import Final

from pygroups.cli.flags import as_flags
from pygroups.cli.refusals import one_line

LINE_MAX: Final = select.PIPE_BUF  # the bytes that a pipe with room takes at once


def log_everything() -> None:
    """For --verbose: print the whole log to standard error."""
    logging.basicConfig(stream=sys.stderr, format="%(relativeCreated)8d ms  %(name)s: %(message)s")
    logging.getLogger("pygroups").setLevel(logging.DEBUG)


def show_warnings() -> None:
    """Print the library's warnings to standard error, on a terminal, in a pipe and in a service.

    With --verbose log_everything() prints the log already.
    """
    if logging.getLogger().handlers or sys.stderr is None:
        return
    handler = StandardError()
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: not hasattr(record, "event"))  # the command prints its own message for an event
    logging.getLogger("pygroups").addHandler(handler)


def show_chosen_address() -> None:
    """Print the address that a member on all addresses of its machine announces to the other members, on a terminal or
    not.

    With --verbose log_everything() prints the line already.
    """
    from pygroups.drivers.contacts import CHOSEN

    if logging.getLogger().handlers or sys.stderr is None:
        return
    CHOSEN.addHandler(StandardError())
    CHOSEN.setLevel(logging.INFO)


def show_trace() -> None:
    """For --trace: print the trace to standard error, one line for each border that an item crosses."""
    from pygroups.channel.tracing import LOGGER

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.propagate = False  # with --verbose the handler of the whole log would print each line again


class StandardError(logging.Handler):
    """Prints each record as one line on standard error.

    A line is dropped while the terminal is stopped, or while the reader of the pipe does not read.  Otherwise the print
    would block the event loop, and the other members would remove this member.
    """

    def __init__(self) -> None:
        super().__init__()
        self.file = sys.stderr.fileno()
        self.room = select.poll()
        self.room.register(self.file, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, if this is possible without a wait."""
        if self.room.poll(0):
            line = one_line(as_flags(f"pygroups: {record.getMessage()}")).encode()
            with contextlib.suppress(OSError):  # the terminal or the pipe is closed, or the disk is full
                os.write(self.file, line[: LINE_MAX - 1] + b"\n")
