"""The floor: frames of 64 KiB through one process that relays them to all, over TCP, and nothing else.

No numbers, no views, no repair, no windows but a count of own frames on their way: what total order costs when nothing
can go wrong.  Run it in the same minutes as total_order.py, so that the machine is the same: the ratio is the figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing as mp
import os
import socket
import statistics
import struct
import time
from multiprocessing.connection import Connection
from typing import Any

import common
import msgspec

LENGTH = struct.Struct(">BI")  # who wrote it, and how long it is
HEAD = struct.Struct(">BxxxI")
RUN_BYTES = 64 << 10
IN_FLIGHT = 16
WARM_SECONDS, COOL_SECONDS = 1.0, 0.5


class Frames(asyncio.BufferedProtocol):
    """Frames out of a connection; each is given to `take` with its writer."""

    def __init__(self, take: Any, connected: Any) -> None:
        self.take = take
        self.connected = connected
        self.buffer = memoryview(bytearray(256 << 10))
        self.filled = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connected(self)
        transport.set_write_buffer_limits(high=1 << 30)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer[self.filled :]

    def buffer_updated(self, size: int) -> None:
        self.filled += size
        begin = 0
        while self.filled - begin >= LENGTH.size:
            writer, length = LENGTH.unpack_from(self.buffer, begin)
            end = begin + LENGTH.size + length
            if end > self.filled:
                break
            self.take(writer, bytes(self.buffer[begin + LENGTH.size : end]))
            begin = end
        rest = self.filled - begin
        self.buffer[:rest] = self.buffer[begin : self.filled]
        self.filled = rest


class Member:
    """One process; number 0 relays."""

    def __init__(self, index: int, members: int, port: int, size: int) -> None:
        self.index, self.members, self.port, self.size = index, members, port, size
        self.peers: list[Frames] = []
        self.relay: Frames | None = None
        self.heads = bytearray()
        self.number = 0
        self.flying = 0
        self.room = asyncio.Event()
        self.room.set()
        self.unpack = msgspec.msgpack.Decoder(list[bytes]).decode
        self.pack = msgspec.msgpack.Encoder().encode

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        if self.index == 0:
            self.server = await loop.create_server(self._accepted, "127.0.0.1", self.port)
            while len(self.peers) < self.members - 1:
                await asyncio.sleep(0.01)
            return
        while True:
            try:
                _, self.relay = await loop.create_connection(lambda: Frames(self.deliver, id), "127.0.0.1", self.port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
            else:
                return

    def _accepted(self) -> Frames:
        return Frames(self.order, self.peers.append)

    def order(self, writer: int, body: bytes) -> None:
        frame = LENGTH.pack(writer, len(body)) + body
        for peer in self.peers:
            peer.transport.write(frame)
        self.deliver(writer, body)

    def deliver(self, writer: int, body: bytes) -> None:
        payloads = self.unpack(body)
        self.heads += b"".join([payload[: HEAD.size] for payload in payloads])
        if writer == self.index:
            self.flying -= 1
            self.room.set()

    async def flood(self, until: float) -> None:
        pad, count = bytes(self.size - HEAD.size), RUN_BYTES // (self.size + 5)
        while time.monotonic() < until:
            while self.flying >= IN_FLIGHT:
                self.room.clear()
                await self.room.wait()
            payloads = []
            for _ in range(count):
                payloads.append(HEAD.pack(self.index, self.number) + pad)
                self.number += 1
            body = self.pack(payloads)
            self.flying += 1
            if self.relay is None:
                self.order(0, body)
            else:
                self.relay.transport.write(LENGTH.pack(self.index, len(body)) + body)
            await asyncio.sleep(0)


async def one(index: int, members: int, port: int, size: int, seconds: float, result: Connection, ready: Any) -> None:
    member = Member(index, members, port, size)
    await member.connect()
    await asyncio.get_running_loop().run_in_executor(None, ready.wait)
    looks: list[tuple[float, float, int]] = []

    def look() -> None:
        looks.append((time.monotonic(), time.process_time(), len(member.heads) // HEAD.size))

    loop = asyncio.get_running_loop()
    loop.call_later(WARM_SECONDS, look)
    loop.call_later(WARM_SECONDS + seconds, look)
    await member.flood(time.monotonic() + WARM_SECONDS + seconds + COOL_SECONDS)
    while member.flying:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    result.send(looks)


def child(*arguments: Any) -> None:
    asyncio.run(one(*arguments))


def measured(members: int, size: int, seconds: float) -> dict[str, Any]:
    """Deliveries and CPU seconds of all processes between two instants."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    spawn = mp.get_context("spawn")
    pipes = [spawn.Pipe(False) for _ in range(members)]
    ready = spawn.Barrier(members)
    processes = [
        spawn.Process(target=child, args=(n, members, port, size, seconds, pipes[n][1], ready)) for n in range(members)
    ]
    for process in processes:
        process.start()
    looks = [receiver.recv() if receiver.poll(60) else [] for receiver, _ in pipes]
    for process in processes:
        process.join(10)
        process.kill()
    if not all(looks):
        raise RuntimeError("a member of the model has ended")
    deliveries = sum(last[2] - first[2] for first, last in looks)
    cpu = sum(last[1] - first[1] for first, last in looks)
    if not deliveries:
        raise RuntimeError("nothing was delivered between the two instants: this machine is too busy to measure")
    elapsed = statistics.mean(last[0] - first[0] for first, last in looks)
    return {
        "messages_per_s": round(deliveries / members / elapsed),
        "cpu_s_per_million_deliveries": round(cpu / deliveries * 1e6, 3),
        "cpu_share": round(cpu / elapsed / (os.cpu_count() or 1), 2),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=4)
    options.add_argument("--sizes", type=int, nargs="*", default=[100, 1_000])
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--repeat", type=int, default=3)
    chosen = options.parse_args()
    for size in chosen.sizes:
        result = common.Result("model")
        tries = [measured(chosen.members, size, chosen.seconds) for _ in range(chosen.repeat)]
        tries.sort(key=lambda one: float(one["cpu_s_per_million_deliveries"]))
        result.write(members=chosen.members, size=size, **tries[len(tries) // 2], tries=json.loads(json.dumps(tries)))


if __name__ == "__main__":
    main()
