"""A group in memory: channels unchanged, faults, rest, and what fails a test."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import pygroups
from pygroups import Channel, ChannelClosed, Config, Gap, Left, MergeView, Message, NameTaken, UsageError, View
from pygroups.core import turn
from pygroups.core.stack import Output
from pygroups.journal.reader import find_segments, read_segments
from pygroups.sim.promises.broken import Broken
from pygroups.testing import Crashed, Group, Hang, LeftOpen, Unsettled, run
from tests.patience import patience

Program = Callable[..., Coroutine[Any, Any, None]]


async def payloads(channel: Channel, count: int) -> list[bytes]:
    """The next messages."""
    found: list[bytes] = []
    async for event in channel:
        if isinstance(event, Message):
            found.append(event.payload)
        if len(found) == count:
            break
    return found


async def view_of(channel: Channel, *names: str) -> View:
    """Read on to the view of exactly these."""
    async for event in channel:
        if isinstance(event, View) and sorted([member.name for member in event.members]) == sorted(names):
            return event
    raise AssertionError("the channel has ended")


class Reading:
    """A channel whose events are read as they come."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.events: list[pygroups.Event] = []
        self.task = asyncio.create_task(self._read(), name="reader")

    async def _read(self) -> None:
        async for event in self.channel:
            self.events.append(event)

    @property
    def payloads(self) -> list[bytes]:
        return [event.payload for event in self.events if isinstance(event, Message)]


# -- a group


def test_channels_see_each_other_and_one_order() -> None:
    async def story(group: Group) -> None:
        async with group.channel("orders", name="A") as a, group.channel("orders", name="B") as b:
            await asyncio.gather(*[channel.send(bytes([n])) for n in range(10) for channel in (a, b)])
            assert await payloads(a, 20) == await payloads(b, 20)
            assert {member.name for member in a.view.members} == {"A", "B"}

    run(story)


def test_a_program_that_opens_its_own_channels_needs_no_change() -> None:
    async def program() -> list[str]:
        async with Channel("orders") as first, Channel("orders", bind="127.0.0.1:7001") as second:
            assert first.address.name != second.address.name
            await second.send(b"x", until="stable")
            await view_of(first, "member-1", "member-2")
            return [member.name for member in first.view.members]

    assert Group().run(program) == ["member-1", "member-2"]


def test_on_any_other_loop_a_channel_has_the_real_platform(tmp_path: Path) -> None:
    async def program() -> str:
        async with Channel("orders", name="A", discovery=f"dir:{tmp_path}") as channel:
            return channel._member.network.contact  # type: ignore[attr-defined, no-any-return]

    assert Group().run(program) == "A"
    assert asyncio.run(program()).startswith("127.0.0.1:")


def test_groups_and_folders_are_apart() -> None:
    async def story(group: Group) -> None:
        others = [("orders", "dir:/a"), ("orders", "dir:/b"), ("prices", "dir:/a")]
        for name, discovery in others:
            channel = await Channel(name, name="A", discovery=discovery).__aenter__()
            assert len(channel.view.members) == 1
            Reading(channel)
        await group.settled()

    with pytest.warns(LeftOpen):
        run(story)


def test_a_living_members_name_is_taken() -> None:
    async def story(group: Group) -> None:
        async with group.channel("orders", name="A"):
            with pytest.raises(NameTaken, match="A"):
                await group.channel("orders", name="A").__aenter__()

    run(story)


def test_a_joiner_begins_with_the_state() -> None:
    class Counter:
        def __init__(self) -> None:
            self.value = 0

        async def get_state(self) -> bytes:
            return str(self.value).encode()

        async def set_state(self, data: bytes) -> None:
            self.value = int(data)

    async def count(channel: Channel, counter: Counter) -> None:
        async for event in channel:
            counter.value += isinstance(event, Message)

    async def story(group: Group) -> None:
        counters = [Counter(), Counter()]
        async with group.channel("orders", name="A", state=counters[0]) as a:
            reading = [asyncio.create_task(count(a, counters[0]))]
            await a.send_many([b"x"] * 5, until="stable")
            async with group.channel("orders", name="B", state=counters[1]) as b:
                reading.append(asyncio.create_task(count(b, counters[1])))
                await b.send(b"y", until="stable")
                await group.settled()
                assert [counter.value for counter in counters] == [6, 6]
        await asyncio.gather(*reading)

    run(story)


def test_a_program_whose_state_fails_breaks_no_promise_of_the_group() -> None:
    class Failing:
        async def get_state(self) -> bytes:
            raise ZeroDivisionError("mine")

        async def set_state(self, data: bytes) -> None: ...

    async def story(group: Group) -> None:
        async with group.channel("orders", name="A", state=Failing()) as a:
            reading = asyncio.create_task(payloads(a, 1))
            async with group.channel("orders", name="B", state=Failing()) as b:
                with pytest.raises(pygroups.StateLost):
                    await b.ready()
                with pytest.raises(ZeroDivisionError, match="mine"):
                    await reading

    run(story)


@pytest.mark.parametrize("profile", ["total", "fifo", "total1999"])
def test_five_channels_a_crash_and_a_thousand_messages_take_less_than_a_second(profile: str) -> None:
    async def story(group: Group) -> None:
        names = "ABCDE"
        channels = [group.channel("orders", name=name, profile=profile) for name in names]
        async with channels[0], channels[1], channels[2], channels[3], channels[4]:
            readers = [Reading(channel) for channel in channels]
            await group.settled()
            for number in range(200):
                await asyncio.gather(*[channel.send(b"%d" % number) for channel in channels[number >= 100 :]])
                if number == 99:
                    group.crash("A")
            await group.settled()
            lists = [reader.payloads for reader in readers[1:]]
            assert all(len(heard) >= 800 for heard in lists)  # of those of A, some had not left
            if profile != "fifo":
                assert lists == [lists[0]] * 4
        await asyncio.gather(*[reader.task for reader in readers[1:]])

    begin = time.process_time()
    run(story)
    assert time.process_time() - begin < patience(10 * SLOWNESS)


SLOWNESS = 5  # of a machine that does other things as well


# -- time


def test_time_is_virtual_and_timers_keep_their_order() -> None:
    async def story(group: Group) -> list[str]:
        done: list[str] = []

        async def at(seconds: float) -> None:
            await asyncio.sleep(seconds)
            done.append(f"{group.now:.3f}")

        await asyncio.gather(at(3600), at(0.5), at(86_400 / 24 + 0.001))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.Event().wait()
        return done

    begin = time.process_time()
    assert run(story) == ["0.500", "3600.000", "3600.001"]
    assert time.process_time() - begin < patience(10)


def test_an_hour_of_three_members_passes_in_seconds() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B") as b, Channel("g", name="C") as c:
            readers = [Reading(channel) for channel in (a, b, c)]
            await asyncio.sleep(3_600)
            assert len(a.view.members) == 3
            await a.send(b"x", until="stable")
            assert group.now > 3_600
        await asyncio.gather(*[reader.task for reader in readers])

    begin = time.process_time()
    run(story)
    assert time.process_time() - begin < patience(2 * SLOWNESS)


def test_who_polls_sees_time_go_by() -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as a, group.channel("g", name="B"):
            while len(a.view.members) < 2:
                await asyncio.sleep(0)

    run(story)


def test_time_stands_still_while_a_thread_works() -> None:
    async def story(group: Group) -> None:
        before = group.now
        await asyncio.to_thread(time.sleep, 0.05)
        assert group.now - before < 0.01
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(asyncio.to_thread(lambda: 1 // 0), timeout=0.001)

    run(story)


def test_there_are_no_sockets() -> None:
    async def story(group: Group) -> None:
        with pytest.raises(UsageError, match="cannot use sockets"):
            await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        with pytest.raises(UsageError, match="cannot use sockets"):
            await asyncio.open_connection("127.0.0.1", 9)
        with pytest.raises(UsageError, match="or other processes"):
            await asyncio.create_subprocess_exec("true")

    run(story)


def test_a_join_may_be_given_up() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a:
            group.partition(["A"], ["B"])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3), Channel("g", name="B"):
                    raise AssertionError("nobody can hear it")
            group.heal()
            async with Channel("g", name="B"):
                await view_of(a, "A", "B")

    run(story)


@pytest.mark.parametrize("profile", ["total", "fifo", "total1999"])
def test_confirmed_messages_one_after_another_take_two_milliseconds_each(profile: str) -> None:
    async def story(group: Group) -> None:
        async with (
            Channel("g", name="A", profile=profile) as a,
            Channel("g", name="B", profile=profile) as b,
            Channel("g", name="C", profile=profile) as c,
        ):
            readers = [Reading(channel) for channel in (a, b, c)]
            await group.settled(one=True)
            for channel in (a, c):
                begin = group.now
                for number in range(50):
                    await channel.send(b"%d" % number, until="stable")
                assert (group.now - begin) / 50 < 0.002
        await asyncio.gather(*[reader.task for reader in readers])

    run(story)


@pytest.mark.parametrize("profile", ["total", "fifo", "total1999"])
def test_more_than_a_window_goes_through(profile: str) -> None:
    async def story(group: Group) -> None:
        a = Channel("g", name="A", profile=profile, events="none")
        async with a, Channel("g", name="B", profile=profile) as b, Channel("g", name="C", profile=profile) as c:
            readers = [Reading(channel) for channel in (b, c)]
            await group.settled(one=True)
            for _ in range(80):
                await asyncio.gather(*[channel.send(bytes(20_000)) for channel in (a, b, c)])
            await group.settled(one=True)
            assert [len(reader.payloads) for reader in readers] == [240, 240]
            ((_, judge),) = group._platform.rooms.values()
            assert judge.facts["window-bound"] == 240
        await asyncio.gather(*[reader.task for reader in readers])

    run(story)


# -- faults


def test_messages_to_one_that_crashes_are_reported() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B") as b:
            reader = Reading(a)
            await group.settled()
            await a.send(b"heard", to=b.address)
            assert await payloads(b, 1) == [b"heard"]
            await asyncio.sleep(1)  # it is acknowledged
            group.partition(["A"], ["B"])
            await a.send(b"lost", to=b.address)
            group.crash("B")
            await group.settled()
        await reader.task
        assert [event.numbers for event in reader.events if isinstance(event, pygroups.Undelivered)] == [range(2, 3)]

    run(story)


def test_what_only_the_journal_says_is_judged_too() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B") as b:
            readers = [Reading(channel) for channel in (a, b)]
            for number in range(5):
                await a.send(b"%d" % number, to=b.address)
                await b.send(b"%d" % number, until="stable")
            await group.settled()
        await asyncio.gather(*[reader.task for reader in readers])
        ((_, judge),) = group._platform.rooms.values()
        assert judge.facts["unicast-fifo"] >= 5
        assert judge.facts["stability-safety"] >= 10

    run(story)


def test_a_crashed_process_says_nothing_and_comes_back_as_another() -> None:
    async def story(group: Group) -> None:
        async with group.channel("orders", name="A") as a, group.channel("orders", name="B") as b:
            reading = Reading(b)
            first = a.address
            await a.send(b"before", until="stable")
            waiting = asyncio.create_task(payloads(a, 9))
            await asyncio.sleep(0.1)
            group.crash("A")
            with pytest.raises(Crashed, match="the test crashed A"):
                await waiting
            with pytest.raises(ChannelClosed, match="crashed"):
                await a.send(b"x")
            await group.settled()
            assert [member.name for member in b.view.members] == ["B"]
            async with group.channel("orders", name="A") as again:
                assert again.address != first
                await again.send(b"after", until="delivered")
                await group.settled()
        await reading.task
        assert reading.payloads == [b"before", b"after"]
        assert not any(isinstance(event, Left) and event.reason != "left" for event in reading.events)

    run(story)


def test_a_process_ends_with_all_its_tasks() -> None:
    beats: list[float] = []

    async def service(group: Group) -> None:
        async def heart() -> None:
            while True:
                beats.append(group.now)
                await asyncio.sleep(1)

        async with Channel("orders") as channel:
            task = asyncio.create_task(heart())
            async for event in channel:
                if isinstance(event, Message) and event.payload == b"question":
                    await channel.send(b"answer")
            await task

    async def story(group: Group) -> None:
        process = group.start("server", service(group))
        async with Channel("orders", name="client") as client:
            await view_of(client, "server", "client")
            await client.send(b"question")
            assert await payloads(client, 2) == [b"question", b"answer"]
            await asyncio.sleep(3)
            group.crash("server")
            await view_of(client, "client")
            heard = len(beats)
            await asyncio.sleep(10)
            assert len(beats) == heard >= 3
            assert process.done()
            group.start("server", service(group))
            await view_of(client, "client", "server")

    run(story)  # and what was started ends without a warning


def test_sides_that_are_cut_off_see_each_other_no_more() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B") as b, Channel("g", name="C") as c:
            readers = [Reading(channel) for channel in (a, b, c)]
            await group.settled()
            group.partition(["A"], ["B", "C"])
            await group.settled()
            assert [len(channel.view.members) for channel in (a, b, c)] == [1, 2, 2]
            await b.send(b"x", until="stable")
            lives = {channel.address for channel in (a, b, c)}
            group.heal()
            await group.settled(one=True)
            assert group.views() == [("A", "B", "C")] and set(a.view.members) == lives
            assert isinstance(a.view, MergeView) and isinstance(c.view, MergeView)
            await a.send(b"y", until="stable")
        await asyncio.gather(*[reader.task for reader in readers])
        assert [reader.payloads for reader in readers] == [[b"y"], [b"x", b"y"], [b"x", b"y"]]
        gaps = [[event for event in reader.events if isinstance(event, Gap)] for reader in readers]
        assert gaps == [[Gap(b.address, 1, 1, (b.address, c.address))], [], []]

    run(story)


def test_one_side_alone_is_cut_off_from_all_others() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B"), Channel("g", name="C") as c:
            await group.settled()
            group.partition(["C"])
            await group.settled()
            assert [len(channel.view.members) for channel in (a, c)] == [2, 1]
            with pytest.raises(UsageError, match="lists of names"):
                group.partition("A", "C")

    run(story)


@pytest.mark.parametrize("weather", [{"loss": 0.2}, {"repeat": 0.2, "reorder": 0.3, "late": 0.05}, {"corrupt": 0.1}])
def test_bad_weather_is_survived(weather: dict[str, float]) -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B") as b:
            readers = [Reading(channel) for channel in (a, b)]
            await group.settled()
            group.weather(**weather)
            for number in range(100):
                await a.send(b"%d" % number)
                await b.send(b"%d" % number)
                await asyncio.sleep(0.01)
            group.heal()
            await group.settled()
            assert sum(group._platform.weather.counters.values()) > 10
        await asyncio.gather(*[reader.task for reader in readers])

    run(story)


def test_a_fault_that_is_none_is_refused() -> None:
    async def story(group: Group) -> None:
        with pytest.raises(UsageError, match="no member 'B' to crash: there is no process"):
            group.crash("B")
        with pytest.raises(UsageError, match="shares from 0 to 1"):
            group.loss(10)
        with pytest.raises(UsageError, match="shares from 0 to 1"):
            group.weather(rain=0.1)

    run(story)
    with pytest.raises(UsageError, match="does not run"):
        Group().crash("A")


# -- rest


def test_what_nobody_reads_hinders_no_rest_and_a_full_window_does() -> None:
    async def story(group: Group) -> None:
        config = Config(window=64 << 10, run_bytes=16 << 10)
        async with Channel("g", name="A", config=config) as a, Channel("g", name="B", config=config):
            await a.send(b"x")
            await group.settled()
            sending = asyncio.create_task(a.send_many([bytes(10_000)] * 20))
            with pytest.raises(Unsettled, match="wait for room in the window") as raised:
                await group.settled(within=5)
            assert "channel B of group 'g': view 2 [A B], 8 unread" in str(raised.value)
            sending.cancel()

    run(story)


def test_two_sides_of_a_split_are_at_rest_and_one_group_is_not_there() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B") as b, Channel("g", name="C") as c:
            readers = [Reading(channel) for channel in (a, b, c)]
            await group.settled(one=True)
            assert group.views() == group.views("g") == [("A", "B", "C")]
            assert group.views("another group") == []
            group.partition(["A"], ["B", "C"])
            await group.settled()
            assert group.views() == [("A",), ("B", "C")]
            with pytest.raises(Unsettled, match=r"the members are in 2 views: \[A\], \[B C\]"):
                await group.settled(one=True)
            group.crash("B", "C")
            await group.settled(one=True)
            assert group.views() == [("A",)]
        await readers[0].task
        await asyncio.gather(*[reader.task for reader in readers[1:]], return_exceptions=True)

    run(story)


# -- what fails a test


def test_what_the_program_raises_reaches_the_test() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A"):
            await asyncio.sleep(1.5)
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        run(story, seed=7)
    assert "seed 7, 6.5" in raised.value.__notes__[0] or "seed 7, 1.5" in raised.value.__notes__[0]


def test_what_a_task_raises_that_nobody_waits_for_fails_the_test() -> None:
    async def broken() -> None:
        raise ZeroDivisionError("in a task")

    async def story(group: Group) -> None:
        task = asyncio.create_task(broken(), name="worker")
        await asyncio.sleep(1)
        assert task.done()

    async def other(group: Group) -> None:
        group.start("A", broken())
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    async def heard(group: Group) -> None:
        with pytest.raises(ZeroDivisionError):
            await group.start("A", broken())

    with pytest.raises(ZeroDivisionError, match="in a task") as raised:
        run(story)
    assert "worker" in raised.value.__notes__[0]
    with pytest.raises(BaseExceptionGroup) as several:
        run(other)
    assert len(several.value.exceptions) == 2
    run(heard)


def test_a_hang_is_told_at_once() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B"):
            await payloads(a, 1)

    begin = time.process_time()
    with pytest.raises(Hang) as raised:
        run(story)
    assert time.process_time() - begin < patience(SLOWNESS)
    text = str(raised.value)
    assert "no message, timer or result can arrive any more" in text
    assert "task 'the test' waits for an event at channel A (test_group.py:" in text
    assert "in payloads)" in text
    assert "channel B of group 'g': view 2 [A B], 1 unread" in text


def test_a_hang_says_who_waits_to_join_or_for_a_task_or_for_room_and_what_failed_before() -> None:
    async def broken() -> None:
        raise ZeroDivisionError("this is why")

    async def fill(channel: Channel) -> None:
        await channel.send_many([bytes(10_000)] * 300)

    async def story(group: Group) -> None:
        group.partition(["A"], ["B"])
        config = Config(window=64 << 10, run_bytes=16 << 10)
        async with Channel("g", name="A", config=config) as a, Channel("g", name="C", config=config):
            joining = asyncio.create_task(Channel("g", name="B").__aenter__(), name="joining")
            filling = asyncio.create_task(fill(a), name="filling")
            failing = asyncio.create_task(broken(), name="failing")
            await asyncio.Event().wait()
            del joining, filling, failing

    async def waits_for_a_task(group: Group) -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="other")

    with pytest.raises(Hang) as raised:
        run(story)
    text = str(raised.value)
    assert "task 'the test' waits for an asyncio.Event (test_group.py:" in text
    assert "task 'joining' waits for its join to finish at channel B" in text
    assert "task 'filling' waits for room in the window at channel A" in text
    assert "task 'failing' has failed: ZeroDivisionError('this is why')" in text
    with pytest.raises(Hang, match="task 'the test' waits for task 'other'"):
        run(waits_for_a_task)


def test_what_fails_because_a_hanging_test_is_ended_is_not_told() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B"):
            await group.settled()

            async def fill() -> None:
                while True:
                    await a.send(bytes(60_000))

            filling = asyncio.create_task(fill(), name="filling")
            await asyncio.Event().wait()
            del filling

    with pytest.raises(Hang, match="task 'filling' waits for room in the window") as raised:
        run(story)
    assert [note for note in raised.value.__notes__ if "something else" in note] == []


def test_a_test_that_goes_on_for_ever_ends_at_its_limit() -> None:
    async def story(group: Group) -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(Hang, match="longer than 60 seconds"):
        run(story, limit=60)


def test_a_broken_promise_fails_the_test_with_its_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygroups.layers.nakack import Nakack

    def twice(self: Nakack, run: Any) -> Any:
        risen = original(self, run)
        if risen is not None and run.count:
            self.above.append(risen)
        return risen

    original = Nakack.rise

    async def story(group: Group) -> None:
        async with Channel("g", name="A", profile="fifo") as a, Channel("g", name="B", profile="fifo"):
            await a.send(b"x")
            await asyncio.Event().wait()

    monkeypatch.setattr(Nakack, "rise", twice)
    group = Group(seed=5)
    with pytest.raises(Broken, match="no-duplication") as raised:
        group.run(story, group)
    assert raised.value.witness.message.startswith("A@")
    with pytest.raises(Broken):
        group.check()


def test_a_turn_in_which_the_application_comes_before_the_journal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    deal = turn.hand_out

    def application_first(output: Output, now: int, outside: turn.Outside) -> None:
        outside.inbox.arrived(output.events)
        deal(output._replace(events=[]), now, outside)

    async def story() -> None:
        async with Channel("g", name="A") as a:
            await a.send(b"x")
            await payloads(a, 1)

    Group().run(story)
    monkeypatch.setattr(turn, "hand_out", application_first)
    with pytest.raises(Broken, match="journal-first"):
        Group().run(story)


def test_a_member_that_falls_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    from pygroups.layers.sequencer import Sequencer

    def falls(self: Sequencer, run: Any) -> None:
        raise AssertionError("ours")

    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a:
            monkeypatch.setattr(Sequencer, "down", falls)
            await a.send(b"x")
            await asyncio.sleep(5)

    with pytest.raises(AssertionError, match="ours"):
        run(story)


def test_what_is_left_at_the_end_is_closed_with_a_warning_that_names_it() -> None:
    kept: list[Channel] = []

    async def story(group: Group) -> None:
        kept.append(await group.channel("orders", name="A").__aenter__())
        kept.append(group.channel("orders", name="B"))
        asyncio.create_task(asyncio.Event().wait(), name="forgotten")  # noqa: RUF006

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(story)
    texts = [str(warning.message) for warning in caught if warning.category is LeftOpen]
    assert texts == [
        "task 'forgotten' still ran at the end of the test, and was canceled: await or cancel this task",
        "channel A of group 'orders' was open at the end of the test, and was closed: use `async with`",
    ]
    assert kept[0]._member.closed


def test_a_task_that_does_not_let_itself_be_canceled_fails_the_test() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    async def story(group: Group) -> None:
        group.start("A", stubborn())
        await asyncio.sleep(1)

    with pytest.raises(Hang, match=r"continue although they were canceled:\n  task 'A' waits for time to pass"):
        run(story)


def test_a_generator_that_is_left_is_closed() -> None:
    closed: list[float] = []

    async def numbers(group: Group) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(1)
            closed.append(group.now)

    async def story(group: Group) -> None:
        async for number in numbers(group):
            assert number == 1
            break

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(story)
    assert closed


def test_a_group_runs_one_test() -> None:
    async def nothing() -> None: ...

    group = Group()
    group.run(nothing)
    with pytest.raises(UsageError, match="has run a test already"):
        group.run(nothing)
    with pytest.raises(UsageError, match="the test is over: process 'A' was not started"):
        group.start("A", nothing())


# -- journals, and the same again

STORY = """
import asyncio, sys
from pathlib import Path
from pygroups import Channel
from pygroups.testing import run

async def service(name):
    async with Channel("g") as channel:
        await channel.send_many([name.encode()] * 20)
        async for event in channel:
            pass

async def fail():
    await asyncio.sleep(0.2)
    raise ValueError

async def say(channel, text):
    try:
        await asyncio.sleep(1)
    finally:
        await channel.send(text)

async def story(group):
    for name in "ABCD":
        group.start(name, service(name))
    async with Channel("g", name="E") as channel:
        try:
            async with asyncio.TaskGroup() as tasks:  # it cancels in the order of a set
                for number in range(20):
                    tasks.create_task(say(channel, b"%d" % number))
                tasks.create_task(fail())
        except* ValueError:
            pass
    group.loss(0.1)
    await asyncio.sleep(2)
    group.crash("A")
    group.partition(["B"], ["C", "D"])
    await asyncio.sleep(20)
    group.heal()
    await group.settled()
    group.journal(sys.argv[1])
    print(group.now)

run(story, seed=int(sys.argv[2]))
"""


def played(folder: Path, seed: int, hash_seed: int) -> tuple[str, dict[str, bytes]]:
    """What the story prints, and the journals it leaves, in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", STORY, str(folder), str(seed)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.journal"))}
    return ended.stdout, files


def test_the_same_seed_gives_the_same_journals_byte_for_byte(tmp_path: Path) -> None:
    first = played(tmp_path / "1", 1, 0)
    assert len(first[1]) == 5
    assert played(tmp_path / "2", 1, 12_345) == first
    assert played(tmp_path / "3", 2, 0)[1] != first[1]


def test_a_set_of_tasks_has_the_same_order_in_every_process() -> None:
    async def story(group: Group) -> list[int]:
        tasks = {asyncio.create_task(asyncio.sleep(0), name=str(number)) for number in range(6)}
        await asyncio.wait(tasks)
        return [int(task.get_name()) for task in tasks]

    order = run(story)
    assert order == sorted(order) or order[order.index(0) :] + order[: order.index(0)] == sorted(order)


def test_journals_are_saved_as_members_write_them(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A", journal=tmp_path / "own") as a:
            await a.send(b"x", until="stable")
            group.loss(0.0)
            group.heal()
        group.journal(tmp_path / "all")

    run(story)
    kinds = {}
    for folder in ("own", "all"):
        batches = read_segments(find_segments([tmp_path / folder]))
        kinds[folder] = [row["kind"] for batch in batches for row in batch.to_pylist()]  # type: ignore[union-attr]
    assert kinds["own"] == kinds["all"]
    assert {"start", "view", "send", "deliver", "fault", "heal", "leave", "stop"} <= {*kinds["all"]}


def test_a_life_that_begins_while_a_fault_lasts_has_a_mark_of_its_own(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        group.loss(0.02)
        group.partition(["B"], ["nobody"])
        async with Channel("g", name="A") as a:
            group.heal()
            async with Channel("g", name="B"):
                await a.send(b"x", until="stable")
        group.journal(tmp_path)

    run(story)
    rows = [row for batch in read_segments(find_segments([tmp_path])) for row in batch.to_pylist()]  # type: ignore[union-attr]
    marks = [(row["member"], row["index"], row["kind"], row["reason"]) for row in rows if row["kind"] == "fault"]
    assert marks == [("A", 1, "fault", "weather"), ("A", 2, "fault", "cut")], "B began when all had healed"


def test_a_coordinator_without_a_state_is_not_asked_for_one() -> None:
    class Keeper:
        def __init__(self, data: bytes) -> None:
            self.data = data

        async def get_state(self) -> bytes:
            return self.data

        async def set_state(self, data: bytes) -> None:
            self.data = data

    async def story(group: Group) -> None:
        async with Channel("g", name="customer"), Channel("g", name="B", state=Keeper(b"orders")) as second:
            group.start("one", _read_all(second))
            late = Keeper(b"")
            async with Channel("g", name="A", state=late) as joiner:
                assert [member.name for member in joiner.view.members] == ["customer", "B", "A"]
                group.start("another", _read_all(joiner))
                await group.settled()
                assert late.data == b"orders"

    run(story)


async def _read_all(channel: Channel) -> None:
    async for _ in channel:
        pass
