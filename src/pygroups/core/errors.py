"""What can go wrong, in three kinds: you (UsageError), they (PeerError, never seen by you), we (assert)."""

from __future__ import annotations


class Error(Exception):
    """Everything that pygroups raises on purpose."""


class UsageError(Error):
    """The call or its input was wrong; the sentence says what to do instead."""


class NotBuilt(UsageError):
    """What was asked for is part of the design and is not built yet."""


class Refused(Error):
    """The group would not have this member: another profile, stack, limits or wire version."""


class NameTaken(Refused):
    """A living member of the group has this name."""


class Excluded(Error):
    """The other members went on without this one.  Raised by iteration after the last event, `Left("excluded")`."""


class StateLost(Error):
    """This member waited for the group's state, and no member that could give it is left.  Raised once by iteration."""


class ChannelClosed(Error):
    """The channel was used after it left its group, or before it joined."""


class JournalLost(Error):
    """The journal cannot be written any more."""


class NotSent(Error):
    """The message was certainly not sent.  `accepted`: how many of `send_many`'s payloads were taken before."""

    def __init__(self, text: str, accepted: int = 0) -> None:
        super().__init__(text)
        self.accepted = accepted


class WouldBlock(NotSent):
    """The window is full, and the call was not to wait."""


class WouldDeadlock(NotSent):
    """The task that reads the events waited in `send` with more than `queue_max` bytes unread behind it."""


class Timeout(NotSent, TimeoutError):
    """The time was over before the message was accepted."""


class Unknown(Error):
    """The time was over, or the member left, while waiting for `until`: message `number` may still be delivered."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number


class UnknownYet(Unknown, TimeoutError):
    """Unknown because of a time-out: `except TimeoutError` catches it, as it catches Timeout."""


class PeerError(Exception):
    """What a peer sent does not hold up.  Counted and dropped where it arrives; never seen by the application."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
