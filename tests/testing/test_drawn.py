"""Programs drawn from a seed, under faults drawn from it too: no check may accuse the group of what is right."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Final

import pytest

from pygroups import Channel, ChannelClosed, Config, Error, Excluded, NotSent, StateLost, Unknown
from pygroups.testing import Group
from tests.drawn_faults import fault

SMALL: Final = Config(window=256 << 10, run_bytes=32 << 10)
ENDED: Final = (ChannelClosed, Excluded, ZeroDivisionError, StateLost)


class Keeper:
    """A state that is small or large, quick or slow, and sometimes not given."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    async def get_state(self) -> bytes:
        if self.chance.random() < 0.1:
            raise ZeroDivisionError("the application's own")
        await asyncio.sleep(self.chance.choice([0, 0, 0.01, 2]))
        return bytes(self.chance.choice([3, 200_000]))

    async def set_state(self, data: bytes) -> None: ...


class Drawn:
    """One drawn test: members that send and read at their own pace, and what happens to them."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.chance = random.Random(group.seed)
        self.profile = self.chance.choice(["total", "fifo", "uniform", "uniform-fifo", "total1999"])
        self.names = "ABCDE"[: self.chance.randint(2, 5)]
        self.ending = asyncio.Event()
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def play(self) -> None:
        for name in self.names:
            self._start(name)
        for _ in range(self.chance.randint(2, 7)):
            await asyncio.sleep(self.chance.uniform(0, 5))
            await fault(self.group, self.chance, self.names, self._start)
        self.group.heal()
        await asyncio.sleep(10)
        self.ending.set()
        await asyncio.sleep(60)

    def _start(self, name: str) -> None:
        chance = random.Random(self.chance.random())
        self.tasks[name] = self.group.start(name, self._live(chance))

    # -- a program

    async def _live(self, chance: random.Random) -> None:
        events = chance.choice(["all", "all", "all", "none"])
        state = Keeper(chance) if events == "all" and chance.random() < 0.6 else None
        with contextlib.suppress(*ENDED):
            async with Channel("g", profile=self.profile, state=state, events=events, config=SMALL) as channel:
                reading = asyncio.create_task(self._read(channel, chance)) if events == "all" else None
                while not self.ending.is_set():
                    await asyncio.sleep(chance.expovariate(20))
                    with contextlib.suppress(NotSent, Unknown):
                        await self._send(channel, chance)
            if reading is not None:
                await reading

    async def _read(self, channel: Channel, chance: random.Random) -> None:
        while True:
            try:
                async for _ in channel:
                    if chance.random() < 0.02:
                        await asyncio.sleep(chance.choice([0.001, 0.01, 0.5, 7]))
            except (ZeroDivisionError, StateLost):
                continue
            except Error:
                return
            return

    async def _send(self, channel: Channel, chance: random.Random) -> None:
        payload = bytes(chance.choice([1, 100, 20_000]))
        kind = chance.choice(["send", "send", "delivered", "stable", "to", "many"])
        if kind == "to":
            await channel.send(payload, to=chance.choice(channel.view.members), timeout=3)
        elif kind == "many":
            await channel.send_many([bytes(1_000)] * chance.randint(1, 50), timeout=5)
        elif kind == "delivered":
            await channel.send(payload, until="delivered", timeout=chance.choice([None, 0.1, 5]))
        elif kind == "stable":
            await channel.send(payload, until="stable", timeout=chance.choice([None, 0.1, 5]))
        else:
            await channel.send(payload)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pygroups.testing.LeftOpen")
@pytest.mark.parametrize("seed", range(12))
def test_a_drawn_program_breaks_no_promise(seed: int) -> None:
    async def story(group: Group) -> None:
        await Drawn(group).play()

    group = Group(seed=seed)
    group.run(story, group)
