"""An attacker on the path: what the packets of a group show, and what happens when they are sent again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.channel.socket_group import Group, Reader, in_a_group, until
from tests.channel.test_discovery import free_ports
from tests.channel.test_secret import NEW, OLD, key_file
from tests.channel.wire_tap import WireTap, replay

NAMES = ("replica-alpha", "replica-bravo", "replica-charlie")
PAYLOAD = b"the payload that nobody else may read"
SEEN = (b"replica-", b"confidential", PAYLOAD, PAYLOAD[:12])

pytestmark = pytest.mark.slow


def ways(transport: str, ports: list[int]) -> list[dict[str, Any]]:
    listed = ",".join(f"127.0.0.1:{port}" for port in ports)
    return [{"transport": transport, "discovery": listed, "bind": f"127.0.0.1:{port}"} for port in ports]


def channel_of(group: Group, number: int, way: dict[str, Any]) -> Any:
    channel = group.channel(NAMES[number], **way)
    object.__setattr__(channel._options, "group", "confidential")
    return channel


async def reader_of(group: Group, number: int, way: dict[str, Any]) -> Reader:
    return Reader(await group.stack.enter_async_context(channel_of(group, number, way)))


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("secret", [NEW, None])
def test_the_wire_shows_no_name_and_no_payload(tmp_path: Path, transport: str, secret: bytes | None) -> None:
    ports = free_ports(3)

    async def story(group: Group) -> None:
        options = [way | {"secret": secret} for way in ways(transport, ports)]
        with WireTap(ports) as tap:
            readers = [await reader_of(group, number, way) for number, way in enumerate(options)]
            for reader in readers:
                await reader.channel.send(PAYLOAD + bytes(5_000), until="delivered")
                await reader.channel.send(PAYLOAD, to=readers[0].channel.address)
            await until(lambda: len(readers[0].payloads) == 6)
            await readers[2].channel.leave()
            await until(lambda: len(readers[0].channel.view.members) == 2)
        wire = b"\0".join(packet.data for packet in tap.packets)
        assert len(tap.packets) > 20
        shown = [word for word in SEEN if word in wire]
        assert shown == ([] if secret else list(SEEN)), "without a secret everything is visible, so the tap works"

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_nothing_of_what_was_recorded_is_delivered_again(tmp_path: Path, transport: str) -> None:
    """At once, after a view change, after a key change, and after a restart of a member."""
    ports = free_ports(3)
    path = key_file(tmp_path, OLD)

    async def nothing_comes(tap: WireTap, readers: list[Reader], port: int) -> None:
        views = [list(reader.views) for reader in readers]
        before = [len(reader.payloads) for reader in readers]
        assert await replay(tap, port)
        await readers[0].channel.send(mark := os.urandom(8), until="delivered")
        await until(lambda: all(mark in reader.payloads for reader in readers))
        assert [len(reader.payloads) for reader in readers] == [number + 1 for number in before]
        assert [list(reader.views) for reader in readers] == views

    async def all_read_a_view(*readers: Reader) -> None:
        await until(lambda: all(one.views and len(one.views[-1].members) == len(readers) for one in readers))

    async def story(group: Group) -> None:
        options = [way | {"secret": path} for way in ways(transport, ports)]
        with WireTap(ports) as tap:
            a, b = [await reader_of(group, number, way) for number, way in enumerate(options[:2])]
            for number in range(15):
                await b.channel.send(b"%d" % number, until="delivered")
                await b.channel.send(b"to a %d" % number, to=a.channel.address)
            await until(lambda: len(a.payloads) == 30)
        await nothing_comes(tap, [a, b], ports[0])
        counters = a.channel.stats()["counters"]
        if transport == "udp":
            assert counters["drop a frame that was received before, or is too old"] > 10
        assert counters["messages that could not be opened"] > 0
        c = await reader_of(group, 2, options[2])
        await all_read_a_view(a, b, c)
        await nothing_comes(tap, [a, b, c], ports[0])
        await nothing_comes(tap, [a, b, c], ports[1])
        key_file(tmp_path, NEW, OLD)
        a.channel.rotate()
        await nothing_comes(tap, [a, b, c], ports[0])
        await a.channel.leave()
        await all_read_a_view(b, c)
        again = await reader_of(group, 0, options[0])
        await all_read_a_view(again, b, c)
        await nothing_comes(tap, [again, b, c], ports[0])

    in_a_group(tmp_path, story, 120)
