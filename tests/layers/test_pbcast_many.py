"""PBCAST in large groups: few messages are missed (PB-I1), and the load of a member does not grow with them (PB-I3).

The long tests have 1,000 members: `make gossip`.  The settings are the defaults.
"""

from __future__ import annotations

from typing import Final

import pytest

from pygroups.layers.pbcast.layer import Pbcast

from .gossip_world import GossipWorld

BOUNDS: Final = {
    0.1: 0.001,
    0.3: 0.01,
}  # the share of (message, member) that may be missed, by that of lost frames
PATIENCE: Final = 8.0  # seconds after the last message
GROWTH: Final = 1.5  # of the load of a member in a group of ten times the size


def group(members: int, loss: float, messages: int = 200) -> GossipWorld:
    """A group in which ten members have sent `messages` within ten seconds, some seconds later."""
    world = GossipWorld(members, loss)
    world.send(messages, 10, 10)
    world.run(PATIENCE)
    return world


def keeps_its_bound(world: GossipWorld) -> None:
    assert world.share_missed() < BOUNDS[world.loss]
    assert sum([node.missed for node in world.nodes]) == 0, "a member gave up messages that others hold"


def load(world: GossipWorld, seconds: float, messages: int) -> tuple[float, float]:
    """The gossips, and the bytes of gossips, requests and answers, that a member receives a second."""
    world.age()
    before = world.received()
    world.send(messages, 10, seconds)
    return world.received().rates(before, len(world.nodes), seconds)


def does_not_grow(small: tuple[float, float], large: tuple[float, float]) -> None:
    assert small[0] > 1, "there are gossips"
    assert large[0] < GROWTH * small[0]
    assert large[1] < GROWTH * small[1]


@pytest.mark.parametrize("loss", BOUNDS)
def test_PB_I1_few_messages_are_missed_soon(loss: float) -> None:
    world = group(100, loss)
    keeps_its_bound(world)
    world.run(20)
    assert world.share_missed() == 0


@pytest.mark.parametrize("loss", BOUNDS)
def test_PB_I1_without_retransmission_the_bound_is_broken(loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pbcast, "on_lacks", lambda *_: None)
    world = group(30, loss)
    with pytest.raises(AssertionError):
        keeps_its_bound(world)
    assert world.share_missed() > 10 * BOUNDS[loss]


def test_PB_I3_the_load_does_not_grow_from_30_to_300_members() -> None:
    rates = [load(GossipWorld(members, 0.1), 30, 60) for members in (30, 300)]
    does_not_grow(*rates)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("loss", BOUNDS)
def test_PB_I1_and_I3_a_thousand_members(loss: float) -> None:
    rates = []
    for members in (100, 1_000):
        world = group(members, loss, 60)
        keeps_its_bound(world)
        rates.append(load(world, 40, 80))
    does_not_grow(*rates)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("loss", BOUNDS)
def test_PB_I1_a_thousand_members_without_retransmission(loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pbcast, "on_lacks", lambda *_: None)
    world = group(1_000, loss, 20)
    with pytest.raises(AssertionError):
        keeps_its_bound(world)
    assert world.share_missed() > 10 * BOUNDS[loss]
