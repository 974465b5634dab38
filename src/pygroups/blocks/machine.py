"""A machine is the replicated part of a block: a state that ordered commands and views alone change.

All members apply the same commands and views in the same order to the same machine, so all have the same state.
Therefore nothing but these, and the state, may decide here: no clock, no random number, no setting of one process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from typing import Any, ClassVar

import msgspec

from pygroups.core.address import Address

from .news import Answer, Armed, News, Ticket
from .wire import BlockKey, encode


class Tokens:
    """Numbers that grow, over all blocks: each is given once in the life of the group's state.

    A request brings the time at its sender, in microseconds since 1970, as a lower bound.  So the numbers also grow
    when all members have ended and a new group begins without a state, as far as the clocks of the machines are right.
    """

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last

    def reach(self, at_us: int) -> None:
        """The next number is at least `at_us`."""
        self.last = max(self.last, at_us - 1)


class Refusal(msgspec.Struct, frozen=True):
    """The answer to a call that does not fit the state; `text` says how to correct the call."""

    text: str


class Machine(ABC):
    """Base of the machines.  `news` is shared by all machines of a process, which takes the news out."""

    ops: ClassVar[Any]  # the type of the commands
    state: ClassVar[Any]  # the type of the saved state

    def __init__(self, key: BlockKey, tokens: Tokens, news: list[News]) -> None:
        self.key = key
        self.tokens = tokens
        self.news = news

    @abstractmethod
    def apply(self, ticket: Ticket, op: Any) -> None:
        """Handle a command of the member `ticket.owner`."""

    def on_view(self, members: Container[Address]) -> None:
        """Forget the members that are not in the view."""
        return

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether a new machine has the same state, so that this one can be forgotten."""

    @abstractmethod
    def saved(self) -> object:
        """The state, as a value of the type `state`."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Begin with a saved state."""

    # -- deadlines

    def arm(self, key: object, version: int, seconds: float) -> None:
        """Make `key` due after `seconds`; 0: never."""
        if seconds:
            self.news.append(Armed(self.key, key, version, seconds))

    def rearm(self) -> Iterable[tuple[object, int, float]]:
        """All keys that become due: key, version and seconds."""
        return ()

    def is_due(self, key: Any, version: int) -> bool:
        """Whether `key` still has this version."""
        return False

    def due_op(self, due: list[tuple[Any, int]]) -> object:
        """The command with which these keys become due."""
        raise NotImplementedError

    # -- output

    def answer(self, ticket: Ticket, value: object) -> None:
        self.news.append(Answer(self.key, ticket, value))


def decoder_of(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """A decoder for the commands or the state of a machine."""
    return msgspec.msgpack.Decoder(kind)


def encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
