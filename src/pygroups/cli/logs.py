"""The lines of the library's log that a user of the command line sees."""

from __future__ import annotations

import logging
import sys

from pygroups.cli.flags import as_flags
from pygroups.cli.refusals import one_line


def log_everything() -> None:
    """For --verbose: print the whole log to standard error."""
    logging.basicConfig(stream=sys.stderr, format="%(relativeCreated)8d ms  %(name)s: %(message)s")
    logging.getLogger("pygroups").setLevel(logging.DEBUG)


def show_warnings() -> None:
    """On a terminal, print the library's warnings to standard error.  In a pipe, print no log line.

    With --verbose log_everything() prints the log already.
    """
    from pygroups.channel.endings import REMOVED

    if logging.getLogger().handlers:
        return
    handler: logging.Handler = logging.NullHandler()  # in its absence Python prints warnings by itself
    if sys.stderr is not None and sys.stderr.isatty():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_OneLine("pygroups: %(message)s"))
        handler.setLevel(logging.WARNING)
        handler.addFilter(lambda record: REMOVED not in record.getMessage())  # the command prints its own message
    logging.getLogger("pygroups").addHandler(handler)


def show_chosen_address() -> None:
    """Print the address that a member on all addresses of its machine announces to the other members, on a terminal or
    not.

    With --verbose log_everything() prints the line already.
    """
    from pygroups.drivers.contacts import CHOSEN

    if logging.getLogger().handlers or sys.stderr is None:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("pygroups: %(message)s"))
    CHOSEN.addHandler(handler)
    CHOSEN.setLevel(logging.INFO)


def show_trace() -> None:
    """For --trace: print the trace to standard error, one line for each border that an item crosses."""
    from pygroups.channel.tracing import LOGGER

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    LOGGER.propagate = False  # with --verbose the handler of the whole log would print each line again


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return one_line(as_flags(super().format(record)))
