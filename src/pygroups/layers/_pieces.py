"""The pieces of large payloads: the heads of FRAGMENTATION, and the queue to one destination and from one origin.
Note: docs/layers/fragmentation.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.run import Run

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
        """How many pieces have arrived at all of these."""
        return min([self.arrived.get(receiver, 0) for receiver in receivers], default=self.pieces)

    def piece(self, index: int, size: int) -> Run:
        """Piece number `index`, from 1, of at most `size` bytes."""
        run, low = self.run, (index - 1) * size
        count = 1 if index == self.pieces else 0
        return Run(run.src, run.dest, (), run.origin, run.first, index, count, run.body[low : low + size])


class Incoming:
    """The pieces of one message that have arrived: a beginning of it."""

    __slots__ = ("bodies", "first", "heard_at", "size")

    def __init__(self, first: int) -> None:
        self.first = first
        self.heard_at = 0  # when the last piece arrived
        self.bodies: list[bytes] = []
        self.size = 0
