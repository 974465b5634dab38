"""What a stranger who knows the port of a member, and perhaps its address, can do to a group."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pygroups import Channel, View
from pygroups.core.address import Address
from pygroups.drivers.hello import LENGTH, Hello, encoded
from pygroups.wire.frame import VERSION
from tests.channel.socket_group import Group, in_a_group, until

NOBODY_THERE = "127.0.0.1:9"


def contact(channel: Channel) -> tuple[str, int]:
    session = channel._session
    assert session is not None
    host, _, port = session.network.contact.rpartition(":")
    return host, int(port)


async def answered(channel: Channel, hello: Hello) -> bytes:
    """Say `hello`, read the answer, and close."""
    reader, writer = await asyncio.open_connection(*contact(channel))
    writer.write(encoded(hello))
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    answer = await reader.readexactly(length)
    writer.close()
    return answer


@pytest.mark.slow
def test_a_hello_in_a_members_name_excludes_nobody(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, second = await group.read("A"), await group.read("B")
        await until(lambda: all(len(one.channel.view.members) == 2 for one in (first, second)))
        here, victim = first.channel, second.channel
        for _ in range(3):
            await answered(here, Hello(VERSION, "g", victim.address, NOBODY_THERE, here.address))
            await asyncio.sleep(0.5)
        await victim.send(b"I am here", until="stable")
        await here.send(b"and so am I", until="stable")
        assert here.view.members == victim.view.members == (here.address, victim.address)
        assert len([event for event in second.events if isinstance(event, View)]) == 1

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("group_name", ["g", "other"])
def test_a_stranger_learns_no_address(tmp_path: Path, group_name: str) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A")
        me, guess = Address("X", "0" * 16), Address("A", "1" * 16)
        answer = await answered(channel, Hello(VERSION, group_name, me, NOBODY_THERE, guess))
        assert channel.address.incarnation.encode() not in answer

    in_a_group(tmp_path, story)
