"""The same three things with blocks and with redis-py on a local Redis, in one run: a value that three processes have,
a lock, and a request to one process.

    python bench/beside_redis.py            # needs redis-server: apt-get install redis-server

pygroups: the caller and two more members of `uniform`; the caller is not the coordinator, and asks the coordinator.
Redis: a server without disk with two replicas, and one without any for locks and for requests, which another client
answers.  Each call is made alone (`at_once` 1), and by 32 tasks at once.  `nice` below 0: other programs had to wait.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import common  # first: it makes this tree the one that is measured
import redis.asyncio

from pygroups.blocks import Blocks, Lock, ReplicatedDict, Requests

Calls = dict[str, Callable[[], Awaitable[Any]]]
SET: Final = "dict: set, received by all three"
LOCK: Final = "lock: acquire and release"
REQUEST: Final = "request to one"
WARM: Final = 20  # calls before the clock runs
COPIES: Final = 2  # beside the first one


# -- pygroups


async def echo(value: int, caller: object) -> int:
    return value


def blocks_in(folder: str) -> Blocks:
    return Blocks("bench", profile="uniform", discovery=f"dir:{folder}")


async def serve_blocks(folder: str) -> None:
    async with blocks_in(folder) as blocks:
        Requests(blocks, "echo", echo)
        print("ready", flush=True)
        await asyncio.sleep(3600)


@contextlib.asynccontextmanager
async def pygroups_calls(folder: str) -> AsyncIterator[Calls]:
    with contextlib.ExitStack() as stack:
        for _ in range(COPIES):
            stack.enter_context(server("pygroups", folder))
        async with blocks_in(folder) as blocks:
            table, requests = ReplicatedDict(blocks, "d", str, int), Requests(blocks, "echo", echo)
            numbers = itertools.count()

            async def lock() -> None:
                async with Lock(blocks, f"l{next(numbers) % 32}"):
                    pass

            yield {
                SET: lambda: table.set("x", 1, until="stable"),
                LOCK: lock,
                REQUEST: lambda: requests.call(blocks.members[0], 1),
            }


# -- Redis


def client(port: str) -> Any:
    return redis.asyncio.Redis(port=int(port))


async def serve_redis(port: str) -> None:
    answering = client(port)
    print("ready", flush=True)
    async with asyncio.TaskGroup() as tasks:
        while True:
            _, request = await answering.blpop(["requests"])
            number, _, value = request.partition(b" ")
            tasks.create_task(answering.rpush(b"reply-" + number, value))


@contextlib.asynccontextmanager
async def redis_calls(folder: str) -> AsyncIterator[Calls]:
    with contextlib.ExitStack() as stack:
        port, alone = [stack.enter_context(redis_server(f"{folder}-{which}")) for which in ("copied", "alone")]
        for number in range(COPIES):
            stack.enter_context(redis_server(f"{folder}-{number}", "--replicaof", "127.0.0.1", port))
        stack.enter_context(server("redis", alone))
        copied, asked = client(port), client(alone)
        while (await copied.info("replication"))["connected_slaves"] < COPIES:
            await asyncio.sleep(0.1)
        numbers = itertools.count()

        async def put() -> None:
            async with copied.pipeline(transaction=False) as pipeline:
                await pipeline.set("x", 1).wait(COPIES, 0).execute()

        async def lock() -> None:
            async with asked.lock(f"l{next(numbers) % 32}", timeout=30):
                pass

        async def request() -> None:
            number = next(numbers)
            await asked.rpush("requests", f"{number} 1")
            await asked.blpop([f"reply-{number}"])

        yield {SET: put, LOCK: lock, REQUEST: request}
        await asyncio.gather(copied.aclose(), asked.aclose())


@contextlib.contextmanager
def redis_server(folder: str, *options: str) -> Iterator[str]:
    """The port of a server that keeps nothing on disk."""
    Path(folder).mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = ["redis-server", "--port", port, "--dir", folder, "--save", "", "--appendonly", "no", *options]
    with ended(subprocess.Popen([*command, "--repl-diskless-sync-delay", "0"], stdout=subprocess.DEVNULL)):
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
                break
            time.sleep(0.05)
        yield port


# -- both


@contextlib.contextmanager
def server(kind: str, argument: str) -> Iterator[None]:
    """A process that answers requests."""
    command = [sys.executable, __file__, "--serve", kind, argument]
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE)) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def timed(call: Callable[[], Awaitable[Any]], seconds: float, at_once: int) -> dict[str, Any]:
    for _ in range(WARM):
        await call()
    taken: list[float] = []

    async def caller(end: float) -> None:
        while (begin := time.perf_counter()) < end:
            await call()
            taken.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    await asyncio.gather(*(caller(begin + seconds) for _ in range(at_once)))
    whole = time.perf_counter() - begin
    taken.sort()
    return {
        "a_second": round(len(taken) / whole, 1),
        "p50_ms": round(1_000 * common.quantile(taken, 0.5), 3),
        "p99_ms": round(1_000 * common.quantile(taken, 0.99), 3),
        "calls": len(taken),
    }


async def measured(seconds: float) -> None:
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout.split()[
        2
    ]
    with TemporaryDirectory() as folder:
        async with pygroups_calls(f"{folder}/p") as ours, redis_calls(f"{folder}/r") as theirs:
            for what in ours:
                for at_once in (1, 32):
                    for whose, calls in (("pygroups", ours), (f"redis {version}", theirs)):
                        result = common.Result("beside_redis")
                        figures = await timed(calls[what], seconds, at_once)
                        result.write(call=what, system=whose, at_once=at_once, nice=os.nice(0), **figures)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    options.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        kind, argument = given.serve
        asyncio.run(serve_blocks(argument) if kind == "pygroups" else serve_redis(argument))
    elif shutil.which("redis-server") is None:
        raise SystemExit("redis-server is not installed: apt-get install redis-server")
    else:
        asyncio.run(measured(given.seconds))


if __name__ == "__main__":
    main()
