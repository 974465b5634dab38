"""A large state reaches a new member while messages flow: how long, how much memory, how long the flow pauses.

Three real processes on loopback, default settings.  Replica A has a state in a file, replica B sends `--rate`
messages a second, and replica C joins.  The state of a replica is the file and the messages after it.  Measured are the
time until C has its state, the longest pause between two deliveries at A and at B, and the most resident memory of each
process above its memory before.  At the end the digests of the three states must be equal.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import common

from pygroups import Channel, Message

PIECE: Final = 1 << 18
MESSAGE: Final = 100  # bytes
HEAD_START: Final = 1.0  # seconds of flow before C joins, and after C has its state
PATIENCE: Final = 300.0
END: Final = b"the end"


def resident(field: str) -> int:
    """Bytes: VmRSS, the memory now, or VmHWM, the most so far."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(field + ":")[1].split()[0]) << 10


class Replica:
    """A file, and the messages that followed it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.messages: list[bytes] = []
        self.last = 0.0
        self.longest = 0.0  # seconds between two deliveries

    def grow(self, size: int) -> None:
        """Write a file of `size` bytes."""
        chance = random.Random(size)
        with self.file.open("wb") as file:
            for at in range(0, size, PIECE):
                file.write(chance.randbytes(min(PIECE, size - at)))

    async def get_state(self) -> AsyncIterator[bytes]:
        return self._snapshot(len(self.messages))

    async def _snapshot(self, count: int) -> AsyncIterator[bytes]:
        with self.file.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece
        yield b"".join(self.messages[:count])

    async def set_state_chunks(self, chunks: AsyncIterator[bytes]) -> None:
        with self.file.open("wb") as file:
            async for chunk in chunks:
                file.write(chunk)

    def apply(self, payload: bytes) -> None:
        now = time.monotonic()
        if self.last:
            self.longest = max(self.longest, now - self.last)
        self.last = now
        self.messages.append(payload)

    def digest(self) -> str:
        whole = hashlib.sha256()
        with self.file.open("rb") as file:
            while piece := file.read(PIECE):
                whole.update(piece)
        for payload in self.messages:
            whole.update(payload)
        return whole.hexdigest()


async def replica(name: str, folder: Path, size: int, rate: int, profile: str, transport: str) -> None:
    """One process: it tells its progress in lines of JSON, and ends when it reads END."""
    app = Replica(folder / f"{name}.state")
    app.grow(size)
    begun, before = time.monotonic(), resident("VmRSS")
    channel = Channel("large", name=name, profile=profile, transport=transport, state=app, discovery=f"dir:{folder}")
    async with channel:
        reading = asyncio.create_task(read(channel, app))
        await channel.ready()
        tell(ready=name, seconds=round(time.monotonic() - begun, 2))
        if rate:
            await flow(channel, rate)
        await reading
        peak = resident("VmHWM") - before
        bound = channel.stats()["memory_bound"]
    tell(
        name=name,
        digest=app.digest(),
        messages=len(app.messages),
        longest_pause_ms=round(1_000 * app.longest, 1),
        memory=peak,
        memory_bound=bound,
    )


async def flow(channel: Channel, rate: int) -> None:
    """Send `rate` messages a second until the input ends, and END."""
    ends = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    begun, sent = time.monotonic(), 0
    while not ends.done():
        while sent < (time.monotonic() - begun) * rate:
            await channel.send(sent.to_bytes(MESSAGE, "big"))
            sent += 1
        await asyncio.sleep(0.001)
    await channel.send(END)


async def read(channel: Channel, app: Replica) -> None:
    async for event in channel:
        if isinstance(event, Message):
            if event.payload == END:
                return
            app.apply(event.payload)


def tell(**values: Any) -> None:
    print(json.dumps(values), flush=True)


class Started:
    """A process of this benchmark."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def hears(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        if not line:
            raise RuntimeError(f"a process ended with {await self.process.wait()}")
        told: dict[str, Any] = json.loads(line)
        return told


async def start(name: str, folder: Path, size: int, rate: int, profile: str, transport: str) -> Started:
    command = [sys.executable, __file__, "--replica", name, "--folder", str(folder), "--profile", profile]
    command += ["--size", str(size), "--rate", str(rate), "--transport", transport]
    environment = os.environ | {"PYTHONPATH": str(common.HOME / "src")}
    return Started(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment))


async def play(folder: Path, size: int, rate: int, profile: str, transport: str) -> dict[str, Any]:
    """The measures; `equal` says whether the digests are equal."""
    started: list[Started] = []
    try:
        for name, own, flows in (("A", size, 0), ("B", 0, rate)):
            started.append(await start(name, folder, own, flows, profile, transport))
            await started[-1].hears()
        await asyncio.sleep(HEAD_START)
        started.append(await start("C", folder, 0, 0, profile, transport))
        loaded = await started[-1].hears()
        await asyncio.sleep(HEAD_START)
        sender = started[1].process.stdin
        assert sender is not None
        sender.write(b"\n")
        told = [await one.hears() for one in started]
    finally:
        for one in started:
            if one.process.returncode is None:
                one.process.kill()
            await one.process.wait()
    return {
        "equal": len({one["digest"] for one in told}) == 1,
        "state_s": loaded["seconds"],
        "messages": told[1]["messages"],
        "longest_pause_ms": {one["name"]: one["longest_pause_ms"] for one in told[:2]},
        "memory_mib": {one["name"]: round(one["memory"] / (1 << 20), 1) for one in told},
        "memory_bound_mib": round(told[0]["memory_bound"] / (1 << 20), 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--size", type=int, default=1 << 30, help="bytes of the state")
    options.add_argument("--rate", type=int, default=1_000, help="messages a second")
    options.add_argument("--profile", default="total")
    options.add_argument("--transport", default="tcp")
    options.add_argument("--replica", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.replica:
        asyncio.run(replica(given.replica, given.folder, given.size, given.rate, given.profile, given.transport))
        return
    result = common.Result("state")
    with tempfile.TemporaryDirectory() as folder:
        measured = asyncio.run(play(Path(folder), given.size, given.rate, given.profile, given.transport))
    result.write(size=given.size, rate=given.rate, profile=given.profile, transport=given.transport, **measured)
    if not measured["equal"]:
        sys.exit("the digests of the replicas differ")


if __name__ == "__main__":
    main()
