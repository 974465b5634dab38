"""The channel over real sockets: what is sent, read, seen of the group, and how it comes and goes."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pygroups
from pygroups import (
    Channel,
    ChannelClosed,
    Config,
    Excluded,
    Gap,
    Left,
    MergeView,
    Message,
    NameTaken,
    NotSent,
    Refused,
    Unknown,
    UsageError,
    View,
)
from pygroups.core import events as core
from pygroups.drivers.discovery.entries import founders_lock
from tests.channel.socket_group import Group, Reader, group_in, in_a_group, until


def test_a_group_of_one_hears_itself_and_ends(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        events: list[Any] = []
        async with group.channel("A") as channel:
            assert [await channel.send(b"one"), await channel.send(b"two", until="stable")] == [1, 2]
            me, view = channel.address, channel.view
        async for event in channel:
            events.append(event)
        assert events == [
            View(view.id, (me,), me, True, (me,), (), (me,)),
            Message(me, b"one", 1, view.id, 0),
            Message(me, b"two", 2, view.id, 1),
            Left("left", []),
        ]

    in_a_group(tmp_path, story)


def test_all_members_see_the_same_in_the_same_order(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        readers = [await group.read(name) for name in "ABC"]
        await until(lambda: all(len(reader.channel.view.members) == 3 for reader in readers))

        async def feed(channel: Channel) -> None:
            for number in range(500):
                await channel.send(f"{channel.address.name}{number}".encode())
                if number % 50 == 0:
                    await asyncio.sleep(0)

        await asyncio.gather(*(feed(reader.channel) for reader in readers))
        await until(lambda: all(len(reader.payloads) == 1_500 for reader in readers))
        assert readers[0].payloads == readers[1].payloads == readers[2].payloads
        for name in "ABC":
            own = [payload for payload in readers[0].payloads if payload.startswith(name.encode())]
            assert own == [f"{name}{number}".encode() for number in range(500)]
        places = [(event.view, event.position) for event in readers[1].events if isinstance(event, Message)]
        assert places == [(readers[1].channel.view.id, position) for position in range(1_500)]

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("profile", ["fifo", "total"])
def test_whoever_waits_for_stable_knows_that_all_have_it(tmp_path: Path, profile: str) -> None:
    async def story(group: Group) -> None:
        first, second = await group.read("A", profile=profile), await group.read("B", profile=profile)
        await until(lambda: len(first.channel.view.members) == 2)
        await first.channel.wait(await first.channel.send(b"from A", until="stable"))
        await second.channel.wait(await second.channel.send(b"from B"), until="stable")
        for reader in (first, second):  # delivered everywhere; a reader may be a moment behind
            await until(lambda reader=reader: reader.payloads == [b"from A", b"from B"])

    in_a_group(tmp_path, story)


def test_a_message_to_one_reaches_nobody_else(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, second, third = [await group.read(name) for name in "ABC"]
        await until(lambda: len(first.channel.view.members) == 3)
        to = second.channel.address
        assert [await first.channel.send(payload, to=to) for payload in (b"psst", b"hey")] == [1, 2]
        assert await first.channel.send(b"to myself", to=first.channel.address) == 1
        assert await first.channel.send(b"all") == 1
        await until(lambda: len(second.payloads) == 3 and third.payloads and len(first.payloads) == 2)
        assert third.payloads == [b"all"]
        whispers = [event for event in second.events if isinstance(event, Message) and event.position is None]
        assert [(event.payload, event.number) for event in whispers] == [(b"psst", 1), (b"hey", 2)]
        assert set(first.payloads) == {b"to myself", b"all"}

    in_a_group(tmp_path, story)


def test_a_stranger_cannot_be_sent_to(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        with pytest.raises(NotSent, match="is not in the view"):
            await channel.send(b"x", to=pygroups.Address("B", "b" * 16))
        with pytest.raises(UsageError, match="is not an address"):
            await channel.send(b"x", to="B")  # type: ignore[arg-type]

    in_a_group(tmp_path, story)


def test_who_joins_and_leaves_is_seen_in_views(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first = await group.read("A")
        async with group.channel("B") as channel:
            second = Reader(channel)
            await until(lambda: len(first.views) == 2)
            joined = first.views[1]
            assert joined.members == (first.channel.address, channel.address)
            assert (joined.joined, joined.left) == ((channel.address,), ())
            assert joined.transitional == (first.channel.address,)
            await until(lambda: second.views)
            assert second.views[0].transitional == (channel.address,)
            assert second.views[0].id == joined.id
        await until(lambda: len(first.views) == 3)
        assert first.views[2].members == (first.channel.address,)
        assert first.views[2].left == (channel.address,)
        await second.task
        assert second.events[-1] == Left("left", [])

    in_a_group(tmp_path, story)


def test_a_newcomer_sees_what_is_sent_from_its_view_on(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first = await group.read("A")
        await first.channel.send(b"before", until="delivered")
        second = await group.read("B")
        await second.channel.send(b"after", until="delivered")
        await until(lambda: len(first.payloads) == 2 and second.payloads)
        assert second.payloads == [b"after"]

    in_a_group(tmp_path, story)


# -- refusals


def test_a_name_that_a_living_member_has_is_taken(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.read("A")
        with pytest.raises(NameTaken):
            async with group.channel("A"):
                pass

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("options", [{"profile": "fifo"}, {"config": Config(window=1 << 21)}])
def test_who_does_not_fit_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    async def story(group: Group) -> None:
        await group.read("A")
        with pytest.raises(Refused):
            async with group.channel("B", **options):
                pass
        assert [entry.name for entry in (group.folder / "g").iterdir() if entry.name.startswith("B")] == []

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("use", ["send", "leave", "stats", "mark", "iterate", "view", "address", "wait"])
def test_a_channel_that_has_not_joined_says_so(tmp_path: Path, use: str) -> None:
    async def story(group: Group) -> None:
        channel = group.channel("A", journal=tmp_path / "journal")
        with pytest.raises(ChannelClosed, match="async with"):
            match use:
                case "send":
                    await channel.send(b"x")
                case "leave":
                    await channel.leave()
                case "stats":
                    channel.stats()
                case "mark":
                    channel.mark("quiet")
                case "iterate":
                    await anext(channel)
                case "wait":
                    await channel.wait(1)
                case _:
                    getattr(channel, use)

    in_a_group(tmp_path, story)


def test_after_leaving_nothing_is_sent(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        async with group.channel("A") as channel:
            left = await channel.leave()
            assert left == Left("left", [])
            with pytest.raises(ChannelClosed, match="left its group"):
                await channel.send(b"x")
            with pytest.raises(ChannelClosed):
                channel.send_nowait(b"x")
            with pytest.raises(ChannelClosed):
                await channel.send_many([b"x"])
            assert await channel.leave() == left
        with pytest.raises(UsageError, match="was opened before: create a new Channel"):
            await channel.__aenter__()

    in_a_group(tmp_path, story)


def test_a_join_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        holder = group.channel("A")
        await holder.__aenter__()
        holder._session.directory.announce(False)  # type: ignore[union-attr]
        lock = founders_lock(holder._session.directory.folder)  # type: ignore[union-attr]
        assert lock is not None  # somebody else founds, and takes its time
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), group.channel("B"):
                pass
        assert not any(entry.name.startswith("B") for entry in (group.folder / "g").iterdir())
        os.close(lock)
        await holder.leave()

    in_a_group(tmp_path, story)


# -- payloads and arguments


def test_payloads_are_bytes_of_any_kind_and_of_limited_size(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", config=Config(payload_max=70_000))
        changing = bytearray(b"mutable")
        for payload in (b"", changing, memoryview(b"seen"), bytes(70_000)):
            await reader.channel.send(payload)
        changing[:] = b"changed"
        await until(lambda: len(reader.payloads) == 4)
        assert reader.payloads == [b"", b"mutable", b"seen", bytes(70_000)]
        for wrong in ("text", 5, None, [b"x"]):
            with pytest.raises(UsageError, match="a payload is bytes"):
                await reader.channel.send(wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"70,001 bytes; the limit is 70,000"):
            await reader.channel.send(bytes(70_001))
        with pytest.raises(UsageError, match="70,001"):
            reader.channel.send_nowait(bytes(70_001))
        await reader.channel.send(b"and on it goes", until="delivered")

    in_a_group(tmp_path, story)


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        with pytest.raises(UsageError, match="'delivered', 'read' or 'stable'"):
            await channel.send(b"x", until="soon")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="timeout=-1"):
            await channel.send(b"x", timeout=-1)
        with pytest.raises(UsageError, match="message 1 is not one of this member's messages to all members"):
            await channel.wait(1)
        with pytest.raises(UsageError, match="needs a journal"):
            channel.mark("quiet")
        assert channel.stats()["gauges"]["top.unsent"] == 0

    in_a_group(tmp_path, story)


def test_send_many_keeps_the_order_and_tells_the_numbers(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", config=Config(window=128 << 10))
        payloads = [str(number).encode() * 50 for number in range(3_000)]  # several windows
        assert await reader.channel.send_many(payloads, until="delivered") == list(range(1, 3_001))
        assert await reader.channel.send_many([]) == []
        await until(lambda: len(reader.payloads) == 3_000)
        assert reader.payloads == payloads
        with pytest.raises(UsageError):
            await reader.channel.send_many([b"fine", "not fine"])  # type: ignore[list-item]
        await until(lambda: reader.payloads[-1] == b"fine")

    in_a_group(tmp_path, story)


def test_unknown_says_which_message(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        with pytest.raises(Unknown) as caught:
            await reader.channel.send(b"x", until="stable", timeout=0)
        assert caught.value.number == 1
        await reader.channel.wait(1, timeout=5)
        with pytest.raises(Unknown):
            await asyncio.gather(reader.channel.send(b"y", until="stable", timeout=0))

    in_a_group(tmp_path, story)


def test_statistics_are_plain_and_bounded(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", journal=tmp_path / "journal")
        await reader.channel.send(b"x", until="stable")
        stats = json.loads(json.dumps(reader.channel.stats()))
        assert stats["address"] == str(reader.channel.address)
        assert stats["members"] == 1
        assert stats["window"] == {"size": 1 << 20, "free": 1 << 20, "waits_for": []}
        assert stats["journal"]["lost"] == 0
        assert stats["journal"]["records"] > 0
        assert stats["memory_bound"] >= 4 << 20
        assert not any(stats["gauges"].values())

    in_a_group(tmp_path, story)


# -- reading


def test_one_task_reads(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        assert isinstance(await anext(channel), View)
        waiting = asyncio.create_task(anext(channel))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="another task reads"):
            await anext(channel)
        await channel.send(b"x")
        assert (await waiting).payload == b"x"

    in_a_group(tmp_path, story)


def test_giving_up_waiting_for_an_event_loses_none(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        events = aiter(channel)
        assert isinstance(await anext(events), View)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events), 0.01)
        await channel.send_many([b"1", b"2", b"3"])
        async for event in channel:
            assert event.payload == b"1"  # type: ignore[attr-defined]
            break
        batches = channel.batches()
        assert [event.payload for event in await anext(batches)] == [b"2", b"3"]  # type: ignore[attr-defined]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(batches), 0.01)
        await channel.send(b"4")
        assert [event.payload for event in await anext(batches)] == [b"4"]  # type: ignore[attr-defined]

    in_a_group(tmp_path, story)


def test_no_batch_spans_a_view(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        await channel.send_many([b"1", b"2"], until="delivered")
        async with group.channel("B") as other:
            await other.send(b"3", until="delivered")
            await until(lambda: len(channel.view.members) == 2)
        await until(lambda: len(channel.view.members) == 1)
        await channel.leave()
        kinds = [[type(event).__name__ for event in batch] async for batch in channel.batches()]
        assert kinds == [["View"], ["Message"] * 2, ["View"], ["Message"], ["View"], ["Left"]]

    in_a_group(tmp_path, story)


# -- faults of ours, and of the disk


def test_a_fault_inside_is_raised_wherever_the_application_is(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = group.channel("A")
        await channel.__aenter__()
        reader = Reader(channel)
        await until(lambda: reader.views)
        waiting = asyncio.create_task(channel.send(b"x", until="delivered"))
        await asyncio.sleep(0)
        fault = AssertionError("two and two make five")
        channel._member.crash(fault)
        with pytest.raises(AssertionError, match="five"):
            await reader.task
        with pytest.raises(Unknown, match="crashed"):
            await waiting
        with pytest.raises(ChannelClosed, match="crashed"):
            await channel.send(b"y")
        with pytest.raises(AssertionError, match="five"):
            await channel.__aexit__(None, None, None)

    in_a_group(tmp_path, story)


def test_a_crashed_member_is_found_dead_by_the_others(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, second = await group.read("A"), group.channel("B")
        await second.__aenter__()
        await until(lambda: len(first.channel.view.members) == 2)
        second._member.crash(AssertionError("gone"))
        await until(lambda: len(first.views) == 3)
        assert [type(event).__name__ for event in first.events[-2:]] == ["Suspected", "View"]

    in_a_group(tmp_path, story)


def test_a_member_that_hangs_is_found_by_its_silence_and_comes_back_by_a_merge(tmp_path: Path) -> None:
    """It has an event loop of its own, which is blocked for a while; it coordinates.  It is the same member again."""
    quick = Config(heartbeat=0.05, heartbeat_timeout=0.5, verify_timeout=0.1)
    joined, hang, awake = threading.Event(), threading.Event(), threading.Event()
    readers: list[Reader] = []

    async def hanging() -> None:
        async with group_in(tmp_path) as group:
            reader = await group.read("A", config=quick)
            readers.append(reader)
            joined.set()
            while not hang.is_set():
                await asyncio.sleep(0.01)
            awake.wait(30)
            await until(lambda: isinstance(reader.views[-1], MergeView) and len(reader.views[-1].members) == 3)
            await until(lambda: any(isinstance(event, Gap) for event in reader.events))
            assert not reader.left

    async def story(group: Group) -> None:
        await until(joined.is_set)
        second, third = [await group.read(name, config=quick) for name in "BC"]
        await until(lambda: all(len(reader.channel.view.members) == 3 for reader in (second, third)))
        hang.set()
        await until(lambda: len(second.channel.view.members) == len(third.channel.view.members) == 2)
        assert second.channel.view.left == (readers[0].channel.address,)
        number = await second.channel.send(b"while A hangs", until="delivered")
        awake.set()
        await until(lambda: len(second.views[-1].members) == 3)
        merged = second.views[-1]
        assert isinstance(merged, MergeView) and merged.joined == (readers[0].channel.address,)
        sides = {(readers[0].channel.address,), tuple(sorted(reader.channel.address for reader in (second, third)))}
        assert set(merged.subgroups) == sides
        await until(done.done)
        (gap,) = (event for event in readers[0].events if isinstance(event, Gap))
        assert gap == Gap(second.channel.address, number, 1, merged.subgroups[1])

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(asyncio.run, hanging())
        try:
            in_a_group(tmp_path, story)
        finally:
            awake.set()
        done.result(30)


def test_whoever_is_excluded_is_told_and_ends(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = group.channel("A", config=Config(window=64 << 10))
        await channel.__aenter__()
        channel._top.waits_for_all = True
        reader = Reader(channel)
        await until(lambda: reader.views)
        blocked = [asyncio.create_task(channel.send(bytes(60_000))) for _ in range(2)]
        await asyncio.sleep(0)
        channel._member._pass(lambda event, now: channel._top.up_event(event), core.Excluded("excluded", ""))
        with pytest.raises(Excluded):
            await reader.task
        assert reader.left == [Left("excluded", [1])]
        assert await blocked[0] == 1
        with pytest.raises(NotSent, match="excluded"):
            await blocked[1]
        assert channel._member.closed

    in_a_group(tmp_path, story)


def test_a_lost_journal_is_an_event_and_the_member_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(group: Group) -> None:
        from pygroups.journal import writer

        reader = await group.read("A", journal=tmp_path / "journal")
        await reader.channel.send(b"written", until="stable")

        def full(file: int, data: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(writer, "_write_all", full)
        await reader.channel.send(b"not written", until="delivered")
        monkeypatch.undo()
        await reader.channel.send(b"written again", until="delivered")
        await until(lambda: len(reader.payloads) == 3)
        lost = [event for event in reader.events if isinstance(event, pygroups.JournalLost)]
        assert len(lost) == 1
        assert "No space left on device" in lost[0].reason
        assert reader.channel.stats()["journal"]["lost"] > 0

    in_a_group(tmp_path, story)
