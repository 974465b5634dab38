"""Accepted payloads that are not in a sent run yet."""

from __future__ import annotations

import msgspec


class OpenRun(msgspec.Struct):
    """The accepted payloads for one destination that are not in a sent run yet."""

    first: int  # the number of the first payload
    payloads: list[bytes]
    size: int


class ToOne(OpenRun):
    """The open run for one member, with the state of this member's window."""

    cut_bytes: int = 0  # of all runs to the member so far
    freed_bytes: int = 0  # of the runs that have left the window
