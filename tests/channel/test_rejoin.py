"""`rejoin=True`: after an exclusion the channel joins again as a new incarnation, and its events go on."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups import (
    Blocked,
    Channel,
    ChannelClosed,
    Config,
    Event,
    Excluded,
    Left,
    Message,
    NameTaken,
    NotSent,
    Timeout,
    Unknown,
    UsageError,
    View,
    WouldBlock,
)
from pygroups.core import events as core
from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.core.merge_events import Replaced
from pygroups.core.rejoin import Exclusions
from pygroups.layers.gms.majority.primary import PrimaryGms
from pygroups.layers.profiles import PROFILES
from pygroups.testing import Group, run
from tests.channel import socket_group
from tests.majority import with_gms

SMALL = {"window": 64 << 10, "run_bytes": 16 << 10}
PART = bytes(4 << 10)
PARTS = (64 << 10) // len(PART)


class Replica:
    """A program whose state are the payloads of all messages."""

    def __init__(self) -> None:
        self.all: list[bytes] = []
        self.events: list[Event] = []
        self.sets = 0
        self.channel: Channel
        self.task: asyncio.Task[None]

    async def get_state(self) -> bytes:
        return b" ".join(self.all)

    async def set_state(self, data: bytes) -> None:
        self.sets += 1
        self.all = data.split()

    async def read(self) -> None:
        async for event in self.channel:
            self.events.append(event)
            if isinstance(event, Message):
                self.all.append(event.payload)

    @property
    def left(self) -> list[Left]:
        return [event for event in self.events if isinstance(event, Left)]

    @property
    def views(self) -> list[View]:
        return [event for event in self.events if isinstance(event, View)]


@pytest.fixture
def majority(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack of `uniform` in place of that of `total`: a majority decides each view."""
    monkeypatch.setitem(PROFILES, "total", with_gms("total", PrimaryGms))


uses_majority = pytest.mark.usefixtures("majority")


async def replica(group: Group, name: str, **options: Any) -> Replica:
    made = Replica()
    made.channel = group.channel("g", name=name, state=made, **options)
    await made.channel.__aenter__()
    made.task = asyncio.create_task(made.read(), name=f"reads {name}")
    return made


async def three(group: Group, **options: Any) -> tuple[Replica, Replica, Replica]:
    """Three members in one view.  The last one has `rejoin=True` and the options."""
    a, b = [await replica(group, name, config=options.get("config")) for name in "AB"]
    c = await replica(group, "C", rejoin=True, **options)
    await group.settled()
    return a, b, c


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def cut_off(group: Group, a: Replica, b: Replica, c: Replica) -> None:
    """C is cut off, until the others have a view without it."""
    group.partition(["C"])
    await until(lambda: all(c.channel.address not in one.channel.view.members for one in (a, b)))
    await until(lambda: any(isinstance(event, Blocked) for event in c.events))


async def joins_again(channel: Channel) -> None:
    before = channel.address
    await until(lambda: channel.address != before)


async def end(*replicas: Replica) -> None:
    for one in replicas:
        await one.channel.leave()
    await asyncio.gather(*[one.task for one in replicas])


@uses_majority
def test_the_events_go_on_with_the_new_incarnation() -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group)
        first = c.channel.address
        await a.channel.send(b"1", until="stable")
        assert await c.channel.send(b"2", until="stable") == 1
        await cut_off(group, a, b, c)
        await a.channel.send(b"3", until="stable")
        c.events.clear()
        group.heal()
        await until(lambda: c.views)
        kinds = [type(event) for event in c.events if not isinstance(event, Message)]
        assert kinds == [Left, View]
        assert c.left == [Left("excluded", [])]
        assert c.channel.address.name == "C"
        assert c.channel.address != first
        assert c.views[0].members == (a.channel.address, b.channel.address, c.channel.address)
        assert c.views[0].transitional == (c.channel.address,)
        assert c.sets == 2, "at each join"
        memory = c.channel.stats()["memory"]
        assert c.channel.stats()["memory_bound"] == 2 * memory["of an excluded incarnation"]
        assert await c.channel.send(b"4", until="stable") == 1, "the numbers begin again"
        await end(c, b, a)
        assert a.all == b.all == c.all == [b"1", b"2", b"3", b"4"]
        assert c.left == [Left("excluded", []), Left("left", [])]

    run(story)


@uses_majority
def test_each_send_of_an_excluded_member_has_a_known_fate() -> None:
    """Accepted messages are unknown.  The next incarnation sends a message that waited for room, and new ones."""

    async def story(group: Group) -> None:
        a, b, c = await three(group, config=Config(**SMALL))
        await cut_off(group, a, b, c)
        channel = c.channel
        waits = asyncio.create_task(channel.send(b"accepted", until="stable"))
        await asyncio.sleep(0)
        number = 1
        with pytest.raises(WouldBlock):
            while True:
                number = channel.send_nowait(PART)
        room = asyncio.create_task(channel.send(PART + b"room"))
        many = asyncio.create_task(channel.send_many([b"many"]))
        await asyncio.sleep(0)
        assert not room.done()
        c.events.clear()
        group.heal()
        await until(lambda: c.left)
        assert c.left == [Left("excluded", list(range(1, number + 1)))]
        with pytest.raises(WouldBlock, match="which joins again"):
            channel.send_nowait(b"now")
        with pytest.raises(Timeout, match="not joined again within 0 s"):
            await channel.send(b"late", timeout=0)
        with pytest.raises(UsageError):
            await channel.send(b"late", timeout="soon")  # type: ignore[arg-type]
        new = await channel.send(b"new", until="stable", timeout=20)
        with pytest.raises(Unknown) as caught:
            await waits
        assert caught.value.number == 1
        with pytest.raises(NotSent) as not_sent:
            await many
        assert not_sent.value.accepted == 0
        assert sorted([await room, new]) == [1, 2]
        await channel.wait(new)
        with pytest.raises(Unknown, match="which joined again"):
            await channel.wait(number)
        await end(c, b, a)
        assert sorted(a.all) == sorted([PART + b"room", b"new"])

    run(story)


@uses_majority
def test_a_leave_during_the_join_ends_the_channel_without_an_error() -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group)
        await cut_off(group, a, b, c)
        group.heal()
        await until(lambda: c.left)
        sending = asyncio.create_task(c.channel.send(b"never"))
        await asyncio.sleep(0)
        assert await c.channel.leave() == Left("excluded", [])
        await c.task
        assert c.left == [Left("excluded", [])], "the last event"
        with pytest.raises(StopAsyncIteration):
            await anext(c.channel)
        with pytest.raises(ChannelClosed):
            await sending
        with pytest.raises(ChannelClosed):
            await c.channel.send(b"never")
        await c.channel.leave()
        await group.settled()
        assert group.views() == [("A", "B")]
        await end(b, a)
        assert a.all == []

    run(story)


@uses_majority
def test_an_error_of_the_join_ends_the_channel_with_that_error() -> None:
    """C waits a second before it joins again, and meanwhile another process takes its name."""

    async def story(group: Group) -> None:
        a, b, c = await three(group)
        await cut_off_unread(group, a, b, c)
        group.heal()
        await joins_again(c.channel)
        await cut_off_unread(group, a, b, c)
        group.heal()
        await until(lambda: len(c.left) == 2)
        other = await replica(group, "C")
        sending = asyncio.create_task(c.channel.send(b"never"))
        with pytest.raises(NameTaken, match="choose another name"):
            await c.task
        with pytest.raises(NameTaken):
            await anext(c.channel)
        with pytest.raises(ChannelClosed, match="cannot join its group again") as caught:
            await sending
        assert isinstance(caught.value.__cause__, NameTaken)
        with pytest.raises(ChannelClosed, match="cannot join its group again"):
            c.channel.send_nowait(b"never")
        assert await c.channel.leave() == Left("excluded", [])
        await end(other, b, a)

    run(story)


@uses_majority
def test_a_canceled_read_goes_on_with_the_new_incarnation() -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group)
        c.task.cancel()
        await asyncio.wait([c.task])
        await cut_off_unread(group, a, b, c)
        first = c.channel.address
        group.heal()
        batches = c.channel.batches()
        events: list[Event] = []
        while not any(isinstance(event, Left) for event in events):
            events += await anext(batches)
        reading = asyncio.create_task(anext(batches))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        (view,) = await anext(batches)
        assert isinstance(view, View)
        assert len(view.members) == 3
        assert c.channel.address != first
        assert c.channel.view == view
        await c.channel.ready()
        await end(b, a)
        await c.channel.leave()

    run(story)


async def cut_off_unread(group: Group, a: Replica, b: Replica, c: Replica) -> None:
    group.partition(["C"])
    await until(lambda: all(c.channel.address not in one.channel.view.members for one in (a, b)))


@uses_majority
def test_a_program_that_only_sends_goes_on() -> None:
    async def story(group: Group) -> None:
        a, b = [await replica(group, name) for name in "AB"]
        async with group.channel("g", name="C", rejoin=True, events="none") as c:
            for _ in range(2):
                group.partition(["C"])
                await until(lambda: all(c.address not in one.channel.view.members for one in (a, b)))
                group.heal()
                await joins_again(c)
            assert await c.send(b"again", until="stable") == 1
        await end(b, a)
        assert a.all == [b"again"]

    run(story)


def test_a_program_that_reads_nothing_joins_again_once() -> None:
    """It is excluded by `slow_policy` twice.  Two incarnations have unread events then, so the channel ends."""

    async def story(group: Group) -> None:
        config = Config(slow_policy="exclude", slow_timeout=12.0, **SMALL)
        a = await replica(group, "A", config=config)
        async with group.channel("g", name="C", rejoin=True, config=config) as c:
            sending = asyncio.create_task(a.channel.send_many([PART] * (2 * PARTS)))
            await joins_again(c)
            await sending
            await a.channel.send_many([PART] * (3 * PARTS))
            await asyncio.sleep(1)  # C learns of its exclusion a moment later than A
            events: list[Event] = []
            with pytest.raises(Excluded, match=r"because this member read nothing for 12 s.*open a new channel"):
                async for event in c:
                    events.append(event)
        assert [event for event in events if isinstance(event, Left)] == [Left("excluded", [])] * 2
        assert events[-1] == Left("excluded", [])
        await end(a)

    run(story)


def test_the_pause_before_a_join_doubles_while_exclusions_follow_each_other() -> None:
    minute = 60 * SECOND
    exclusions = Exclusions()
    lives = [5 * SECOND] * 9 + [minute, 5 * SECOND]
    pauses = [exclusions.pause(life) // SECOND for life in lives]
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60, 0, 1]


@uses_majority
def test_a_member_that_is_excluded_again_waits_before_it_joins(caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group)
        times: list[float] = []
        for count in range(1, 4):
            await cut_off_unread(group, a, b, c)
            group.heal()
            await until(lambda count=count: len(c.left) == count)  # type: ignore[misc]
            began, views = group.now, len(c.views)
            await until(lambda views=views: len(c.views) > views)  # type: ignore[misc]
            times.append(group.now - began)
        assert times[0] < 1 < times[1] < 2 < times[2] < 4
        await end(c, b, a)

    caplog.set_level(logging.INFO, "pygroups.channel")
    run(story)
    said = [line.getMessage() for line in caplog.records if "joins again in" in line.getMessage()]
    assert [line.rpartition(" in ")[2] for line in said] == ["1 s", "2 s"]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_the_new_incarnation_listens_at_the_same_port_and_has_a_journal_of_its_own(
    tmp_path: Path, transport: str
) -> None:
    """Over real sockets, with an exclusion that the test makes."""

    async def story(group: socket_group.Group) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        quick = Config(heartbeat=0.2, heartbeat_timeout=1.0, verify_timeout=0.3)
        a = await group.read("A", transport=transport, config=quick)
        options = {"bind": f"127.0.0.1:{port}", "journal": tmp_path / "journal", "transport": transport}
        c = await group.read("C", rejoin=True, config=quick, **options)
        first, contact = c.channel.address, c.channel.contact
        c.channel._member._pass(lambda event, now: c.channel._top.up_event(event), core.Excluded("excluded", ""))  # type: ignore[attr-defined]
        await socket_group.until(lambda: c.channel.address != first)
        assert c.channel.contact == contact == f"127.0.0.1:{port}"
        await c.channel.send(b"again", until="stable")
        await socket_group.until(lambda: a.payloads == [b"again"])
        folders = sorted(path.name for path in (tmp_path / "journal/g").iterdir())
        assert folders == sorted([str(first), str(c.channel.address)])

    socket_group.in_a_group(tmp_path, story)


def test_a_process_without_a_group_cannot_join_again() -> None:
    with pytest.raises(UsageError, match="rejoin= needs a group, and profile 'unicast' has none: leave it out"):
        Channel(None, profile="unicast", rejoin=True)


def test_a_channel_that_gives_way_to_a_newer_process_of_its_name_does_not_join_again() -> None:
    """The next incarnation would be the newer one, and end that process in turn."""
    newer = Address("C", "1" * 16)

    async def story(group: Group) -> None:
        a, b, c = await three(group)
        c.channel._session.member.happened(Replaced(newer))
        await until(lambda: c.left)
        assert c.left == [Left("name taken", [])]
        with pytest.raises(
            Excluded, match=f"has ended, because {newer} joined later under the same name; choose another name$"
        ):
            await c.task
        with pytest.raises(ChannelClosed):
            await c.channel.send(b"never")
        await until(lambda: a.channel.view.members == (a.channel.address, b.channel.address))
        await c.channel.leave()
        await end(b, a)
        assert len(c.views) == 1, "it has not joined again"

    run(story)
