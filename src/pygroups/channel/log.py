"""The log lines of a channel, in the standard library's logger `pygroups.channel`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from pygroups.core.address import Address

LOGGER: Final = logging.getLogger("pygroups.channel")


class Log:
    """The log of one channel.  Each line begins with the member and its group."""

    def __init__(self, member: str, group: str) -> None:
        self._who = f"{member} in group {group!r}: "

    def info(self, text: str, *values: object) -> None:
        """Log a normal event."""
        LOGGER.info("%s" + text, self._who, *values)

    def warning(self, text: str, *values: object) -> None:
        """Log an event that may need attention."""
        LOGGER.warning("%s" + text, self._who, *values)

    def event(self, text: str, *values: object) -> None:
        """Log a warning that the program also gets, as an event or as an error.  The record has the attribute `event`,
        so that a program which prints its events can leave the record out."""
        LOGGER.warning("%s" + text, self._who, *values, extra={"event": True})


def join_waits(found: Sequence[Address], announced: str | None, *, chosen: bool) -> str:
    """The log line of a join that takes long.  `announced`: the address for the members, if it is not that of bind=.
    `chosen`: this process chose it for itself."""
    if not found:
        return "the join waits: no member was found, and another process may be founding the group"
    text = f"the join waits for an answer of {', '.join([str(member) for member in found])}"
    if announced is None:
        return text
    if not chosen:
        return f"{text}; the answer goes to {announced}, the address of advertise=, which must lead to this process"
    return f"{text}; the answer goes to {announced}, an address that this process chose (advertise= names another one)"


def apart(peer: Address, reason: str, detail: str) -> str:
    """The log line for a process of another view or group under the same name."""
    if reason != "settings":
        return f"{peer} is in another view of this group, and the two views do not merge: {detail}"
    return f"{peer} is in another group of this name, and the two groups never merge: {detail}"


def reads_slowly(holder: Address, me: Address, seconds: float, window: int) -> str:
    """The log line of sends that wait again and again for `holder` to read."""
    reader = "this program" if holder == me else str(holder)
    return (
        f"send waits again and again, because {reader} reads more slowly than this program sends: for {seconds:.0f} s "
        f"the window ({window} bytes) has been full, mostly of messages that were delivered and not read"
    )


def not_received(holder: Address, seconds: float, window: int) -> str:
    """The log line of a send that waits for `holder` to receive messages."""
    return (
        f"send waits, because {holder} has acknowledged none of this member's messages for {seconds:.0f} s, and the "
        f"window ({window} bytes) is full of these messages: if nothing else is logged about {holder}, the network "
        "between the two may drop large packets, and let the small ones pass that show that a process runs"
    )


def send_waits(holder: Address, me: Address, seconds: float, window: int) -> str:
    """The log line of a send that waits for `holder` to read."""
    if holder == me:
        return (
            f"send waits, because this program has read no event for {seconds:.0f} s, and the window ({window} bytes) "
            "is full of its own messages: read the events, or open the channel with events='none'"
        )
    return (
        f"send waits, because {holder} has read none of this member's messages for {seconds:.0f} s, and the window "
        f"({window} bytes) is full of these messages"
    )
