"""Processes that use all blocks under faults drawn from a seed, and what must hold whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

from pygroups import Config, DeliveredElsewhere, Error, Left, Message, NotSent, Unknown, View
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
from pygroups.testing import Group
from tests.drawn_faults import KINDS, fault

SMALL: Final = Config(window=256 << 10, run_bytes=32 << 10)
FAULTS: Final = (*KINDS, "partition")  # often: a side without a majority must give up its grants
KEYS: Final = "abcdefgh"
MAJORITY: Final = "uniform"
DRAIN: Final = 40.0  # seconds in which all sides are one again, and all tasks done
END: Final = 60.0  # seconds in which all calls and all processes end
POLL: Final = 0.5
PASSING: Final = (NotSent, Unknown, DeliveredElsewhere, NotHeld, NoReply)


class Judge:
    """What all processes of one test have seen."""

    def __init__(self) -> None:
        self.states: dict[object, tuple[str, bytes]] = {}  # at each place of the order: a member, and its state
        self.agreed = 0  # places at which a second member had the same state
        self.tokens: dict[int, str] = {}
        self.highest = 0  # token that the store has seen
        self.stale = 0  # writes that the store refused
        self.numbers: dict[int, str] = {}  # of the counter
        self.sold: dict[int, str] = {}  # numbers that a holder of a lock read, and wrote one higher
        self.replies = 0
        self.writes = 0  # of the dict
        self.put: list[int] = []  # tasks
        self.done: dict[int, str] = {}
        self.unsure: dict[int, str] = {}  # tasks that are done or not, and the last worker that said so
        self.founded = 0  # processes that began without a state
        self.ended = 0  # by an error

    def on_place(self, who: str, place: object, state: bytes) -> None:
        """All members have the same blocks at the same place of the order."""
        other, known = self.states.setdefault(place, (who, state))
        assert state == known, f"at {place} {who} and {other} differ:\n{state!r}\n{known!r}"
        self.agreed += other != who

    def on_grant(self, who: str, token: int) -> None:
        assert token not in self.tokens, f"{who} and {self.tokens[token]} have token {token}"
        self.tokens[token] = who

    def write(self, token: int) -> bool:
        """The store: it refuses a token below the highest one.  Returns whether it took the write."""
        if token < self.highest:
            self.stale += 1
            return False
        self.highest = token
        return True

    def on_number(self, who: str, number: int) -> None:
        if self.founded == 1:
            assert number not in self.numbers, f"{who} and {self.numbers[number]} have number {number}"
            self.numbers[number] = who

    def on_sold(self, who: str, number: int) -> None:
        """Two holders at a time would read the same number."""
        if self.founded == 1:
            assert number not in self.sold, f"{who} and {self.sold[number]} both wrote {number} under one lock"
            self.sold[number] = who

    def on_done(self, who: str, task: int) -> None:
        assert task not in self.done or self.founded > 1, f"{who} and {self.done[task]} have done task {task}"
        self.done[task] = who


class Watched(Blocks):
    """Blocks that tell the judge their state at each view."""

    judge: Judge
    got_state = False
    came_back = False  # it left the group, and began again

    async def set_state(self, data: bytes) -> None:
        self.got_state = True
        await super().set_state(data)

    def _on_left(self, event: Left) -> None:
        super()._on_left(event)
        self.came_back, self.got_state = True, False

    def _on_view(self, view: View) -> None:
        super()._on_view(view)
        self._compare(view.id)

    def _on_message(self, event: Message) -> None:
        if self.came_back:
            self.judge.founded += not self.got_state  # all others have ended: the group begins with its old state
            self.came_back = False
        super()._on_message(event)
        if self.options.profile == MAJORITY and event.position is not None:
            self._compare((event.view, event.position))  # no member takes back what it delivered

    def _compare(self, place: object) -> None:
        self.judge.on_place(str(self.channel.address), place, self._replica.saved())


class Drawn:
    """One drawn test."""

    def __init__(self, group: Group, profile: str, folder: Path) -> None:
        self.group = group
        self.profile = profile
        self.chance = random.Random(group.seed)
        self.names = "ABCDE"[: self.chance.randint(2, 5)]
        self.judge = Judge()
        self.draining = asyncio.Event()  # no further tasks
        self.ending = asyncio.Event()
        self.folder = folder  # of the journals, with which a process answers for its former life
        self.lives: dict[str, asyncio.Task[None]] = {}

    async def play(self) -> None:
        for name in self.names:
            self._start(name)
            await asyncio.sleep(self.chance.choice([0, 0, 1]) if name != "A" else 2)
        for _ in range(self.chance.randint(2, 7)):
            await asyncio.sleep(self.chance.uniform(0, 5))
            await fault(self.group, self.chance, self.names, self._start, FAULTS)
        self.group.heal()
        self.draining.set()
        for _ in range(2):
            await self._until(lambda: self._is_one() and not self._missing(), DRAIN)
            await asyncio.sleep(3)  # all go on together: leases and keys end, former holders come back
        self.ending.set()
        await self._until(lambda: not self._running(), END)
        self._check_end()

    async def _until(self, is_there: Callable[[], bool], longest: float) -> None:
        """Each second of a group that has nothing new to show costs as much as one under faults."""
        for _ in range(round(longest / POLL)):
            if is_there():
                return
            await asyncio.sleep(POLL)

    def _start(self, name: str) -> None:
        self.lives[name] = self.group.start(name, self._live(name, random.Random(self.chance.random())))

    def _check_end(self) -> None:
        """No call hangs, and no task is lost."""
        running = self._running()
        assert not running, f"{running} wait for something that never comes"
        if self.profile == MAJORITY and self.judge.founded == 1:
            missing = self._missing()
            assert not missing, f"the tasks {missing} are lost"

    def _running(self) -> list[str]:
        return [name for name, life in self.lives.items() if not life.done()]

    def _missing(self) -> list[int]:
        return [task for task in self.judge.put if task not in self.judge.done and task not in self.judge.unsure]

    def _is_one(self) -> bool:
        """All processes that live are in one view."""
        views = self.group.views()
        return len(views) == 1 and sorted(views[0]) == sorted(self._running())

    # -- a process

    @contextlib.asynccontextmanager
    async def _blocks(self, name: str) -> AsyncIterator[Watched]:
        options: dict[str, Any] = {"rejoin": True, "journal": self.folder} if self.profile == MAJORITY else {}
        blocks = Watched("g", profile=self.profile, name=name, config=SMALL, **options)
        blocks.judge = self.judge
        async with blocks:
            self.judge.founded += not blocks.got_state
            yield blocks

    async def _live(self, name: str, chance: random.Random) -> None:
        while not self.ending.is_set():
            try:
                async with self._blocks(name) as blocks, asyncio.TaskGroup() as tasks:
                    for work in self._work(blocks, name, chance):
                        tasks.create_task(work)
            except* Error:
                self.judge.ended += 1
                await asyncio.sleep(1)

    def _work(self, blocks: Watched, name: str, chance: random.Random) -> list[Any]:
        work = [self._write(blocks, chance), self._ask(blocks, chance)]
        if self.profile == MAJORITY:
            work += [self._lock(blocks, name, chance), self._count(blocks, name, chance)]
            work += [self._sell(blocks, name, chance), self._share(blocks, name, chance)]
            work += [self._put(blocks, chance), self._serve(blocks, name, chance), self._lead(blocks, name)]
        return work

    async def _pauses(self, blocks: Watched, chance: random.Random, rate: float) -> AsyncIterator[None]:
        """One step after the other.  An error that leaves the fate of a step open ends nothing; the end of the blocks
        ends all."""
        while not self.ending.is_set():
            await asyncio.sleep(chance.expovariate(rate))
            blocks.check_open()
            yield

    async def _write(self, blocks: Watched, chance: random.Random) -> None:
        d: ReplicatedDict[str, int] = ReplicatedDict(blocks, "d", str, int)
        async for _ in self._pauses(blocks, chance, 3):
            key, value = chance.choice(KEYS), chance.randrange(1 << 32)
            kind = chance.choice(["set", "set", "ttl", "delete", "swap", "stable", "many"])
            with contextlib.suppress(*PASSING):
                if kind == "set":
                    await d.set(key, value)
                elif kind == "ttl":
                    await d.set(key, value, ttl=chance.uniform(0.1, 5))
                elif kind == "delete":
                    await d.delete(key)
                elif kind == "swap":
                    await d.compare_and_set(key, d.get(key), value)
                elif kind == "stable":
                    await d.set(key, value, until="stable", timeout=chance.choice([0.1, 5]))
                else:
                    await d.update(dict.fromkeys(KEYS, value), until=None)
                self.judge.writes += 1

    async def _ask(self, blocks: Watched, chance: random.Random) -> None:
        async def handler(value: int, caller: object) -> int:
            await asyncio.sleep(chance.choice([0, 0, 0.01, 1]))
            return value + 1

        requests = Requests(blocks, "r", handler)
        async for _ in self._pauses(blocks, chance, 1):
            with contextlib.suppress(*PASSING):
                if chance.random() < 0.5:
                    assert await requests.call(chance.choice(blocks.members), 1) == 2
                else:
                    await requests.call_all(1, wants=chance.choice(["all", "majority", "first"]))
                self.judge.replies += 1

    async def _lock(self, blocks: Watched, name: str, chance: random.Random) -> None:
        lock = Lock(blocks, "l", lease=3)
        async for _ in self._pauses(blocks, chance, 1):
            with contextlib.suppress(*PASSING):
                grant = await lock.acquire(timeout=chance.choice([None, 0.2, 5]))
                self.judge.on_grant(name, grant.token)
                for _ in range(3):
                    await asyncio.sleep(chance.choice([0, 0.01, 0.1, 2]))
                    if not self.judge.write(grant.token):
                        break
                await grant.release()

    async def _sell(self, blocks: Watched, name: str, chance: random.Random) -> None:
        """Read, wait and write under a lock, which needs no fencing as long as all of it is inside of the group."""
        lock = Lock(blocks, "till")
        sold: ReplicatedDict[str, int] = ReplicatedDict(blocks, "sold", str, int)
        async for _ in self._pauses(blocks, chance, 1):
            with contextlib.suppress(*PASSING):
                async with lock as grant:
                    number = sold.get("n", 0) + 1
                    await asyncio.sleep(chance.choice([0, 0.01, 0.5]))
                    if grant.is_held:
                        await sold.set("n", number)
                        self.judge.on_sold(name, number)

    async def _share(self, blocks: Watched, name: str, chance: random.Random) -> None:
        pool = Semaphore(blocks, "pool", 2)
        async for _ in self._pauses(blocks, chance, 1):
            with contextlib.suppress(*PASSING):
                async with pool as grant:
                    self.judge.on_grant(name, grant.token)
                    await asyncio.sleep(chance.choice([0, 0.01, 0.5]))

    async def _lead(self, blocks: Watched, name: str) -> None:
        async def job(grant: Grant) -> None:
            self.judge.on_grant(name, grant.token)
            while not self.ending.is_set():
                await asyncio.sleep(0.1)

        await run_on_one(blocks, "leader", job)

    async def _count(self, blocks: Watched, name: str, chance: random.Random) -> None:
        counter = Counter(blocks, "n")
        async for _ in self._pauses(blocks, chance, 1):
            with contextlib.suppress(*PASSING):
                self.judge.on_number(name, await counter.add())

    async def _put(self, blocks: Watched, chance: random.Random) -> None:
        queue = WorkQueue(blocks, "q", str)
        async for _ in self._pauses(blocks, chance, 1):
            if self.draining.is_set():
                return  # the workers come to an end with all tasks
            with contextlib.suppress(*PASSING):
                self.judge.put.append(await queue.put("x"))

    async def _serve(self, blocks: Watched, name: str, chance: random.Random) -> None:
        queue = WorkQueue(blocks, "q", str)
        async for _ in self._pauses(blocks, chance, 10):
            with contextlib.suppress(*PASSING):
                task = await queue.get(timeout=chance.choice([1, 5]))
                await asyncio.sleep(chance.choice([0, 0.01, 0.3]))
                self.judge.unsure[task.id] = name  # it can crash when the group knows, before it can tell
                try:
                    await task.done()
                except NotHeld:
                    del self.judge.unsure[task.id]
                    raise
                self.judge.on_done(name, task.id)
