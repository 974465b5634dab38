"""The end of a schedule: the group settles, and then the duties of time are tested in the calm (promises/duties.py).

A layer that is only slow keeps every promise without a time limit, and active faults excuse a slow layer.  The duties
are therefore tested after all faults have healed.  A single message that loses a frame must arrive in time, a window
must open when its last reader has read, and a leaving member must be let go.
"""

from __future__ import annotations

from random import Random
from typing import Final

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.services import PRIMARY

from ..promises.broken import Broken
from ..schedules.schedule import stream
from .member import SimulatedMember
from .process_faults import begin_anew_if_lost
from .world import World

POLL: Final = 100 * MILLISECOND  # time between two checks whether the group has settled
CALM_FOR: Final = 1 * SECOND  # time for which the group must stay settled
SMALL_WINDOW: Final = 64 << 10  # a larger window is not filled, because playing that takes long
LONE: Final = 300 * MILLISECOND  # time for a lone message to arrive, and the same time for its sender to learn of that
LATE: Final = 1_200 * MILLISECOND  # a member that meets its duties within a second has done so by then


def settle(world: World) -> None:
    """Let time pass until every promise is kept and stays kept.  Raises Broken if the bound ends first."""
    agenda, bound = world.agenda, world.schedule.bound
    deadline = agenda.now + bound
    _settle(world, deadline)
    if world.schedule.duties and agenda.now < deadline - bound // 2:
        if agenda.now > world.late_until:
            world.judge.calm()
        try_duties(world)
        _settle(world, agenda.now + bound)  # members forget one that left when its connection is old
    for member in world.settled_members():
        world.mark(member, "quiet")
        world.mark(member, "stats", gauges=member.stack.gauges())
    world.tell("-", "the group has settled")


def _settle(world: World, deadline: int) -> None:
    agenda = world.agenda
    planned = max((action.at for action in world.schedule.actions), default=0)
    calm_since: int | None = None
    while calm_since is None or agenda.now < max(calm_since, planned) + CALM_FOR:
        agenda.run_until(agenda.now + POLL)
        if PRIMARY in world.judge.around.services:
            begin_anew_if_lost(world)
        try:
            world.judge.settled(world.rests())
        except Broken:
            calm_since = None
            if agenda.now >= deadline:
                raise
        else:
            calm_since = agenda.now if calm_since is None else calm_since


def try_duties(world: World) -> None:
    """Create an occasion for each duty on the largest side of `world`, one after the other."""
    rng = stream(world.schedule.seed, "duties")
    world.tell("-", "the duties of time are tested")
    for _ in range(2):
        _lone_message(world, rng)
    if world.config.window <= SMALL_WINDOW:
        _full_window(world, rng)
    _leave(world, rng)


def _others(world: World) -> list[SimulatedMember]:
    """The members of the largest side that are not leaving; none if there is only one."""
    side = [member for member in world.largest_side() if not member.leaving]
    return side if len(side) > 1 else []


def _pass(world: World, time: int) -> None:
    world.agenda.run_until(world.agenda.now + time)


def _lone_message(world: World, rng: Random) -> None:
    """A member multicasts, and the next frame on one link is lost."""
    side = _others(world)
    if not side:
        return
    one, other = rng.sample(side, 2)
    world.to_lose = (one.address.name, other.address.name)
    rng.choice(side).order(1, 20, None)
    _pass(world, LONE)
    world.to_lose = None
    _pass(world, LONE)


def _full_window(world: World, rng: Random) -> None:
    """A member reads nothing until a sender's window is full, and for a short time after that."""
    side = _others(world)
    if not side:
        return
    sender, reader = rng.sample(side, 2)
    reader.read_nothing()
    size = min(world.config.run_bytes, world.config.window // 8)
    sender.order(20, size, None)
    _pass(world, rng.choice((100, 300)) * MILLISECOND)
    reader.read_again()
    world.judge.calm()
    _pass(world, LATE)


def _leave(world: World, rng: Random) -> None:
    """A member leaves, in half of the cases the coordinator, with messages in transit."""
    side = _others(world)
    if not side:
        return
    leaver = side[0] if rng.random() < 0.5 else rng.choice(side)
    for member in side:
        if rng.random() < 0.5:
            member.order(3, 20, None)
    _pass(world, rng.choice((0, 1, 5)) * MILLISECOND)
    leaver.leave()
    _pass(world, LATE)
