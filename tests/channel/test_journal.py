"""The journal of a channel: its files, a disk that is full, and a member that goes on or leaves."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import pygroups
from pygroups import ChannelClosed, Config, JournalFailed, JournalLost, Left, Message, NotSent, View
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from tests.channel.socket_group import Group, Reader, in_a_group, until
from tests.disks import fill, full_disk

LEAVES = Config(on_journal_lost="leave")


def indices(folder: Path) -> list[int]:
    found: list[int] = []
    for part in read_segments(find_segments([folder])):
        assert not isinstance(part, Quarantine), part
        found += part.column("index").to_pylist()
    return sorted(found)


async def ends(reader: Reader) -> BaseException | None:
    """The error with which the iteration of `reader` ends, or None."""
    await asyncio.wait([reader.task])
    return reader.task.exception()


def test_files_have_the_size_and_the_number_that_the_config_says(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        small = Config(journal_segment=2_000, journal_keep=3)
        reader = await group.read("A", journal=tmp_path / "j", config=small)
        for number in range(200):
            await reader.channel.send(b"%d" % number, until="delivered")
        await reader.channel.leave()

    in_a_group(tmp_path, story)
    segments = find_segments([tmp_path / "j"])
    assert len(segments) == 3
    assert all(2_000 <= segment.size < 4_000 for segment in segments[:-1])
    found = indices(tmp_path / "j")
    assert found[0] > 0 and found == list(range(found[0], found[-1] + 1))


def test_on_a_full_disk_a_member_goes_on_and_says_what_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(group: Group) -> None:
        with full_disk(tmp_path / "disk") as disk:
            reader = await group.read("A", journal=disk)
            other = await group.read("B", journal=tmp_path / "j")
            await reader.channel.send(b"written", until="stable")
            rest = fill(disk)
            await reader.channel.send(b"x" * 10_000, until="stable")
            for number in range(100):
                await reader.channel.send(b"%d" % number, until="delivered")
            await other.channel.send(b"both go on", until="stable")
            lost = [event for event in reader.events if isinstance(event, JournalLost)]
            assert len(lost) == 1 and "No space left on device" in lost[0].reason
            stats = reader.channel.stats()
            assert stats["journal"]["lost"] >= 100
            assert stats["counters"]["journal outages"] == 1
            rest.unlink()
            await until(lambda: "is written again" in caplog.text or other.channel.send_nowait(b"") is None)
            left = await reader.channel.leave()
            assert left.reason == "left"
            assert await ends(reader) is None
            missing = reader.channel.stats()["journal"]["lost"]
            found = indices(disk)
            assert found[-1] + 1 - len(found) == missing

    in_a_group(tmp_path, story)


def test_on_a_full_disk_a_member_leaves_if_it_was_opened_so(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        with full_disk(tmp_path / "disk") as disk:
            other = await group.read("B")
            reader = await group.read("A", journal=disk, config=LEAVES)
            await reader.channel.send(b"written", until="stable")
            fill(disk)
            sent = [b"%d" % number for number in range(200)]
            for payload in sent:  # some records fit into the last page
                await other.channel.send(payload, until="delivered")
            error = await ends(reader)
            assert isinstance(error, JournalFailed) and "No space left on device" in str(error)
            kinds = [event for event in reader.events if not isinstance(event, Message | View)]
            assert [type(event) for event in kinds] == [JournalLost, Left]
            assert kinds[-1] == Left("journal lost", [])
            with pytest.raises(ChannelClosed, match="journal lost"):
                await reader.channel.send(b"too late")
            await until(lambda: other.views[-1].members == (other.channel.address,))  # it left, and did not crash
            assert not [event for event in other.events if isinstance(event, pygroups.Suspected)]
            assert other.payloads == [b"written", *sent]

    in_a_group(tmp_path, story)


def test_a_send_that_waits_hears_why_the_member_leaves(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.joined("B")  # reads nothing
        with full_disk(tmp_path / "disk") as disk:
            channel = await group.joined("A", journal=disk, config=LEAVES, events="none")
            fill(disk)
            with pytest.raises(NotSent, match=r"the journal in .* cannot be written") as failed:
                while True:
                    await channel.send(b"x" * 60_000)
            assert isinstance(failed.value.__cause__, JournalFailed)
            assert (await channel.leave()).reason == "journal lost"

    in_a_group(tmp_path, story)


def test_a_journal_that_is_lost_before_the_join_fails_the_join(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.read("B")
        channel = group.channel("A", journal=tmp_path / "j", config=LEAVES)
        joining = asyncio.create_task(channel.__aenter__())
        await until(lambda: (tmp_path / "j").exists())
        shutil.rmtree(tmp_path / "j")
        with pytest.raises(JournalFailed, match=r"000000\.journal was removed"):
            await joining

    in_a_group(tmp_path, story)


def test_a_removed_folder_is_a_lost_journal(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", journal=tmp_path / "j")
        shutil.rmtree(tmp_path / "j")
        await reader.channel.send(b"x", until="delivered")
        (lost,) = [event for event in reader.events if isinstance(event, JournalLost)] or [None]
        assert lost is not None and lost.reason.endswith("cannot be written: 000000.journal was removed")

    in_a_group(tmp_path, story)
