"""A profile that is one entry: a layer that nobody has seen before, in a stack under a name that stands nowhere else.

Nothing but the entry is added for it to be joined over sockets and in memory, drawn, simulated, checked and, in
tests/pipeline, audited.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta
from xxhash import xxh32_intdigest

from pygroups import Channel, Config, Message, UsageError, View
from pygroups.core.layer import Layer
from pygroups.core.run import Run
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.layers.sequencer import Sequencer
from pygroups.sim import simulate
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.judge import Judge
from pygroups.sim.schedules.stages import labels_of
from pygroups.testing import Group, run

NAME = "made-up"


class Seal(msgspec.Struct, array_like=True, tag=120):
    """On each multicast: the checksum of its body."""

    checksum: Annotated[int, Meta(ge=0, lt=1 << 32)]


class Sealed(Layer):
    """Multicasts carry a checksum; one that does not match is dropped.  Gives what nobody asks for."""

    needs = frozenset({"TOTAL"})
    gives = frozenset({"SEALED"})
    heads = (Seal,)
    own_heads_only = True

    def down(self, run: Run) -> None:
        self.below.append(run.push(Seal(xxh32_intdigest(run.body))) if run.dest is None else run)

    def up(self, run: Run) -> None:
        if not isinstance(run.head, Seal):
            self.above.append(run)
        elif run.head.checksum == xxh32_intdigest(run.body):
            self.above.append(run.pop())
        else:
            self.env.drop("broken seal")


@pytest.fixture(autouse=True)
def entry(monkeypatch: pytest.MonkeyPatch) -> Profile:
    layers = list(PROFILES["total"].layers)
    layers.insert(layers.index(Sequencer), Sealed)
    profile = Profile(NAME, tuple(layers), "as total, and each message has a seal")
    monkeypatch.setitem(PROFILES, NAME, profile)
    return profile


async def takes_part(name: str, heard: dict[str, list[bytes]], **options: str) -> None:
    """A process that sends three messages to a group of three, and reads until it has those of all."""
    async with Channel("g", profile=NAME, name=name, config=Config(), **options) as channel:
        async for event in channel:
            if isinstance(event, View) and len(event.members) == 3:
                for number in range(3):
                    await channel.send(f"{name}{number}".encode())
            elif isinstance(event, Message):
                heard[name].append(event.payload)
                if len(heard[name]) == 9:
                    await channel.send(b"done") if name == "A" else None
            if heard[name][-1:] == [b"done"]:
                return


def judged(heard: dict[str, list[bytes]]) -> None:
    assert heard["A"] == heard["B"] == heard["C"]
    assert sorted(heard["A"][:9]) == sorted(f"{name}{number}".encode() for name in "ABC" for number in range(3))


def test_it_is_joined_and_sends_over_sockets(tmp_path: Path) -> None:
    heard: dict[str, list[bytes]] = {name: [] for name in "ABC"}

    async def story() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(takes_part(name, heard, discovery=f"dir:{tmp_path}") for name in "ABC"))

    asyncio.run(story())
    judged(heard)


def test_it_is_joined_and_judged_in_the_fixture() -> None:
    heard: dict[str, list[bytes]] = {name: [] for name in "ABC"}

    async def story(group: Group) -> None:
        for name in "ABC":
            group.start(name, takes_part(name, heard))
        while any(heard[name][-1:] != [b"done"] for name in "ABC"):
            await asyncio.sleep(0.05)

    run(story)
    judged(heard)


def test_what_its_layers_give_is_checked(entry: Profile) -> None:
    assert Judge(checks_of(entry.services)).promises == Judge(checks_of(PROFILES["total"].services)).promises


def test_its_schedules_are_drawn_and_hold(entry: Profile) -> None:
    assert "Seal" in labels_of(entry.heads()), "a fault can wait until a member sends this head"
    done = simulate(range(6), profile=NAME)
    done.held()
    assert done.totals.counts["sent Seal"] > 100


def test_its_options_follow_from_what_it_gives() -> None:
    with pytest.raises(UsageError, match="expect= works only where a majority decides each view"):
        Channel("g", profile=NAME, expect=3)
    Channel("g", profile=NAME, on_merge="primary")
