"""Profiles `uniform` and `uniform-fifo` over real sockets: confirmed messages, a majority that crashes and comes back,
an exclusion, and what a channel is refused or advised."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups import Blocked, Channel, Config, Left, Message, Unblocked, Unknown, UsageError, View
from tests.channel.socket_group import Group, Reader, in_a_group, until
from tests.patience import patience

PROFILES = ("uniform", "uniform-fifo")
QUICK = Config(heartbeat=0.2, heartbeat_timeout=1.0, verify_timeout=0.5)


class Replica:
    """A state of all payloads."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    async def get_state(self) -> bytes:
        return b" ".join(self.kept)

    async def set_state(self, data: bytes) -> None:
        self.kept = data.split()


async def three(group: Group, profile: str, **options: Any) -> list[Reader]:
    readers = [await group.read(name, profile=profile, **options) for name in "ABC"]
    await until(lambda: all(len(reader.channel.view.members) == 3 for reader in readers))
    return readers


def kinds(reader: Reader) -> list[type]:
    return [type(event) for event in reader.events if isinstance(event, Blocked | Unblocked)]


@pytest.mark.parametrize("profile", PROFILES)
def test_confirmed_messages_are_at_all_members(profile: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group, profile)
        await a.channel.send(b"1", until="delivered")
        await until(lambda: b.payloads == c.payloads == [b"1"])
        assert await b.channel.send(b"2", until="read") == 1
        assert b.payloads[-1] == b"2"
        await c.channel.send(b"3", until="stable")
        assert all(sorted(reader.payloads) == [b"1", b"2", b"3"] for reader in (a, b, c))
        statistics = [reader.channel.stats()["uniform"] for reader in (a, b, c)]
        assert all(set(one) == {"preparing", "committing", "prepared", "committed", "waits_for"} for one in statistics)
        quiet = {"preparing": 0, "committing": 0, "prepared": 0, "committed": 0, "waits_for": []}
        await until(lambda: all(reader.channel.stats()["uniform"] == quiet for reader in (a, b, c)))

    in_a_group(tmp_path, story, patience(60))


def crash(reader: Reader) -> None:
    """End the member as the end of its process would; its folder is free then."""
    reader.task.add_done_callback(lambda task: task.cancelled() or task.exception())  # the channel raises it too
    reader.channel._member.crash(OSError("killed by the test"))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_member_without_a_majority_is_blocked_until_a_crashed_one_is_back(profile: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        options = {"journal": tmp_path / "journal", "config": QUICK}
        a, b, c = await three(group, profile, **options)
        await a.channel.send(b"before", until="stable")
        for reader in (b, c):  # in one step, so that no view without one of them is decided
            crash(reader)
        await until(lambda: kinds(a) == [Blocked])
        blocked = next(event for event in a.events if isinstance(event, Blocked))
        assert "a majority of the 3 members of the view is needed; missing: " in blocked.reason
        with pytest.raises(Unknown) as caught:
            await a.channel.send(b"during", until="delivered", timeout=0.2)
        assert a.payloads == [b"before"]
        b, c = await asyncio.gather(*[group.read(name, profile=profile, **options) for name in "BC"])
        await a.channel.wait(caught.value.number)
        assert kinds(a) == [Blocked, Unblocked]
        assert a.payloads == [b"before", b"during"]
        await until(lambda: all(len(reader.channel.view.members) == 3 for reader in (a, b, c)))

    with pytest.raises(OSError, match="killed by the test"):  # two channels end with it
        in_a_group(tmp_path, story, patience(60))


@pytest.mark.long  # the scenarios of the same numbers play them in many orders, without sockets
@pytest.mark.parametrize("profile", PROFILES)
def test_prim_02_three_of_four_leave_at_once_over_sockets(profile: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        *others, last = [await group.read(name, profile=profile, config=QUICK) for name in "ABCD"]
        await until(lambda: all(len(reader.channel.view.members) == 4 for reader in (*others, last)))
        for number, reader in enumerate(others):
            await reader.channel.send(b"%d" % number)
        await asyncio.gather(*[reader.channel.leave() for reader in others])
        await until(lambda: len(last.channel.view.members) == 1)
        assert last.channel.view.primary
        await last.channel.send(b"alone", until="stable")
        assert sorted(last.payloads) == [b"0", b"1", b"2", b"alone"]
        assert kinds(last) == []

    in_a_group(tmp_path, story, patience(60))


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES)
def test_prim_04_two_members_over_sockets(profile: str, tmp_path: Path) -> None:
    """The first dies, and the second is blocked until it is back; the first of the next view goes on alone."""

    async def story(group: Group) -> None:
        options = {"profile": profile, "journal": tmp_path / "journal", "config": QUICK}
        a, b = [await group.read(name, **options) for name in "AB"]
        await until(lambda: len(a.channel.view.members) == len(b.channel.view.members) == 2)
        crash(a)
        await until(lambda: kinds(b) == [Blocked])
        a = await group.read("A", **options)
        await until(lambda: kinds(b) == [Blocked, Unblocked])
        await until(lambda: b.channel.view.members == a.channel.view.members == (b.channel.address, a.channel.address))
        crash(a)
        await until(lambda: len(b.channel.view.members) == 1)
        await b.channel.send(b"alone", until="stable")
        assert kinds(b) == [Blocked, Unblocked]

    with pytest.raises(OSError, match="killed by the test"):  # two channels end with it
        in_a_group(tmp_path, story, patience(60))


class Apart(threading.Thread):
    """A member in a thread with an event loop of its own, which the test can block."""

    def __init__(self, make: Callable[..., Channel]) -> None:
        super().__init__()
        self.make = make
        self.replica = Replica()
        self.events: list[Any] = []
        self.accepted = 0
        self.loop = asyncio.new_event_loop()
        self.channel: Channel
        self.task: asyncio.Task[None]
        self.joined = threading.Event()

    def run(self) -> None:
        self.loop.run_until_complete(self._live())

    async def _live(self) -> None:
        self.channel = self.make("C", state=self.replica, rejoin=True)
        async with self.channel:
            self.joined.set()
            async for event in self.channel:
                self.events.append(event)
                if isinstance(event, Message):
                    self.replica.kept.append(event.payload)
                    if event.payload == b"end":
                        return

    def block_until(self, free: threading.Event) -> None:
        """Its last message is accepted, and no turn comes until `free`."""

        def blocks() -> None:
            self.channel.send_nowait(b"of unknown fate")
            free.wait(patience(60))

        self.loop.call_soon_threadsafe(blocks)


@pytest.mark.long  # real seconds of a blocked loop beside three others
@pytest.mark.parametrize("profile", PROFILES)
def test_an_excluded_member_joins_again_with_the_state_and_the_list_of_unknown_messages(
    profile: str, tmp_path: Path
) -> None:
    async def story(group: Group) -> None:
        a, b = Replica(), Replica()
        one = await group.read("A", profile=profile, config=QUICK, state=a)
        two = await group.read("B", profile=profile, config=QUICK, state=b)
        c = Apart(lambda name, **options: group.channel(name, profile=profile, config=QUICK, **options))
        c.start()
        try:
            await until(lambda: len(one.channel.view.members) == len(two.channel.view.members) == 3)
            await asyncio.to_thread(c.joined.wait)
            old = c.channel.address
            free = threading.Event()
            c.block_until(free)
            await until(lambda: all(old not in reader.channel.view.members for reader in (one, two)))
            await one.channel.send(b"during", until="stable")
            a.kept.append(b"during")  # the program of A has handled it
            b.kept.append(b"during")
            free.set()
            await until(lambda: len(one.channel.view.members) == 3)
        finally:
            free.set()
            await one.channel.send(b"end", until="delivered")
            await asyncio.to_thread(c.join)
        assert [event for event in c.events if isinstance(event, Left)] == [Left("excluded", [1])]
        assert c.replica.kept == [b"during", b"end"]
        views = [event for event in c.events if isinstance(event, View)]
        assert views[-1].transitional == (c.channel.address,) != (old,)

    in_a_group(tmp_path, story, patience(60))


# -- refused, and advised


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"on_merge": "primary"}, "profile 'uniform' merges no views: leave it out"),
        ({"discovery": "127.0.0.1:7000"}, "over the network needs expect=, the number of all processes that may take"),
        ({"profile": "total", "expect": 3}, "expect= works only where a majority decides each view"),
    ],
)
def test_what_does_not_fit_is_refused_at_the_call(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        Channel("g", **({"profile": "uniform"} | options))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        ({"profile": "total", "name": None}, []),
        ({"name": "A", "journal": "journal"}, []),
        ({"name": "A"}, ["this channel is without journal= so that after a crash no process can answer for it"]),
        ({"name": None, "journal": "journal"}, []),
        ({"name": None}, ["this channel is without journal= so that"]),
        (
            {"name": "A", "journal": "journal", "bind": "0.0.0.0:0", "insecure": True},
            ["without expect= the lock of the discovery folder decides who founds the group"],
        ),
        ({"name": "A", "journal": "journal", "bind": "0.0.0.0:0", "insecure": True, "expect": 1}, []),
    ],
)
def test_what_a_majority_should_have_is_advised_at_the_join(
    options: dict[str, Any], sentences: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = {"journal": tmp_path / "journal"} if "journal" in options else {}

    async def story(group: Group) -> None:
        async with group.channel(**({"name": "A", "profile": "uniform"} | options | folder)):
            pass

    with caplog.at_level(logging.WARNING, "pygroups.channel"):
        in_a_group(tmp_path, story)
    own = [record.getMessage() for record in caplog.records if record.name.startswith("pygroups")]
    said = [line for line in own if "this member is alone" not in line]
    assert len(said) == len(sentences)
    assert all(sentence in line for sentence, line in zip(sentences, said, strict=True))
