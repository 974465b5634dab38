"""The exceptions of pygroups.

An error has one of three causes: the caller (UsageError), a peer (PeerError, which no caller sees), or a bug in
pygroups (a failed assertion).
"""

from __future__ import annotations

from typing import Final

import msgspec

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes of another type: malformed ones, text that is no UTF-8, and lists in lists without end,
which count even where nothing reads them."""


class Error(Exception):
    """Base of all exceptions that pygroups raises on purpose.  They can be pickled and copied."""

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.args, vars(self))


class UsageError(Error):
    """The call or its input was wrong.  The message says how to correct the call."""


class NotBuilt(UsageError):
    """The requested feature is part of the design and is not built yet."""


class Refused(Error):
    """The group refused this member, because its profile, stack, limits or wire version differ from the group's."""


class NameTaken(Refused):
    """A living member of the group has this name."""


class Excluded(Error):
    """The other members removed this member.  Iteration raises this error after the last event, `Left("excluded")`,
    unless the channel joins again (`rejoin=True`)."""


class StateLost(Error):
    """This member waited for the group's state, and all members that had the state are gone.  Iteration raises this
    error once; `Channel.ready()` raises the error too.  The events that the member held while it waited follow."""


class ChannelClosed(Error):
    """The channel has not joined its group yet, is leaving the group, or has left the group.  A forked child gets this
    error too, because the channel belongs to the parent."""


class JournalFailed(Error):
    """The journal cannot be written, and the member has left for this reason, because `on_journal_lost` is "leave", or
    because a majority decides each view.

    Iteration raises this error after the last event, `Left("journal lost")`."""


class NotSent(Error):
    """The message was certainly not sent.  `accepted`: the number of messages of `send_many` that were sent before the
    error."""

    def __init__(self, text: str, accepted: int = 0) -> None:
        super().__init__(text)
        self.accepted = accepted


class WouldBlock(NotSent):
    """The window is full, and `send_nowait` does not wait."""


class WouldDeadlock(NotSent):
    """`send` and the task that reads the events wait for each other.  `send` waits for room in the window, and the
    window opens only when members read.  The message of the error names the cause."""


class Timeout(NotSent, TimeoutError):
    """The timeout expired before the message was accepted."""


class Unknown(Error):
    """`send` or `wait` ended before message `number` was delivered, acknowledged, read or stable: the timeout expired,
    this member left the group, the receiver left, or no task reads.  The message may still be delivered."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number


class UnknownYet(Unknown, TimeoutError):
    """An Unknown because of a timeout.  `except TimeoutError` catches this error and Timeout."""


class DeliveredElsewhere(Error):
    """Members on the other side of a network split delivered message `number`; this member, and the members on its
    side, never do.  The event Gap names the members that have the message."""

    def __init__(self, number: int) -> None:
        where = "by members on the other side of a network split, and not on this side"
        super().__init__(f"message {number} was delivered {where}: the event Gap names these members")
        self.number = number


def _again(kind: type[Error], args: tuple[object, ...], values: dict[str, object]) -> Error:
    """An error that was pickled, without its `__init__`, which may take other arguments."""
    error = kind.__new__(kind, *args)
    error.args = args  # a TimeoutError gets them in `__init__` only
    vars(error).update(values)
    return error


class PeerError(Exception):
    """A peer sent invalid data.  The receiver counts and drops the data; the application never sees this exception."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SealError(PeerError):
    """The tag of a frame is wrong, or the frame was received before.  So nothing in it can be believed, not even its
    sender."""
