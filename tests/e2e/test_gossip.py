"""Processes of profile `gossip` whose datagrams the kernel drops: see gossip.py."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from pygroups.core.limits import MILLISECOND, SECOND
from tests.e2e.gossip import IDLE_SECONDS, MANY, Story, check, given, play
from tests.e2e.group import Group

QUICK = {
    "heartbeat": 200 * MILLISECOND,
    "heartbeat_timeout": 1 * SECOND,
    "verify_timeout": 500 * MILLISECOND,
    "desired_avg_gossip": 100 * MILLISECOND,
}
FEW = Story(members=8, killed=2, stopped=1, seconds=4, pause=0.1, keep=2, limits=QUICK)
MULTICAST = "udp:239.7.7.7:7001"


@pytest.mark.slow
@pytest.mark.parametrize("transport", [pytest.param("udp", marks=pytest.mark.long), "tcp", MULTICAST])
def test_members_are_killed_and_stopped_while_packets_are_lost(tmp_path: Path, transport: str) -> None:
    check(play(tmp_path, FEW, transport=transport), FEW)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_fifty_members_of_which_ten_are_killed_and_five_are_stopped(tmp_path: Path) -> None:
    check(play(tmp_path, MANY, idle=IDLE_SECONDS), MANY)


@pytest.mark.slow
def test_a_handler_that_is_killed_and_starts_again_has_the_messages_in_its_folder(tmp_path: Path) -> None:
    """A and C keep messages for a second only, and C is stopped while they are sent."""
    seconds = {name: value / SECOND for name, value in QUICK.items()}
    handler = {"settings": seconds | {"late_join_handler": str(tmp_path / "late")}}
    with Group(tmp_path, profile="gossip", journal=None, config=QUICK | {"gossip_keep": 1 * SECOND}) as group:
        a, c = group.start(*"AC")
        b = group.go(group.prepare(), "B", **handler | {"config": None})
        group.until("B has joined", lambda: bool(b.address))
        group.settle()
        c.signal(signal.SIGSTOP)
        a.order("send", count=50, size=100, burst=1, pause=0.02)
        group.until("B has the messages", lambda: b.progress["last"].get(a.address) == 50)
        b.signal(signal.SIGKILL)
        again = group.go(group.prepare(), "B", **handler | {"config": None})
        group.until("B has joined again", lambda: bool(again.address))
        group.until("A is left with B", lambda: set(a.members) == {a.address, again.address})
        a.order("send", count=1, size=100)
        group.until("A keeps none of them", lambda: again.progress["last"].get(a.address) == 51)
        time.sleep(3)
        c.signal(signal.SIGCONT)
        group.until("C has heard of the last one", lambda: c.progress["last"].get(a.address) == 51)
        assert [one for one in given(c.log) if one[1] == a.address] == [("M", a.address, n, 1) for n in range(1, 52)]
