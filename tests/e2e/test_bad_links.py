"""Real processes on hosts of their own, over UDP, while the network loses, delays, reorders and repeats packets."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.group import Group, Worker
from tests.e2e.hosts import Host, Hosts, bad_network
from tests.e2e.logs import all_faults, complete, faults_without_order

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PORT = 7_000
MULTICAST = "udp:239.7.7.7:7001"


def joined(group: Group, places: list[tuple[Host, str]]) -> list[Worker]:
    """A member on each host, all in one view; A leads."""
    workers = []
    for number, (host, address) in enumerate(places):
        worker = group.prepare(host.prefix)
        workers.append(group.go(worker, "ABCDE"[number], bind=f"{address}:{PORT}", insecure=True))
        group.until("it has joined", lambda worker=worker: bool(worker.address))
    group.settle()
    return workers


@contextmanager
def losing(folder: Path, percent: int, **wishes: Any) -> Iterator[tuple[Group, list[Worker]]]:
    """Three members; the firewall of each host drops so many of the datagrams that come in."""
    with Hosts(3) as hosts, Group(folder, **wishes) as group, ExitStack() as rules:
        for host in hosts.hosts:
            rules.enter_context(host.rules(f"ip protocol udp numgen random mod 100 < {percent} drop"))
        yield group, joined(group, [(host, host.address) for host in hosts.hosts])


def all_send(group: Group, workers: list[Worker], count: int) -> None:
    """Each sends `count` messages; afterwards all have all of them, and no layer holds anything."""
    for worker in workers:
        worker.order("send", count=count, size=100)
    group.until("all is sent", lambda: all("sent" in worker.reports for worker in workers))
    group.quiet({worker.address: count for worker in workers})


@pytest.mark.parametrize(
    ("transport", "profile", "percent"), [("udp", "total", 10), ("udp", "fifo", 10), (MULTICAST, "total", 1)]
)
def test_every_message_arrives_once_and_in_order(tmp_path: Path, transport: str, profile: str, percent: int) -> None:
    with losing(tmp_path, percent, transport=transport, profile=profile, journal=None) as (group, workers):
        all_send(group, workers, 3_000)
        group.leave()
        lives = group.lives()
    assert not (all_faults(lives) if profile == "total" else faults_without_order(lives))
    assert not list(complete(lives, {worker.address: 3_000 for worker in workers}))


def test_a_network_that_loses_delays_reorders_and_repeats(tmp_path: Path) -> None:
    with (
        Hosts(3) as hosts,
        bad_network(hosts.hosts, loss=5, repeat=2, delay=20, jitter=10, seed=1) as network,
        Group(tmp_path, transport="udp", journal=None) as group,
    ):
        workers = joined(group, [(host, network.address(host)) for host in hosts.hosts])
        all_send(group, workers, 2_000)
        group.leave()
        lives = group.lives()
    assert not all_faults(lives)
    assert not list(complete(lives, {worker.address: 2_000 for worker in workers}))
    assert network.counts["repeated"] > 0


def test_a_killed_leader_is_replaced_at_once(tmp_path: Path) -> None:
    """All send; 5 % of the datagrams are lost.  The others' next view does not wait for a timeout."""
    with losing(tmp_path, 5, transport="udp", profile="total", journal=None) as (group, workers):
        for worker in workers:
            worker.order("send", count=1 << 40, size=100, burst=20, pause=0.02)
        time.sleep(1)
        leader, *others = workers
        leader.signal(signal.SIGKILL)
        killed_at = time.monotonic()
        group.until("a view without it", lambda: all(leader.address not in worker.members for worker in others))
        assert time.monotonic() - killed_at < 3, "the heartbeat's timeout is 5 s"
        group.quiet(group.stop_sending())
        group.leave()
        lives = group.lives()
    assert not all_faults(lives)
