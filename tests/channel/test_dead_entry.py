"""JOIN-08 through whole channels: discovery lists a dead process, which has the lowest address of all."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from pygroups import Channel
from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.sim.world.directory import Directory
from pygroups.testing import Group

SOON: Final = 10.0  # seconds of virtual time, for a join
FOREVER: Final = 1 << 62


def told_of(directory: Directory, dead: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the processes that the directory tells of the process `dead` from now on."""
    names: list[str] = []

    def told(who: Address, *args: Any) -> Found:
        found = answer(who, *args)
        if any(member.name == dead for member in found.members):
            names.append(who.name)
        return found

    answer = directory.told
    monkeypatch.setattr(directory, "told", told)
    return names


@pytest.mark.parametrize("profile", ["total", "fifo"])
@pytest.mark.parametrize("at_once", [False, True])
def test_JOIN_08_a_dead_process_in_the_directory_keeps_nobody_waiting(
    profile: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A is dead, and each answer lists A.  B has a view of its own, and then C joins B; or both join at once."""

    async def story(group: Group) -> None:
        async with Channel("g", name="A", profile=profile) as first:
            group.crash("A")
        ((room, _),) = group._platform.rooms.values()
        room.directory.mislead("former", FOREVER)
        names = told_of(room.directory, "A", monkeypatch)
        b, c = [Channel("g", name=name, profile=profile) for name in "BC"]
        async with asyncio.timeout(SOON):
            if at_once:
                await asyncio.gather(b.__aenter__(), c.__aenter__())
            else:
                await b.__aenter__()
                assert b.view.members == (b.address,)
        async with asyncio.timeout(SOON):
            if not at_once:
                await c.__aenter__()
            while not b.view.members == c.view.members == (b.address, c.address):
                await asyncio.sleep(0.01)
        assert "C" in names, "no answer has listed A"
        assert first.address < b.address
        await b.send(b"x", until="stable")
        for channel in (c, b):
            await channel.__aexit__(None, None, None)

    group = Group()
    group.run(story, group)
