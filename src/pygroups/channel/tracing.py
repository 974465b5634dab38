"""Tracing of a channel, in the standard library's logger `pygroups.trace`.  Guide: docs/guides/tracing.md."""

from __future__ import annotations

import logging
from typing import Final

from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.core.trace import Crossing, Trace

LOGGER: Final = logging.getLogger("pygroups.trace")


def trace_of(me: Address) -> Trace | None:
    """The trace of a new member, or None if tracing is off.

    Tracing is on if the logger itself has the level DEBUG or a lower one.  A level that the logger inherits does not
    count: a program that logs everything does not expect a line for each message in each layer.
    """
    if not logging.NOTSET < LOGGER.level <= logging.DEBUG:
        return None

    def trace(crossing: Crossing) -> None:
        LOGGER.debug("%.6f  %s  %s", crossing.now / SECOND, me.name, crossing)

    return trace
