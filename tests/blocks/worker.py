"""A process that uses all blocks until the file `stop` is there, and writes down what it was told.

    python -m tests.blocks.worker FOLDER NAME MEMBERS HEARTBEAT_TIMEOUT

Each line of the files of the folder is one unbuffered write: `store` (token and name of a holder of the lock; it
refuses a token below its last one, and `refused` has those), `led` (the same of the leader), `shared` (the token of
each grant of a semaphore), `numbers` of the counter, `done` tasks, and for each
member the keys of its acknowledged writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sys
from pathlib import Path

from pygroups import Config, DeliveredElsewhere, NotSent, Unknown
from pygroups.blocks import (
    Blocks,
    Counter,
    Grant,
    Lock,
    NoReply,
    NotHeld,
    ReplicatedDict,
    Requests,
    Semaphore,
    WorkQueue,
    run_on_one,
)

PASSING = (NotSent, Unknown, DeliveredElsewhere, NotHeld, NoReply)


class Worker:
    """One life of a member."""

    def __init__(self, folder: Path, name: str, members: int, heartbeat_timeout: float) -> None:
        self.folder = folder
        self.name = name
        self.members = members
        self.heartbeat_timeout = heartbeat_timeout

    def say(self, file: str, line: object) -> None:
        """Append a line, in one write."""
        handle = os.open(self.folder / file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{line}\n".encode())
        os.close(handle)

    def store(self, token: int, name: str = "store") -> None:
        """Write to a store that checks fencing tokens."""
        with (self.folder / name).open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = file.read().splitlines()
            last = int(lines[-1].split()[0]) if lines else 0
            if token >= last:
                file.write(f"{token} {self.name}\n")
            else:
                self.say("refused", f"{token} {self.name}")

    @property
    def stops(self) -> bool:
        return (self.folder / "stop").exists()

    async def live(self) -> None:
        options = {"discovery": f"dir:{self.folder / 'group'}", "journal": self.folder / "journal", "rejoin": True}
        timeout = self.heartbeat_timeout
        config = Config(heartbeat=timeout / 5, heartbeat_timeout=timeout, verify_timeout=timeout / 3)
        async with Blocks("b", profile="uniform", name=self.name, config=config, **options) as blocks:
            self.say("lives", self.name)
            leading = asyncio.create_task(run_on_one(blocks, "leader", self.lead))
            async with asyncio.TaskGroup() as tasks:
                for work in (self.write, self.hold, self.share, self.count, self.put, self.serve, self.ask):
                    tasks.create_task(work(blocks))
            leading.cancel()
            await self.agree(blocks)

    async def write(self, blocks: Blocks) -> None:
        d: ReplicatedDict[str, int] = ReplicatedDict(blocks, "d", str, int)
        number = 0
        while not self.stops:
            number += 1
            key = f"{blocks.channel.address}-{number}"
            with contextlib.suppress(*PASSING):
                await d.set(key, number)
                self.say(f"written-{self.name}", key)
            await asyncio.sleep(0.01)

    async def hold(self, blocks: Blocks) -> None:
        lock = Lock(blocks, "l")
        while not self.stops:
            with contextlib.suppress(*PASSING):
                async with lock as grant:
                    for _ in range(3):
                        self.store(grant.token)
                        await asyncio.sleep(0.002)

    async def lead(self, grant: Grant) -> None:
        while True:
            self.store(grant.token, "led")
            await asyncio.sleep(0.02)

    async def share(self, blocks: Blocks) -> None:
        pool = Semaphore(blocks, "pool", 2)
        while not self.stops:
            with contextlib.suppress(*PASSING):
                async with pool as grant:
                    self.say("shared", grant.token)
                    await asyncio.sleep(0.002)

    async def count(self, blocks: Blocks) -> None:
        counter = Counter(blocks, "n")
        while not self.stops:
            with contextlib.suppress(*PASSING):
                self.say("numbers", await counter.add())
            await asyncio.sleep(0.01)

    async def put(self, blocks: Blocks) -> None:
        queue = WorkQueue(blocks, "q", str)
        while not self.stops:
            with contextlib.suppress(*PASSING):
                self.say("put", await queue.put("x"))
            await asyncio.sleep(0.02)

    async def serve(self, blocks: Blocks) -> None:
        queue = WorkQueue(blocks, "q", str)
        while not self.stops or queue.waiting or queue.running:
            with contextlib.suppress(*PASSING):
                task = await queue.get(timeout=1)
                await task.done()
                self.say("done", task.id)

    async def ask(self, blocks: Blocks) -> None:
        async def handler(value: int, caller: object) -> int:
            return value + 1

        requests = Requests(blocks, "r", handler)
        while not self.stops:
            with contextlib.suppress(*PASSING):
                replies = await requests.call_all(1)
                assert all(reply.error is not None or reply.value == 2 for reply in replies)
                self.say("replies", len(replies))
            await asyncio.sleep(0.05)

    async def agree(self, blocks: Blocks) -> None:
        """Wait until all members write no more, then print what this one has."""
        d: ReplicatedDict[str, int] = ReplicatedDict(blocks, "d", str, int)
        while sum(key.startswith("end-") for key in d) < self.members:
            with contextlib.suppress(*PASSING):
                await d.set(f"end-{self.name}", 0)
            await asyncio.sleep(0.05)
        (self.folder / f"dict-{self.name}").write_text(json.dumps(dict(d)))
        while len([*self.folder.glob("dict-*")]) < self.members:
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(Worker(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])).live())
