"""Networks of some members in one event loop, and connections that nobody of them has made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pygroups.core.address import Address
from pygroups.core.driver_events import Lost
from pygroups.core.events import Event
from pygroups.core.limits import Config
from pygroups.core.turn import Source
from pygroups.drivers.hello import LENGTH, Hello, Welcome, decoded, encoded
from pygroups.drivers.tcp.tcp import TcpNetwork
from pygroups.wire.frame import VERSION
from tests.patience import patience

A_LISTENER = """
import asyncio, sys
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.drivers.tcp.tcp import TcpNetwork
from pygroups.drivers.udp.udp import UdpNetwork

async def main():
    kind = UdpNetwork if sys.argv[3:] == ["udp"] else TcpNetwork
    network = kind(Address(sys.argv[1], sys.argv[2]), "g", Config())
    network.receive = lambda frame: True
    network.happened = lambda event: None
    network.count = lambda what, by=1: None
    network.crashed = lambda error: sys.exit(str(error))
    await network.open()
    print(network.contact, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


class Node:
    """A network, and what it was told."""

    def __init__(self, me: Address, group: str, **config: Any) -> None:
        self._watch(TcpNetwork(me, group, Config(**config)))

    def _watch(self, network: Any) -> None:
        self.net = network
        self.frames: list[bytes] = []
        self.events: list[Event] = []  # other than losses
        self.losses: list[Address] = []
        self.counts: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self.net.receive = self._received
        self.net.happened = self._happened
        self.net.count = lambda what, by=1: self.counts.update({what: by})
        self.net.crashed = self.errors.append

    def _received(self, frame: memoryview) -> bool:
        self.frames.append(bytes(frame))
        return True

    def _happened(self, event: Event) -> None:
        if isinstance(event, Lost):
            self.losses.append(event.peer)
        else:
            self.events.append(event)


@asynccontextmanager
async def nodes(
    *addresses: Address, group: str = "g", kind: type[Node] = Node, **options: Any
) -> AsyncIterator[list[Any]]:
    """Networks that know of each other, and have had nothing to do with each other yet."""
    them = [kind(address, group, **options) for address in addresses]
    for node in them:
        await node.net.open()
    for node in them:
        node.net.learn({other.net.me: other.net.contact for other in them}, Source.VIEW)
    try:
        yield them
        assert [node.errors for node in them] == [[] for _ in them]
    finally:
        for node in them:
            node.net.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(patience(10)):
        while not condition():
            await asyncio.sleep(0.001)


def run(main: Callable[[], Any]) -> None:
    asyncio.run(main())


async def dialed(node: Node) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = node.net.contact.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def greeted(node: Node, name: Address, contact: str = "127.0.0.1:9", group: str = "g") -> asyncio.StreamWriter:
    """A connection to `node` that says it is `name`, and is welcome."""
    reader, writer = await dialed(node)
    writer.write(encoded(Hello(VERSION, group, name, contact, node.net.me)))
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    assert decoded(await reader.readexactly(length), Welcome).listener == node.net.me
    return writer
