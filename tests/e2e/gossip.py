"""Members of profile `gossip` in a network that loses packets; some are killed, and some are stopped for a while.

All members are processes in one network namespace, and the kernel drops a share of their datagrams.  Each sends now and
then.  At the end all that run must be in one view.  Each of them must have been given every message of each sender that
runs, and of a killed sender every message that one of them was given, or a gap in its place, in the order of each.

`python -m tests.e2e.gossip` plays it with 50 members and default settings, and appends the result to
bench/results/gossip_members.jsonl; `make gossip` calls it.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Final, NamedTuple

from pygroups.core.limits import SECOND, Config
from tests.e2e.group import SECONDS, Group, Worker, until
from tests.e2e.hosts import Hosts

TOGETHER: Final = 10  # processes that start at once
SIZE: Final = 100  # bytes of a message
ENDLESS: Final = 1 << 40
HANDLERS: Final = 2  # members that keep messages for those that come late; they are not killed, and not stopped
REPORT_SECONDS: Final = 0.5  # between two reports of a member: many of them share two cores
FAULTS_TOLD: Final = 20
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Story(NamedTuple):
    """`members` processes, of which some are killed and some are stopped for `seconds`."""

    members: int
    killed: int
    stopped: int
    seconds: float
    percent: float = 10  # of the packets that the kernel drops
    pause: float = 2  # seconds between two messages of a member
    keep: float = 5  # seconds for which a member that is no late-join handler keeps messages
    limits: Mapping[str, int] = MappingProxyType({})  # times in microseconds

    @property
    def gossips_for(self) -> float:
        """Seconds in which each member gossips twice, and mostly more often."""
        return 4 * self.members * Config(**self.limits).desired_avg_gossip / SECOND


MANY: Final = Story(members=50, killed=10, stopped=5, seconds=20)
IDLE: Final = 0.3  # processor seconds a second, of all members of MANY together
IDLE_SECONDS: Final = 20


class Played(NamedTuple):
    """What the members that run at the end were given, and what the group cost."""

    faults: list[str]
    messages: int  # that the members that run at the end have sent
    given_up: int  # messages in the gaps of all of them
    away: int  # messages that others sent while a member was stopped, for each of the stopped members
    fetched: int  # those of them that the stopped member was given when it came back
    back_after: float  # seconds from the end of the pause until all are in one view
    idle_cpu: float  # processor seconds of all members in a second: after the last message, all of them having it


def check(played: Played, story: Story) -> None:
    """AssertionError for a result that the members of this story must not have."""
    assert played.faults == []
    assert played.messages > 0.2 * story.members * story.seconds / story.pause, played
    assert played.away > 0, played
    assert 2 * played.fetched > played.away, f"a late-join handler has what the stopped members missed: {played}"
    assert played.idle_cpu < IDLE, played


def play(folder: Path, story: Story, *, transport: str = "udp", idle: float = 0, seed: int = 1) -> Played:
    """Play it.  AssertionError if the group does not come to rest."""
    rng = Random(seed)
    with Hosts(1) as hosts, Group(folder, profile="gossip", transport=transport, journal=None) as group:
        host = hosts.hosts[0]
        group.wishes |= {"bind": f"{host.address}:0", "insecure": True, "report_seconds": REPORT_SECONDS}
        workers = _start(group, host.prefix, story, rng)
        with host.losing(story.percent):
            for worker in workers:
                worker.order("send", count=ENDLESS, size=SIZE, burst=1, pause=story.pause)
            victims = rng.sample(workers[HANDLERS:], story.killed + story.stopped)
            killed, stopped = victims[: story.killed], victims[story.killed :]
            time.sleep(2 * story.pause)
            away = _suffer(group, killed, stopped, story.seconds, rng)
            resumed = time.monotonic()
            group.settle()
            back = round(time.monotonic() - resumed, 1)
            time.sleep(4 * story.pause)
            accepted = group.stop_sending()
            _complete(group, accepted, [one.address for one in killed], SECONDS + story.gossips_for)
            spent = _cpu(workers, idle)
            lives = {worker.address: [*given(worker.log)] for worker in group.living}
        judged = _judge(lives, accepted, [one.address for one in killed], away)
        return judged._replace(back_after=back, idle_cpu=spent)


def _start(group: Group, prefix: Sequence[str], story: Story, rng: Random) -> list[Worker]:
    """All members in one view.  The first ones, which found the group, are late-join handlers."""
    workers: list[Worker] = []
    for number in range(story.members):
        worker = group.prepare(prefix)
        role = {"late_join_handler": 1} if number < HANDLERS else {"gossip_keep": round(1e6 * story.keep)}
        workers.append(group.go(worker, f"m{number:02}", config=dict(story.limits) | role))
        if number < HANDLERS or number % TOGETHER == 0 or number == story.members - 1:
            group.until("all that were started have joined", lambda: all(worker.address for worker in workers))
    group.settle()
    return workers


Away = dict[str, dict[str, range]]  # per stopped member and sender, the messages of the time when it was stopped


def _suffer(group: Group, killed: list[Worker], stopped: list[Worker], seconds: float, rng: Random) -> Away:
    """Stop some members, kill others meanwhile, and let the stopped ones go on when they are left out of the view."""
    began, first = time.monotonic(), group.workers[0]
    for worker in stopped:
        worker.signal(signal.SIGSTOP)
    before = dict(first.progress["last"])
    for worker in killed:
        time.sleep(min(1.0, seconds / (2 * len(killed))) * rng.random())
        worker.signal(signal.SIGKILL)
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    out = {worker.address for worker in stopped}
    group.until("the stopped members are out of the view", lambda: out.isdisjoint(first.members))
    sent = {sender: range(before.get(sender, 0) + 1, last + 1) for sender, last in first.progress["last"].items()}
    for worker in stopped:
        worker.signal(signal.SIGCONT)
    return {
        worker.address: {sender: numbers for sender, numbers in sent.items() if sender != worker.address}
        for worker in stopped
    }


def _complete(group: Group, accepted: dict[str, int], killed: list[str], seconds: float) -> None:
    """Wait until each member has each message, or a gap: of a killed sender those that some member has."""

    def all_told() -> bool:
        had = [worker.progress["last"] for worker in group.living]
        wanted = accepted | {sender: max(last.get(sender, 0) for last in had) for sender in killed}
        return all(last.get(sender, 0) == number for last in had for sender, number in wanted.items())

    until("each has each message, or a gap", all_told, seconds)


def _cpu(workers: list[Worker], seconds: float) -> float:
    """The processor seconds that the living members use in a second, all together."""
    if not seconds:
        return 0.0
    for worker in workers:
        worker.order("report seldom", seconds=10_000)
    time.sleep(2)
    pids = [worker.child.pid for worker in workers if worker.alive]
    before, began = sum(map(_ticks, pids)), time.monotonic()
    time.sleep(seconds)
    return (sum(map(_ticks, pids)) - before) / TICKS / (time.monotonic() - began)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


Given = tuple[str, str, int, int]  # M, G or V; the sender, the first number, how many; for V the members


def given(log: Path) -> Iterator[Given]:
    """The messages, gaps and views that the program of a member was given, in order."""
    for line in log.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "M":
            sender, number, _ = rest.split(" ")
            yield "M", sender, int(number), 1
        elif kind == "G":
            sender, first, count = rest.split(" ")
            yield "G", sender, int(first), int(count)
        elif kind == "V":
            yield "V", " ".join(json.loads(rest)["members"]), 0, 0
        elif kind == "X":
            yield "X", rest, 0, 0


class Ledger:
    """What one member was given of one sender."""

    def __init__(self) -> None:
        self.next = 1
        self.gaps: list[range] = []

    @property
    def given_up(self) -> int:
        return sum(map(len, self.gaps))

    def has(self, number: int) -> bool:
        return number < self.next and not any(number in gap for gap in self.gaps)


def _read(address: str, of: Iterable[Given], faults: list[str]) -> dict[str, Ledger]:
    """The ledger of each sender at one member.  A number that is neither given nor in a gap is a fault."""
    ledgers: dict[str, Ledger] = {}
    for kind, sender, first, count in of:
        if kind == "X":
            faults.append(f"{address} was given what nobody sent so: {sender}")
        if kind not in "MG":
            continue
        ledger = ledgers.setdefault(sender, Ledger())
        if first != ledger.next:
            faults.append(f"{address} was given {kind} {first} of {sender} in place of {ledger.next}")
        ledger.next = first + count
        if kind == "G":
            ledger.gaps.append(range(first, first + count))
    return ledgers


def _judge(lives: dict[str, list[Given]], accepted: dict[str, int], killed: list[str], away: Away) -> Played:
    faults: list[str] = []
    ledgers = {address: _read(address, each, faults) for address, each in lives.items()}
    had = {sender: max(ledger.get(sender, Ledger()).next - 1 for ledger in ledgers.values()) for sender in killed}
    for address, ledger in ledgers.items():
        for sender, number in (accepted | had).items():
            if (last := ledger.get(sender, Ledger()).next - 1) != number:
                faults.append(f"{address} was given {last} messages of {sender}, and there are {number}")
    missing = {
        (member, sender, number)
        for member, of in away.items()
        for sender, numbers in of.items()
        for number in numbers
        if sender in accepted
    }
    fetched = [one for one in missing if ledgers[one[0]].get(one[1], Ledger()).has(one[2])]
    given_up = sum([ledger.given_up for of in ledgers.values() for ledger in of.values()])
    return Played(faults[:FAULTS_TOLD], sum(accepted.values()), given_up, len(missing), len(fetched), 0.0, 0.0)


def main() -> None:
    from bench.common import Result

    line = Result("gossip_members")
    with tempfile.TemporaryDirectory() as folder:
        played = play(Path(folder), MANY, idle=IDLE_SECONDS)
    line.write(**{name: getattr(MANY, name) for name in MANY._fields if name != "limits"} | played._asdict())
    check(played, MANY)


if __name__ == "__main__":
    main()
