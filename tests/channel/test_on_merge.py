"""on_merge: after a split one side wins, and the programs of the other sides get its state, in order.

The groups are in memory, in virtual time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import pygroups
from pygroups import Channel, Gap, Left, MergeSide, MergeView, Message, Refused, StateLost, UsageError, View
from pygroups.testing import Group, run

Log = list[object]  # "set", the events, and the payloads of messages, as the program gets them


class Store:
    """A replicated dict.  It records all that happens to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.data: dict[str, str] = {}
        self.log: Log = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.gives = asyncio.Event()
        self.gives.set()
        self.channel: Channel

    async def run(self, **options: Any) -> None:
        async with Channel("store", state=self, **options) as self.channel:
            events = aiter(self.channel)
            while True:
                await self.reads.wait()
                try:
                    event = await anext(events)
                except StateLost:
                    self.log.append("lost")
                    continue
                except StopAsyncIteration:
                    return
                if isinstance(event, Message):
                    key, _, value = event.payload.decode().partition("=")
                    self.data[key] = value
                    self.log.append(event.payload.decode())
                else:
                    self.log.append(event)

    async def put(self, key: str, value: str) -> None:
        await self.channel.send(f"{key}={value}".encode(), until="stable")

    async def get_state(self) -> AsyncIterator[bytes]:
        data = json.dumps(self.data).encode()

        async def slowly() -> AsyncIterator[bytes]:
            yield data[:1]
            await self.gives.wait()
            yield data[1:]

        return slowly()

    async def set_state(self, data: bytes) -> None:
        self.take(data)

    def take(self, data: bytes) -> None:
        self.data = json.loads(data)
        self.log.append("set")

    @property
    def merged(self) -> MergeView:
        return next(event for event in self.log if isinstance(event, MergeView))


class StoreOfChunks(Store):
    """The same with a state in chunks, for states that are larger than the memory."""

    set_state = None  # type: ignore[assignment]

    async def set_state_chunks(self, chunks: AsyncIterator[bytes]) -> None:
        self.take(b"".join([chunk async for chunk in chunks]))


KINDS = pytest.mark.parametrize("kind", [Store, StoreOfChunks])


async def split(group: Group, *sides: str, kind: type[Store] = Store, **options: Any) -> dict[str, Store]:
    """Stores on each of the sides, after each side has written something."""
    names = sorted("".join(sides))
    stores = {name: kind(name) for name in names}
    for name in names:
        group.start(name, stores[name].run(**options))
        await group.settled()
    await group.settled(one=True)
    await stores[names[0]].put("common", "all")
    group.partition(*[list(side) for side in sides])
    await asyncio.sleep(10)
    await group.settled()
    for side in sides:
        await stores[side[0]].put("x", f"of {side}")
        await stores[side[-1]].put(side, "was here")
    return stores


async def healed(group: Group) -> None:
    group.heal()
    await group.settled(one=True)


def of_the_winner(side: str) -> dict[str, str]:
    return {"common": "all", "x": f"of {side}", side: "was here"}


def check_ends(stores: dict[str, Store], winner: str) -> None:
    """All have the data of the winner, and each loser set it once, right before the merged view."""
    for name, store in stores.items():
        assert store.data == of_the_winner(winner), name
        merged = store.merged
        assert "".join(member.name for member in merged.winner) == winner
        at = store.log.index(merged)
        sets = [n for n, item in enumerate(store.log) if item == "set"][0 if name == min(stores) else 1 :]
        if name in winner:
            assert not merged.reset
            assert not sets
        else:
            assert merged.reset
            assert sets == [at - 1]
            gaps = [event for event in store.log[at:] if isinstance(event, Gap)]
            assert all(name not in {one.name for one in merged.winner} for gap in gaps for name in gap.subgroup)


@KINDS
@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_the_larger_side_wins_and_the_other_gets_its_state(profile: str, kind: type[Store]) -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge="primary", profile=profile, kind=kind)
        await healed(group)
        check_ends(stores, "CDE")
        await stores["A"].put("after", "the merge")
        await group.settled(one=True)
        assert all(store.data == {**of_the_winner("CDE"), "after": "the merge"} for store in stores.values())

    run(story)


def test_a_function_chooses_the_side() -> None:
    asked: list[Sequence[MergeSide]] = []

    def choose(sides: Sequence[MergeSide]) -> MergeSide:
        asked.append(sides)
        return min(sides, key=lambda side: len(side.members))

    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge=choose)
        await healed(group)
        check_ends(stores, "AB")
        for side in asked[-1]:
            names = "".join(member.name for member in side.members)
            assert side.primary == (names == "CDE")
            assert names in ("AB", "CDE")

    run(story)


def raises(sides: Sequence[MergeSide]) -> MergeSide:
    raise ZeroDivisionError("too bad")


def returns_nothing(sides: Sequence[MergeSide]) -> None:
    return None


@pytest.mark.parametrize("choose", [raises, returns_nothing])
def test_a_function_that_chooses_no_side_is_told_of_and_all_keep_their_state(
    choose: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge=choose)
        await healed(group)
        for name, store in stores.items():
            side = "AB" if name in "AB" else "CDE"
            assert store.data == of_the_winner(side)
            assert store.merged.winner == () and not store.merged.reset
        counted = [store.channel.stats()["counters"].get("merge without a winner", 0) for store in stores.values()]
        assert sum(counted) == 1
        assert "ZeroDivisionError: too bad" in caplog.text or "returned NoneType" in caplog.text

    run(story)


def test_a_slow_reader_gets_the_events_of_its_side_before_the_state() -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge="primary")
        stores["B"].reads.clear()
        for n in range(5):
            await stores["A"].put("late", str(n))
        group.heal()
        await asyncio.sleep(20)
        assert len(stores["B"].channel.view.members) == 5
        assert [item for item in stores["B"].log if isinstance(item, MergeView)] == []
        stores["B"].reads.set()
        await healed(group)
        check_ends(stores, "CDE")
        log = stores["B"].log
        assert log[log.index("late=0") : log.index("late=4") + 1] == [f"late={n}" for n in range(5)]
        assert log.index("late=4") < log.index(stores["B"].merged) - 1

    run(story)


def test_ready_waits_for_the_reader_before_it_replaces_its_data() -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge="primary")
        stores["B"].reads.clear()
        await stores["A"].put("late", "1")
        group.heal()
        await asyncio.sleep(20)
        waiting = asyncio.create_task(stores["B"].channel.ready())
        await asyncio.sleep(5)
        assert not waiting.done()
        stores["B"].reads.set()
        await waiting
        check_ends(stores, "CDE")
        await healed(group)

    run(story)


@KINDS
def test_when_the_provider_crashes_another_of_its_side_gives_the_state(kind: type[Store]) -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge="primary", kind=kind)
        for name in "CDE":
            stores[name].gives.clear()
        group.heal()
        while len(stores["A"].channel.view.members) < 5:
            await asyncio.sleep(0.1)
        await stores["D"].put("while", "it comes")
        await asyncio.sleep(1)
        group.crash("C")
        await asyncio.sleep(10)
        for name in "DE":
            stores[name].gives.set()
        await healed(group)
        for name in "ABDE":
            assert stores[name].data == {**of_the_winner("CDE"), "while": "it comes"}, name
        for name in "AB":
            log = stores[name].log
            at = log.index(stores[name].merged)
            assert log[at].reset and log[at - 1] == "set"  # type: ignore[attr-defined]
            assert "while=it comes" not in log, "the second state contains it"
            assert [item for item in log[at:] if isinstance(item, View)][-1].members == stores["D"].channel.view.members

    run(story)


def test_a_side_whose_winner_is_gone_learns_that_it_has_an_old_state() -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "C", on_merge=lambda sides: max(sides, key=lambda side: side.members))
        stores["C"].gives.clear()
        group.heal()
        while len(stores["A"].channel.view.members) < 3:
            await asyncio.sleep(0.1)
        group.crash("C")
        await group.settled(one=True)
        assert stores["A"].log.count("lost") == 1
        assert stores["A"].data == of_the_winner("AB") == stores["B"].data

    run(story)


def test_a_member_that_leaves_while_it_waits_gets_the_events_of_its_side() -> None:
    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge="primary")
        for name in "CDE":
            stores[name].gives.clear()
        stores["B"].reads.clear()
        await stores["A"].put("late", "1")
        group.heal()
        while len(stores["B"].channel.view.members) < 5:
            await asyncio.sleep(0.1)
        await stores["B"].channel.leave()
        stores["B"].reads.set()
        await asyncio.sleep(1)
        for name in "CDE":
            stores[name].gives.set()
        await healed(group)
        log = stores["B"].log
        assert "late=1" in log and isinstance(log[-1], Left)
        assert not any(isinstance(item, MergeView) for item in log), "it has not got the state of that view"

    run(story)


def test_a_program_without_a_state_is_told_that_its_side_lost() -> None:
    async def story(group: Group) -> None:
        views: dict[str, list[MergeView]] = {"A": [], "B": []}

        async def program(name: str) -> None:
            async with Channel("shown", on_merge="primary") as channel:
                async for event in channel:
                    if isinstance(event, MergeView):
                        views[name].append(event)

        for name in "AB":
            group.start(name, program(name))
            await group.settled()
        await group.settled(one=True)
        group.partition(["A"], ["B"])
        await asyncio.sleep(10)
        await healed(group)
        assert [view.reset for view in views["A"]] == [False]  # A is first in the view, so its side is primary
        assert [view.reset for view in views["B"]] == [True]

    run(story)


def test_members_must_agree_on_it() -> None:
    async def story(group: Group) -> None:
        async with group.channel("store", name="A", on_merge="primary"):
            with pytest.raises(Refused, match="the group has on_merge=primary, the joiner on_merge=keep"):
                async with group.channel("store", name="B"):
                    pass
            with pytest.raises(Refused, match="on_merge=function"):
                async with group.channel("store", name="C", on_merge=raises):
                    pass

    run(story)


@pytest.mark.parametrize("wrong", ["first", 3, None])
def test_an_unknown_setting_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="use 'keep', 'primary', or a function"):
        Channel("store", on_merge=wrong)


def test_a_coroutine_function_and_a_profile_that_does_not_merge_are_refused() -> None:
    async def choose(sides: Sequence[MergeSide]) -> MergeSide:
        return sides[0]

    with pytest.raises(UsageError, match="write it as `def`"):
        Channel("store", on_merge=choose)
    with pytest.raises(UsageError, match="merges no views"):
        Channel(None, profile="unicast", on_merge="primary")
    assert pygroups.Channel("store", on_merge="keep")


def test_a_function_sees_that_a_side_began_without_the_state_of_the_group() -> None:
    asked: list[Sequence[MergeSide]] = []

    def choose(sides: Sequence[MergeSide]) -> MergeSide:
        asked.append(sides)
        return next(side for side in sides if side.whole)

    async def story(group: Group) -> None:
        stores = {name: Store(name) for name in "ABC"}
        group.start("A", stores["A"].run(on_merge=choose))
        await group.settled()
        await stores["A"].put("old", "1")
        stores["A"].gives.clear()
        for name in "BC":
            group.start(name, stores[name].run(on_merge=choose))
        await asyncio.sleep(5)
        group.partition(["A"], ["B", "C"])
        await asyncio.sleep(20)
        await stores["C"].put("new", "2")
        stores["A"].gives.set()
        await healed(group)
        assert "lost" in stores["B"].log
        whole = {"".join(member.name for member in side.members): side.whole for side in asked[-1]}
        assert whole == {"A": True, "BC": False}
        assert all(store.data == {"old": "1"} for store in stores.values())
        gaps = [event for event in stores["B"].log if isinstance(event, Gap)]
        assert [(gap.sender.name, gap.first, gap.count) for gap in gaps] == [("C", 1, 1)]

    run(story)
