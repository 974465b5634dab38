"""Real processes on hosts of their own, over UDP, while the network loses, delays, reorders and repeats packets."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.group import Group, Worker, audit, broken
from tests.e2e.hosts import BadNetwork, Host, Hosts, bad_network
from tests.e2e.logs import all_faults, complete, one_order, sender_order, strange
from tests.e2e.losses import Exchange, exchange, faults_of, unheld
from tests.patience import patience

pytestmark = pytest.mark.slow
PORT = 7_000
BOTH = pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
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
def losing(folder: Path, percent: float, **wishes: Any) -> Iterator[tuple[Group, list[Worker]]]:
    """Three members; the kernel of each host drops so many of the packets that come in."""
    with Hosts(3) as hosts, Group(folder, **wishes) as group, ExitStack() as rules:
        for host in hosts.hosts:
            rules.enter_context(host.losing(percent))
        yield group, joined(group, [(host, host.address) for host in hosts.hosts])


def all_send(group: Group, workers: list[Worker], count: int) -> None:
    """Each sends `count` messages; afterwards all have all of them, and no layer holds anything."""
    for worker in workers:
        worker.order("send", count=count, size=100)
    group.until("all is sent", lambda: all("sent" in worker.reports for worker in workers))
    group.quiet({worker.address: count for worker in workers})


@pytest.mark.long
def test_two_and_five_members_exchange_messages_while_a_tenth_of_the_packets_is_lost(tmp_path: Path) -> None:
    """`make loss` does the same with 100,000 messages of each. The audit judges both groups at once."""
    for what in (Exchange("total", 5, 200, 10), Exchange("fifo", 2, 500, 10)):
        assert exchange(tmp_path, what).faults == []
    _, found = audit(tmp_path / "journal")
    assert broken(found) == []
    assert unheld(found, {"total", "fifo"}) == set()


def test_a_multicast_that_is_lost_arrives_all_the_same(tmp_path: Path) -> None:
    with losing(tmp_path, 1, transport=MULTICAST, journal=None) as (group, workers):
        all_send(group, workers, 3_000)
        group.leave()
        lives = group.lives()
    assert faults_of(lives, "total", {worker.address: 3_000 for worker in workers}) == []


@BOTH
def test_a_network_that_loses_delays_reorders_and_repeats(tmp_path: Path, profile: str) -> None:
    with bad_links(tmp_path, profile, loss=5) as (network, group, places):
        workers = joined(group, places[:3])
        all_send(group, workers, 2_000)
        group.leave()
        lives = group.lives()
    assert faults_of(lives, profile, {worker.address: 2_000 for worker in workers}) == []
    assert network.counts["repeated"] > 0


@BOTH
def test_members_join_leave_and_die_over_a_bad_link(tmp_path: Path, profile: str) -> None:
    """All send all the time: D joins, B leaves, A, which leads, is killed; some payloads are longer than a datagram."""
    with bad_links(tmp_path, profile, loss=1) as (_, group, places):
        a, b, c = joined(group, places[:3])
        for worker in (a, b, c):
            worker.order("send", count=1 << 40, size=100, burst=5, pause=0.02)
        d = group.go(group.prepare(places[3][0].prefix), "D", bind=f"{places[3][1]}:{PORT}", insecure=True)
        group.until("D has joined", lambda: bool(d.address))
        d.order("send", count=20, size=50_000, burst=1, pause=0.05)
        b.order("leave", stop=True)
        assert b.ended() == 0, b.errors
        a.signal(signal.SIGKILL)
        group.until("a view of C and D", lambda: all(set(one.members) == {c.address, d.address} for one in (c, d)))
        accepted = group.stop_sending()
        group.quiet(accepted)
        group.leave()
        lives = group.lives()
    assert not list(complete([life for life in lives if life.address in accepted], accepted))
    # A member that leaves is not waited for: the others may have delivered messages that it still fetched.
    stayed = [life for life in lives if life.address != b.address]
    assert not all_faults(stayed, profile)
    assert not [*strange(lives), *sender_order(lives), *(one_order(lives) if profile == "total" else ())]


@contextmanager
def bad_links(folder: Path, profile: str, *, loss: float) -> Iterator[tuple[BadNetwork, Group, list[tuple[Host, str]]]]:
    """A group, and four hosts for its members: each packet between them takes 10 to 30 ms, so that later ones overtake
    it; 2 % come twice, and `loss` percent never."""
    with (
        Hosts(4) as hosts,
        bad_network(hosts.hosts, loss=loss, repeat=2, delay=20, jitter=10, seed=1) as network,
        Group(folder, profile=profile, transport="udp", journal=None) as group,
    ):
        yield network, group, [(host, network.address(host)) for host in hosts.hosts]


@BOTH
def test_a_killed_leader_is_replaced_at_once(tmp_path: Path, profile: str) -> None:
    """All send; 5 % of the datagrams are lost.  The others' next view does not wait for a timeout."""
    with losing(tmp_path, 5, transport="udp", profile=profile, journal=None) as (group, workers):
        for worker in workers:
            worker.order("send", count=1 << 40, size=100, burst=20, pause=0.02)
        time.sleep(1)
        leader, *others = workers
        leader.signal(signal.SIGKILL)
        killed_at = time.monotonic()
        group.until("a view without it", lambda: all(leader.address not in worker.members for worker in others))
        assert time.monotonic() - killed_at < patience(3), "the heartbeat's timeout is 5 s"
        group.quiet(group.stop_sending())
        group.leave()
        lives = group.lives()
    assert not all_faults(lives, profile)
