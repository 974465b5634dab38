"""The news of a replicated block: its output for the process that it lives in.  All members have the same news, and
each process picks out those for its own callers."""

from __future__ import annotations

import msgspec

from pygroups.core.address import Address

from .wire import BlockKey


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """A call of a member: identifies who waits, and who holds."""

    owner: Address
    call: int


class News(msgspec.Struct, frozen=True):
    """Base of all news.  `block` is the block that gives them."""

    block: BlockKey


class Answer(News, frozen=True):
    """The call `ticket` has its result."""

    ticket: Ticket
    value: object


class Ended(News, frozen=True):
    """`ticket` does not hold any more, although its owner has not released it."""

    ticket: Ticket
    reason: str


class Armed(News, frozen=True):
    """`key` is due `seconds` from now, unless its version has changed by then.  The coordinator sends the command that
    makes it due for all."""

    key: object
    version: int
    seconds: float


class Changed(News, frozen=True):
    """A key of a dict has another value; None: it is not there."""

    key: bytes
    old: bytes | None
    new: bytes | None


class Replaced(News, frozen=True):
    """The state of the block was replaced as a whole."""
