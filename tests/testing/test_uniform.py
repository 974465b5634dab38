"""Groups in memory of profile `uniform`: a cut, crashes of a majority, and processes that come back with their
folders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups import Blocked, Channel, Excluded, Left, Message, NotSent, Unblocked, Unknown, View
from pygroups.journal.reader import find_segments, read_segments
from pygroups.testing import Group, Unsettled, run

PROFILES = ("uniform", "uniform-fifo")


class Program:
    """A process that keeps all payloads."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self.options: dict[str, Any] = {"profile": "uniform"} | options
        self.kept: list[bytes] = []
        self.news: list[str] = []
        self.channel: Channel

    async def get_state(self) -> bytes:
        return b" ".join(self.kept)

    async def set_state(self, data: bytes) -> None:
        self.kept = data.split()

    async def live(self) -> None:
        async with Channel("g", name=self.name, state=self, **self.options) as self.channel:
            async for event in self.channel:
                if isinstance(event, Message):
                    self.kept.append(event.payload)
                elif isinstance(event, View):
                    self.news.append("".join([member.name for member in event.members]))
                elif isinstance(event, Blocked | Unblocked | Left):
                    self.news.append(type(event).__name__)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.05)


async def together(group: Group, *names: str, **options: Any) -> dict[str, Program]:
    programs = {name: Program(name, **options) for name in names}
    for name, program in programs.items():
        group.start(name, program.live())
    await until(lambda: [sorted(view) for view in group.views()] == [sorted(names)])
    return programs


async def comes_back(group: Group, program: Program) -> Program:
    new = Program(program.name, **program.options)
    group.start(new.name, new.live())
    return new


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_sent_is_delivered_and_stable(profile: str) -> None:
    async def story(group: Group) -> None:
        programs = await together(group, *"ABC", profile=profile)
        await programs["A"].channel.send(b"1", until="delivered")
        await programs["B"].channel.send(b"2", until="read")
        assert b"2" in programs["B"].kept
        await programs["C"].channel.send(b"3", until="stable")
        await group.settled(one=True)
        assert all(sorted(program.kept) == [b"1", b"2", b"3"] for program in programs.values())

    run(story)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_statistics_name_the_member_that_a_message_waits_for(profile: str) -> None:
    quiet = {"preparing": 0, "committing": 0, "prepared": 0, "committed": 0, "waits_for": []}

    async def story(group: Group) -> None:
        programs = await together(group, *"ABC", profile=profile)
        a, b, c = [program.channel for program in programs.values()]
        await a.send(b"1", until="stable")
        await group.settled(one=True)
        assert [channel.stats()["uniform"] for channel in (a, b, c)] == [quiet] * 3
        group.partition(["C"])
        number = await a.send(b"2")
        await until(lambda: b.stats()["uniform"]["prepared"])
        assert a.stats()["uniform"] == quiet | {"preparing": 1, "prepared": 1, "waits_for": [str(c.address)]}
        assert b.stats()["uniform"] == quiet | {"prepared": 1, "waits_for": [str(a.address)]}
        await a.wait(number)
        await until(lambda: programs["B"].news[-1] == "AB")
        assert programs["A"].kept == programs["B"].kept == [b"1", b"2"], "a view without C releases the message"
        await until(lambda: [channel.stats()["uniform"] for channel in (a, b)] == [quiet] * 2)

    run(story)


def test_other_profiles_have_no_such_statistics() -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A", events="none") as channel:
            assert channel.stats()["uniform"] is None

    run(story)


def test_blocked_members_are_settled_unless_one_view_is_wanted() -> None:
    async def story(group: Group) -> None:
        programs = await together(group, *"ABC", rejoin=True)
        group.partition(["C"])
        await group.settled()
        assert group.views() == [("A", "B"), ("A", "B", "C")]
        assert programs["C"].news[-1] == "Blocked"
        with pytest.raises(Unsettled, match=r"the members are in 2 views: \[A B\], \[A B C\]"):
            await group.settled(one=True)
        group.crash("B")
        await group.settled()
        assert programs["A"].news[-2:] == ["AB", "A"], "half of the view, with its first member"
        group.heal()
        await group.settled(one=True)
        assert programs["C"].news[-2:] == ["Left", "AC"]

    run(story)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_minority_delivers_nothing_and_joins_again(profile: str) -> None:
    async def story(group: Group) -> None:
        programs = await together(group, *"ABC", profile=profile, expect=3, rejoin=True)
        a, c = programs["A"], programs["C"]
        await a.channel.send(b"before", until="stable")
        group.partition(["C"])
        waits = asyncio.create_task(c.channel.send(b"of C", until="delivered"))
        await until(lambda: "Blocked" in c.news)
        await a.channel.send(b"during", until="stable")
        assert c.kept == [b"before"]
        assert not waits.done()
        group.heal()
        with pytest.raises(Unknown):
            await waits
        await group.settled(one=True)
        await c.channel.send(b"after", until="stable")
        assert a.kept == c.kept == [b"before", b"during", b"after"]
        assert c.news[-3:] == ["Blocked", "Left", "ABC"]

    run(story)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_majority_that_crashed_comes_back_with_its_folder(profile: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        programs = await together(group, *"ABC", profile=profile, journal=tmp_path / "disk")
        a, b, c = programs.values()
        await a.channel.send(b"before", until="stable")
        old = a.channel.address
        group.crash("A", "B")
        await until(lambda: "Blocked" in c.news)
        with pytest.raises((NotSent, Unknown)):
            await c.channel.send(b"waits", until="delivered", timeout=60)
        a, b = [await comes_back(group, one) for one in (a, b)]
        await until(lambda: all(one.news for one in (a, b)))
        await group.settled(one=True)
        assert a.kept == b.kept == c.kept == [b"before", b"waits"]
        assert c.news[-1] == "CAB" or c.news[-1] == "CBA"
        assert "Unblocked" in c.news
        saved, disk = [journals(folder) for folder in (group.journal(tmp_path / "saved"), tmp_path / "disk")]
        assert saved[str(old)].count("flush") == disk[str(old)].count("flush") > 1, "the answers of A's second life too"

    run(story)


def journals(folder: Path) -> dict[str, list[str]]:
    """The kinds of the records of each incarnation."""
    found: dict[str, list[str]] = {}
    for part in read_segments(find_segments([folder])):
        for row in part.to_pylist():  # type: ignore[union-attr]
            found.setdefault(f"{row['member']}@{row['incarnation']}", []).append(row["kind"])
    return found


def test_without_a_folder_a_majority_that_crashed_does_not_come_back() -> None:
    async def story(group: Group) -> None:
        programs = await together(group, *"ABC")
        c = programs["C"]
        group.crash("A", "B")
        await until(lambda: "Blocked" in c.news)
        tasks = [group.start(name, Program(name).live()) for name in "AB"]
        await asyncio.sleep(300)
        assert group.views() == [("A", "B", "C")] and c.news[-1] == "Blocked"
        for task in tasks:
            task.cancel()

    run(story)


def test_an_excluded_member_without_rejoin_ends(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        programs = await together(group, *"AB")
        c = Program("C")
        task = group.start("C", c.live())
        await until(lambda: c.news)
        group.partition(["C"])
        await until(lambda: "Blocked" in c.news)
        await programs["A"].channel.send(b"x", until="stable")
        group.heal()
        with pytest.raises(Excluded):
            await task
        assert c.news[-1] == "Left"
        assert c.kept == []

    run(story)
