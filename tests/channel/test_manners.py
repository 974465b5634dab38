"""What a program's author sees: errors, short texts, and what is refused at the call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Config, NotBuilt, NotSent, Refused, Timeout, Unknown, UsageError, View, ViewId
from pygroups.core.address import Address
from tests.channel.socket_group import Group, in_a_group, until

A, B = Address("A", "3f2c91d0"), Address("B", "77aa01be")
SMALL = Config(window=64 << 10, run_bytes=16 << 10)


def test_both_kinds_of_time_out_are_time_outs(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A", config=SMALL)
        await group.joined("B", config=SMALL)
        await until(lambda: len(channel.view.members) == 2)
        with pytest.raises(TimeoutError) as late:
            await channel.send(b"x", until="stable", timeout=0)
        assert isinstance(late.value, Unknown)
        assert late.value.number == 1
        assert str(late.value) == "message 1 was not stable within 0 s; the message may still become stable"
        with pytest.raises(TimeoutError):
            await channel.send_many([b"x", b"y"], until="stable", timeout=0)
        with pytest.raises(TimeoutError) as full:
            await channel.send_many([bytes(8 << 10)] * 20, timeout=0.1)
        assert isinstance(full.value, Timeout)
        assert isinstance(full.value, NotSent)
        assert 0 < full.value.accepted < 20
        assert "no room" in str(full.value)

    in_a_group(tmp_path, story)


def test_a_refusal_names_the_field_that_differs(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.joined("A")
        with pytest.raises(Refused) as refused:
            await group.joined("B", profile="fifo")
        assert str(refused.value) == "the group has profile=total, the joiner profile=fifo"
        with pytest.raises(Refused, match="the group has window=1048576, the joiner window=2097152"):
            await group.joined("C", config=Config(window=2 << 20))

    in_a_group(tmp_path, story)


def test_the_number_of_a_message_to_one_member_cannot_be_waited_for(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        number = await channel.send(b"x", to=channel.address)
        assert number == 1
        with pytest.raises(NotBuilt, match="let the receiver send an answer"):
            await channel.wait(number)
        with pytest.raises(UsageError, match=r"message 1 is not one of this .* to all members: there is none so far"):
            await channel.wait(1)
        await channel.send(b"y")
        with pytest.raises(UsageError, match="to all members: their numbers so far are 1 to 1"):
            await channel.wait(2)

    in_a_group(tmp_path, story)


def test_texts_for_people_are_short(tmp_path: Path) -> None:
    view = View(ViewId(4, A), (A, B), A, True, (B,), (), (A,))
    assert repr(A) == "A@3f2c91d0"
    assert repr(view.id) == "ViewId(4:A@3f2c91d0)"
    assert repr(view) == "<View 4:A@3f2c91d0, members: A B, joined: B>"

    async def story(group: Group) -> None:
        channel = group.channel("A")
        assert repr(channel) == "<Channel 'g', not joined>"
        async with channel:
            assert repr(channel) == f"<Channel 'g' {channel.address}, view 1 of 1>"
        assert repr(channel) == f"<Channel 'g' {channel.address}, left>"

    in_a_group(tmp_path, story)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"discovery": 5}, "discovery=5 must be text, or left out"),
        ({"journal": 5}, "journal=5 must be the path of a folder"),
        ({"bind": 5}, "bind=5 must be text"),
        ({"bind": None}, "bind=None must be text"),
        ({"advertise": b"x:1"}, "advertise=b'x:1' must be text"),
        ({"profile": []}, "profile=[] must be text"),
        ({"name": 5}, "name=5 must be text"),
        ({"transport": 5}, "there is no transport 5"),
        ({"insecure": "no"}, "insecure='no' must be True or False"),
        ({"journal_fsync": 1}, "journal_fsync=1 must be True or False"),
        ({"events": None}, "events=None is not known"),
    ],
)
def test_options_of_a_wrong_type_are_refused_at_the_call(option: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        Channel("g", **option)
    assert says in str(refused.value)


def test_a_group_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(UsageError, match="5 cannot name a group"):
        Channel(5)  # type: ignore[arg-type]
