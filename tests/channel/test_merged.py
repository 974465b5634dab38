"""A merged view as the application and a program that reads `pygroups join --json` get it."""

from __future__ import annotations

import asyncio
import json

import pytest

from pygroups import Address, DeliveredElsewhere, Gap, MergeView, View, ViewId
from pygroups.channel.channel_events import translated
from pygroups.channel.reading.consumption import Consumption
from pygroups.channel.sending.outbox import Outbox
from pygroups.cli.printed import Chat, line_of
from pygroups.core import events as core
from pygroups.core.top import Reached
from pygroups.core.view import AgreedView, Subgroup
from tests.channel.test_outbox import GivenTop, in_a_loop, sending, turn

A, B, C = (Address(name, "0" * 8) for name in "ABC")
ID = ViewId(7, A)
NEW = core.NewView(AgreedView(ID, (A, B, C), ("a", "b", "c")), ViewId(5, A), (A,), (B, C), (), True, None)
SIDES = (Subgroup(ViewId(5, A), (A,)), Subgroup(ViewId(6, C), (C, B)))


def test_a_merged_view_names_its_subgroups_in_the_order_of_the_addresses() -> None:
    assert type(translated(NEW)) is View
    NEW.subgroups = SIDES
    merged = translated(NEW)
    NEW.subgroups = ()
    assert isinstance(merged, MergeView)
    assert merged.subgroups == ((A,), (B, C))
    assert json.loads(line_of(merged)) == {
        "event": "merge",
        "id": [7, str(A)],
        "members": ["A", "B", "C"],
        "addresses": [str(A), str(B), str(C)],
        "coordinator": "A",
        "primary": True,
        "joined": ["B", "C"],
        "left": [],
        "transitional": ["A"],
        "subgroups": [["A"], ["B", "C"]],
        "winner": [],
        "reset": False,
    }


def test_people_read_which_sides_are_one_group_again() -> None:
    event = MergeView(ID, (A, B, C), A, True, (B, C), (), (A,), ((A,), (B, C)))
    chat = Chat(lambda: A, "chat", echoed=True)
    assert chat.text_of(event) == "-- you are A in group chat, with B, C; each line you type goes to all members"
    assert chat.text_of(event) == "-- [A] and [B, C] are one group again; members: A, B, C"


def test_a_gap_names_the_members_that_have_the_messages() -> None:
    gap = translated(core.Gap(C, 9, 3, (B, C)))
    assert gap == Gap(C, 9, 3, (B, C))
    assert json.loads(line_of(gap)) == {"event": "gap", "from": "C", "first": 9, "count": 3, "subgroup": ["B", "C"]}
    assert Chat(lambda: A, "chat", echoed=True).text_of(gap) == "-- 3 messages of C went only to B, C"


def test_a_sender_learns_that_only_the_other_side_delivered_its_message() -> None:
    async def story(outbox: Outbox, top: GivenTop) -> None:
        first, second, third = (sending(outbox, b"x", until="delivered") for _ in range(3))
        await turn(outbox)
        outbox.on_reached(Reached(2, 1))
        reading = asyncio.create_task(outbox.wait(2, "read", None))
        await asyncio.sleep(0)
        outbox.on_gap(range(2, 3))
        with pytest.raises(DeliveredElsewhere):
            await reading
        outbox.on_reached(Reached(3, 1))
        await asyncio.sleep(0)
        assert await first == 1
        with pytest.raises(DeliveredElsewhere) as raised:
            await second
        assert raised.value.number == 2
        for until in ("read", "stable"):
            with pytest.raises(DeliveredElsewhere):
                await outbox.wait(2, until, None)
        assert not third.done()
        outbox.on_reached(Reached(4, 1))
        assert await third == 3

    in_a_loop(story)


def test_own_messages_of_a_gap_leave_the_window() -> None:
    consumption = Consumption(A, lambda: None, lambda: None, 1, 1)
    consumption.skipped(100)
    assert consumption.own_read == 100
