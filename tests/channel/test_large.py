"""Payloads of every size over real sockets."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pygroups import Config, Refused, UsageError
from tests.channel.socket_group import Group, in_a_group, until

LIMIT = 64 << 20
UDP_RUN = 2 * (1_400 - 22) - 280  # two datagrams of the default size
MORE = (("total", "tcp"), ("fifo", "udp"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "transport"),
    [("total", "udp"), ("fifo", "tcp"), *(pytest.param(*one, marks=pytest.mark.long) for one in MORE)],
)
def test_payloads_up_to_the_limit_arrive_intact(tmp_path: Path, profile: str, transport: str) -> None:
    """To all and to one: nothing, one byte, a full run and one byte more (over UDP in 2 datagrams), the limit."""
    runs = {"tcp": 64 << 10, "udp": UDP_RUN}[transport]
    payloads = [os.urandom(size) for size in (0, 1, runs, runs + 1, LIMIT)]

    async def story(group: Group) -> None:
        first = await group.read("A", profile=profile, transport=transport)
        second = await group.read("B", profile=profile, transport=transport)
        assert second.channel._session.options.limits.run_bytes == runs  # type: ignore[union-attr]
        await until(lambda: len(first.channel.view.members) == 2)
        for payload in payloads:
            await second.channel.send(payload, until="stable")
        assert first.payloads == second.payloads == payloads
        with pytest.raises(UsageError, match="67,108,865 bytes; the limit is 67,108,864"):
            await second.channel.send(bytes(LIMIT + 1))
        for payload in payloads:
            await second.channel.send(payload, to=first.channel.address)
        while len(first.payloads) < 2 * len(payloads):
            await asyncio.sleep(0.01)
        assert first.payloads[len(payloads) :] == payloads
        await until(lambda: not any(first.channel.stats()["gauges"].values()))

    in_a_group(tmp_path, story, seconds=500)


@pytest.mark.slow
def test_a_large_payload_over_udp(tmp_path: Path) -> None:
    payload = os.urandom(2 << 20)

    async def story(group: Group) -> None:
        first, second = await group.read("A", transport="udp"), await group.read("B", transport="udp")
        await until(lambda: len(first.channel.view.members) == 2)
        await asyncio.gather(first.channel.send(payload), second.channel.send(payload))
        await until(lambda: first.payloads == second.payloads == [payload, payload])

    in_a_group(tmp_path, story)


def test_a_joiner_with_another_largest_payload_is_refused(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.read("A")
        with pytest.raises(Refused, match="payload_max"):
            await group.read("B", config=Config(payload_max=1 << 20))

    in_a_group(tmp_path, story)
