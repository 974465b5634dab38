"""During a flood few datagrams of unknown places are read, and all of known ones; afterwards all are read again."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter

from pygroups.core.limits import Config
from pygroups.drivers.handshake import Handshake
from pygroups.drivers.udp.strangers import READ_ONE_OF, STRANGERS_PER_SECOND, Strangers
from pygroups.drivers.udp.udp import UdpNetwork
from pygroups.wire.ring import Secret, ring_of_bytes
from tests.drivers.tiny_stack import A, B

FRIEND, STRANGER = ("127.0.0.1", 1), ("127.0.0.1", 2)


def test_of_a_flood_one_in_sixteen_is_read_and_a_known_place_is_always_heard() -> None:
    counts: Counter[str] = Counter()
    strangers = Strangers(8, lambda what, by: counts.update({what: by}))
    strangers.heard(FRIEND)
    read = sum(strangers.admit(STRANGER, 5.0) for _ in range(10 * STRANGERS_PER_SECOND))
    assert read == STRANGERS_PER_SECOND + 9 * STRANGERS_PER_SECOND // READ_ONE_OF
    assert counts.total() == 10 * STRANGERS_PER_SECOND - read
    assert all(strangers.admit(FRIEND, 5.0) for _ in range(100))


def test_after_a_flood_strangers_are_read_again() -> None:
    strangers = Strangers(8, lambda what, by: None)
    for _ in range(2 * STRANGERS_PER_SECOND):
        strangers.admit(STRANGER, 5.0)
    assert sum(strangers.admit(STRANGER, 5.5) for _ in range(100)) == 100
    assert sum(strangers.admit(STRANGER, 9.0) for _ in range(STRANGERS_PER_SECOND)) == STRANGERS_PER_SECOND


def test_datagrams_that_come_at_once_count_one_by_one() -> None:
    strangers = Strangers(8, lambda what, by: None)
    assert sum(64 * strangers.admit(STRANGER, 5.0, 64) for _ in range(160)) <= 2 * STRANGERS_PER_SECOND


def test_known_places_are_few() -> None:
    strangers = Strangers(8, lambda what, by: None)
    for port in range(20):
        strangers.heard(("127.0.0.1", port))
    assert list(strangers.known) == [("127.0.0.1", port) for port in range(12, 20)]


def test_a_member_reads_little_of_a_flood_and_all_without_a_secret() -> None:
    async def read(secret: Secret | None) -> int:
        network, arrived = UdpNetwork(B, "g", Config(), handshake=Handshake(A, secret)), []
        network.count = network.happened = lambda *_: None
        network.arrived = lambda datagram, place: arrived.append(place)  # type: ignore[method-assign]
        await network.open()
        assert network.datagrams.sock is not None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
            for _ in range(40):
                for _ in range(100):
                    flood.sendto(b"garbage", network.datagrams.sock.getsockname())
                network.datagrams._read(network.datagrams.sock)
        network.close()
        return len(arrived)

    assert asyncio.run(read(None)) == 4_000
    assert asyncio.run(read(Secret(ring_of_bytes(os.urandom(32))))) < 3_000
