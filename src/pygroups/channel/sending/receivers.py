"""The receivers of a channel without a group: processes, by the places where they listen ("host:port")."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.errors import Timeout, WouldBlock
from pygroups.core.tables import Tables

from .demands import Payload, Until
from .outbox import Outbox


class KnownReceivers:
    """The processes that answered, by the places where they listen.  `meet` asks the process at a place.

    A process stays known until a connection to the process ends, because another process may listen there afterwards.
    At most `most` places are remembered.
    """

    tables: ClassVar[Tables] = {
        "_known": "contacts",
        "_searches": "contacts",
    }

    def __init__(self, meet: Callable[[str], Awaitable[Address]], most: int) -> None:
        self._meet = meet
        self._most = most
        self._known: dict[str, Address] = {}
        self._searches: dict[str, asyncio.Task[Address]] = {}

    async def send(
        self, sending: Outbox, payload: Payload, place: str, until: Until | None, timeout: float | None
    ) -> int:
        """Send to the process at `place`, when the address of that process is known.  Returns the message's number."""
        data = sending.checked_for_place(payload, until, timeout)
        begun = asyncio.get_running_loop().time()
        to = self._known.get(place)
        if to is None:
            try:
                async with asyncio.timeout(timeout):
                    to = await asyncio.shield(self._search(place))
            except TimeoutError:
                raise Timeout(f"the message was not sent: {place} gave no answer within {timeout} s") from None
        if timeout is not None:
            timeout = max(0.0, timeout - (asyncio.get_running_loop().time() - begun))
        return await sending.send(data, to, until, timeout)

    def send_nowait(self, sending: Outbox, payload: Payload, place: str) -> int:
        """Send to the process at `place`, or raise WouldBlock; the process may be known at the next call."""
        data = sending.checked_for_place(payload, None, None)
        to = self._known.get(place)
        if to is None:
            self._search(place).add_done_callback(_look_at)
            raise WouldBlock(
                f"the message was not sent: the process at {place} has not answered yet; await send(), or try again "
                "later"
            )
        return sending.send_nowait(data, to)

    def _search(self, place: str) -> asyncio.Task[Address]:
        """The search for the process at `place`; all senders share one."""
        search = self._searches.get(place)
        if search is None:
            if len(self._searches) >= self._most:
                raise WouldBlock(
                    "the message was not sent: this channel already waits for answers from too many places; "
                    "try again when some of these sends have returned"
                )
            loop = asyncio.get_running_loop()
            search = self._searches[place] = loop.create_task(self._found(place), name=f"pygroups looks for {place}")
            search.add_done_callback(partial(self._searched, place))
        return search

    async def _found(self, place: str) -> Address:
        return await self._meet(place)

    def _searched(self, place: str, search: asyncio.Task[Address]) -> None:
        del self._searches[place]
        if not search.cancelled() and search.exception() is None:
            self._known[place] = search.result()
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]

    def doubt(self, peer: Address) -> None:
        """A connection with `peer` has ended: forget the places of `peer`, so that the next send asks there again."""
        for place in [place for place, known in self._known.items() if known == peer]:
            del self._known[place]

    def close(self) -> None:
        """End the searches."""
        for search in list(self._searches.values()):
            search.cancel()


def _look_at(search: asyncio.Task[Address]) -> None:
    """No call waits for the outcome of this search: the next call finds the outcome, or searches anew."""
    if not search.cancelled():
        search.exception()


class Reachable:
    """The processes that a channel without a group can send to, as a container."""

    def __init__(self, knows: Callable[[Address], bool]) -> None:
        self._knows = knows

    def __contains__(self, peer: object) -> bool:
        return isinstance(peer, Address) and self._knows(peer)
