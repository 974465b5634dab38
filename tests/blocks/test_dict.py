"""ReplicatedDict in a group in memory: equal at all members, in crashes, splits and merges."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from pygroups import Channel, ChannelClosed, DeliveredElsewhere, Gap, Message, StateLost, Unknown, UsageError, View
from pygroups.blocks import Blocks, Change, ReplicatedDict, Resync
from pygroups.testing import Group


class Price(msgspec.Struct):
    cents: int
    tags: list[str] = []


async def test_a_write_is_read_by_its_own_process_and_comes_to_all(group: Group) -> None:
    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        at_a = ReplicatedDict(a, "prices", str, int)
        at_b = ReplicatedDict(b, "prices", str, int)
        await at_a.set("apple", 3)
        assert at_a["apple"] == 3
        await at_a.update({"pear": 4, "fig": 5})
        await at_b.delete("apple", "absent")
        assert dict(at_b) == {"pear": 4, "fig": 5}
        assert await at_b.pop("fig") == 5
        assert await at_b.pop("fig", 0) == 0
        await group.settled()
        assert dict(at_a) == dict(at_b) == {"pear": 4}
        assert ("pear" in at_a, "fig" in at_a, len(at_a), at_a.get("fig")) == (True, False, 1, None)
        await at_a.clear(until="stable")
        assert not at_a


async def test_many_dicts_share_a_channel_and_a_joiner_gets_all(group: Group) -> None:
    async with Blocks("g", name="A") as a:
        for number in range(20):
            await ReplicatedDict(a, f"d{number}").set("n", number)
        async with Blocks("g", name="B") as b:
            assert [ReplicatedDict(b, f"d{number}")["n"] for number in range(20)] == list(range(20))


async def test_values_have_types_and_a_read_gives_a_new_object(group: Group) -> None:
    async with Blocks("g", name="A") as a:
        prices = ReplicatedDict(a, "prices", tuple[str, int], Price)
        await prices.set(("apple", 1), Price(3))
        prices["apple", 1].tags.append("cheap")
        assert prices["apple", 1] == Price(3, [])
        with pytest.raises(UsageError, match="cannot be a value of dict 'prices'"):
            await prices.set(("apple", 1), 3)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="data of another type"):
            list(ReplicatedDict(a, "prices", str, Price))
        with pytest.raises(KeyError):
            prices["pear", 1]


async def test_of_two_swaps_one_succeeds(group: Group) -> None:
    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        dicts = [ReplicatedDict(one, "d", str, int) for one in (a, b)]
        made = await asyncio.gather(*[one.compare_and_set("n", None, number) for number, one in enumerate(dicts)])
        assert sorted(made) == [False, True]
        now = dicts[0]["n"]
        assert await dicts[1].compare_and_set("n", now, 7)
        assert not await dicts[0].compare_and_set("n", now, 8)
        assert await dicts[0].compare_and_set("n", 7, None)
        assert "n" not in dicts[0]


async def test_changes_come_in_order_with_their_old_value(group: Group) -> None:
    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        changes = ReplicatedDict(b, "d", str, int).changes()
        d = ReplicatedDict(a, "d", str, int)
        await d.set("x", 1)
        await d.set("x", 2)
        await d.delete("x")
        seen = [await anext(changes) for _ in range(3)]
        assert seen == [Change("x", None, 1), Change("x", 1, 2), Change("x", 2, None)]


async def test_a_key_expires_at_one_place_of_the_order_and_a_later_write_keeps_it(group: Group) -> None:
    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        at_a, at_b = [ReplicatedDict(one, "d", str, int) for one in (a, b)]
        await at_b.set("x", 1, ttl=10)
        await at_b.set("y", 1, ttl=10)
        await asyncio.sleep(8)
        await at_b.set("y", 2, ttl=10)
        await asyncio.sleep(1.5)
        assert ("x" in at_a, "x" in at_b) == (True, True)
        await asyncio.sleep(1)
        assert ("x" in at_a, "x" in at_b, at_a["y"]) == (False, False, 2)
        await asyncio.sleep(10)
        assert ("y" in at_a, "y" in at_b) == (False, False)


async def test_a_swap_can_keep_the_time_of_a_key(group: Group) -> None:
    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        d: ReplicatedDict[str, int] = ReplicatedDict(b, "d", str, int)
        await d.update({"kept": 1, "new": 1}, ttl=5)
        await asyncio.sleep(3)
        assert await d.compare_and_set("kept", 1, 2, keep_ttl=True)
        assert await d.compare_and_set("new", 1, 2)
        assert await d.compare_and_set("absent", None, 2, ttl=1, keep_ttl=True)
        assert dict(d) == {"kept": 2, "new": 2, "absent": 2}
        await asyncio.sleep(3)
        await group.settled()
        assert dict(d) == dict(ReplicatedDict(a, "d")) == {"new": 2}


async def test_no_member_lets_a_key_expire_by_its_own_clock(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        at_a, at_b = [ReplicatedDict(one, "d", str, int) for one in (a, b)]
        await at_b.set("x", 1, ttl=5)
        with monkeypatch.context() as silence:
            silence.setattr(a, "post", lambda block, op: None)  # no command comes
            silence.setattr(b, "post", lambda block, op: None)
            await asyncio.sleep(20)
            assert ("x" in at_a, "x" in at_b) == (True, True)
        await asyncio.sleep(2.5)
        assert ("x" in at_a, "x" in at_b) == (False, False)


async def test_a_key_expires_though_the_coordinator_has_no_blocks(group: Group) -> None:
    async with Channel("g", name="A", on_merge="primary", events="none"), Blocks("g", name="B") as b:
        d: ReplicatedDict[str, int] = ReplicatedDict(b, "d", str, int)
        await d.set("x", 1, ttl=5)
        with pytest.raises(UsageError, match="timeout=-1 must be a number of seconds"):
            await d.set("x", 1, timeout=-1)
        await asyncio.sleep(6)
        assert "x" in d
        await asyncio.sleep(2)
        assert "x" not in d


async def test_a_key_expires_though_the_coordinator_crashed(group: Group) -> None:
    dicts: dict[str, ReplicatedDict[str, int]] = {}

    async def live(name: str) -> None:
        async with Blocks("g") as blocks:
            dicts[name] = ReplicatedDict(blocks, "d", str, int)
            await asyncio.sleep(1_000)

    for name in "ABC":
        group.start(name, live(name))
        await group.settled(one=True)
    await dicts["C"].set("x", 1, ttl=30)
    group.crash("A")
    await asyncio.sleep(20)
    assert "x" in dicts["B"]
    await asyncio.sleep(15)
    assert ("x" in dicts["B"], "x" in dicts["C"]) == (False, False)


async def test_the_side_that_loses_a_merge_takes_the_other_dict(group: Group) -> None:
    names = "ABC"
    blocks = {name: Blocks("g", name=name) for name in names}
    async with blocks["A"], blocks["B"], blocks["C"]:
        dicts: dict[str, ReplicatedDict[str, int]] = {n: ReplicatedDict(blocks[n], "d", str, int) for n in names}
        await dicts["A"].set("both", 1)
        changes = dicts["C"].changes()
        group.partition(["C"])
        await asyncio.sleep(10)
        await dicts["A"].set("x", 1)
        await dicts["C"].set("x", 2)
        await dicts["C"].set("lost", 2)
        group.heal()
        await group.settled(one=True)
        assert [dict(one) for one in dicts.values()] == [{"both": 1, "x": 1}] * 3
        seen = [await anext(changes) for _ in range(3)]
        assert seen == [Change("x", None, 2), Change("lost", None, 2), Resync()]
        await dicts["C"].set("after", 3)
        await group.settled()
        assert dict(dicts["A"]) == {"both": 1, "x": 1, "after": 3}


async def test_a_write_that_only_the_other_side_made_raises(group: Group) -> None:
    """A member that was stopped gets such a gap; the group in memory stops none."""
    async with Blocks("g", name="A") as a:
        calls = [a._calls.begin() for _ in range(3)]
        for number, call in enumerate(calls):
            call.message = number + 1
        a._on_event(Gap(a.channel.address, 2, 1, ()))
        with pytest.raises(DeliveredElsewhere):
            await calls[1].answer
        assert [call.answer.done() for call in calls] == [False, True, False]


async def test_a_call_of_an_excluded_member_ends_and_its_blocks_go_on(group: Group) -> None:
    options: dict[str, Any] = {"profile": "uniform", "rejoin": True}
    async with (
        Blocks("g", name="A", **options),
        Blocks("g", name="B", **options),
        Blocks("g", name="C", **options) as c,
    ):
        d: ReplicatedDict[str, int] = ReplicatedDict(c, "d", str, int)
        group.partition(["C"])
        writing = asyncio.create_task(d.set("x", 1))
        await asyncio.sleep(20)
        assert not writing.done()
        group.heal()
        with pytest.raises(Unknown, match="before it could see the effect"):
            await writing
        await d.set("y", 2)
        assert dict(d) == {"y": 2}


async def test_a_call_whose_change_came_with_a_state_ends(group: Group) -> None:
    async with Blocks("g", name="A") as a:
        d: ReplicatedDict[str, int] = ReplicatedDict(a, "d", str, int)
        call = a._calls.begin()
        call.message = await a.channel.send(b"its command, which the state has", until="read")
        await d.set("x", 1)
        await a.set_state(a._replica.saved())
        with pytest.raises(Unknown, match="the change is made"):
            await call.answer
        assert dict(d) == {"x": 1}


async def test_the_program_gets_the_other_events_and_its_own_messages(group: Group) -> None:
    async with Blocks("g", name="A") as a:
        seen: list[Any] = []

        async def read() -> None:
            async for event in a:
                seen.append(event)

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        async with Blocks("g", name="B") as b:
            await ReplicatedDict(b, "d").set("x", 1)
            await b.channel.send(b"mine")
            await group.settled()
        await group.settled()
        reading.cancel()
        names = [[member.name for member in event.members] for event in seen if isinstance(event, View)]
        assert names == [["A"], ["A", "B"], ["A"]]
        assert [event.payload for event in seen if not isinstance(event, View)] == [b"mine"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"profile": "gossip"}, "blocks need a profile with a state"),
        ({"on_merge": "keep"}, "would keep different blocks"),
        ({"events": "none"}, "leave out events='none'"),
        ({"color": 1}, "has no option color="),
    ],
)
def test_options_that_do_not_fit_are_refused(options: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Blocks("g", **options)


async def test_a_stream_that_is_made_before_the_join_has_all_events(group: Group) -> None:
    async with Blocks("g", name="A") as a:
        b = Blocks("g", name="B")
        events = b.events()
        async with b, asyncio.timeout(60):
            await a.channel.send(b"1")
            await a.channel.send(b"2", until="stable")
            found = [await anext(events) for _ in range(3)]
        assert isinstance(found[0], View)
        assert [event.payload for event in found[1:] if isinstance(event, Message)] == [b"1", b"2"]


def test_a_dict_needs_one_order() -> None:
    with pytest.raises(UsageError, match="do not handle all changes in one order; use 'total' or 'uniform'"):
        ReplicatedDict(Blocks("g", profile="fifo"), "d")


async def test_blocks_end_if_all_that_had_the_state_are_gone(group: Group) -> None:
    async def live() -> None:
        async with Blocks("g") as blocks:
            d: ReplicatedDict[int, bytes] = ReplicatedDict(blocks, "d")
            for number in range(40):
                await d.set(number, bytes(500_000))
            filled.set()
            await asyncio.sleep(1_000)

    filled = asyncio.Event()
    group.start("A", live())
    await filled.wait()
    group.weather(loss=0.5)  # the state takes its time
    b = Blocks("g", name="B")
    opening = asyncio.create_task(b.__aenter__())
    while group.views() != [("A", "B")]:
        await asyncio.sleep(0.01)
    group.crash("A")
    group.heal()
    with pytest.raises(StateLost):
        await opening
    with pytest.raises(ChannelClosed):
        await ReplicatedDict(b, "d").set(1, b"")
    async with Blocks("g", name="C") as c:  # begins anew
        assert not ReplicatedDict(c, "d")
        assert len(c.members) == 1


async def test_a_call_of_ended_blocks_says_why(group: Group) -> None:
    blocks = Blocks("g", name="A")
    d: ReplicatedDict[str, int] = ReplicatedDict(blocks, "d")
    with pytest.raises(ChannelClosed, match="use them inside `async with`"):
        await d.set("x", 1)
    async with blocks:
        await d.set("x", 1)
        with pytest.raises(UsageError, match="opened before"):
            await blocks.__aenter__()
        with pytest.raises(UsageError, match="until='delivered' is not known"):
            await d.set("x", 1, until="delivered")  # type: ignore[arg-type]
        events = blocks.events()
        assert isinstance(await anext(events), View)
    with pytest.raises(ChannelClosed, match="the channel has left its group"):
        await d.set("x", 2)
    assert [type(event).__name__ for event in [event async for event in events]] == ["Left"]
    assert d["x"] == 1  # the last state that it had
