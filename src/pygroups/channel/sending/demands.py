"""The options of a send, checked, and the errors of a sender: pure functions of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from pygroups.core.address import Address
from pygroups.core.errors import NotSent, Unknown, UnknownYet, UsageError


class Withdrawn(NotSent):
    """The member was excluded while the message waited for room.  With `rejoin=True` the next incarnation sends the
    message."""


Payload = bytes | bytearray | memoryview
Until = Literal["delivered", "read", "stable"]


def as_bytes(payload: Payload, limit: int) -> bytes:
    """`payload` as immutable bytes.  Raises UsageError for another type, and for a payload over `limit` bytes."""
    if type(payload) is not bytes:
        if not isinstance(payload, bytes | bytearray | memoryview):
            kind = type(payload).__name__
            raise UsageError(f"a payload is bytes, not {kind}: encode it first, for instance text.encode()")
        payload = bytes(payload)
    if len(payload) > limit:
        raise UsageError(f"the payload has {len(payload):,} bytes; the limit is {limit:,}: send it in parts")
    return payload


def unknown(why: str, number: int, until: Until) -> Unknown:
    """The error of a sender that waits for `until` when no more message arrives."""
    return Unknown(f"{why} before message {number} was {until}; the message may still be delivered", number)


def late(number: int, until: Until | None, timeout: float | None) -> UnknownYet:
    """The error of a sender whose message was accepted, and was not `until` in time."""
    sentence = f"message {number} was not {until} within {timeout} s"
    return UnknownYet(f"{sentence}; the message may still become {until}", number)


def of_window(to: Address | None) -> str:
    """The words that name the window of one receiver; "" for the window of the multicasts."""
    return "" if to is None else f"of messages to {to} "


def no_room(error: str, timeout: float | None, holders: Sequence[Address], me: Address, do: str = "read") -> str:
    """The text of a Timeout.  `holders`: the members that have not read the messages in the window, or have not
    received them (`do`)."""
    names = ", ".join(["this program" if member == me else str(member) for member in holders])
    because = f", because messages in it wait for {names} to {do}" if names else ""
    return f"{error} within {timeout} s{because}"


def because(error: Exception, cause: BaseException | None) -> Exception:
    """`error` with `cause` as its cause, as `raise error from cause` would set it."""
    error.__cause__ = cause
    return error


def check_how(to: Address | None, until: Until | None, timeout: float | None) -> None:
    """Raise UsageError for a combination of options of a send that has no meaning."""
    if until not in (None, *get_args(Until)):
        raise UsageError(f"until={until!r} is not known: use 'delivered', 'read' or 'stable'")
    if until == "stable" and to is not None:
        raise UsageError("until='stable' means every member, and to= names one: use until='delivered' with to=")
    if until == "read" and to is not None:
        raise UsageError(
            "until='read' means this program, and to= names another member: use until='delivered' with to="
        )
    if timeout is not None and not (isinstance(timeout, int | float) and timeout >= 0):
        raise UsageError(f"timeout={timeout!r} must be a number of seconds, or None to wait without limit")
