"""Calls of building blocks, one after another, three members in one process over loopback TCP."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import common  # first: it makes this tree the one that is measured

from pygroups.blocks import Blocks, Counter, Lock, ReplicatedDict, Requests, WorkQueue

NAMES: Final = ("A", "B", "C")
WARM: Final = 5  # calls before the clock runs


async def echo(value: int, caller: object) -> int:
    return value


async def locked(lock: Lock) -> None:
    async with lock:
        pass


async def worked(queue: WorkQueue[int]) -> None:
    await queue.put(1)
    await (await queue.get()).done()


def calls(blocks: list[Blocks]) -> dict[str, Callable[[], Awaitable[Any]]]:
    """What is measured, at the last member, which is not the coordinator."""
    for one in blocks[:-1]:
        Requests(one, "echo", echo)
    last = blocks[-1]
    table, requests = ReplicatedDict(last, "d", str, int), Requests(last, "echo", echo)
    counter, lock, queue = Counter(last, "n"), Lock(last, "l"), WorkQueue(last, "q", int)
    return {
        "dict: read": lambda: asyncio.sleep(0, table.get("x")),
        "dict: set": lambda: table.set("x", 1),
        "dict: set, received by all": lambda: table.set("x", 1, until="stable"),
        "counter: add": counter.add,
        "lock: acquire and release": lambda: locked(lock),
        "queue: put, get and done": lambda: worked(queue),
        "request to one": lambda: requests.call(last.members[0], 1),
        "request to all": lambda: requests.call_all(1),
    }


async def timed(call: Callable[[], Awaitable[Any]], seconds: float) -> dict[str, Any]:
    for _ in range(WARM):
        await call()
    taken = []
    cpu, end = time.process_time(), time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        await call()
        taken.append(time.perf_counter() - begin)
    cpu = time.process_time() - cpu
    taken.sort()
    return {
        "a_second": round(len(taken) / sum(taken), 1),
        "p50_ms": round(1_000 * common.quantile(taken, 0.5), 3),
        "p99_ms": round(1_000 * common.quantile(taken, 0.99), 3),
        "calls": len(taken),
        "cpu_ms_each": round(1_000 * cpu / len(taken), 3),
    }


async def measured(seconds: float) -> dict[str, dict[str, Any]]:
    with TemporaryDirectory() as folder:
        async with contextlib.AsyncExitStack() as stack:
            blocks = []
            for name in NAMES:
                one = Blocks("bench", name=name, profile="uniform", discovery=f"dir:{Path(folder)}")
                blocks.append(await stack.enter_async_context(one))
            return {what: await timed(call, seconds) for what, call in calls(blocks).items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    given = options.parse_args()
    for what, figures in asyncio.run(measured(given.seconds)).items():
        common.Result("blocks").write(call=what, profile="uniform", members=len(NAMES), **figures)


if __name__ == "__main__":
    main()
