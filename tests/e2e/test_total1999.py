"""Real processes of profile total1999 on hosts of their own, over UDP, IP multicast and TCP, with lost datagrams."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.group import Group, Worker, audit, broken
from tests.e2e.hosts import Host, Hosts
from tests.e2e.logs import all_faults, complete
from tests.e2e.losses import Exchange, exchange, unheld

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PROFILE: Final = "total1999"
PORT: Final = 7_000
MULTICAST: Final = "udp:239.77.1.2:7001"
PLAYED: Final = [("udp", 10, 1), (MULTICAST, 10, 1), ("tcp", 0, 1)]
"""The transport, the lost packets in percent, and how many times the sequencer is killed."""
LONG: Final = [("udp", 10, 3)]
LOAD: Final = {"count": 1 << 40, "size": 100, "burst": 10, "pause": 0.02}  # of each, for as long as it lives


class Members:
    """Four members, A to D, each on a host of its own."""

    def __init__(self, group: Group, hosts: list[Host]) -> None:
        self.group = group
        self.places = dict(zip("ABCD", hosts, strict=True))
        for name in self.places:
            self.begins(name)
        group.settle()

    def begins(self, name: str, **wishes: Any) -> Worker:
        """A life of this name, which sends as soon as it has joined."""
        host = self.places[name]
        worker = self.group.go(self.group.prepare(host.prefix), name, bind=f"{host.address}:{PORT}", **wishes)
        self.group.until(f"{name} has joined", lambda: bool(worker.address))
        worker.order("send", **LOAD)
        return worker

    def kills_the_sequencer(self) -> None:
        """The first member of the view dies, and comes back under its name."""
        group = self.group
        group.settle()
        sequencer = next(one for one in group.living if one.address == group.living[0].members[0])
        group.everywhere("fault", "kill", [sequencer.address])
        sequencer.signal(signal.SIGKILL)
        assert sequencer.ended() == -signal.SIGKILL
        group.until("a view without it", lambda: all(sequencer.address not in one.members for one in group.living))
        self.begins(sequencer.name, faults_before=True)


@pytest.mark.parametrize("played", [PLAYED, pytest.param(LONG, marks=pytest.mark.long)], ids=["once", "three times"])
def test_the_sequencer_is_killed_under_load(tmp_path: Path, played: list[tuple[str, int, int]]) -> None:
    """Over UDP, while a tenth of the packets is lost.  One audit judges the journals of all groups."""
    groups = [_kills(tmp_path / str(number), *one) for number, one in enumerate(played)]
    code, found = audit(*(group.journal for group in groups))
    assert (code, broken(found)) == (0, [])


def _kills(folder: Path, transport: str, percent: int, kills: int) -> Group:
    """A group whose sequencer was killed so many times."""
    with Hosts(4) as hosts, ExitStack() as rules:
        for host in hosts.hosts if percent else ():
            rules.enter_context(host.losing(percent))
        with Group(folder, profile=PROFILE, transport=transport, insecure=True) as group:
            members = Members(group, hosts.hosts)
            for _ in range(kills):
                members.kills_the_sequencer()
            group.settle()
            group.everywhere("heal")
            accepted = group.stop_sending()
            group.quiet(accepted)
            group.everywhere("quiet")
            group.leave()
            lives = group.lives()
    assert all_faults(lives, PROFILE) == []
    assert list(complete([life for life in lives if life.address in accepted], accepted)) == []
    return group


@pytest.mark.long
def test_losses_cost_bytes_and_no_message(tmp_path: Path) -> None:
    """With a tenth of the packets lost, at most 1.4 times the bytes of a network without losses."""
    plain = exchange(tmp_path, Exchange(PROFILE, 4, 5_000, 0))
    lossy = exchange(tmp_path, Exchange(PROFILE, 4, 5_000, 10))
    assert plain.faults == lossy.faults == []
    assert lossy.bytes <= 1.4 * plain.bytes
    _, found = audit(tmp_path / "journal")
    assert broken(found) == []
    assert unheld(found, {"total"}) == set()
