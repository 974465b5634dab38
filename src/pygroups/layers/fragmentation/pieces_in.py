"""The receiving half of FRAGMENTATION: pieces are collected until their message is whole.  Without a group the answers
and the collected pieces can be lost with a connection, so an origin may ask for both.
Note: docs/layers/fragmentation.md.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.layer import Layer
from pygroups.core.run import Run
from pygroups.core.services import MEMBERSHIP
from pygroups.core.tables import Tables

from .pieces import GivenUp, PartialMessage, PiecesAsk, PiecesHere, PiecesMissed

OUTSIDERS_MAX: Final = 16  # messages of origins outside the view that are collected at once


class Collecting:
    """The messages of which some pieces have arrived.

    `size`: the most bytes of a message.  `often`: the receiver confirms each such number of pieces."""

    __slots__ = ("env", "incoming", "layer", "often", "receivers", "size", "whole")

    tables: ClassVar[Tables] = {
        "incoming": lambda _, members: 2 * members + OUTSIDERS_MAX,
        "incoming[].bodies": "pieces",
        "incoming[].bodies[]": "piece",
        "receivers": "members",
        "whole": "unicast_peers_max",
        "whole[]": "fixed",
    }

    def __init__(self, layer: Layer, size: int, often: int) -> None:
        self.layer = layer
        self.env = layer.env
        self.size = size
        self.often = often
        self.receivers: tuple[Address, ...] = ()  # the other members of the view
        self.incoming: dict[tuple[Address, bool], PartialMessage] = {}  # by origin, and whether to this member alone
        self.whole: dict[Address, tuple[int, int]] = {}  # without a group, by origin: the last whole one, its pieces

    def collect(self, run: Run) -> bytes | None:
        """Take a piece.  Returns the body of its message, if this was the last piece."""
        assert run.origin is not None
        key = (run.origin, run.dest is not None and run.stream is None)
        if run.index == 1:
            self._make_room(run.origin)
            self.incoming[key] = PartialMessage(run.first, self._is_outside(run.origin))
        message = self.incoming.get(key)
        if message is None or message.first != run.first or len(message.bodies) + 1 != run.index:
            self.env.drop("piece out of place")
            self.incoming.pop(key, None)
            if run.count and MEMBERSHIP not in self.env.services:
                self.layer.tell(run.origin, PiecesMissed(run.first))  # acknowledged, and not delivered: report it
            return None
        message.bodies.append(run.body)
        message.heard_at = self.env.now
        message.size += len(run.body)
        if message.size > self.size:
            self.env.drop("payload too large")
            del self.incoming[key]
        elif run.count:
            del self.incoming[key]
            return b"".join(message.bodies)
        elif run.origin != self.env.me and run.index % self.often == 0:
            self.layer.tell(run.origin, PiecesHere(run.first, run.index, key[1]))
        return None

    def on_given_up(self, given_up: GivenUp, origin: Address) -> None:
        message = self.incoming.get((origin, True))
        if message is not None and message.first == given_up.message:
            del self.incoming[origin, True]

    # -- origins outside the view

    def _is_outside(self, origin: Address) -> bool:
        return origin not in self.receivers and origin != self.env.me

    def _make_room(self, origin: Address) -> None:
        """Drop pieces to make room.  The last message of a leaver may come from outside the view, and only a few such
        messages are collected at once."""
        if not self._is_outside(origin):
            return
        outside = self._of_outsiders()
        if len(outside) >= OUTSIDERS_MAX:
            self.env.drop("pieces of too many outsiders")
            del self.incoming[outside[0]]
        self.layer.wake_at(self.env.now + self.env.config.leave_timeout)

    def _of_outsiders(self) -> list[tuple[Address, bool]]:
        return [key for key, message in self.incoming.items() if message.outside]

    def install(self, receivers: tuple[Address, ...]) -> None:
        """Drop the pieces of multicasts of the previous view."""
        self.receivers = receivers
        self.incoming = {key: message for key, message in self.incoming.items() if key[1]}
        for origin, message in ((key[0], message) for key, message in self.incoming.items()):
            message.outside = message.outside or self._is_outside(origin)
        if self._of_outsiders():
            self.layer.wake_at(self.env.now + self.env.config.leave_timeout)

    def forget_the_silent(self) -> None:
        """Forget the messages of outsiders that send no further piece: these origins have crashed, or have given the
        message up, and the word of that was lost.  An origin that comes back into the view begins again."""
        config, grouped = self.env.config, MEMBERSHIP in self.env.services
        patience = config.leave_timeout if grouped else 2 * config.connection_age
        for key in self._of_outsiders():
            until = self.incoming[key].heard_at + patience
            if until <= self.env.now:
                self.env.drop("pieces of an outsider without an end")
                del self.incoming[key]
            else:
                self.layer.wake_at(until)

    # -- without a group

    def confirm_whole(self, origin: Address, first: int, pieces: int) -> None:
        """Tell the origin that its message was handed up."""
        self.whole.pop(origin, None)
        if len(self.whole) >= self.env.config.unicast_peers_max:
            del self.whole[next(iter(self.whole))]
        self.whole[origin] = first, pieces
        self.layer.tell(origin, PiecesHere(first, pieces, True))

    def on_pieces_ask(self, ask: PiecesAsk, origin: Address) -> None:
        message, (last, pieces) = self.incoming.get((origin, True)), self.whole.get(origin, (0, 0))
        if ask.message == last:
            self.layer.tell(origin, PiecesHere(last, pieces, True))
        elif message is None or message.first != ask.message:
            self.layer.tell(origin, PiecesMissed(ask.message))
        else:
            self.layer.tell(origin, PiecesHere(ask.message, len(message.bodies), True))
