"""The pieces of large payloads: the heads of FRAGMENTATION, and the queue to one destination and from one origin.
Note: docs/layers/fragmentation.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.run import Run
from pygroups.core.tables import Tables

Number = Annotated[int, Meta(ge=1, le=1 << 62)]


class PiecesHere(msgspec.Struct, array_like=True, tag=96):
    """Receiver to origin: these pieces of your message have arrived, so you may send as many again."""

    message: Number
    upto: Number  # the index of the last of them
    alone: bool  # the message is to this receiver alone


class GivenUp(msgspec.Struct, array_like=True, tag=97):
    """Origin to receiver: the rest of this message to you alone will not come, because its connection was given up."""

    message: Number


class PiecesMissed(msgspec.Struct, array_like=True, tag=98):
    """Receiver to origin, without a group: I do not have the beginning of this message to me alone any more."""

    message: Number


class PiecesAsk(msgspec.Struct, array_like=True, tag=99):
    """Origin to receiver, without a group: how many pieces of this message have arrived?  Answered by PiecesHere or
    PiecesMissed: the last answer may have been lost with a connection."""

    message: Number


class Outgoing:
    """The queue to one destination: a large run, of which pieces are under way, and the runs behind it."""

    __slots__ = ("arrived", "asked_at", "behind", "pieces", "run", "sent")

    tables: ClassVar[Tables] = {
        "arrived": "members",
        "behind": "window_runs",
    }

    def __init__(self, run: Run, size: int) -> None:
        self.run = run
        self.pieces = -(-len(run.body) // size)
        self.sent = 0  # pieces handed down
        self.arrived: dict[Address, int] = {}  # at each receiver, by its last answer
        self.asked_at = 0  # without a group: when a piece was sent, or the receiver was asked, last
        self.behind: deque[Run] = deque()

    def begin_again(self) -> None:
        """Begin again with the first piece, because all pieces were dropped."""
        self.sent, self.arrived = 0, {}

    def lowest(self, receivers: Iterable[Address]) -> int:
        """The number of pieces that have arrived at all of these receivers."""
        return min([self.arrived.get(receiver, 0) for receiver in receivers], default=self.pieces)

    def piece(self, index: int, size: int) -> Run:
        """Piece number `index`, from 1, of at most `size` bytes."""
        run, low = self.run, (index - 1) * size
        count = 1 if index == self.pieces else 0
        return Run(run.src, run.dest, (), run.origin, run.first, index, count, run.body[low : low + size])


class PartialMessage:
    """The beginning of a message: the pieces of it that have arrived."""

    __slots__ = ("bodies", "first", "heard_at", "outside", "size")

    def __init__(self, first: int, outside: bool) -> None:
        self.first = first
        self.outside = outside  # its origin is or was outside the view since the first piece
        self.heard_at = 0  # when the last piece arrived
        self.bodies: list[bytes] = []
        self.size = 0


class Confirmations:
    """Without a group: the large messages of which all pieces were sent, and which their receivers have not confirmed.

    A receiver acknowledges the last piece also when it has forgotten the pieces before it.  So the acknowledgement
    counts only as far as the receiver has confirmed the large messages.
    """

    __slots__ = ("acknowledged", "asked_at", "pieces")

    tables: ClassVar[Tables] = {
        "acknowledged": "peers",
        "asked_at": "peers",
        "pieces": "peers",
        "pieces[]": "window_runs",
    }

    def __init__(self) -> None:
        self.pieces: dict[Address, dict[int, int]] = {}  # by receiver and number: how many pieces
        self.acknowledged: dict[Address, int] = {}  # by receiver: the acknowledged messages are below this number
        self.asked_at: dict[Address, int] = {}  # by receiver: when the last piece was sent, or the receiver asked, last

    def sent(self, to: Address, number: int, pieces: int, now: int) -> None:
        """All pieces of message `number` were sent."""
        self.pieces.setdefault(to, {})[number] = pieces
        self.asked_at[to] = now

    def delivered(self, to: Address, below: int) -> int:
        """The messages below `below` are acknowledged.  Returns the number below which they are delivered."""
        waiting = self.pieces.get(to)
        if not waiting:
            return below
        self.acknowledged[to] = below
        return min(below, next(iter(waiting)))

    def is_whole(self, to: Address, number: int, upto: int) -> bool:
        """Whether this confirmation of the receiver covers the last piece of the message."""
        return self.pieces.get(to, {}).get(number) == upto

    def settle(self, to: Address, number: int) -> int | None:
        """The receiver has confirmed the message, or reports it as missed.  Returns the number below which messages
        are delivered now, if one is known."""
        waiting = self.pieces.get(to, {})
        waiting.pop(number, None)
        below = self.acknowledged.get(to)
        if waiting:
            return None if below is None else min(below, next(iter(waiting)))
        self.forget(to)
        return below

    def forget(self, to: Address) -> list[int]:
        """The connection is closed.  Returns the numbers of the messages without a confirmation."""
        self.acknowledged.pop(to, None)
        self.asked_at.pop(to, None)
        return list(self.pieces.pop(to, ()))

    def to_ask(self, now: int, pause: int) -> list[tuple[Address, int]]:
        """The receivers to ask now about their first message without a confirmation."""
        due = [to for to, at in self.asked_at.items() if at + pause <= now]
        self.asked_at |= dict.fromkeys(due, now)
        return [(to, next(iter(self.pieces[to]))) for to in due]
