"""The CPU that a garbage datagram costs a UDP member with a secret: one that is read, and one of a flood.

CPU time of the reading thread, which does not depend on the load of the machine; the best of several tries.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time

import common  # first: it makes this tree the one that is measured

from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.drivers.handshake import Handshake
from pygroups.drivers.udp.strangers import Strangers
from pygroups.drivers.udp.udp import UdpNetwork
from pygroups.layers.profiles import PROFILES, build_stack
from pygroups.wire.codec import Codec
from pygroups.wire.frame import OPEN_PART, VERSION
from pygroups.wire.ring import KEY_NEW, Secret, ring_of_bytes
from pygroups.wire.seal import FRAMES, Sealed

AT_ONCE = 200  # datagrams; they fit into the buffer of the socket
TRIES = 40
ME = Address("B", "2" * 16)


def garbage() -> dict[str, list[bytes]]:
    """Datagrams of each kind."""
    forged = [OPEN_PART.pack(b"P", VERSION, 1, 0, os.urandom(8), number) + os.urandom(200) for number in range(AT_ONCE)]
    noise, part = b"\x93" + os.urandom(200), b"S" + os.urandom(300)
    return {"forged": forged, "noise": [noise] * AT_ONCE, "part": [part] * AT_ONCE}


async def cost(data: list[bytes], *, known: bool) -> float:
    """Microseconds of CPU for each datagram.  `known`: they come from a place that authentic frames came from."""
    secret = Secret(ring_of_bytes(os.urandom(KEY_NEW)))
    env = Env(ME, 0, random.Random(1), Config(), journaling=True)
    stack = build_stack(PROFILES["total"], env, lambda heads: Codec("g", heads, seal=Sealed(secret, FRAMES, "g")))
    network = UdpNetwork(ME, "g", Config(), handshake=Handshake(ME, secret))
    network.receive = lambda frame: stack.receive(frame, 1)
    network.happened = network.count = lambda *_: None
    await network.open()
    sock, best = network.datagrams.sock, float("inf")
    assert sock is not None
    network.loop.remove_reader(sock)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", 0))
        for _ in range(TRIES):
            for one in data:
                sender.sendto(one, sock.getsockname())
            if known:
                network.strangers = Strangers(8, lambda *_: None)
                network.strangers.heard(sender.getsockname())
            begun = time.thread_time()
            network.datagrams._read(sock)
            best = min(best, time.thread_time() - begun)
            env.drops.clear()
    network.close()
    return round(best / len(data) * 1e6, 2)


def main() -> None:
    logging.disable(logging.CRITICAL)
    result = common.Result("garbage")
    rows = {
        kind: {"read_us": asyncio.run(cost(data, known=True)), "dropped_us": asyncio.run(cost(data, known=False))}
        for kind, data in garbage().items()
    }
    result.write(datagrams=rows)


if __name__ == "__main__":
    main()
