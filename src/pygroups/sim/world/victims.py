"""Whom a fault means, how long it lasts, and where it is noted: what the faults have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..schedules.schedule import stream
from ..schedules.steps import FOLLOWER, WHOEVER, Aimed
from .member import SimulatedMember
from .moments import arm
from .world import World


def named(world: World, who: str) -> SimulatedMember | None:
    """The living process that a schedule means by `who`."""
    if who == WHOEVER:
        chance = stream(world.schedule.seed, WHOEVER, world.agenda.now)
        return chance.choice(list(world.running.values())) if world.running else None
    if who != FOLLOWER:
        return world.named(who)
    followers = [one for one in world.running.values() if one.view is not None and not coordinates(one)]
    chance = stream(world.schedule.seed, FOLLOWER, world.agenda.now)
    return chance.choice(followers) if followers else None


def name_of(world: World, who: str) -> str | None:
    """The name under which whom `who` means runs."""
    member = named(world, who)
    return member.address.name if member is not None else None


def after(world: World, delay: int, do: Callable[..., None], *args: Any) -> None:
    """Call it then, unless everything has healed by itself meanwhile."""
    phase = world.phase

    def unless_healed() -> None:
        if world.phase == phase:
            do(*args)
            world.judge.unsettled()

    world.agenda.after(delay, unless_healed)


def note(world: World, kind: str, members: Iterable[SimulatedMember]) -> None:
    """Count a fault, write it into every journal and the story."""
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
    """Whether `fault` has to wait for what its victim does; it does so now."""
    if fault.moment != "now":
        if who == WHOEVER:
            arm(world.running.values(), fault)
        elif (member := named(world, who)) is not None:
            arm([member], fault)
    return fault.moment != "now"
