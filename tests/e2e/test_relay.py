"""The relay of the tests does what it is told, and nothing else."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.hosts import Hosts, bad_network

pytestmark = pytest.mark.slow
COUNT = 10_000

SENDER = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[2])):
    sock.sendto(b"%06d" % number + bytes(200), (sys.argv[1], 7000))
    if number % 20 == 19:
        time.sleep(0.002)
"""
RECEIVER = """
import json, socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
sock.bind((sys.argv[1], 7000))
print("listens", flush=True)
sock.settimeout(3)
got = []
try:
    while True:
        data, (source, _) = sock.recvfrom(2000)
        got.append(int(data[:6]) if len(data) == 206 and not any(data[6:]) else -1)
except TimeoutError:
    print(json.dumps(got))
"""


def carried(**faults: float) -> tuple[list[int], Counter[str]]:
    """What the second of two hosts got of COUNT numbered packets of the first, and what the relay says it did."""
    with Hosts(2) as hosts, bad_network(hosts.hosts, **faults) as network:
        one, other = hosts.hosts
        with _process(other.prefix, RECEIVER, network.address(other)) as receiver:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "listens\n"
            with _process(one.prefix, SENDER, network.address(other), str(COUNT)) as sender:
                assert sender.wait() == 0
            got: list[int] = json.loads(receiver.stdout.readline())
    return got, network.counts


@contextmanager
def _process(prefix: tuple[str, ...], program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*prefix, sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def test_without_faults_it_changes_nothing() -> None:
    got, counts = carried()
    assert got == list(range(COUNT))
    assert set(counts) == {"in", "carried"}


def test_it_loses_what_it_is_told_to_lose() -> None:
    got, counts = carried(loss=10, seed=1)
    assert 0.09 * COUNT <= COUNT - len(got) <= 0.11 * COUNT
    assert got == sorted(got)
    assert counts["lost"] >= COUNT - len(got)


def test_it_delays_reorders_and_repeats() -> None:
    got, counts = carried(delay=20, jitter=10, repeat=5, seed=1)
    assert set(got) == set(range(COUNT))
    assert 0.04 * COUNT <= len(got) - COUNT <= 0.06 * COUNT
    assert counts["repeated"] >= len(got) - COUNT
    overtaken = sum(1 for before, after in itertools.pairwise(got) if after < before)
    assert overtaken > COUNT / 100
