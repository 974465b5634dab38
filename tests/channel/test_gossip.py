"""Profile `gossip` over real sockets: messages, a gap in the program, and what a channel is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Config, UsageError
from tests.channel.socket_group import Group, Reader, in_a_group, until

QUICK = Config(heartbeat=0.2, heartbeat_timeout=1.0, verify_timeout=0.5, desired_avg_gossip=0.1)


async def three(group: Group, **options: Any) -> list[Reader]:
    readers = [await group.read(name, profile="gossip", config=QUICK, **options) for name in "ABC"]
    await until(lambda: all(len(reader.channel.view.members) == 3 for reader in readers))
    return readers


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_messages_reach_all_in_the_order_of_their_sender(transport: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        readers = await three(group, transport=transport)
        for number in range(50):
            await asyncio.gather(*[reader.channel.send(b"%d" % number, until="delivered") for reader in readers])
        await until(lambda: all(len(reader.payloads) == 150 for reader in readers))
        for reader in readers:
            for sender in readers:
                me = sender.channel.address
                texts = [e.payload for e in reader.events if getattr(e, "sender", None) == me]
                assert texts == [b"%d" % number for number in range(50)]

    in_a_group(tmp_path, story)


def test_a_message_to_one_member_is_confirmed(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        a, b, _ = await three(group)
        await a.channel.send(b"to one", to=b.channel.address, until="delivered")
        await until(lambda: b.payloads == [b"to one"])
        assert a.payloads == []

    in_a_group(tmp_path, story)


def test_nobody_confirms_a_multicast(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        a, _, _ = await three(group)
        with pytest.raises(UsageError, match="until='stable' works only where the members confirm"):
            await a.channel.send(b"x", until="stable")
        number = await a.channel.send(b"x")
        await a.channel.wait(number)
        with pytest.raises(UsageError, match="the limit is 1,120: send it in parts"):
            await a.channel.send(bytes(1_200))

    in_a_group(tmp_path, story)


def test_a_member_that_leaves_is_out_of_the_view(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group)
        await a.channel.send(b"last")
        await a.channel.leave()
        await until(lambda: all(len(reader.channel.view.members) == 2 for reader in (b, c)))
        await until(lambda: b.payloads == c.payloads == [b"last"])

    in_a_group(tmp_path, story)


class State:
    async def get_state(self) -> bytes:
        return b""

    async def set_state(self, data: bytes) -> None: ...


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"state": State()}, "state= works only where the members agree"),
        ({"on_merge": "primary"}, "on_merge= chooses the side whose state all take"),
        ({"expect": 3}, "expect= works only where a majority decides"),
        ({"config": Config(slow_policy="exclude")}, "slow_policy='exclude' works only where a sender waits"),
    ],
)
def test_an_option_that_needs_agreement_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Channel("g", profile="gossip", **options)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"gossip_interval": 1.0}, "has no effect with dynamic=True"),
        ({"dynamic": False}, "needs gossip_interval="),
        ({"subset": 0}, "from 0.001 to 1"),
        ({"epsilon": 0}, "from 0.000001 to 1"),
        ({"late_join_handler": 1}, "must be True, False, or the path of a folder"),
        ({"late_join_handler": ""}, "must be True, False, or the path of a folder"),
        ({"desired_avg_gossip": 0}, "must be in seconds"),
    ],
)
def test_an_option_of_the_design_note_is_checked(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Config(**fields)
    assert Config(dynamic=False, gossip_interval=2.0).limits().gossip_interval == 2_000_000


def test_a_folder_for_missed_messages_is_refused_where_none_are_handed_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in profile 'total' no member hands such messages on"):
        Channel("g", profile="total", config=Config(late_join_handler=tmp_path))
