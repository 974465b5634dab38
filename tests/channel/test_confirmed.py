"""What `until=` confirmed reaches a program, also if a state that a member waits for does not come.

The groups are in memory, in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pygroups import Gap, MergeView, Message, View
from pygroups.testing import Group, run
from tests.channel.test_on_merge import Log, Store, healed, split


async def happens(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.05)


async def joiners_of_a_slow_provider(group: Group, *names: str, **options: Any) -> dict[str, Store]:
    """A has a state and gives it to the others only when its `gives` is set."""
    stores = {name: Store(name) for name in ("A", *names)}
    group.start("A", stores["A"].run(**options))
    await group.settled()
    await stores["A"].put("old", "1")
    stores["A"].gives.clear()
    for name in names:
        group.start(name, stores[name].run(**options))
        await happens(lambda name=name: hasattr(stores[name], "channel") and stores[name].channel.view is not None)  # type: ignore[misc]
    await happens(lambda: all(len(store.channel.view.members) == len(stores) for store in stores.values()))
    return stores


def kinds(log: Log) -> list[object]:
    """The log with the class of each event in its place."""
    return [item if isinstance(item, str) else type(item) for item in log]


def lacking(gap: Gap) -> tuple[str, int, int]:
    return gap.sender.name, gap.first, gap.count


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_a_lost_state_is_followed_by_all_that_its_member_held(profile: str) -> None:
    async def story(group: Group) -> None:
        stores = await joiners_of_a_slow_provider(group, "B", "C", profile=profile)
        await stores["B"].put("b", "stable")
        await stores["C"].put("c", "stable")
        group.crash("A")
        await group.settled(one=True)
        assert stores["B"].log[0] == "lost"
        views = [item for item in stores["B"].log if isinstance(item, View)]
        assert [len(view.members) for view in views] == [2, 3, 2, 2], "one more view shows that C has no state"
        assert views[0].joined == views[0].transitional == (stores["B"].channel.address,)
        assert [item for item in stores["B"].log if isinstance(item, str)] == ["lost", "b=stable", "c=stable"]
        assert stores["B"].data == stores["C"].data == {"b": "stable", "c": "stable"}
        assert kinds(stores["C"].log) == ["set", View], "the state of B has what B held"

    run(story)


def test_what_a_member_holds_through_two_providers_is_given_once_when_both_are_lost() -> None:
    async def story(group: Group) -> None:
        stores = await joiners_of_a_slow_provider(group, "D")
        stores["A"].gives.set()
        await group.settled(one=True)
        stores["D"].gives.clear()
        stores["A"].gives.clear()
        stores["E"] = Store("E")
        group.start("E", stores["E"].run())
        await happens(lambda: len(stores["D"].channel.view.members) == 3)
        await stores["E"].put("first", "1")
        group.crash("A")
        await happens(lambda: len(stores["E"].channel.view.members) == 2)
        await stores["E"].put("second", "2")
        group.crash("D")
        await group.settled(one=True)
        assert [item for item in stores["E"].log if isinstance(item, str)] == ["lost", "first=1", "second=2"]
        views = [item for item in stores["E"].log if isinstance(item, View)]
        assert [len(view.members) for view in views] == [3, 2, 1]

    run(story)


def test_a_second_provider_replaces_what_a_member_held_by_its_state() -> None:
    async def story(group: Group) -> None:
        stores = await joiners_of_a_slow_provider(group, "D")
        stores["A"].gives.set()
        await group.settled(one=True)
        stores["A"].gives.clear()
        stores["E"] = Store("E")
        group.start("E", stores["E"].run())
        await happens(lambda: len(stores["D"].channel.view.members) == 3)
        await stores["E"].put("first", "1")
        group.crash("A")
        await group.settled(one=True)
        assert kinds(stores["E"].log) == ["set", View]
        assert stores["E"].data == {"old": "1", "first": "1"}

    run(story)


async def losers_that_wait(group: Group, **options: Any) -> dict[str, Store]:
    """A and B lost a merge to C, D and E, and wait for the state, which does not come."""
    stores = await split(group, "AB", "CDE", on_merge="primary", **options)
    await stores["C"].put("theirs", "C")
    for name in "CDE":
        stores[name].gives.clear()
    group.heal()
    await happens(lambda: all(len(store.channel.view.members) == 5 for store in stores.values()))
    return stores


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_when_the_winners_state_is_lost_the_losers_go_on_from_their_own(profile: str) -> None:
    async def story(group: Group) -> None:
        stores = await losers_that_wait(group, profile=profile)
        await stores["A"].put("a", "confirmed")
        await stores["B"].put("b", "confirmed")
        await stores["D"].put("d", "confirmed")
        for name in "CDE":
            group.crash(name)
        await group.settled(one=True)
        log = stores["A"].log
        at = log.index("lost")
        merged = stores["A"].merged
        assert not merged.reset, "this program has the state of its own side"
        assert log.index(merged) == at + 1
        gaps = [item for item in log if isinstance(item, Gap)]
        assert {gap.sender.name for gap in gaps} == {"C", "E"}, "they sent on the other side of the split"
        assert all([member.name for member in gap.subgroup] == ["C", "D", "E"] for gap in gaps)
        assert set(log[at + 2 : at + 2 + len(gaps)]) == set(gaps)
        said = [item for item in log[at:] if isinstance(item, str)]
        assert sorted(said) == ["a=confirmed", "b=confirmed", "d=confirmed", "lost"]
        assert [len(item.members) for item in log[at:] if isinstance(item, View)] == [5, 2, 2]
        own = {"common": "all", "x": "of AB", "AB": "was here"}
        confirmed = dict.fromkeys("abd", "confirmed")
        assert stores["A"].data == stores["B"].data == {**own, **confirmed}
        at = stores["B"].log[1:].index("set") + 2
        again = stores["B"].log[at]
        assert isinstance(again, MergeView) and again.reset, "A gave its state to B"
        told = [item for item in stores["B"].log[at + 1 :] if isinstance(item, Gap)]
        assert [lacking(gap) for gap in told] == [lacking(gap) for gap in gaps], "what the state of A lacks"

    run(story)


def test_losers_that_are_cut_off_again_get_what_was_confirmed() -> None:
    async def story(group: Group) -> None:
        stores = await losers_that_wait(group)
        await stores["A"].put("a", "confirmed")
        group.partition(["A", "B"], ["C", "D", "E"])
        await happens(lambda: len(stores["A"].channel.view.members) == 2)
        await group.settled()
        assert stores["A"].data["a"] == stores["B"].data["a"] == "confirmed"
        assert stores["A"].data["x"] == "of AB"
        for name in "CDE":
            stores[name].gives.set()
        await healed(group)
        assert all(store.data == stores["C"].data for store in stores.values())
        at = len(stores["A"].log) - stores["A"].log[::-1].index("set")
        merged, *gaps = stores["A"].log[at:]
        assert isinstance(merged, MergeView)
        assert [lacking(gap) for gap in gaps if isinstance(gap, Gap)] == [("A", 2, 1), ("B", 1, 1)], "old ones"

    run(story)


def test_a_later_winner_gives_one_view_in_place_of_those_that_it_skips() -> None:
    async def story(group: Group) -> None:
        stores = await losers_that_wait(group)
        seen = len(stores["A"].log)
        group.crash("C")
        await happens(lambda: all(len(stores[name].channel.view.members) == 4 for name in "ABDE"))
        for name in "DE":
            stores[name].gives.set()
        await group.settled(one=True)
        assert kinds(stores["A"].log[seen:]) == ["set", MergeView, Gap, Gap], "no view from before the state"
        gaps = [lacking(gap) for gap in stores["A"].log[seen:] if isinstance(gap, Gap)]
        assert gaps == [("A", 2, 1), ("B", 1, 1)], "what its own side delivered, and the state of D lacks"
        view = stores["A"].merged
        assert view.reset
        assert view.members == stores["D"].channel.view.members
        assert [[member.name for member in side] for side in view.subgroups] == [["A", "B"], ["D", "E"]]
        assert [member.name for member in view.winner] == ["D", "E"]
        assert [member.name for member in view.joined] == ["D", "E"]
        assert view.left == ()
        assert [member.name for member in view.transitional] == ["A", "B"]
        assert stores["A"].data == stores["D"].data

    run(story)


async def one_that_waits(group: Group) -> dict[str, Store]:
    stores = await joiners_of_a_slow_provider(group, "B")
    await asyncio.sleep(1)
    assert stores["B"].log == []
    return stores


def test_a_leave_finishes_the_state_that_it_gives() -> None:
    async def story(group: Group) -> None:
        stores = await one_that_waits(group)
        leaving = asyncio.create_task(stores["A"].channel.leave())
        await asyncio.sleep(2)
        assert not leaving.done()
        stores["A"].gives.set()
        assert (await leaving).reason == "left"
        await group.settled(one=True)
        assert stores["B"].data == {"old": "1"}
        assert "lost" not in stores["B"].log

    run(story)


def test_a_leave_as_soon_as_another_has_joined_loses_no_state() -> None:
    async def story(group: Group) -> None:
        stores = {"A": Store("A"), "B": Store("B")}
        group.start("A", stores["A"].run())
        await group.settled()
        await stores["A"].put("old", "1")
        group.start("B", stores["B"].run())
        await happens(lambda: len(stores["A"].channel.view.members) == 2)
        await stores["A"].channel.leave()
        await group.settled(one=True)
        assert stores["B"].data == {"old": "1"}

    run(story)


def test_a_leave_does_not_wait_for_ever_for_a_state() -> None:
    async def story(group: Group) -> None:
        stores = await one_that_waits(group)
        begun = asyncio.get_running_loop().time()
        assert (await stores["A"].channel.leave()).reason == "left"
        took = asyncio.get_running_loop().time() - begun
        assert 5 <= took <= 10, "leave_timeout for the state, and then the view change"
        await group.settled(one=True)
        assert stores["B"].log[0] == "lost"

    run(story)


def test_a_leave_by_the_task_that_reads_gives_a_state_that_it_has_not_reached() -> None:
    """It reads no more, and has handled all messages that came before the joiner: its state is the one that is asked
    for."""

    async def story(group: Group) -> None:
        kept = Store("A")
        async with group.channel("store", name="A", state=kept) as first:
            kept.channel = first
            await first.send(b"old=1")
            async for event in first:
                if isinstance(event, Message):
                    kept.data["old"] = "1"
                    break
            other = Store("B")
            group.start("B", other.run())
            await happens(lambda: len(first.view.members) == 2)
        await group.settled(one=True)
        assert other.data == {"old": "1"}
        assert "lost" not in other.log

    run(story)


def test_a_leave_by_the_task_that_reads_gives_no_state_that_lacks_a_message() -> None:
    async def story(group: Group) -> None:
        kept = Store("A")
        async with group.channel("store", name="A", state=kept) as first:
            kept.channel = first
            await first.send_many([b"old=1", b"new=1"])
            async for event in first:
                if isinstance(event, Message):
                    kept.data["old"] = "1"
                    break  # the second one is unread
            other = Store("B")
            group.start("B", other.run())
            await happens(lambda: len(first.view.members) == 2)
        await group.settled(one=True)
        assert other.log[0] == "lost"

    run(story)


@pytest.mark.parametrize("seed", range(3))
def test_three_that_leave_at_once_give_the_state_to_three_that_have_just_joined(seed: int) -> None:
    async def story(group: Group) -> None:
        stores = {name: Store(name) for name in "ABCDEF"}
        for name in "ABC":
            group.start(name, stores[name].run())
        await group.settled(one=True)
        await stores["A"].put("old", "1")
        for name in "DEF":
            group.start(name, stores[name].run())
        await happens(lambda: len(stores["A"].channel.view.members) == 6)
        await asyncio.gather(*[stores[name].channel.leave() for name in "ABC"])
        await group.settled(one=True)
        for name in "DEF":
            assert stores[name].data == {"old": "1"}
            assert "lost" not in stores[name].log

    run(story, seed=seed)


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_gaps_name_what_an_earlier_merge_took_from_the_state(profile: str) -> None:
    """A and B confirm messages; B loses a merge alone, and then A another one: the state lacks them."""

    async def story(group: Group) -> None:
        stores = await split(group, "AB", "CDE", on_merge="primary", profile=profile)
        group.partition(["A"], ["B"], ["C", "D", "E"])
        await happens(lambda: len(stores["A"].channel.view.members) == 1)
        await stores["A"].put("alone", "A")
        group.heal()
        group.partition(["A"], ["B", "C", "D", "E"])
        await happens(lambda: len(stores["B"].channel.view.members) == 4)
        await asyncio.sleep(1)
        group.heal()
        await group.settled(one=True)
        for name in "AB":
            assert stores[name].data == {"common": "all", "x": "of CDE", "CDE": "was here"}
            at = len(stores[name].log) - stores[name].log[::-1].index("set")
            merged, *later = stores[name].log[at:]
            assert isinstance(merged, MergeView) and merged.reset
            told = [lacking(gap) for gap in later if isinstance(gap, Gap)]
            assert told == [("A", 2, 1), ("B", 1, 1), ("A", 3, 1)], "two of the side of both, one of A alone"

    run(story)
