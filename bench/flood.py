"""A group with a secret under a flood of strangers: connections that say nothing or nonsense, and garbage datagrams.

The same load without and with the flood, in turn; what was delivered is judged as in total_order.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import resource
import secrets
import socket
import statistics
import sys
import time
from multiprocessing import get_context
from typing import Any

import common  # first: it makes this tree the one that is measured
import total_order

from pygroups.wire.frame import OPEN_PART, VERSION
from pygroups.wire.ring import KEY_NEW, line_of


def flooded(ports: list[int], transport: str, connections: int, rate: int, until: float, came: Any) -> None:
    """Flood these ports until this time, in a process of its own.  `came` gets what came about: connections that were
    opened, or datagrams, a second."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    begun = time.monotonic()
    count = _connect(ports, connections, until) if transport == "tcp" else _send(ports, rate, until)
    came.value = int(count / (time.monotonic() - begun))


def _connect(ports: list[int], connections: int, until: float) -> int:
    """Keep so many connections open, or being opened: half of them say nothing, half nonsense."""
    open_ones: list[socket.socket] = []
    number = 0
    while time.monotonic() < until:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", ports[number % len(ports)]))
        open_ones.append(sock)
        number += 1
        if number % 2 and number > 50:
            with contextlib.suppress(OSError):
                open_ones[-50].send((40).to_bytes(4, "big") + b"P" + os.urandom(39))
        if len(open_ones) >= connections:
            open_ones.pop(0).close()
        if number % 20 == 0:
            time.sleep(0.01)
    return number


def _send(ports: list[int], rate: int, until: float) -> int:
    """Send `rate` datagrams a second: noise, forged frames, questions and parts."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    kinds = [os.urandom(200), b"Q" + os.urandom(150), b"F" + b"P" + os.urandom(450), b"S" + os.urandom(300)]
    begun, sent = time.monotonic(), 0
    while (now := time.monotonic()) < until:
        for _ in range(min(500, int((now - begun) * rate) - sent)):
            data = (
                OPEN_PART.pack(b"P", VERSION, 1, 1, os.urandom(8), sent) + kinds[0]
                if sent % 2
                else kinds[sent // 2 % 4]
            )
            sock.sendto(data, ("127.0.0.1", random.choice(ports)))
            sent += 1
        time.sleep(0.002)
    return sent


class Bound(total_order.Group):
    """A group whose members listen at known ports."""

    async def start(self, index: int, **more: Any) -> total_order.Member:
        return await super().start(index, **more, bind=f"127.0.0.1:{self.ports[index]}")

    def __init__(self, ports: list[int], **options: Any) -> None:
        super().__init__(len(ports), "batches", **options)
        self.ports = ports


async def throughput(options: argparse.Namespace, transport: str, *, flood: bool) -> dict[str, Any]:
    """What the group delivers between two instants, and that nothing is missing."""
    with_ports = [socket.socket() for _ in range(options.members)]
    for sock in with_ports:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in with_ports]
    for sock in with_ports:
        sock.close()
    secret = line_of(1, secrets.token_bytes(KEY_NEW))
    async with Bound(ports, secret=secret, transport=transport, config={}, profile="total") as group:
        first = time.monotonic() + 2.0
        last = first + options.seconds
        came = get_context("fork").Value("Q", 0)
        arguments = (ports, transport, options.connections, options.rate, last, came)
        process = get_context("fork").Process(target=flooded, args=arguments, daemon=True)
        if flood:
            process.start()
        sent = await group.all_do("flood", size=options.size, until=last + 0.5, look_at=[first, last])
        total = sum(answer["accepted"] for answer in sent)
        await group.all_do("wait", count=total, patience=60.0)
        reports = await group.all_do("report")
        views = (await group.members[0].do("view"))["members"]
        if flood:
            process.join()
    total_order.verify(reports, total)
    if len(views) != options.members:
        raise RuntimeError(f"only {views} are left")
    return total_order.between(reports, 0.0) | {"came_per_s": came.value}


async def run(options: argparse.Namespace) -> None:
    for transport in options.transports:
        result = common.Result("flood")
        tries: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for _ in range(options.repeat):
            for flood, found in tries.items():
                found.append(await throughput(options, transport, flood=flood))
        cpu = {
            flood: statistics.median([one["cpu_s_per_million_deliveries"] for one in found])
            for flood, found in tries.items()
        }
        rates = {flood: statistics.median([one["messages_per_s"] for one in found]) for flood, found in tries.items()}
        result.write(
            transport=transport,
            members=options.members,
            size=options.size,
            connections=options.connections if transport == "tcp" else 0,
            datagrams_per_s=options.rate if transport == "udp" else 0,
            came_per_s=statistics.median([one["came_per_s"] for one in tries[True]]),
            messages_per_s={"quiet": rates[False], "flooded": rates[True]},
            cpu_s_per_million_deliveries={"quiet": cpu[False], "flooded": cpu[True]},
            ratio=round(rates[True] / rates[False], 2),
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=3)
    options.add_argument("--size", type=int, default=1_000)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--connections", type=int, default=2_000)
    options.add_argument("--rate", type=int, default=50_000, help="datagrams a second, to all members together")
    options.add_argument("--transports", nargs="*", choices=["tcp", "udp"], default=["tcp", "udp"])
    asyncio.run(run(options.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
