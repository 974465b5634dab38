"""Thousands of connections of strangers: descriptors and memory stay bounded, and members are heard."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pygroups.drivers.handshake import Handshake
from pygroups.drivers.hello import LENGTH
from pygroups.wire.ring import Secret, ring_of_bytes
from tests.drivers.networks import nodes, run, until
from tests.drivers.tiny_stack import A, B
from tests.wire.test_seal import KEY

OPEN_AT_ONCE = 300  # connections that the attacker holds
STRANGERS = 64
GROWTH = 8 << 20  # bytes, in the second half
BEGINNINGS = (b"", b"\0", LENGTH.pack(36) + b"P" + bytes(35), LENGTH.pack(1 << 30), b"GET / HTTP/1.1\r\n\r\n")
"""What the attacker sends: nothing, a part of a length, noise, the length of a large message, another protocol."""


class Attacker(threading.Thread):
    """Opens so many connections to a port, and holds the last OPEN_AT_ONCE of them."""

    def __init__(self, contact: str, count: int) -> None:
        super().__init__(daemon=True)
        host, _, port = contact.rpartition(":")
        self.place = host, int(port)
        self.count = count
        self.opened = 0
        self.half_way, self.measured = threading.Event(), threading.Event()

    def run(self) -> None:
        held: list[socket.socket] = []
        for number in range(self.count):
            sock = socket.socket()
            sock.settimeout(60)
            sock.connect(self.place)
            held.append(sock)
            with suppress(OSError):  # the member has closed the connection
                sock.send(BEGINNINGS[number % len(BEGINNINGS)])
            self.opened += 1
            if len(held) > OPEN_AT_ONCE:
                held.pop(0).close()
            if self.opened == self.count // 2:
                self.half_way.set()
                self.measured.wait(60)
        for sock in held:
            sock.close()


def open_sockets() -> int:
    """The sockets of this process."""

    def targets() -> Iterator[str]:
        for fd in os.listdir("/proc/self/fd"):
            try:
                yield os.readlink(f"/proc/self/fd/{fd}")
            except OSError:  # closed meanwhile
                continue

    return sum(target.startswith("socket:") for target in targets())


def memory() -> int:
    """The bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def attacked(count: int, strangers_max: int = STRANGERS) -> int:
    """The most connections that the member had meanwhile, which admits so many strangers."""

    async def main() -> int:
        async with nodes(A, B) as (a, b):
            for node in (a, b):
                handshake = Handshake(node.net.me, Secret(ring_of_bytes(KEY)))
                node.net.handshake = node.net.door.handshake = handshake
            b.net.door.strangers_max = strangers_max
            a.net.send([((B,), [b"before"])])
            await until(lambda: b.frames == [b"before"])
            most, sent, before, half = 0, 1, open_sockets(), 0
            attacker = Attacker(b.net.contact, count)
            attacker.start()
            while attacker.is_alive():
                a.net.send([((B,), [b"%d" % sent])])
                sent += 1
                await until(lambda sent=sent: len(b.frames) == sent)
                most = max(most, len(b.net.door.strangers) + len(b.net.door.incoming))
                assert b.net.door.kept_bytes < 1 << 20
                if attacker.half_way.is_set() and not half:
                    half = memory()
                    attacker.measured.set()
                await asyncio.sleep(0.01)
            assert memory() - half < GROWTH
            assert attacker.opened == count
            await until(lambda: not b.net.door.strangers)
            assert open_sockets() == before
            assert b.frames == [b"before", *[b"%d" % number for number in range(1, sent)]]
            assert list(b.net.door.incoming) == [A]
            return most

    found: list[int] = []

    async def story() -> None:
        found.append(await main())

    run(story)
    return found[0]


def test_a_thousand_connections_leave_descriptors_bounded_and_members_in_order() -> None:
    assert 10 < attacked(1_000) <= STRANGERS + 2


@pytest.mark.long
def test_ten_thousand_connections_leave_descriptors_bounded_and_members_in_order() -> None:
    assert 10 < attacked(10_000) <= STRANGERS + 2


def test_a_member_without_a_limit_of_strangers_is_found() -> None:
    assert attacked(1_000, 1_000) > STRANGERS + 2
