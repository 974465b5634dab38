"""Members on hosts of their own exchange messages over UDP while the kernel drops packets; `make loss` is the long one.

Each member has its journal, so that an audit can judge all that was exchanged; what the applications were given is
judged here.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.e2e.group import Group
from tests.e2e.hosts import Host, Hosts
from tests.e2e.logs import Life, all_faults, complete

PORT: Final = 7_000
NAMES: Final = "ABCDEFGH"
FAULTS_TOLD: Final = 20
PROMISED: Final = {"fifo", "no-duplication", "integrity", "agreement", "self-delivery", "liveness", "buffers-drain"}
"""The promises about the messages, of every profile; `total-order` and `gap-free-prefix` come with an order."""
ORDERED: Final = {"total-order", "gap-free-prefix"}


class Exchange(NamedTuple):
    """`members` members send `count` messages of `size` bytes each; `percent` of the packets to each host are lost."""

    profile: str
    members: int
    count: int
    percent: float
    size: int = 100
    transport: str = "udp"
    datagram: int | None = None  # bytes; None: the product's default

    @property
    def group(self) -> str:
        return "-".join(
            str(part) for part in (self.profile, self.members, f"{self.percent:g}", self.datagram or "usual")
        )


class Exchanged(NamedTuple):
    bytes: int  # that all hosts sent, from the first message until all is quiet
    seconds: float
    faults: list[str]  # what the applications were given and should not have been, or the other way round


def exchange(folder: Path, what: Exchange) -> Exchanged:
    """Play it, with the journals of all members below `folder`/journal.

    It returns when every member has every message and no layer of any member holds anything, and raises AssertionError
    if that does not come about.
    """
    wishes: dict[str, Any] = {"profile": what.profile, "transport": what.transport, "insecure": True}
    if what.datagram is not None:
        wishes["config"] = {"datagram": what.datagram}
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(what.members)).hosts
        journal = str(folder / "journal")
        group = stack.enter_context(Group(folder / what.group, what.group, journal=journal, **wishes))
        for name, host in zip(NAMES, hosts, strict=False):
            worker = group.go(group.prepare(host.prefix), name, bind=f"{host.address}:{PORT}")
            group.until(f"{name} has joined", lambda worker=worker: bool(worker.address))
        group.settle()
        if what.percent:
            for host in hosts:
                stack.enter_context(host.losing(what.percent))
        before, began = _sent(hosts), time.monotonic()
        accepted = {worker.address: what.count for worker in group.workers}
        for worker in group.workers:
            worker.order("send", count=what.count, size=what.size)
        group.until("all is sent", lambda: all("sent" in worker.reports for worker in group.workers))
        group.quiet(accepted)
        spent = _sent(hosts) - before, round(time.monotonic() - began, 1)
        group.everywhere("heal")
        group.everywhere("quiet")
        group.leave()
        return Exchanged(*spent, faults_of(group.lives(), what.profile, accepted))


def faults_of(lives: list[Life], profile: str, accepted: dict[str, int]) -> list[str]:
    """What is wrong with what the applications were given, at most FAULTS_TOLD sentences."""
    return [*all_faults(lives, profile), *complete(lives, accepted)][:FAULTS_TOLD]


def unheld(found: dict[str, Any], profiles: set[str]) -> set[str]:
    """Promises about messages that an audit (`group.audit`) did not find held, though it should."""
    held = {promise["name"] for promise in found["promises"] if promise["verdict"] == "held"}
    return (PROMISED | (ORDERED if "total" in profiles else set())) - held


def _sent(hosts: list[Host]) -> int:
    """The bytes that these hosts have sent so far."""
    lines = [line for host in hosts for line in host.run("cat", "/proc/net/dev").splitlines() if "eth0" in line]
    return sum([int(line.split(":")[1].split()[8]) for line in lines])
