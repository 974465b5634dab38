"""State transfer through the channel: a newcomer begins with exactly what was applied before its view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Message, StateLost, UsageError, View
from pygroups.core.limits import Config
from pygroups.journal.frames import Frame, walk
from pygroups.journal.schema import FIELDS, PREFIX
from tests.channel.socket_group import Group, both_profiles, in_a_group, until
from tests.patience import patience

__all__ = ["both_profiles"]
pytestmark = pytest.mark.usefixtures("both_profiles")


class Ledger:
    """An application whose state is the list of all payloads that it applied."""

    def __init__(self, channel_of: Group, name: str, **options: Any) -> None:
        self.lines: list[bytes] = []
        self.given: list[bytes | None] = []
        self.views: list[View] = []
        self.channel: Channel = channel_of.channel(name, state=self, **options)
        self.task: asyncio.Task[None]
        self.piece = 0
        self.gives: Callable[[], Awaitable[Any]] | None = None  # in place of the lines
        self.takes: Callable[[bytes], Awaitable[None]] | None = None

    async def start(self) -> Ledger:
        await self.channel.__aenter__()
        self.task = asyncio.create_task(self._apply())
        return self

    async def _apply(self) -> None:
        async for event in self.channel:
            if isinstance(event, Message):
                self.lines.append(event.payload)
            elif isinstance(event, View):
                self.views.append(event)

    async def get_state(self) -> Any:
        if self.gives is not None:
            return await self.gives()
        state = b"\n".join(self.lines)
        return self._in_pieces(state) if self.piece else state

    async def _in_pieces(self, state: bytes) -> AsyncIterator[bytes]:
        for begin in range(0, len(state), self.piece):
            yield state[begin : begin + self.piece]

    async def set_state(self, data: bytes) -> None:
        if self.takes is not None:
            await self.takes(data)
        assert not self.views, "the state comes before the first view"
        self.given.append(data)
        self.lines = data.split(b"\n") if data else []


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The records of a kind in all journals under `folder`, with the member that wrote them."""
    found = []
    for segment in sorted(folder.rglob("*.journal")):
        for part in walk(segment.read_bytes()):
            for record in part.records if isinstance(part, Frame) else ():
                if record[0] == kind:
                    fields = dict(zip(FIELDS[kind], record[len(PREFIX) :], strict=True))
                    found.append({"who": segment.parent.name, "view": record[4], **fields})
    return found


@pytest.mark.parametrize("piece", [0, 1_000, 200_000])
def test_a_newcomer_begins_with_the_state_and_misses_and_repeats_nothing(tmp_path: Path, piece: int) -> None:
    async def story(group: Group) -> None:
        old = Ledger(group, "A", journal=tmp_path / "journal")
        old.piece = piece
        await old.start()
        sending = asyncio.create_task(feed(old.channel, 30_000))
        await until(lambda: len(old.lines) > 10_000)
        new = await Ledger(group, "B", journal=tmp_path / "journal").start()
        await sending
        await until(lambda: len(new.lines) == len(old.lines) == 30_000)
        assert new.lines == old.lines
        assert len(new.given) == 1
        (got,), (put,) = records(tmp_path / "journal", "state_get"), records(tmp_path / "journal", "state_set")
        assert (got["who"], got["peer"]) == (str(old.channel.address), str(new.channel.address))
        assert (put["who"], put["peer"]) == (str(new.channel.address), str(old.channel.address))
        same = ("view", "bytes", "checksum", "position", "digest")
        assert [got[column] for column in same] == [put[column] for column in same]
        lines = len((new.given[0] or b"").split(b"\n"))
        assert got["digest"] == {str(old.channel.address): lines}
        view = next(view for view in records(tmp_path / "journal", "view") if view["who"] == put["who"])
        assert view["digest"] == put["digest"]
        await new.channel.leave()
        await old.channel.leave()

    in_a_group(tmp_path, story)


async def feed(channel: Channel, count: int) -> None:
    for number in range(count):
        await channel.send(b"line %d" % number)
        if number % 1_000 == 0:
            await asyncio.sleep(0.001)


def test_a_state_larger_than_what_may_be_on_its_way(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        config = Config(state_chunk=1_000, state_chunks_ahead=3)
        old = await Ledger(group, "A", config=config).start()
        old.lines = [bytes([65 + number % 26]) * 100 for number in range(2_000)]
        new = await Ledger(group, "B", config=config).start()
        await until(lambda: new.views)
        assert new.lines == old.lines
        await new.channel.leave()
        await old.channel.leave()

    in_a_group(tmp_path, story)


def test_several_newcomers_at_once_and_the_founder_gets_none(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        old = await Ledger(group, "A").start()
        await old.channel.send(b"x", until="delivered")
        await until(lambda: old.lines)
        new = await asyncio.gather(*(Ledger(group, name).start() for name in "BCD"))
        await until(lambda: all(ledger.views for ledger in new))
        assert [ledger.given for ledger in new] == [[b"x"]] * 3
        assert old.given == []
        for ledger in (*new, old):
            await ledger.channel.leave()

    in_a_group(tmp_path, story)


def test_when_the_provider_dies_another_one_gives_the_state_of_the_next_view(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, second = await Ledger(group, "A").start(), await Ledger(group, "B").start()
        await until(lambda: second.views)
        gate = asyncio.Event()

        async def never() -> AsyncIterator[bytes]:
            yield b"half of "
            await gate.wait()
            yield b"the state"

        async def get_state() -> AsyncIterator[bytes]:
            return never()

        first.gives = get_state
        await second.channel.send(b"before", until="delivered")
        await until(lambda: first.lines and second.lines)
        new = await Ledger(group, "C").start()
        await second.channel.send(b"between", until="delivered")
        assert new.views == []
        first.channel._member.crash(AssertionError("dies"))
        with pytest.raises(AssertionError):
            await first.task
        await until(lambda: new.views)
        await second.channel.send(b"after", until="delivered")
        await until(lambda: b"after" in new.lines)
        assert new.given == [b"before\nbetween"]
        assert new.lines == second.lines == [b"before", b"between", b"after"]
        assert [member.name for member in new.views[0].members] == ["B", "C"]
        await new.channel.leave()
        await second.channel.leave()

    in_a_group(tmp_path, story)


def test_who_has_no_state_gives_none_and_wants_none(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        plain = await group.read("A")
        ledger = await Ledger(group, "B").start()
        await until(lambda: ledger.views)
        assert ledger.given == []
        another = await group.read("C")
        await until(lambda: another.views)
        await plain.channel.send(b"x")
        await until(lambda: ledger.lines and another.payloads)
        await ledger.channel.leave()

    in_a_group(tmp_path, story)


@pytest.mark.parametrize(
    ("fault", "raised"),
    [("raises", ZeroDivisionError), ("wrong type", UsageError), ("breaks later", ZeroDivisionError)],
)
def test_what_the_application_does_wrong_is_raised_where_it_reads(
    tmp_path: Path, fault: str, raised: type[Exception]
) -> None:
    async def story(group: Group) -> None:
        old = Ledger(group, "A")

        async def breaks() -> AsyncIterator[bytes]:
            yield b"x" * 100_000
            raise ZeroDivisionError

        async def get_state() -> Any:
            match fault:
                case "raises":
                    raise ZeroDivisionError
                case "wrong type":
                    return ["x"]
            return breaks()

        old.gives = get_state
        await old.start()
        new = await Ledger(group, "B").start()
        with pytest.raises(raised):
            await old.task
        assert new.views == []
        await old.channel.leave()
        with pytest.raises(StateLost):  # nobody is left that has the state
            await new.task
        assert isinstance(await anext(new.channel), View)  # it may begin with what it has
        assert new.given == []
        await new.channel.leave()

    in_a_group(tmp_path, story)


def test_a_state_that_cannot_be_set_is_raised_where_the_newcomer_reads(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        old, new = await Ledger(group, "A").start(), Ledger(group, "B")

        async def set_state(data: bytes) -> None:
            raise ZeroDivisionError

        new.takes = set_state
        await new.start()
        with pytest.raises(ZeroDivisionError):
            await new.task
        await new.channel.leave()
        await old.channel.leave()

    in_a_group(tmp_path, story)


def test_while_the_state_comes_the_others_go_on(tmp_path: Path) -> None:
    """What waits for the state counts as consumed, so nobody's window fills by it."""

    async def story(group: Group) -> None:
        config = Config(window=64 << 10, run_bytes=16 << 10, stable_bytes=16 << 10)
        old = await Ledger(group, "A", config=config).start()
        gate = asyncio.Event()

        async def get_state() -> AsyncIterator[bytes]:
            async def pieces() -> AsyncIterator[bytes]:
                await gate.wait()
                yield b"the state"

            return pieces()

        old.gives = get_state
        new = await Ledger(group, "B", config=config).start()
        for _ in range(100):
            await old.channel.send(bytes(8 << 10))
        await until(lambda: len(old.lines) == 100)
        assert new.lines == []
        gate.set()
        await until(lambda: len(new.lines) == 101)
        assert new.lines[0] == b"the state"
        await new.channel.leave()
        await old.channel.leave()

    in_a_group(tmp_path, story)


def test_a_joiner_goes_before_the_first_part(tmp_path: Path) -> None:
    """Nobody needs the state any more: the provider's application is let go, and its snapshot closed."""

    async def story(group: Group) -> None:
        config = Config(state_chunk=1_000, state_chunks_ahead=3)
        old = await Ledger(group, "A", config=config).start()
        asked, gate, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            try:
                for _ in range(100):
                    yield b"x" * 1_000
            finally:
                closed.set()

        async def get_state() -> AsyncIterator[bytes]:
            asked.set()
            await gate.wait()
            return pieces()

        old.gives = get_state
        new = Ledger(group, "B", config=config)
        joining = asyncio.create_task(new.start())
        await asyncio.wait_for(asked.wait(), patience(5))
        await joining
        await new.channel.leave()
        gate.set()
        await asyncio.wait_for(closed.wait(), patience(5))
        await until(lambda: not any(task.get_name() == "pygroups gives its state" for task in asyncio.all_tasks()))
        await old.channel.leave()

    in_a_group(tmp_path, story)
