"""The log line of a view: who came and went, for which reason, and what this member lost."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pygroups import Address, Channel, Config, NameTaken, Refused
from pygroups.channel.channel_events import View
from pygroups.channel.view_line import view_line
from pygroups.core.events import Gap, NewView
from pygroups.core.view import AgreedView, Subgroup, ViewId
from pygroups.testing import Group, run
from tests.channel.test_watchdog import lines

A, B, C, D = (Address(name, "0" * 8) for name in "ABCD")
ABC, AB, CD = (A, B, C), (A, B), (C, D)


def new(members: tuple[Address, ...], *, primary: bool = True, **more: Any) -> NewView:
    fields: dict[str, Any] = {"joined": (), "left": (), "transitional": members} | more
    view = AgreedView(ViewId(5, A), members, ("",) * len(members))
    return NewView(view, ViewId(4, A), primary=primary, starts=None, **fields)


def before(members: tuple[Address, ...], *, primary: bool = True) -> View:
    return View(ViewId(4, A), members, members[0], primary, (), (), members)


SIDES = (Subgroup(ViewId(4, A), AB), Subgroup(ViewId(4, C), (D, C)))
EVERYBODY = new((*AB, *CD), joined=CD, transitional=AB, subgroups=SIDES)


@pytest.mark.parametrize(
    ("event", "earlier", "suspected", "clauses", "is_loss"),
    [
        (new(AB), None, {}, [], False),
        (new(AB, joined=AB), None, {}, [], False),
        (new(ABC, joined=(C,)), before(AB), {}, [f"joined: {C}"], False),
        (new(AB, left=(C, D)), before((*ABC, D)), {}, [f"left: {C}, {D}"], False),
        (new(AB, left=(C,)), before(ABC), {C: True}, [f"lost: {C} (its process has ended)"], True),
        (new(AB, left=(C,)), before(ABC), {C: False}, [f"lost: {C} (it was silent for too long)"], True),
        (new(AB, left=(C,), expelled={C: "read nothing"}), before(ABC), {C: False}, [], False),
        (
            new((A,), primary=False, left=(B, C), absent={B: "b", C: "c"}),
            before(ABC),
            {},
            [
                f"left: {B}, {C}",
                f"this side is not primary any more: it lacks {B}, {C} of the last primary view, "
                "which may go on without it",
            ],
            True,
        ),
        (new(ABC, joined=(C,), primary=False), before(AB, primary=False), {}, [f"joined: {C}"], False),
        (new(AB), before(AB, primary=False), {}, ["this side is primary again"], False),
        (new(AB, primary=False), None, {}, ["this side is not primary"], True),
        (EVERYBODY, before(AB), {}, [f"a merge of [{A}, {B}] and [{C}, {D}]"], False),
    ],
)
def test_the_line_of_a_view(
    event: NewView, earlier: View | None, suspected: dict[Address, bool], clauses: list[str], is_loss: bool
) -> None:
    members = ", ".join(map(str, event.view.members))
    assert view_line(event, earlier, suspected) == ("; ".join([f"view 5: {members}", *clauses]), is_loss)


def test_a_merge_tells_what_this_member_misses() -> None:
    event = new((*AB, *CD), joined=CD, transitional=AB, subgroups=SIDES, winner=1)
    event.gaps = (Gap(C, 1, 5, CD), Gap(D, 1, 2, CD), Gap(C, 9, 3, CD))
    text, is_loss = view_line(event, before(AB), {})
    assert is_loss
    assert f"; this member takes the state of [{C}, {D}]; only other members delivered 10 messages of {C}, {D} " in text
    event.winner = 0
    assert "takes the state" not in view_line(event, before(AB), {}).text


def test_a_crash_and_a_split_are_one_warning_at_each_member(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pygroups.channel")

    async def story(group: Group) -> None:
        channels: dict[str, Channel] = {}

        async def program(name: str) -> None:
            async with group.channel("g", name=name, events="none") as channel:
                channels[name] = channel
                await asyncio.sleep(1000)

        tasks = [group.start(name, program(name)) for name in "ABC"]
        await group.settled()
        address = {name: channel.address for name, channel in channels.items()}
        assert lines(caplog) == []
        group.crash("C")
        await asyncio.sleep(20)
        lost = f"lost: {address['C']} (its process has ended)"
        assert sorted(line.partition(":")[0] for line in lines(caplog)) == ["A in group 'g'", "B in group 'g'"]
        assert all(line.endswith(lost) for line in lines(caplog))
        caplog.clear()
        group.partition(["A"], ["B"])
        await asyncio.sleep(20)
        told = {line[0]: line for line in lines(caplog)}
        assert sorted(told) == ["A", "B"] and len(lines(caplog)) == 2
        assert f"lost: {address['B']} (it was silent for too long)" in told["A"]
        assert f"not primary any more: it lacks {address['A']} of the last primary view, which may" in told["B"]
        assert any("is suspected: it was silent" in line for line in lines(caplog, logging.INFO))
        group.heal()
        await asyncio.sleep(20)
        merge = " a merge of "
        assert any(merge in line for line in lines(caplog, logging.INFO)) and not any(merge in x for x in lines(caplog))
        for task in tasks:
            task.cancel()

    run(story)


def test_the_group_logs_a_refused_joiner_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A", events="none") as first:
            for options, kind in [
                ({"name": "B", "config": Config(window=1 << 19)}, Refused),
                ({"name": "A"}, NameTaken),
                ({"name": "A"}, NameTaken),
            ]:
                with pytest.raises(kind):
                    await group.channel("g", **options).__aenter__()
            mine = [line for line in lines(caplog) if "may not join" in line]
            assert len(mine) == 1
            assert " may not join: the group has window=1048576, the joiner window=524288" in mine[0]
            await asyncio.sleep(11)
            with pytest.raises(NameTaken):
                await group.channel("g", name="A").__aenter__()
            mine = [line for line in lines(caplog) if "may not join" in line]
            belongs = f"the name 'A' belongs to {first.address}, which is alive"
            assert mine[1].endswith(f" may not join: {belongs} (and 2 more of this kind since the last such line)")

    run(story)
