"""An interface that goes and comes back: the kernel forgets the memberships of its sockets, and pygroups joins again.
A question that cannot be sent is told.

Needs root, `ip` and `unshare`, as the tests with hosts do; the interface is in a network namespace of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.hosts import ENVIRONMENT
from tests.patience import patience

IN_A_NAMESPACE = """
import asyncio, subprocess, sys, time
from collections import Counter
from pygroups.core.address import Address
from pygroups.core.driver_events import Presence
from pygroups.core.limits import Config
from pygroups.drivers import multicast_membership
from pygroups.drivers.contacts import Contact
from pygroups.drivers.handshake import Handshake
from pygroups.drivers.hello import DiscoveryQuestion, padded
from pygroups.drivers.discovery.multicast import Multicast
from pygroups.drivers.rate_limited import RateLimitedLog
from pygroups.drivers.udp.udp import UdpNetwork
from pygroups.wire.frame import VERSION

multicast_membership.LOOK_SECONDS = 0.05
HERE, TO_ALL, ME = "10.79.0.1", Contact("239.77.1.9", 7001), Address("A", "0" * 16)
counts, heard = Counter(), 0

def ip(*words):
    subprocess.run(["ip", *words], check=True)

def plug():
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "far0")
    ip("address", "add", HERE + "/24", "dev", "eth0")
    ip("link", "set", "far0", "up")
    ip("link", "set", "eth0", "up")

class Said:
    lines = []
    def warning(self, text, *values):
        self.lines.append(text % values)

class Discovery:
    handshake, warn = Handshake(ME), RateLimitedLog(Said())
    def count(self, what):
        counts[what] += 1
    def asked(self, question, answer):
        global heard
        heard += 1
    def replied(self, reply):
        raise AssertionError
    def crashed(self, error):
        sys.exit(str(error))

async def discovery():
    there = Discovery()
    there.loop = asyncio.get_running_loop()
    multicast = Multicast(TO_ALL, HERE, there, insecure=True)
    multicast.open()
    question = padded(DiscoveryQuestion(VERSION, "g", b"12345678", Presence(ME, HERE + ":1", False, True)))
    return multicast, lambda: multicast.ask(question)

async def transport():
    network = UdpNetwork(ME, "g", Config(), bind=HERE + ":0", insecure=True, to_all=TO_ALL)
    network.happened = lambda event: None
    network.count = lambda what, by=1: counts.update({what: by})
    network.crashed = lambda error: sys.exit(str(error))
    await network.open()
    def arrived(datagram, place):
        global heard
        heard += 1
    network.arrived = arrived
    return network, lambda: network.datagrams.give([b"x"], tuple(TO_ALL))

async def hears(send, seconds):
    before, end = heard, time.monotonic() + seconds
    while heard == before:
        if time.monotonic() > end:
            sys.exit(f"nothing is heard: {counts}")
        send()
        await asyncio.sleep(0.05)

async def main():
    ip("link", "set", "lo", "up")
    plug()
    opened, send = await {"discovery": discovery, "transport": transport}[sys.argv[1]]()
    seconds = float(sys.argv[2])
    await hears(send, seconds)
    for _ in range(22):  # more than the memberships that a socket may have
        ip("link", "delete", "eth0")
        send()
        await asyncio.sleep(0)
        plug()
        await hears(send, seconds)
    assert counts["multicast addresses that were joined again"] == 22, counts
    told = "a datagram of discovery to 239.77.1.9:7001 cannot be sent"
    assert sys.argv[1] != "discovery" or Said.lines[0].startswith(told), Said.lines
    opened.close()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["discovery", "transport"])
def test_a_multicast_address_is_joined_again_when_the_interface_comes_back(which: str) -> None:
    script = [sys.executable, "-c", IN_A_NAMESPACE, which, str(patience(10))]
    done = subprocess.run(
        ["unshare", "--net", *script],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
        env=ENVIRONMENT,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
