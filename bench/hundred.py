"""A hundred members in a hundred processes: the cost of a group that does nothing, and the time to notice a crash.

Real processes on loopback TCP in a network namespace of their own, default settings, profile `total`.  First nothing is
sent for `--idle` seconds: measured are the CPU time of all processes, the times that a process wakes, and the bytes on
loopback with all headers.  Then one member after another is killed with SIGKILL, the coordinator every second time: the
time until the last survivor has read the view without it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import resource
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import common

from pygroups import Channel, View

INSIDE: Final = "--inside"
ALONE: Final = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
STAGGER: Final = 0.1  # seconds between two starts
TOGETHER: Final = 10  # processes that start before the next ones wait for them
PATIENCE: Final = 100.0
KILL_PATIENCE: Final = 30.0


# -- a member


async def member(name: str, folder: str, profile: str, say: Any) -> None:
    """Report each view, and on SIGUSR1 the CPU seconds and wakes so far; leave on SIGTERM."""
    loop, ends = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, lambda: say(cpu=time.process_time(), wakes=wakes()))
    loop.add_signal_handler(signal.SIGTERM, ends.set)
    async with Channel("hundred", name=name, profile=profile, discovery=f"dir:{folder}") as channel:
        reading = asyncio.create_task(read(channel, say))
        await ends.wait()
        reading.cancel()


async def read(channel: Channel, say: Any) -> None:
    async for event in channel:
        if isinstance(event, View):
            say(view=[one.name for one in event.members], at=time.monotonic())


def wakes() -> int:
    """How often this process has waited for anything."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


# -- the processes, seen from outside


class Process:
    """One member: its process, and the last of its views."""

    def __init__(self, name: str, folder: str, profile: str) -> None:
        self.name = name
        self.view: list[str] = []
        self.gone: dict[
            str, float
        ] = {}  # members that were in a view and are not in the next one, and when it read that
        self.counts: list[dict[str, Any]] = []
        self.pipe, end = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self._live(end, folder, profile)
        os.close(end)
        asyncio.get_running_loop().add_reader(self.pipe, self._hear)
        self.heard = b""

    def _live(self, end: int, folder: str, profile: str) -> None:
        """The whole life of the forked process.  It inherits the running loop of its parent, and forgets it."""
        asyncio.events._set_running_loop(None)
        status = 1
        logging.getLogger("pygroups").setLevel(logging.ERROR)  # on a busy machine event loops are late
        try:
            asyncio.run(
                member(self.name, folder, profile, lambda **told: os.write(end, json.dumps(told).encode() + b"\n"))
            )
            status = 0
        finally:
            os._exit(status)

    def _hear(self) -> None:
        piece = os.read(self.pipe, 1 << 16)
        if not piece:
            asyncio.get_running_loop().remove_reader(self.pipe)
        *lines, self.heard = (self.heard + piece).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "view" in told:
                self.gone |= dict.fromkeys(set(self.view) - set(told["view"]), told["at"])
                self.view = told["view"]
            else:
                self.counts.append(told)

    def end(self, how: signal.Signals) -> None:
        os.kill(self.pid, how)


async def until(what: str, holds: Any, patience: float) -> None:
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {patience:.0f} s")
        await asyncio.sleep(0.02)


def on_loopback() -> tuple[int, int]:
    """Bytes and packets that loopback has sent so far."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    fields = line.split(":")[1].split()
    return int(fields[8]), int(fields[9])


# -- the measures


async def idle(group: list[Process], seconds: float) -> dict[str, float]:
    """What all members together cost in a second in which the program does nothing."""
    before = await counts(group), on_loopback(), time.monotonic()
    await asyncio.sleep(seconds)
    after = await counts(group), on_loopback(), time.monotonic()
    took = after[2] - before[2]
    return {
        "cpu_s_per_s": round((after[0]["cpu"] - before[0]["cpu"]) / took, 3),
        "wakes_per_s": round((after[0]["wakes"] - before[0]["wakes"]) / took),
        "bytes_per_s": round((after[1][0] - before[1][0]) / took),
        "packets_per_s": round((after[1][1] - before[1][1]) / took),
    }


async def counts(group: list[Process]) -> dict[str, float]:
    for process in group:
        process.counts.clear()
        process.end(signal.SIGUSR1)
    await until("the counts of all members", lambda: all(process.counts for process in group), PATIENCE)
    return {name: sum(process.counts[0][name] for process in group) for name in ("cpu", "wakes")}


async def kill(group: list[Process], victim: Process) -> dict[str, Any]:
    """Milliseconds until the first and the last survivor have read a view without `victim`, and bytes meanwhile; `told`
    counts the survivors that did within KILL_PATIENCE."""
    rank, before, at = group[0].view.index(victim.name), on_loopback()[0], time.monotonic()
    victim.end(signal.SIGKILL)
    os.waitpid(victim.pid, 0)
    group.remove(victim)
    with contextlib.suppress(TimeoutError):
        await until("a view without it", lambda: all(victim.name in p.gone for p in group), KILL_PATIENCE)
    told = sorted(process.gone[victim.name] - at for process in group if victim.name in process.gone)
    ms = [round(1_000 * value, 1) for value in (told[0], statistics.median(told), told[-1])] if told else [None] * 3
    times = {"first_ms": ms[0], "median_ms": ms[1], "last_ms": ms[2]}
    return {"rank": rank, "told": len(told), "of": len(group), **times, "bytes": on_loopback()[0] - before}


async def play(count: int, seconds: float, kills: int, profile: str, folder: str) -> dict[str, Any]:
    group: list[Process] = []
    try:
        began = time.monotonic()
        for number in range(count):
            group.append(Process(f"member-{number:04}", folder, profile))
            await asyncio.sleep(STAGGER)
            if len(group) % TOGETHER == 0 or len(group) == count:
                await until("all in one view", lambda: all(len(p.view) == len(group) for p in group), PATIENCE)
        formed = {"seconds": round(time.monotonic() - began, 1), "cpu_s": round((await counts(group))["cpu"], 2)}
        await asyncio.sleep(min(seconds, 10.0))
        quiet = await idle(group, seconds)
        told = []
        for number in range(kills):
            first = group[0].view[0]
            rank = 0 if number % 2 else len(group) // 2
            name = first if rank == 0 else group[0].view[rank]
            told.append(await kill(group, next(process for process in group if process.name == name)))
            await asyncio.sleep(2.0)
        return {"formed": formed, "idle": quiet, "kills": told}
    finally:
        for process in group:
            process.end(signal.SIGKILL)
        for process in group:
            os.waitpid(process.pid, 0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=100)
    options.add_argument("--idle", type=float, default=30.0, help="seconds in which nothing is sent")
    options.add_argument("--kills", type=int, default=4)
    options.add_argument("--profile", default="total")
    options.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if not given.inside:
        if missing := [tool for tool in ("unshare", "ip") if not shutil.which(tool)]:
            sys.exit(f"hundred.py counts bytes in a network namespace of its own, and needs: {', '.join(missing)}")
        os.execvp(ALONE[0], [*ALONE, sys.executable, __file__, INSIDE, *sys.argv[1:]])
    result = common.Result("hundred")
    busy = common.busy_seconds()
    with tempfile.TemporaryDirectory() as folder:
        measured = asyncio.run(play(given.members, given.idle, given.kills, given.profile, folder))
    measured["machine_cpu_s"] = round(common.busy_seconds() - busy, 1)
    result.write(members=given.members, profile=given.profile, **measured)


if __name__ == "__main__":
    main()
