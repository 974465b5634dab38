"""Which lines of the library's log a user of the command line sees."""

from __future__ import annotations

import logging
import sys

from pygroups.cli.refusals import one_line


def log_everything() -> None:
    """For --verbose: all that is logged goes to standard error."""
    logging.basicConfig(stream=sys.stderr, format="%(relativeCreated)8d ms  %(name)s: %(message)s")
    logging.getLogger("pygroups").setLevel(logging.DEBUG)


def show_warnings() -> None:
    """On a terminal, print the library's warnings on standard error; in a pipe, print none of its log.

    With --verbose everything is printed already.
    """
    from pygroups.channel.session import EXCLUDED

    if logging.getLogger().handlers:
        return
    handler: logging.Handler = logging.NullHandler()  # in its absence Python prints warnings by itself
    if sys.stderr is not None and sys.stderr.isatty():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_OneLine("pygroups: %(message)s"))
        handler.setLevel(logging.WARNING)
        handler.addFilter(lambda record: EXCLUDED not in (record.args or ()))  # the command tells it in its own words
    logging.getLogger("pygroups").addHandler(handler)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))
