"""The part of a member's network that TCP and UDP share: its addresses, the contacts of peers, and the end.

Note: docs/drivers.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.events import Event
from pygroups.core.limits import Config
from pygroups.core.turn import Source
from pygroups.wire.frame import VERSION

from .book import Book, Reach
from .contacts import Contact, checked_bind
from .handshake import Handshake
from .hello import NO_GROUP, Hello, packed, padded
from .rate_limited import RateLimitedLog


class Network:
    """The frames of one member.  `receive` is called with each frame that arrives, and returns whether the frame is
    authentic.  `happened` is called with the driver's events."""

    lossless: bool  # the network reports each loss
    logger: ClassVar[logging.Logger]

    def __init__(
        self,
        me: Address,
        group: str,
        config: Config,
        *,
        bind: str,
        advertise: str | None,
        insecure: bool,
        handshake: Handshake | None,
    ) -> None:
        self.me = me
        self.group = group
        self.handshake = handshake or Handshake(me)
        self.config = config
        self.bind = checked_bind(bind, insecure=insecure)
        self.advertise = advertise
        self.contact = ""  # the address at which other members reach this one; known after open()
        self.receive: Callable[[memoryview], bool]
        self.happened: Callable[[Event], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]
        self.loop: asyncio.AbstractEventLoop
        self.warn = RateLimitedLog(self.logger)
        self.book = Book(me, config.contacts_max, insecure=insecure, count=lambda what: self.count(what))

    def waiting_bytes(self) -> int:
        """The bytes that the kernel has not accepted yet, for all peers."""
        raise NotImplementedError

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        """Store contacts from `source`.  The contacts of the view name its members."""
        raise NotImplementedError

    async def drain(self, seconds: float) -> None:
        """Wait until the kernel has accepted everything, at most `seconds`."""
        end = self.loop.time() + seconds
        while self.waiting_bytes() and self.loop.time() < end:
            await asyncio.sleep(0.001)

    def knows(self, peer: Address) -> bool:
        """Whether some contact of `peer` is known."""
        return peer == self.me or self.book.knows(peer)

    def reaches(self, peer: Address) -> list[Reach]:
        """The contacts at which `peer` may listen."""
        return self.book.reaches(peer)

    def hello(self, peer: Address | None, about: bytes = b"", place: tuple[str, int] | None = None) -> bytes:
        """A hello for `peer`, as it travels.  Each hello is sent once; over UDP only to `place`."""
        hello = Hello(VERSION, self.group, self.me, self.contact, peer)
        return self.handshake.closed(packed(padded(hello)), about, place)

    def unopened(self, body: bytes | memoryview, where: str) -> bytes:
        """The refusal of a message from the host `where` that this member cannot open; b"" if it sends none."""
        self.count("messages that could not be opened")
        self.warn.warning(f"unopened {where}", "a message from %s cannot be opened: another secret, or none", where)
        return self.handshake.refusal(body)

    def answered_at(self, peer: Address, contact: Contact) -> None:
        """`peer` has answered there.  Without a group no view names contacts, so this contact becomes a trusted one."""
        if self.group.startswith(NO_GROUP):
            self.learn({peer: str(contact)}, Source.DIRECTORY)
