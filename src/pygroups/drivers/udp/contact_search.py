"""The search over UDP for the process without a group that listens at a place: questions until one is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pygroups.core.address import Address
from pygroups.core.errors import NotSent
from pygroups.core.limits import SECOND, Config

from ..contacts import Contact
from ..handshake import Handshake
from ..hello import Welcome
from ..no_process import no_process_at
from ..sockets import SocketAddress
from .peer import ASK_PAUSE_MAX, ASK_PAUSE_MIN, REFUSALS


class ContactSearchNetwork(Protocol):
    """The part of the network that the search uses."""

    config: Config
    loop: asyncio.AbstractEventLoop
    lookups: dict[Contact, asyncio.Task[None]]
    handshake: Handshake

    def places_of(self, contact: Contact) -> list[SocketAddress]: ...


class ContactSearch:
    """Questions to one place."""

    def __init__(self, network: ContactSearchNetwork, contact: Contact) -> None:
        self.network = network
        self.contact = contact
        self.refusals: dict[SocketAddress, int] = {}  # of each address of the contact
        self.found: asyncio.Future[Address] = network.loop.create_future()

    async def peer(self, ask: Callable[[SocketAddress], None]) -> Address:
        """The process that answers.  Raises NotSent if none does within `connect_timeout`."""
        asking = self.network.loop.create_task(self._ask(ask))
        try:
            async with asyncio.timeout(self.network.config.connect_timeout / SECOND):
                return await self.found
        except TimeoutError:
            raise no_process_at(self.contact, refused=False, sealed=self.network.handshake.refusals.objects) from None
        finally:
            asking.cancel()

    async def _ask(self, ask: Callable[[SocketAddress], None]) -> None:
        pause = ASK_PAUSE_MIN
        while True:
            for place in self.network.places_of(self.contact):
                self.refusals.setdefault(place, 0)
                ask(place)
            await asyncio.sleep(pause / SECOND)
            pause = min(2 * pause, ASK_PAUSE_MAX)

    def answered(self, welcome: Welcome) -> None:
        """The process that listens there has answered."""
        if self.found.done():
            return
        if welcome.listener is not None and not welcome.refusal:
            self.found.set_result(welcome.listener)
        elif len(self.refusals) == 1:
            self._give_up(no_process_at(self.contact, refused=True))

    def refused(self, place: SocketAddress) -> None:
        """The host reports that no process listens at `place`."""
        if place not in self.refusals:
            return
        self.refusals[place] += 1
        if min(self.refusals.values()) >= REFUSALS:
            self._give_up(no_process_at(self.contact, refused=True))

    def _give_up(self, error: NotSent) -> None:
        if not self.found.done():
            self.found.set_exception(error)
