"""All packets of some ports of this machine, as an attacker on the path sees them, and their replay."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

import pytest

ALL: Final = socket.ntohs(0x0003) if hasattr(socket, "AF_PACKET") else 0
OUTGOING: Final = 4  # on loopback each packet is seen twice: as it leaves, and as it arrives
TCP, UDP = 6, 17


class Packet(NamedTuple):
    """The content of a packet of TCP or UDP."""

    protocol: int
    source: int  # ports
    target: int
    sequence: int
    data: bytes


class WireTap:
    """The packets on loopback from or to one of `ports`, while the `with` block runs."""

    def __init__(self, ports: Iterable[int]) -> None:
        self.ports = frozenset(ports)
        self.packets: list[Packet] = []
        try:
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, ALL)
        except PermissionError:
            pytest.skip("a raw socket needs root")
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.sock.bind(("lo", 0))
        self.sock.settimeout(0.2)
        self.over = False
        self.thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.thread.join()
        self.sock.close()

    def _read(self) -> None:
        while True:
            try:
                data, where = self.sock.recvfrom(1 << 17)
            except TimeoutError:
                if self.over:
                    return
                continue
            packet = _parsed(data) if where[2] != OUTGOING else None
            if packet is not None and packet.data and not self.ports.isdisjoint((packet.source, packet.target)):
                self.packets.append(packet)

    def datagrams(self, port: int) -> list[bytes]:
        """The datagrams to `port`."""
        return [packet.data for packet in self.packets if packet.protocol == UDP and packet.target == port]

    def streams(self, port: int) -> list[bytes]:
        """The bytes of each connection to `port`, from the side that dialed."""
        found: dict[int, dict[int, bytes]] = defaultdict(dict)
        for packet in self.packets:
            if packet.protocol == TCP and packet.target == port:
                found[packet.source].setdefault(packet.sequence, packet.data)
        return [b"".join(data for _, data in sorted(pieces.items())) for pieces in found.values()]


def _parsed(frame: bytes) -> Packet | None:
    packet = frame[14:]  # behind the header of the link
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    protocol, size = packet[9], 4 * (packet[0] & 15)
    content = packet[size : struct.unpack_from(">H", packet, 2)[0] or None]
    if protocol == UDP:
        source, target = struct.unpack_from(">HH", content)
        return Packet(protocol, source, target, 0, content[8:])
    if protocol == TCP:
        source, target, sequence = struct.unpack_from(">HHI", content)
        return Packet(protocol, source, target, sequence, content[4 * (content[12] >> 4) :])
    return None


async def replay(tap: WireTap, port: int) -> int:
    """Send everything that was recorded to `port` there again.  Returns how much that was."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for number, datagram in enumerate(datagrams := tap.datagrams(port)):
            sock.sendto(datagram, ("127.0.0.1", port))
            if number % 16 == 15:
                await asyncio.sleep(0.001)  # the socket's buffer must not overflow
    streams = tap.streams(port)
    await asyncio.gather(*[_stream_again(stream, port) for stream in streams])
    return len(datagrams) + len(streams)


async def _stream_again(stream: bytes, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(stream)
    try:
        await writer.drain()
        await reader.read()  # to the end, which shows that all was read
    except ConnectionError:
        pass
    writer.close()
