"""What a program's author sees: errors, short texts, and what is refused at the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Config, NotSent, Refused, Suspected, Timeout, Unknown, UsageError, View, ViewId
from pygroups.core.address import Address
from tests.channel.socket_group import Group, Reader, in_a_group, until

A, B = Address("A", "3f2c91d0"), Address("B", "77aa01be")
SMALL = Config(window=64 << 10, run_bytes=16 << 10)


def test_both_kinds_of_time_out_are_time_outs(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A", config=SMALL)
        await group.joined("B", config=SMALL)
        await until(lambda: len(channel.view.members) == 2)
        with pytest.raises(TimeoutError) as late:
            await channel.send(b"x", until="stable", timeout=0)
        assert isinstance(late.value, Unknown)
        assert late.value.number == 1
        assert str(late.value) == "message 1 was not stable within 0 s; the message may still become stable"
        with pytest.raises(TimeoutError):
            await channel.send_many([b"x", b"y"], until="stable", timeout=0)
        with pytest.raises(TimeoutError) as full:
            await channel.send_many([bytes(8 << 10)] * 20, timeout=0.1)
        assert isinstance(full.value, Timeout)
        assert isinstance(full.value, NotSent)
        assert 0 < full.value.accepted < 20
        assert "no room" in str(full.value)

    in_a_group(tmp_path, story)


def test_a_refusal_names_the_field_that_differs(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.joined("A")
        with pytest.raises(Refused) as refused:
            await group.joined("B", profile="fifo")
        assert str(refused.value) == "the group has profile=total, the joiner profile=fifo"
        with pytest.raises(Refused, match="the group has window=1048576, the joiner window=2097152"):
            await group.joined("C", config=Config(window=2 << 20))

    in_a_group(tmp_path, story)


def test_the_number_of_a_message_to_one_member_is_none_of_a_message_to_all(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        number = await channel.send(b"x", to=channel.address)
        assert number == 1
        await channel.wait(number)
        with pytest.raises(
            UsageError,
            match=r"message 1 is not one of this .*: this member has sent no such message yet",
        ):
            await channel.wait(1)
        await channel.send(b"y")
        with pytest.raises(UsageError, match="to all members: their numbers so far are 1 to 1"):
            await channel.wait(2)

    in_a_group(tmp_path, story)


def test_texts_for_people_are_short(tmp_path: Path) -> None:
    view = View(ViewId(4, A), (A, B), A, True, (B,), (), (A,))
    assert repr(A) == "A@3f2c91d0"
    assert repr(view.id) == "ViewId(4:A@3f2c91d0)"
    assert repr(view) == "<View 4:A@3f2c91d0, members: A B, joined: B>"

    async def story(group: Group) -> None:
        channel = group.channel("A")
        assert repr(channel) == "<Channel 'g', not joined>"
        async with channel:
            assert repr(channel) == f"<Channel 'g' {channel.address}, view 1 of 1>"
        assert repr(channel) == f"<Channel 'g' {channel.address}, left>"

    in_a_group(tmp_path, story)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"discovery": 5}, "discovery=5 must be text, or a list of texts, or left out"),
        ({"journal": 5}, "journal=5 must be the path of a folder"),
        ({"bind": 5}, "bind=5 must be text"),
        ({"bind": None}, "bind=None must be text"),
        ({"advertise": b"x:1"}, "advertise=b'x:1' must be text"),
        ({"profile": []}, "profile=[] must be text"),
        ({"name": 5}, "name=5 must be text"),
        ({"transport": 5}, "there is no transport 5"),
        ({"insecure": "no"}, "insecure='no' must be True or False"),
        ({"journal_fsync": 1}, "journal_fsync=1 must be True or False"),
        ({"events": None}, "events=None is not known"),
    ],
)
def test_options_of_a_wrong_type_are_refused_at_the_call(option: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        Channel("g", **option)
    assert says in str(refused.value)


def test_a_group_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(UsageError, match="5 cannot name a group"):
        Channel(5)  # type: ignore[arg-type]


def test_a_cancelled_send_that_waits_was_not_sent(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A", config=SMALL)
        reader = await group.read("B", config=SMALL)
        await until(lambda: len(channel.view.members) == 2)
        full = [bytes(8 << 10)] * 20
        filling = asyncio.create_task(channel.send_many(full))  # A reads nothing, so its own window fills
        waiting = asyncio.create_task(channel.send(b"withdrawn", timeout=20))
        await asyncio.sleep(0.05)
        assert not filling.done()
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        own = Reader(channel)
        await filling
        await channel.send(b"last", until="stable")
        await until(lambda: b"last" in reader.payloads and b"last" in own.payloads)
        assert b"withdrawn" not in reader.payloads
        assert own.payloads == reader.payloads == [*full, b"last"]

    in_a_group(tmp_path, story)


def test_a_cancelled_wait_for_stability_stays_a_cancellation_and_the_message_goes_on(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        reader = await group.read("B")
        await until(lambda: len(channel.view.members) == 2)
        waiting = asyncio.create_task(channel.send(b"x", until="stable"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await channel.send(b"y", until="delivered")
        await until(lambda: reader.payloads == [b"x", b"y"])

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("error", [ValueError("mine"), asyncio.CancelledError()])
def test_an_error_in_the_body_leaves_the_group_and_goes_on(error: BaseException, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        stays = await group.read("A")

        async def body() -> None:
            async with group.channel("B") as channel:
                await channel.send(b"accepted")
                raise error

        with pytest.raises(type(error)) as raised:
            await body()
        assert raised.value is error
        await until(lambda: len(stays.views[-1].members) == 1)
        assert stays.payloads == [b"accepted"]  # a leave drains the messages that were accepted
        assert not any(isinstance(event, Suspected) for event in stays.events)

    in_a_group(tmp_path, story)


def test_a_cancelled_body_leaves_the_group(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        stays = await group.read("A")
        inside = asyncio.Event()

        async def body() -> None:
            async with group.channel("B"):
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(body())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: len(stays.views) == 3)
        assert not any(isinstance(event, Suspected) for event in stays.events)

    in_a_group(tmp_path, story)


def test_two_tasks_cannot_read_one_channel(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        await until(lambda: reader.views)
        await asyncio.sleep(0)
        for read in (reader.channel.__anext__, reader.channel.batches().__anext__):
            with pytest.raises(UsageError, match="another task reads this channel's events"):
                await read()
        await reader.channel.send(b"x")
        await until(lambda: reader.payloads == [b"x"])

    in_a_group(tmp_path, story)


async def reads(events: AsyncIterator[Any]) -> None:
    await anext(events)


def test_another_loop_and_another_thread_are_refused(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        channel = reader.channel
        calls: list[tuple[Callable[[], Any], str]] = [
            (lambda: asyncio.run(channel.send(b"x")), "channel.send(payload), loop)"),
            (lambda: asyncio.run(channel.send(b"x", until="stable")), "channel.send(payload), loop)"),
            (lambda: asyncio.run(channel.send_many([b"x"])), "channel.send_many(payloads), loop)"),
            (lambda: asyncio.run(channel.wait(1)), "channel.wait(number), loop)"),
            (lambda: channel.send_nowait(b"x"), "loop.call_soon_threadsafe(channel.send_nowait, payload)"),
            (lambda: asyncio.run(reads(channel)), "get the events through a queue.Queue"),
            (lambda: asyncio.run(reads(channel.batches())), "get the events through a queue.Queue"),
            (lambda: asyncio.run(channel.leave()), "channel.leave(), loop)"),
            (lambda: asyncio.run(channel.__aexit__(None, None, None)), "end `async with` in that event loop"),
            (lambda: asyncio.run(channel.ready()), "channel.ready(), loop)"),
        ]
        for call, remedy in calls:
            with pytest.raises(UsageError, match="belongs to the event loop that opened it") as refused:
                await asyncio.to_thread(call)
            assert remedy in str(refused.value)
        loop = asyncio.get_running_loop()
        sent = await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(channel.send(b"y"), loop).result(20))
        assert sent == 1  # none of the refused messages was accepted
        await until(lambda: reader.payloads == [b"y"])

    in_a_group(tmp_path, story)


def test_several_channels_in_one_process_are_members_of_their_own(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        readers = {name: await group.read(name) for name in "ABC"}
        other = Channel("h", name="A", discovery=f"dir:{group.folder}")  # another group, under the same name
        async with other:
            await until(lambda: all(len(reader.channel.view.members) == 3 for reader in readers.values()))
            assert other.view.members == (other.address,)
            await other.send(b"of h", until="stable")
            await asyncio.gather(*[reader.channel.send(name.encode()) for name, reader in readers.items()])
            await until(lambda: all(len(reader.payloads) == 3 for reader in readers.values()))
        assert len({tuple(reader.payloads) for reader in readers.values()}) == 1  # one order, without `of h`
        assert b"of h" not in readers["A"].payloads

    in_a_group(tmp_path, story)
