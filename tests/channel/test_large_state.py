"""A state that is larger than the memory: it arrives on disk, and so do the messages behind it."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Message, UsageError
from pygroups.channel.state import spill
from pygroups.channel.state.spill import Received, Spill
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.core.run import Run, pack, payloads_of
from tests.channel.socket_group import Group, in_a_group
from tests.patience import patience

SMALL = Config(spill_after=100_000)


class Large:
    """An application with a state of `size` bytes, which it gives and sets in chunks."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.digest = hashlib.sha256()
        self.chunks: list[int] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.error: Exception | None = None

    async def get_state(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        for at in range(0, self.size, 300_000):
            piece = at.to_bytes(8, "big") * 37_500
            piece = piece[: self.size - at]
            self.digest.update(piece)
            yield piece

    async def set_state_chunks(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            self.chunks.append(len(chunk))
            self.digest.update(chunk)
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


async def read(channel: Channel, payloads: list[bytes]) -> None:
    async for event in channel:
        if isinstance(event, Message):
            payloads.append(event.payload)


@pytest.mark.parametrize("size", [0, 1, 99_000, 5_000_000])
def test_a_state_in_chunks_arrives_whole(tmp_path: Path, size: int) -> None:
    async def story(group: Group) -> None:
        old, new = Large(size), Large()
        first = await group.joined("A", state=old, config=SMALL)
        reading = asyncio.create_task(read(first, []))
        second = await group.joined("B", state=new, config=SMALL)
        await second.ready()
        assert new.digest.digest() == old.digest.digest()
        assert sum(new.chunks) == size
        assert max(new.chunks, default=0) <= spill.PIECE
        reading.cancel()

    in_a_group(tmp_path, story)


def test_messages_behind_a_state_go_to_disk_and_fill_no_window(tmp_path: Path) -> None:
    """Twelve windows of messages are sent while B sets its state.  B gets all of them afterwards, in order."""

    async def story(group: Group) -> None:
        new = Large()
        new.may_end.clear()
        first = await group.joined("A", state=Large(1_000), config=SMALL)
        sent: list[bytes] = []
        reading = asyncio.create_task(read(first, sent))
        second = await group.joined("B", state=new, config=SMALL)
        for number in range(1_200):
            await first.send(number.to_bytes(4, "big") * 2_500, timeout=20)
        await first.send(b"the last", until="delivered")
        await until_counted(second, 1_000)
        unread: Any = second.stats()["unread"]
        assert unread["bytes"] < 100_000 + 2 * SMALL.run_bytes
        new.may_end.set()
        seen: list[bytes] = []
        other = asyncio.create_task(read(second, seen))
        async with asyncio.timeout(patience(20)):
            while len(seen) < len(sent):
                await asyncio.sleep(0.01)
        assert seen == sent
        reading.cancel()
        other.cancel()

    in_a_group(tmp_path, story)


def test_when_the_provider_dies_nothing_of_its_state_is_set(tmp_path: Path) -> None:
    """The next provider gives the whole state of the next view, and the program gets that one only."""

    class Stops(Large):
        gives = True

        async def _chunks(self) -> AsyncIterator[bytes]:
            yield b"half of the first state" * 10_000
            if not self.gives:
                await asyncio.Event().wait()

    async def story(group: Group) -> None:
        stops, old, new = Stops(), Large(700_000), Large()
        first = await group.channel("A", state=stops, config=SMALL).__aenter__()  # its end is no end of a block
        second = await group.joined("B", state=old, config=SMALL)
        reading = [asyncio.create_task(read(channel, [])) for channel in (first, second)]
        await second.ready()
        stops.gives, old.digest = False, hashlib.sha256()  # from now on of the state that B gives
        third = await group.joined("C", state=new, config=SMALL)
        await asyncio.sleep(0.3)
        first._member.crash(AssertionError("dies"))
        async with asyncio.timeout(patience(20)):
            await third.ready()
        assert new.chunks and sum(new.chunks) == old.size
        assert new.digest.digest() == old.digest.digest()
        assert [member.name for member in third.view.members] == ["B", "C"]
        with pytest.raises(AssertionError):
            await reading[0]
        reading[1].cancel()

    in_a_group(tmp_path, story)


async def until_counted(channel: Channel, least: int) -> None:
    """Until the member has so many unread items that a window could not hold them."""
    async with asyncio.timeout(patience(20)):
        while channel.stats()["unread"]["items"] < least // 10:
            await asyncio.sleep(0.01)


def test_an_error_of_set_state_chunks_is_raised_where_the_program_reads(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        new = Large()
        new.error = ZeroDivisionError("no")
        first = await group.joined("A", state=Large(10))
        reading = asyncio.create_task(read(first, []))
        second = await group.joined("B", state=new)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await anext(second)
        reading.cancel()

    in_a_group(tmp_path, story)


def test_a_full_disk_is_an_error_where_the_program_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_self: Received, _part: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def story(group: Group) -> None:
        first = await group.joined("A", state=Large(10))
        reading = asyncio.create_task(read(first, []))
        monkeypatch.setattr(Received, "add", full)
        second = await group.joined("B", state=Large())
        for _ in range(2):
            with pytest.raises(OSError, match="state cannot be stored: No space left on device"):
                await anext(second)
        reading.cancel()

    in_a_group(tmp_path, story)


class Unfit:
    async def get_state(self) -> bytes:
        return b""

    def set_state_chunks(self, chunks: AsyncIterator[bytes]) -> None: ...


def test_an_object_that_cannot_set_a_state_is_refused_at_the_call() -> None:
    with pytest.raises(UsageError, match="set_state_chunks of state= must be a coroutine function"):
        Channel("g", state=Unfit())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"set_state\(data\), or set_state_chunks\(chunks\)"):
        Channel("g", state=object())  # type: ignore[arg-type]


# -- the files


def run(number: int, size: int) -> Run:
    me = Address("A", "1" * 8)
    return Run(me, None, (), me, number, 0, 1, pack([number.to_bytes(4, "big") * (size // 4)]))


def test_spilled_runs_are_the_same_and_their_files_go_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SEGMENT", 10_000)
    kept, descriptors = Spill(1 << 20), len(os.listdir("/proc/self/fd"))
    runs = [run(number, 3_000) for number in range(30)] + [run(30, 25_000)]
    spilled = [kept.spilled(one) for one in runs]
    assert not any(isinstance(one.body, bytes) for one in spilled)
    assert [payloads_of(one) for one in spilled] == [payloads_of(one) for one in runs]
    assert kept.size >= 30 * 3_000 + 25_000
    del spilled[:15]
    assert kept.size < 15 * 3_500 + 25_010 + 10_000
    kept.close()
    spilled.clear()
    assert kept.size == 0
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_spill_ends_at_its_limit_and_at_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SEGMENT", 10_000)
    kept = Spill(10_000)
    one, two = kept.spilled(run(1, 6_000)), kept.spilled(run(2, 6_000))
    assert [isinstance(item.body, bytes) for item in (one, two)] == [False, True]

    def full(_fd: int, _begin: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert isinstance(Spill(1 << 30).spilled(run(1, 10)).body, bytes)
