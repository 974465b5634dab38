"""Members join, leave and are killed under load: for how long a view change blocks the members that go on.

Five real processes on loopback TCP, default settings, with journals.  Each sends `--rate` messages a second.  A member
is blocked from its first answer in a view change (in its journal the first `flush` record of stage `collect` after a
view) to the next `view` record.  The time until a crash is noticed comes before the first answer and does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import common
from total_order import Group, Member

from pygroups.journal.reader import Quarantine, find_segments, read_segments

SIZE: Final = 100  # bytes of a message
SETTLE: Final = 0.25  # seconds of load between two changes
PATIENCE: Final = 30.0  # seconds until a view must have come
MEMBERS_MAX: Final = 255  # a message has one byte for its sender
BUDGET_P99_MS: Final = 50.0


class Block(NamedTuple):
    """One member during one view change."""

    cause: str  # join, leave, kill, or several of them
    ms: float


class Changing:
    """A group of changing members, each of which sends all the time."""

    def __init__(self, group: Group, rate: float, end: float) -> None:
        self.group, self.rate, self.end = group, rate, end
        self.names = {member: f"m{index}" for index, member in enumerate(group.members)}
        self.killed: set[str] = set()
        self.unused = itertools.count(group.count)

    async def sends(self, *members: Member) -> None:
        for member in members:
            await member.do("begin_drip", size=SIZE, rate=self.rate, until=self.end)

    async def round(self, number: int) -> None:
        """One kill, one leave, and a join after each.  Both hit the first member in turn, which coordinates."""
        place = number % 2
        for at, goes in ((place * 2, self.kill), (2 - place * 2, self.leave)):
            spare = next(self.unused)
            member = await self.group.start(spare, waits=True)
            await member.answer()
            await goes(self.group.members.pop(at))
            await self.settles()
            self.names[member] = f"m{spare}"
            self.group.members.append(member)
            await member.do("join")
            await self.sends(member)
            await self.settles()

    async def kill(self, member: Member) -> None:
        self.killed.add(self.names[member])
        member.process.kill()
        await member.process.wait()

    async def leave(self, member: Member) -> None:
        assert member.process.stdin is not None
        member.process.stdin.close()
        await asyncio.wait_for(member.process.wait(), PATIENCE)

    async def settles(self) -> None:
        """All members have one view of themselves.  Then the load goes on for a while."""
        wanted = {self.names[member] for member in self.group.members}
        end = time.monotonic() + PATIENCE
        while not all(set(one["members"]) == wanted for one in await self.group.all_do("view")):
            if time.monotonic() > end:
                raise RuntimeError(f"the members {sorted(wanted)} have no view of their own after {PATIENCE:.0f} s")
            await asyncio.sleep(0.05)
        await asyncio.sleep(SETTLE)


class Played(NamedTuple):
    """The changes of one group, without those of its start and its end."""

    rounds: int
    killed: set[str]  # names
    first_us: int
    last_us: int
    cpu_share_of_others: float


async def play(count: int, rounds: int, rate: float, profile: str, seconds: float, journal: Path) -> Played:
    """Change the members of one group until all rounds are played, or the time is over."""
    end = time.monotonic() + seconds
    played = 0
    busy, began, own = common.busy_seconds(), time.monotonic(), cpu_of_children()
    async with Group(count, "batches", profile=profile, journal=str(journal)) as group:
        changing = Changing(group, rate, end + 10 * PATIENCE)
        await changing.sends(*group.members)
        await asyncio.sleep(1.0)
        first_us = time.monotonic_ns() // 1_000
        while played < rounds and time.monotonic() < end:
            await changing.round(played)
            played += 1
        last_us = time.monotonic_ns() // 1_000
    others = common.busy_seconds() - busy - (cpu_of_children() - own)
    share = others / (time.monotonic() - began) / (os.cpu_count() or 1)
    return Played(played, changing.killed, first_us, last_us, round(share, 2))


def cpu_of_children() -> float:
    """CPU seconds of all processes of this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- the journals


def blocks_of(journal: Path, played: Played) -> list[Block]:
    """The blocked times of all members."""
    lives: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for part in read_segments(find_segments([journal])):
        if not isinstance(part, Quarantine):
            for row in part.select(
                ["member", "incarnation", "index", "kind", "stage", "mono_us", "members"]
            ).to_pylist():
                if row["kind"] in ("view", "flush"):
                    lives.setdefault((row["member"], row["incarnation"]), []).append(row)
    found: list[Block] = []
    for rows in lives.values():
        found += _of_life(sorted(rows, key=lambda row: row["index"]), played)
    return found


def _of_life(rows: Sequence[dict[str, Any]], played: Played) -> Iterator[Block]:
    before: set[str] = set()
    since: int | None = None
    for row in rows:
        if row["kind"] == "flush":
            if row["stage"] == "collect" and since is None and before:
                since = row["mono_us"]
            continue
        now = {address.partition("@")[0] for address in row["members"]}
        if since is not None and played.first_us <= since and row["mono_us"] <= played.last_us:
            gone = before - now
            causes = {"join": now - before, "leave": gone - played.killed, "kill": gone & played.killed}
            yield Block(" and ".join(cause for cause, some in causes.items() if some), (row["mono_us"] - since) / 1_000)
        before, since = now, None


def session_nice() -> int:
    """The nice value of this process's session.  Linux shares the processors among sessions first, and nice values of
    processes count inside of a session only."""
    try:
        return int(Path("/proc/self/autogroup").read_text().split()[-1])
    except FileNotFoundError:
        return os.nice(0)


def figures(blocks: Sequence[Block]) -> dict[str, Any]:
    values = sorted(block.ms for block in blocks)
    if not values:
        return {"count": 0}
    return {
        "count": len(values),
        "ms_p50": round(statistics.median(values), 2),
        "ms_p99": round(common.quantile(values, 0.99), 2),
        "ms_worst": round(values[-1], 2),
    }


def main() -> int:
    """0 if the 99th percentile is within the budget."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=5)
    options.add_argument("--rounds", type=int, default=30, help="of one kill, one leave and two joins each")
    options.add_argument("--rate", type=float, default=500.0, help="messages a second that each member sends")
    options.add_argument("--profile", default="total")
    options.add_argument("--seconds", type=float, default=170.0, help="after which no further round begins")
    given = options.parse_args()
    if given.members < 3 or given.members + 2 * given.rounds > MEMBERS_MAX:
        options.error(f"--members must be 3 or more, and --members + 2 * --rounds at most {MEMBERS_MAX}")
    result = common.Result("blocked")
    with TemporaryDirectory() as folder:
        journal = Path(folder)
        played = asyncio.run(play(given.members, given.rounds, given.rate, given.profile, given.seconds, journal))
        blocks = blocks_of(journal, played)
    found = figures(blocks)
    result.write(
        profile=given.profile,
        members=given.members,
        size=SIZE,
        rate_each=given.rate,
        kills=played.rounds,
        leaves=played.rounds,
        joins=2 * played.rounds,
        **found,
        budget_ms_p99=BUDGET_P99_MS,
        cpu_share_of_others=played.cpu_share_of_others,
        nice=session_nice(),
        by_cause={
            cause: figures([one for one in blocks if one.cause == cause]) for cause in sorted({b.cause for b in blocks})
        },
    )
    return 0 if found["ms_p99"] <= BUDGET_P99_MS else 1


if __name__ == "__main__":
    sys.exit(main())
