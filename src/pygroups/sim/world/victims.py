"""The victims of faults, the ends of faults, and their records: shared functions of all faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..schedules.schedule import stream
from ..schedules.steps import FOLLOWER, WHOEVER, Aimed
from .member import SimulatedMember
from .moments import arm
from .world import World


def named(world: World, who: str) -> SimulatedMember | None:
    """The running process that a schedule means by `who`, which is a name or a role."""
    if who == WHOEVER:
        chance = stream(world.schedule.seed, WHOEVER, world.agenda.now)
        return chance.choice(list(world.running.values())) if world.running else None
    if who != FOLLOWER:
        return world.named(who)
    followers = [one for one in world.running.values() if one.is_in and not coordinates(one)]
    chance = stream(world.schedule.seed, FOLLOWER, world.agenda.now)
    return chance.choice(followers) if followers else None


def name_of(world: World, who: str) -> str | None:
    """The name of the running process that `who` means."""
    member = named(world, who)
    return member.address.name if member is not None else None


def after(world: World, delay: int, do: Callable[..., None], *args: Any) -> None:
    """Call `do(*args)` after `delay`, unless all faults have healed in the meantime."""
    phase = world.phase

    def unless_healed() -> None:
        if world.phase == phase:
            world.judge.unsettled()  # before the turn in which a process that was paused learns what it missed
            do(*args)

    world.agenda.after(delay, unless_healed)


def note(world: World, kind: str, members: Iterable[SimulatedMember]) -> None:
    """Count a fault, and write it into every journal and into the story."""
    whom = list(members)
    world.judge.unsettled()
    world.count(kind)
    for member in whom:
        if coordinates(member):
            world.count(f"{kind} of a coordinator")
    world.mark_all("fault", reason=kind, members=tuple(member.address for member in whom))
    world.tell(" ".join(member.address.name for member in whom) or "-", f"fault: {kind}")


def coordinates(member: SimulatedMember) -> bool:
    """Whether `member` coordinates its view."""
    return member.view is not None and member.view.coordinator == member.address


def waits(world: World, fault: Aimed, who: str) -> bool:
    """Whether `fault` waits for an action of its victim; if so, arm it."""
    if fault.moment != "now":
        if who == WHOEVER:
            arm(world.running.values(), fault)
        elif (member := named(world, who)) is not None:
            arm([member], fault)
    return fault.moment != "now"
