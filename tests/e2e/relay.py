"""A bad network between hosts: a process that carries their packets over TUN devices, and loses, delays, reorders and
repeats them as it is told.

    python -m tests.e2e.relay --seed 1 --loss 10 --repeat 1 --delay 20 --jitter 10 PID:10.78.0.1 PID:10.78.0.2

Each PID is a process in a network namespace of its own, which gets a device with that address.  Percentages are of
packets, times are in milliseconds: a packet takes `delay` plus or minus up to `jitter`, so that packets overtake each
other.  The same seed meets the same packets with the same faults.  The relay prints "ready", and at the end of its
input what it did, as JSON.
"""

from __future__ import annotations

import argparse
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import Final

from tests.patience import patience

TUNSETIFF: Final = 0x400454CA
IFF_TUN: Final = 0x0001
IFF_NO_PI: Final = 0x1000
PACKET_MAX: Final = 65_535
READS_AT_ONCE: Final = 64
MTU: Final = 1_500
QUEUE: Final = 10_000  # packets that a device keeps for the relay
PATH: Final = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def device(number: int, pid: int, address: str) -> int:
    """The open file of a new TUN device that the namespace of `pid` has under `address`."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"relay{os.getpid()}n{number}"[:15]
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    _ip("ip", "link", "set", name, "netns", str(pid))
    inside = ("nsenter", f"--net=/proc/{pid}/ns/net", "--", "ip")
    _ip(*inside, "link", "set", name, "name", "tun0", "mtu", str(MTU), "txqueuelen", str(QUEUE))
    _ip(*inside, "address", "add", f"{address}/24", "dev", "tun0")
    _ip(*inside, "link", "set", "tun0", "up")
    _ip(*inside, "route", "add", "224.0.0.0/4", "dev", "tun0")
    return file


def _ip(*command: str) -> None:
    subprocess.run(command, check=True, timeout=patience(20), env=os.environ | {"PATH": PATH})


class Relay:
    """Carries packets between devices; `faults` are percentages and milliseconds, see the module."""

    def __init__(self, files: dict[bytes, int], faults: argparse.Namespace) -> None:
        self.files = files
        self.faults = faults
        self.random = random.Random(faults.seed)
        self.late: list[tuple[float, int, int, bytes]] = []  # when, in which order, to which device, the packet
        self.counts = Counter[str]()

    def run(self, stop: int) -> None:
        """Carry packets until the file `stop` has something to read, or has ended."""
        while True:
            pause = max(0.0, self.late[0][0] - time.monotonic()) if self.late else None
            readable, _, _ = select.select([stop, *self.files.values()], [], [], pause)
            for file in readable:
                if file == stop:
                    return
                self._read(file)
            self._deliver(time.monotonic())

    def _read(self, file: int) -> None:
        for _ in range(READS_AT_ONCE):
            try:
                packet = os.read(file, PACKET_MAX)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:
                continue  # IPv6 looks for neighbors that nobody asked for
            self.counts["in"] += 1
            for to in self._receivers(packet[16:20], file):
                self._carry(packet, to)

    def _receivers(self, dest: bytes, src: int) -> list[int]:
        if IPv4Address(dest).is_multicast:
            return [file for file in self.files.values() if file != src]
        return [self.files[dest]] if dest in self.files else []

    def _carry(self, packet: bytes, to: int) -> None:
        faults, chance = self.faults, self.random.random
        if 100 * chance() < faults.loss:
            self.counts["lost"] += 1
            return
        copies = 1
        if 100 * chance() < faults.repeat:
            self.counts["repeated"] += 1
            copies = 2
        for _ in range(copies):
            delay = faults.delay + faults.jitter * (2 * chance() - 1)
            when = time.monotonic() + delay / 1_000 if delay else 0.0
            self.counts["carried"] += 1
            heapq.heappush(self.late, (when, self.counts["carried"], to, packet))

    def _deliver(self, now: float) -> None:
        while self.late and self.late[0][0] <= now:
            _, _, to, packet = heapq.heappop(self.late)
            try:
                os.write(to, packet)
            except BlockingIOError:
                self.counts["dropped by the device"] += 1
            except OSError:
                self.counts["dropped: the host has ended"] += 1


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    for name in ("seed", "loss", "repeat", "delay", "jitter"):
        parser.add_argument(f"--{name}", type=float if name != "seed" else int, default=0)
    parser.add_argument("hosts", nargs="+")
    faults = parser.parse_args(arguments)
    files = {}
    for number, host in enumerate(faults.hosts):
        pid, _, address = host.partition(":")
        files[IPv4Address(address).packed] = device(number, int(pid), address)
    relay = Relay(files, faults)
    print("ready", flush=True)
    relay.run(sys.stdin.fileno())
    print(json.dumps(relay.counts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
