"""Requests in a group in memory: to one, some and all; members that leave are answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pygroups import Address, UsageError
from pygroups.blocks import Blocks, NoReply, Reply, Requests, RequestTimeout
from pygroups.blocks.gathering import Gathering, Wants
from pygroups.testing import Group

A, B, C, D = [Address(name, "0") for name in "ABCD"]


async def double(value: int, caller: Address) -> int:
    return 2 * value


async def named(value: Any, caller: Address) -> str:
    return caller.name


@pytest.mark.parametrize("profile", ["fifo", "total", "uniform"])
async def test_one_some_and_all_members_reply(group: Group, profile: str) -> None:
    async with Blocks("g", name="A", profile=profile) as a, Blocks("g", name="B", profile=profile) as b:
        at_a, at_b = Requests(a, "double", double), Requests(b, "double", double)
        Requests(b, "who", named)
        who = Requests(a, "who")
        me, other = a.members
        assert await at_a.call(other, 4) == 8
        assert await at_a.call(me, 5) == 10
        assert await who.call(other, None) == "A"
        assert {reply.member.name: reply.value for reply in await at_b.call_all(3)} == {"A": 6, "B": 6}
        assert [reply.value for reply in await at_b.call_some([me], 3)] == [6]
        with pytest.raises(NoReply, match="it has no handler"):
            await who.call(me, None)
        assert (await at_b.call_all(1, wants="first"))[0].value == 2


async def test_a_member_that_crashes_is_an_answer_at_once(group: Group) -> None:
    async def sleep(value: Any, caller: Address) -> None:
        await asyncio.sleep(10_000)

    async def live() -> None:
        async with Blocks("g") as blocks:
            Requests(blocks, "sleep", sleep)
            await asyncio.sleep(10_000)

    async with Blocks("g", name="A") as a:
        requests = Requests(a, "sleep", double)
        group.start("B", live())
        await group.settled(one=True)
        await asyncio.sleep(1)
        b = a.members[1]
        calls = [asyncio.create_task(requests.call(b, 1)), asyncio.create_task(requests.call_all(1))]
        with pytest.raises(TimeoutError) as late:
            await requests.call_all(1, timeout=3)
        assert isinstance(late.value, RequestTimeout)
        assert [reply.member.name for reply in late.value.replies] == ["A"]
        began = group.now
        group.crash("B")
        with pytest.raises(NoReply, match="it left the group before it replied"):
            await calls[0]
        assert [(reply.member.name, reply.value, reply.left) for reply in await calls[1]] == [
            ("A", 2, False),
            ("B", None, True),
        ]
        assert group.now - began < 10
        with pytest.raises(NoReply, match="left the group"):
            await requests.call(b, 1)


async def test_errors_of_handlers_and_other_types_come_to_the_caller(group: Group) -> None:
    async def fails(value: int, caller: Address) -> Any:
        if value:
            raise ZeroDivisionError("nothing")
        return object()

    async with Blocks("g", name="A") as a, Blocks("g", name="B") as b:
        Requests(b, "x", fails, request=int)
        requests = Requests(a, "x", request=int, reply=int)
        (other,) = [member for member in a.members if member.name == "B"]
        with pytest.raises(NoReply, match="its handler raised ZeroDivisionError: nothing"):
            await requests.call(other, 1)
        with pytest.raises(NoReply, match="TypeError"):
            await requests.call(other, 0)
        with pytest.raises(NoReply, match="it does not serve these requests"):
            await Requests(a, "y").call(other, 1)
        with pytest.raises(UsageError, match="this cannot be a request"):
            await requests.call(other, "1")
        with pytest.raises(UsageError, match="there is a block 'x' of this kind"):
            Requests(a, "x")
        with pytest.raises(UsageError, match="wants='some' is not known"):
            await requests.call_all(1, wants="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wants", "good", "bad", "met", "over"),
    [
        ("all", "", "", False, False),
        ("all", "AB", "", False, False),
        ("all", "ABC", "D", True, True),
        ("first", "", "", False, False),
        ("first", "B", "", True, True),
        ("first", "", "ABCD", False, True),
        ("majority", "AB", "", False, False),
        ("majority", "ABC", "", True, True),
        ("majority", "", "A", False, False),
        ("majority", "", "AB", False, True),
    ],
)
def test_when_there_are_enough_replies(wants: Wants, good: str, bad: str, met: bool, over: bool) -> None:
    gathering = Gathering(wants, (A, B, C, D))
    by_name = {member.name: member for member in (A, B, C, D)}
    for name in good:
        gathering.put(Reply(by_name[name], 1))
    gathering.on_view([member for name, member in by_name.items() if name not in bad])
    assert (gathering.is_met, gathering.is_over) == (met, over)


def test_replies_before_the_callees_are_known_count_if_they_are_callees() -> None:
    gathering = Gathering("all", None)
    gathering.put(Reply(A, 1))
    gathering.put(Reply(D, 1))
    assert not gathering.is_over
    gathering.know((A, B))
    assert list(gathering.replies) == [A]
    gathering.put(Reply(B, 2))
    assert gathering.is_met
