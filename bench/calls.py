"""Function calls of a group, counted exactly: of a run in a flood, and of a lone message with its turns.

Four members of profile `total` in one process, with the real channels, stacks, codec and loopback TCP.  Their clocks
stand still while anything is left to do, and then jump to the next timer; their random numbers have seeds.  So the
same source makes the same calls on a busy machine as on an idle one, and a bound on them can be a test: cProfile
counts the calls of Python functions and of built-in functions, those of asyncio included.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import selectors
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from cProfile import Profile
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from bench import common  # first: it makes this tree the one that is measured
from pygroups import Channel, Message
from pygroups.channel.options import Options
from pygroups.channel.platform import PLATFORM, LocalPlatform
from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.layer import Random
from pygroups.core.limits import SECOND
from pygroups.core.stack import Output, Stack
from pygroups.drivers.member import Member

NAMES: Final = ("A", "B", "C", "D")  # A orders
SIZE: Final = 100
MESSAGES: Final = 1  # in each run of the flood: a run costs the same calls whatever is in it
ROUNDS: Final = 60
PAUSE: Final = 0.01  # seconds of virtual time between two lone messages: the votes of the first one are over
GRACE: Final = 0.005  # real seconds in which the kernel brings what was written to a socket of this process
QUIET: Final = 1.0  # seconds of virtual time after which the last view is at rest

Load = Callable[["Group"], Awaitable[int]]


class StoppedClock:
    """The clock of all members, in microseconds: it moves when the loop has nothing to do."""

    def __init__(self) -> None:
        self.time = 1_000 * SECOND

    def now(self) -> int:
        return self.time

    wall = now


class SeededPlatform(LocalPlatform):
    """Loopback TCP, with a clock that stands and random numbers that repeat."""

    def __init__(self) -> None:
        self.clock = StoppedClock()

    def address(self, options: Options) -> Address:
        assert options.name is not None
        return Address(options.name, options.name.encode().hex().zfill(INCARNATION_DIGITS))

    def chance(self, me: Address) -> Random:
        return random.Random(me.name)


class IdleSelector(selectors.DefaultSelector):
    """Where a selector would wait, the clock jumps."""

    def __init__(self, clock: StoppedClock) -> None:
        super().__init__()
        self.clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and (timeout is None or timeout > 0):
            found = super().select(GRACE if timeout is not None else None)
            if not found and timeout is not None:
                self.clock.time += max(1, round(timeout * SECOND))
        return found


class StoppedLoop(asyncio.SelectorEventLoop):
    """An event loop with such a selector, for members with such a platform."""

    def __init__(self) -> None:
        platform = SeededPlatform()
        self.clock = platform.clock
        super().__init__(IdleSelector(platform.clock))
        setattr(self, PLATFORM, platform)

    def time(self) -> float:
        return self.clock.time / SECOND


class Counted(NamedTuple):
    """What a load made the four members do, for each of its runs."""

    calls: float
    turns: float
    empty: float  # of these turns, those that gave nothing to the network, the driver and the application


class Counter:
    """Counts the calls of this process and the turns of `members` while a load runs."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.turns = self.empty = 0
        self.profile = Profile()
        for member in members:
            self._watch(member.stack)

    def _watch(self, stack: Stack) -> None:
        end_turn = stack.end_turn

        def watched(now: int) -> Output:
            output = end_turn(now)
            self.turns += 1
            self.empty += not (output.frames or output.events or output.commands)
            return output

        stack.end_turn = watched  # type: ignore[method-assign]

    def each(self, runs: int) -> Counted:
        """The counts, for each of `runs`; without the calls of watching."""
        calls = sum(entry.callcount for entry in self.profile.getstats()) - self.turns
        return Counted(*[round(total / runs, 2) for total in (calls, self.turns, self.empty)])


class Group:
    """The four members, which read all events."""

    def __init__(self, channels: list[Channel]) -> None:
        self.channels = channels
        self.left = 0  # messages to read, at all members together
        self.all_read = asyncio.Event()

    async def reads(self, channel: Channel) -> None:
        async for events in channel.batches():
            if type(events[0]) is Message:
                self.left -= len(events)
            if not self.left:
                self.all_read.set()

    async def send(self, channels: Sequence[Channel], messages: int) -> None:
        """Send so many messages from each of `channels`, and wait until all members have read them."""
        self.left = messages * len(channels) * len(NAMES)
        self.all_read.clear()
        for channel in channels:
            for _ in range(messages):
                channel.send_nowait(bytes(SIZE))
        await self.all_read.wait()


async def flood(group: Group) -> int:
    """Each member sends a run in each round; returns the number of the runs."""
    for _ in range(ROUNDS):
        await group.send(group.channels, MESSAGES)
    return ROUNDS * len(NAMES)


def lone(sender: int) -> Load:
    """The load in which one member sends one message after the other, with pauses."""

    async def load(group: Group) -> int:
        for _ in range(ROUNDS):
            await group.send([group.channels[sender]], 1)
            await asyncio.sleep(PAUSE)
        return ROUNDS

    return load


async def measured(load: Load, profile: str) -> Counted:
    """What `load` costs four members of `profile`."""
    async with AsyncExitStack() as stack:
        place = stack.enter_context(TemporaryDirectory())
        channels = [
            await stack.enter_async_context(Channel("calls", name=name, profile=profile, discovery=f"dir:{place}"))
            for name in NAMES
        ]
        group = Group(channels)
        readers = [asyncio.create_task(group.reads(channel)) for channel in channels]
        await asyncio.sleep(QUIET)
        assert all(len(channel.view.members) == len(NAMES) for channel in channels)
        counter = Counter([channel._member for channel in channels])
        counter.profile.enable()
        runs = await load(group)
        counter.profile.disable()
        found = counter.each(runs)
    await asyncio.gather(*readers)
    return found


LOADS: Final[dict[str, Load]] = {"flood": flood, "lone": lone(-1), "lone, from the coordinator": lone(0)}


def count(load: str, profile: str = "total") -> Counted:
    """Play a load of LOADS on an event loop of its own."""
    with asyncio.Runner(loop_factory=StoppedLoop) as runner:
        return runner.run(measured(LOADS[load], profile))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--profile", default="total")
    chosen = options.parse_args()
    result = common.Result("calls")
    result.write(profile=chosen.profile, **{load: count(load, chosen.profile)._asdict() for load in LOADS})


if __name__ == "__main__":
    main()
