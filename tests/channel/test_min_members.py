"""`min_members=`: the join waits until the view has so many members."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from pygroups import Channel, ChannelClosed, Message, UsageError, View
from pygroups.testing import Group, run
from tests.channel.test_watchdog import lines


@pytest.mark.parametrize("wrong", [0, -1, True, "3", 2.0, 10**9])
def test_a_wrong_number_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"min_members=.* must be a number of members from 1 to"):
        Channel("g", min_members=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="min_members= needs a group"):
        Channel(None, profile="unicast", min_members=2)


class Counter:
    """A program whose state is the number of messages."""

    def __init__(self) -> None:
        self.messages = 0
        self.joined_at = -1.0
        self.views: list[int] = []

    async def get_state(self) -> bytes:
        return b"%d" % self.messages

    async def set_state(self, data: bytes) -> None:
        self.messages = int(data)

    async def run(self, group: Group) -> None:
        async with Channel("g", state=self, min_members=3) as channel:
            self.joined_at = group.now
            await channel.send(b"x")
            async for event in channel:
                self.messages += isinstance(event, Message)
                if isinstance(event, View):
                    self.views.append(len(event.members))


def test_nobody_begins_before_all_are_there_and_no_state_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    """The third member comes after more than `state_timeout`, while the program of the first one cannot read."""

    async def story(group: Group) -> None:
        programs = {name: Counter() for name in "ABC"}
        for name in "AB":
            group.start(name, programs[name].run(group))
        await asyncio.sleep(100)
        assert [programs[name].joined_at for name in "AB"] == [-1, -1]
        assert any("the join waits for 3 members (min_members=), and the view has 2" in line for line in lines(caplog))
        group.start("C", programs["C"].run(group))
        await group.settled(one=True)
        assert [program.joined_at > 100 for program in programs.values()] == [True] * 3
        assert [program.messages for program in programs.values()] == [3] * 3
        assert programs["A"].views == [1, 2, 3]

    run(story)


def test_a_join_that_is_given_up_is_no_member() -> None:
    async def story(group: Group) -> None:
        channel = Channel("g", name="A", min_members=2)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await channel.__aenter__()
        with pytest.raises(ChannelClosed), suppress(UsageError):
            await channel.send(b"x")
        async with Channel("g", name="B") as b:
            await group.settled(one=True)
            assert [member.name for member in b.view.members] == ["B"]

    run(story)
