"""One member hangs while another one is killed: how long the survivors wait for their next view.

Real processes on loopback TCP, default settings, a light load.  A hang is SIGSTOP: the process exists and its
connections stay open, so that nothing proves it dead.  Measured is the time from the SIGKILL until the slowest survivor
has read a view without the killed member.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import time
from typing import Any, Final, NamedTuple

import common
from total_order import Group, Member

LOAD_SECONDS: Final = 60.0  # more than a case takes
HEAD_START: Final = 0.2  # seconds from the hang to the kill
PATIENCE: Final = 40.0


class Case(NamedTuple):
    """Who is killed and who hangs, by rank; the coordinator has rank 0."""

    name: str
    killed: int
    hangs: int | None


CASES: Final = (
    Case("coordinator killed, nobody hangs", 0, None),
    Case("coordinator killed, the last member hangs", 0, -1),
    Case("coordinator killed, the next coordinator hangs", 0, 1),
    Case("last member killed, nobody hangs", -1, None),
    Case("last member killed, another member hangs", -1, 2),
    Case("last member killed, the coordinator hangs", -1, 0),
)


async def play(case: Case, count: int, size: int, rate: float, profile: str) -> dict[str, Any]:
    """Milliseconds until the slowest survivor had the view, and whether the member that hangs was still in it."""
    async with Group(count, "views", profile=profile) as group:
        members = list(group.members)
        killed = members[case.killed]
        hanging = None if case.hangs is None else members[case.hangs]
        survivors = [member for member in members if member not in (killed, hanging)]
        end = time.monotonic() + LOAD_SECONDS
        await group.all_do("begin_drip", size=size, rate=rate, until=end)
        await asyncio.sleep(1.0)
        group.members = survivors
        try:
            if hanging is not None:
                os.kill(hanging.process.pid, signal.SIGSTOP)
                await asyncio.sleep(HEAD_START)
            at = time.monotonic()
            os.kill(killed.process.pid, signal.SIGKILL)
            return await first_views(survivors, f"m{members.index(killed)}", at)
        finally:
            for member in (hanging, killed):
                if member is not None and member.process.returncode is None:
                    member.process.kill()
                    await member.process.wait()


async def first_views(survivors: list[Member], dead: str, at: float) -> dict[str, Any]:
    """The first view without `dead` at each survivor."""
    while time.monotonic() < at + PATIENCE:
        await asyncio.sleep(0.1)
        lists = [(await member.do("views"))["views"] for member in survivors]
        found = [
            next(((when, names) for when, names in views if when > at and dead not in names), None) for views in lists
        ]
        views = [one for one in found if one is not None]
        if len(views) == len(survivors):
            slowest, _ = max(views)
            return {"ms": round(1_000 * (slowest - at), 1), "members": len(views[0][1])}
    return {"ms": None, "members": None}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=5)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--size", type=int, default=100)
    options.add_argument("--rate", type=float, default=100.0, help="messages a second that each member sends")
    options.add_argument("--profile", default="total")
    given = options.parse_args()
    if given.members < 4:
        options.error("--members must be 4 or more, so that somebody survives in each case")
    for case in CASES:
        result = common.Result("hang")
        tries = [
            asyncio.run(play(case, given.members, given.size, given.rate, given.profile)) for _ in range(given.repeat)
        ]
        times = [one["ms"] for one in tries if one["ms"] is not None]
        result.write(
            case=case.name,
            profile=given.profile,
            members=given.members,
            messages_per_s_each=given.rate,
            view_ms_median=statistics.median(times) if times else None,
            view_ms_worst=max(times) if len(times) == len(tries) else None,
            tries=tries,
        )


if __name__ == "__main__":
    main()
