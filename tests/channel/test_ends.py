"""Every end is told to everybody who waits, whichever way it comes, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import socket
import struct
import traceback
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, ChannelClosed, Config, Left, Message, NameTaken, Refused, Unknown, UsageError, View
from pygroups.core.address import Address
from pygroups.core.errors import WouldDeadlock
from pygroups.core.turn import Source
from pygroups.testing import Group as Memory
from pygroups.testing import run as in_memory
from tests.channel.socket_group import Group, Reader, both_profiles, in_a_group, until
from tests.patience import patience

__all__ = ["both_profiles"]
pytestmark = pytest.mark.usefixtures("both_profiles")


class State:
    """An application that has one."""

    async def get_state(self) -> Any:
        return b"state"

    async def set_state(self, data: bytes) -> None:
        pass


def inside(channel: Channel) -> Any:
    """What is behind the interface."""
    return channel._session


async def soon(what: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(what, patience(8))


# -- leaving and joining that are cut short


def test_a_leave_that_is_cancelled_is_an_end_too(tmp_path: Path) -> None:
    """The channel is closed then: whoever reads, waits or leaves again hears so."""

    async def story(group: Group) -> None:
        reader = await group.read("A")
        await group.joined("B")
        await until(lambda: len(reader.views[-1].members) == 2)
        sent = asyncio.create_task(reader.channel.send(b"x", until="stable"))
        await asyncio.sleep(0)
        leaving = asyncio.create_task(reader.channel.leave())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        with pytest.raises(Unknown):
            await soon(sent)
        assert isinstance(await soon(reader.channel.leave()), Left)
        await soon(reader.task)
        assert len(reader.left) == 1

    in_a_group(tmp_path, story)


def test_a_join_that_is_refused_is_an_end_too(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.joined("A")
        second = group.channel("A")
        joining = asyncio.create_task(second.__aenter__())
        await asyncio.sleep(0)
        reader = Reader(second)
        with pytest.raises(NameTaken):
            await joining
        assert isinstance(await soon(second.leave()), Left)
        await soon(reader.task)

    in_a_group(tmp_path, story)


def test_who_leaves_while_it_joins_has_left(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        folder = group.folder / "g"
        folder.mkdir(0o700, parents=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # somebody else founds, and takes its time
        channel = group.channel("A")
        joining = asyncio.create_task(channel.__aenter__())
        await asyncio.sleep(0.1)
        assert isinstance(await soon(channel.leave()), Left)
        with pytest.raises(Refused):
            await joining
        os.close(lock)

    in_a_group(tmp_path, story)


def test_a_join_that_is_cancelled_while_it_begins_to_listen_leaves_no_socket(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            joining = asyncio.create_task(group.channel("A").__aenter__())
            await asyncio.sleep(0)
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert len(os.listdir("/proc/self/fd")) == before

    in_a_group(tmp_path, story)


# -- crashes


def test_a_crash_is_told_although_the_folder_has_gone_bad(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = group.channel("A")
        await channel.__aenter__()
        reader = Reader(channel)
        await until(lambda: reader.views)
        shutil.rmtree(group.folder)
        group.folder.touch()
        inside(channel).member.crash(AssertionError("the fault"))
        with pytest.raises(AssertionError, match="the fault"):
            await soon(reader.task)

    in_a_group(tmp_path, story)


def test_who_only_sends_is_shown_the_fault(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        with pytest.raises(ChannelClosed) as caught:
            async with group.channel("A") as channel:
                waiting = asyncio.create_task(channel.send(b"x", until="stable"))
                inside(channel).member.crash(AssertionError("the fault"))
                await channel.send(b"y")
        assert "the fault" in "".join(traceback.format_exception(caught.value))
        await asyncio.gather(waiting, return_exceptions=True)

    in_a_group(tmp_path, story)


# -- states


def test_who_waits_for_a_state_hears_that_it_has_left(tmp_path: Path) -> None:
    """The provider reads nothing, and so gives none."""

    async def story(group: Group) -> None:
        await group.joined("A", state=State())
        reader = await group.read("B", state=State())
        await asyncio.sleep(0.1)
        await reader.channel.leave()
        await soon(reader.task)
        assert len(reader.left) == 1

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("asked", ["before", "after"])
def test_no_state_is_given_after_the_end(asked: str, tmp_path: Path) -> None:
    """`get_state` runs while the channel leaves, or was still to be asked: no snapshot stays open."""

    async def story(group: Group) -> None:
        opened, closed, gate = [], [], asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            opened.append(1)
            try:
                for _ in range(40):
                    yield b"x" * 49_152
            finally:
                closed.append(1)

        class Slow(State):
            async def get_state(self) -> AsyncIterator[bytes]:
                await gate.wait()
                return pieces()

        old = await group.joined("A", state=Slow())
        reader = Reader(old) if asked == "before" else None
        await group.joined("B", state=State())
        await until(lambda: len(inside(old).view.members) == 2)
        await asyncio.sleep(0.05)
        await old.leave()
        gate.set()
        await soon((reader or Reader(old)).task)
        await asyncio.sleep(0.1)
        assert len(opened) == len(closed)
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "pygroups gives its state"]

    in_a_group(tmp_path, story)


def test_a_state_may_be_written_as_a_generator(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        got: list[bytes] = []

        class Pieces(State):
            async def get_state(self) -> AsyncIterator[bytes]:
                yield b"one"
                yield b"two"

            async def set_state(self, data: bytes) -> None:
                got.append(data)

        await group.read("A", state=Pieces())
        await group.read("B", state=Pieces())
        await until(lambda: got == [b"onetwo"])

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sent_to_a_joiner_alone_is_in_no_state(seed: int) -> None:
    """A and B greet whoever joins as soon as they see it: the joiner reads that, whatever happens to its state."""

    async def story(network: Memory) -> None:
        sent: list[int] = []

        async def greets(channel: Channel) -> None:
            async for event in channel:
                for member in event.joined if isinstance(event, View) else ():
                    if member.name == "J":
                        sent.extend([await channel.send(b"hello", to=member) for _ in range(3)])

        old = [Channel("g", name=name, state=State()) for name in "AB"]
        for channel in old:
            await channel.__aenter__()
        tasks = [asyncio.create_task(greets(channel)) for channel in old]
        async with Channel("g", name="J", state=State()) as joiner:
            got: list[bytes] = []

            async def reads() -> None:
                async for event in joiner:
                    if isinstance(event, Message):
                        got.append(event.payload)

            tasks.append(asyncio.create_task(reads()))
            await asyncio.sleep(10)
            assert len(sent) > 0
            assert got == [b"hello"] * len(sent)
        for task in tasks:
            task.cancel()
        for channel in old:
            await channel.leave()

    in_memory(story, seed=seed)


# -- waiting in line


def test_a_send_that_was_refused_keeps_no_room() -> None:
    """The task that reads waits in send with too much unread behind it, again and again: nothing of the window is lost
    by it."""

    async def story(network: Memory) -> None:
        config = Config(queue_max=1_000)
        async with Channel("g", name="A", config=config) as a, Channel("g", name="B") as b:
            await network.settled()

            async def drain(channel: Channel) -> None:
                async for _ in channel:
                    pass

            await anext(a)
            for _ in range(40):
                await b.send(b"y" * 20_000)
            await asyncio.sleep(1)
            refused = 0
            for _ in range(100):
                try:
                    await a.send(b"x" * 50_000)
                except WouldDeadlock:
                    refused += 1
            assert refused
            tasks = [asyncio.create_task(drain(channel)) for channel in (a, b)]
            await asyncio.sleep(30)
            assert inside(a).sending.queue.reserved == 0
            assert not inside(a).sending.waiting
            await a.send(b"z", timeout=60)
            for task in tasks:
                task.cancel()

    in_memory(story)


def test_a_wait_that_is_over_is_forgotten() -> None:
    async def story(network: Memory) -> None:
        async with Channel("g", name="A") as a, Channel("g", name="B"):
            await network.settled()
            network.partition(["A"], ["B"])
            number = await a.send(b"x")
            for _ in range(30):
                with pytest.raises(Unknown):
                    await a.wait(number, timeout=0.001)
            assert not inside(a).sending.until["stable"].waiting
            network.heal()

    in_memory(story)


def test_a_time_out_of_the_application_is_its_own(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")

        def source() -> Any:
            yield b"1"
            raise TimeoutError("the database did not answer")

        with pytest.raises(TimeoutError, match="the database"):
            await channel.send_many(source())

    in_a_group(tmp_path, story)


@pytest.mark.parametrize(
    "wrong", [{"detail": ValueError("x")}, {"reason": b"x"}, {"members": ["A"]}, {"members": "A"}, {"members": [1]}]
)
def test_a_mark_is_of_text_and_addresses(wrong: dict[str, Any], tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A", journal=tmp_path / "journal")
        with pytest.raises(UsageError, match=r"mark\(\) takes"):
            channel.mark("fault", **wrong)
        channel.mark("fault", "power", [channel.address], "all of it")

    in_a_group(tmp_path, story)


# -- strangers


def test_a_farewell_is_the_last_thing_that_is_read(tmp_path: Path) -> None:
    """A length behind it would have been made room for: four gigabytes for eight bytes of anybody."""

    async def story(group: Group) -> None:
        channel = await group.joined("A")
        network = inside(channel).network
        host, port = network.contact.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(bytes(4) + struct.pack(">I", 700_000_000))
            await asyncio.sleep(0.1)
            assert network.door.kept_bytes == 0
            assert stranger.recv(1) == b""

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("contact", ["[::1%a..b]:5", "a..b:5", "ü" * 70 + ":5"])
def test_a_contact_that_no_resolver_takes_ends_nobody(contact: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", insecure=True)
        peer = Address("B", "1" * 16)
        network = inside(reader.channel).network
        network.learn({peer: contact}, Source.PEER)
        network.send([((peer,), [b"frame"])])
        await asyncio.sleep(0.2)
        assert inside(reader.channel).crash is None
        await reader.channel.send(b"and on it goes", until="stable")

    in_a_group(tmp_path, story)


def test_to_listen_where_no_resolver_knows_is_a_mistake_that_is_told(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        with pytest.raises(UsageError, match="cannot listen"):
            await group.joined("A", bind="a..b:0", insecure=True)

    in_a_group(tmp_path, story)
