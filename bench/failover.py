"""The coordinator is killed or stopped under load: how long the survivors deliver nothing.

Real processes on loopback TCP, default settings, profile `total`.  Each member sends `--rate` messages a second.
A hang is SIGSTOP: the process exists and its connections stay open, so that nothing proves it dead.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import sys
import time
from typing import Any, Final, NamedTuple

import common
from total_order import Group

from pygroups.core.limits import SECOND, Config

SIZE: Final = 100  # bytes of a message
WARM: Final = 1.5  # seconds of load before the fault
HEAD_START: Final = 0.2  # seconds from the hang to the kill
SETTLE: Final = 2.5  # seconds of load after the coordinator's view change
DETECTION: Final = (Config().heartbeat_timeout + Config().verify_timeout) / SECOND


class Case(NamedTuple):
    """What happens to the coordinator, whether another member hangs, and the budget of the gap at median and worst."""

    name: str
    signal: signal.Signals
    hangs: bool
    seconds: float  # after which the survivors deliver again, at the latest
    budget_ms: tuple[float, float]


CASES: Final = {
    case.name: case
    for case in (
        Case("killed", signal.SIGKILL, False, 0.25, (50, 250)),
        Case("killed while another member hangs", signal.SIGKILL, True, 1.25, (1_050, 1_250)),
        Case("stopped", signal.SIGSTOP, False, DETECTION + 0.25, (1_000 * DETECTION + 250,) * 2),
    )
}


async def play(case: Case, members: int, rate: float) -> dict[str, Any]:
    """One fault; the longest time between two deliveries at any survivor, and what the survivors delivered."""
    async with Group(members, "batches") as group:
        first, *others = group.members
        names = (await first.do("view"))["members"]
        assert names[0] == "m0", "the first process coordinates"
        hanging = others.pop() if case.hangs else None
        await group.all_do("read_differently")
        end = time.monotonic() + WARM + HEAD_START + case.seconds + SETTLE
        drips = {m: asyncio.create_task(m.do("drip", size=SIZE, rate=rate, until=end)) for m in group.members}
        try:
            await asyncio.sleep(WARM)
            if hanging is not None:
                os.kill(hanging.process.pid, signal.SIGSTOP)
                await asyncio.sleep(HEAD_START)
            at = time.monotonic()
            os.kill(first.process.pid, case.signal)
            sent = await asyncio.gather(*[drips[member] for member in others])
            await asyncio.gather(*[member.do("wait", count=1 << 30, patience=1.0) for member in others])
            gaps = [(await member.do("gaps", after=at))["gap_ms"] for member in others]
            reports = [await member.do("report") for member in others]
        finally:
            group.members = others
            for member in (first, hanging):
                if member is not None and member.process.returncode is None:
                    member.process.kill()
                    await member.process.wait()
            await asyncio.gather(*drips.values(), return_exceptions=True)
    return {"gap_ms": max(gaps), **survivors(reports, [answer["accepted"] for answer in sent])}


def survivors(reports: list[dict[str, Any]], accepted: list[int]) -> dict[str, Any]:
    """Of the survivors' messages, and the order of all messages."""
    lost = sum(
        count - report["by_sender"].get(str(index), 0) for report in reports for index, count in enumerate(accepted, 1)
    )
    return {
        "lost": lost + sum(report["missing"] for report in reports),
        "double_or_out_of_order": sum(report["double_or_out_of_order"] for report in reports),
        "one_order": len({report["order"] for report in reports}) == 1,
    }


def main() -> int:
    """0 unless a message was lost, repeated or out of order, or a budget was exceeded."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=4)
    options.add_argument("--kills", type=int, default=30, help="faults of each case")
    options.add_argument("--rate", type=float, default=2_000.0, help="messages a second that each member sends")
    options.add_argument("--case", choices=list(CASES), nargs="*", default=list(CASES))
    given = options.parse_args()
    well = True
    for case in (CASES[name] for name in given.case):
        result = common.Result("failover")
        tries = [asyncio.run(play(case, given.members, given.rate)) for _ in range(given.kills)]
        gaps = sorted(one["gap_ms"] for one in tries)
        judged = {
            "lost": sum(one["lost"] for one in tries),
            "double_or_out_of_order": sum(one["double_or_out_of_order"] for one in tries),
            "one_order": all(one["one_order"] for one in tries),
        }
        within = statistics.median(gaps) <= case.budget_ms[0] and gaps[-1] <= case.budget_ms[1]
        well = well and within and judged == {"lost": 0, "double_or_out_of_order": 0, "one_order": True}
        result.write(
            coordinator=case.name,
            members=given.members,
            size=SIZE,
            rate_each=given.rate,
            faults=len(tries),
            gap_ms_median=round(statistics.median(gaps), 1),
            gap_ms_max=gaps[-1],
            budget_ms=case.budget_ms,
            within_budget=within,
            gaps_ms=gaps,
            **judged,
        )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
