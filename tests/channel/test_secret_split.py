"""The keys change while the group is split: each side goes on, and the sides merge when they have a key in common."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pygroups import Config, MergeView
from pygroups.core.limits import MILLISECOND
from pygroups.core.limits import Config as Limits
from tests.channel.socket_group import Group, Reader, in_a_group, until
from tests.channel.test_secret import NEW, OLD, key_file

QUICK = Config(
    heartbeat=0.05,
    heartbeat_timeout=0.5,
    verify_timeout=0.1,
    internal=Limits(merge_interval=200 * MILLISECOND),
)

pytestmark = pytest.mark.slow


class Split:
    """No datagram passes between one member and the others."""

    def __init__(self, apart: Reader, others: Iterable[Reader]) -> None:
        self.on = False
        for reader, lost in [(apart, list(others)), *[(other, [apart]) for other in others]]:
            self._cut(reader.channel._session.network, {place_of(one) for one in lost})  # type: ignore[union-attr]

    def _cut(self, network: Any, lost: set[tuple[str, int]]) -> None:
        arrived = network.arrived
        network.arrived = lambda datagram, place: None if self.on and place in lost else arrived(datagram, place)


def place_of(reader: Reader) -> tuple[str, int]:
    host, _, port = reader.channel.contact.rpartition(":")
    return host, int(port)


async def all_have(payload: bytes, *readers: Reader) -> None:
    """The first of some members sends this, and all of them deliver it once."""
    await readers[0].channel.send(payload)
    await until(lambda: all(payload in reader.payloads for reader in readers))


def members(reader: Reader) -> str:
    return "".join(sorted(member.name for member in reader.views[-1].members))


async def group_of_three(group: Group, tmp_path: Path) -> tuple[list[Reader], Split]:
    readers = []
    for name in "ABC":
        path = key_file(tmp_path, OLD, name=name)
        readers.append(await group.read(name, secret=path, transport="udp", config=QUICK))
    await until(lambda: all(reader.views and members(reader) == "ABC" for reader in readers))
    return readers, Split(readers[2], readers[:2])


def rotate(tmp_path: Path, readers: list[Reader], *keys: bytes) -> None:
    for reader in readers:
        key_file(tmp_path, *keys, name=reader.channel.address.name)
        reader.channel.rotate()


def nothing_came_twice(readers: list[Reader]) -> None:
    for reader in readers:
        assert len(set(reader.payloads)) == len(reader.payloads)


@pytest.mark.parametrize("both", [True, False])
def test_keys_change_while_the_group_is_split(tmp_path: Path, both: bool) -> None:
    """On both sides in the operator's order; or on one side only, whose keys the other side gets later."""

    async def story(group: Group) -> None:
        readers, split = await group_of_three(group, tmp_path)
        a, b, c = readers
        await all_have(b"before", *readers)
        split.on = True
        await until(lambda: members(a) == members(b) == "AB" and members(c) == "C")
        for step, keys in enumerate([(OLD, NEW), (NEW, OLD), (NEW,)]):
            rotate(tmp_path, readers if both else [a, b], *keys)
            await all_have(b"%d at A" % step, a, b)
            await all_have(b"%d at C" % step, c)
        split.on = False
        if not both:
            dropped = "messages that could not be opened"
            await until(lambda: a.channel.stats()["counters"].get(dropped, 0) > 3)
            assert (members(a), members(c)) == ("AB", "C"), "the old key opens nothing"
            await all_have(b"and goes on", a, b)
            rotate(tmp_path, [c], NEW)
        await until(lambda: all(members(reader) == "ABC" for reader in readers))
        assert all(isinstance(reader.views[-1], MergeView) for reader in readers)
        for reader in readers:
            await all_have(reader.channel.address.name.encode(), reader, *[one for one in readers if one != reader])
        nothing_came_twice(readers)

    in_a_group(tmp_path, story)


def test_a_split_that_cuts_nothing_is_found(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        readers, split = await group_of_three(group, tmp_path)
        await asyncio.sleep(0)
        assert not split.on
        await all_have(b"x", *readers)
        split.on = True
        await until(lambda: members(readers[2]) == "C")

    in_a_group(tmp_path, story)
