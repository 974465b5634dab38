"""Faults of applications and of discovery: a second process under a name, a connection that an application closes, a
misleading directory.  schedules/surroundings.py draws them."""

from __future__ import annotations

from pygroups.core.events import Forget as ForgetPeer

from ..schedules.steps import Beside, CloseConnection, Mislead
from .world import World


def begin_beside(world: World, beside: Beside) -> None:
    """Start another process under that name; it ends after a time if no member refuses it."""
    if beside.who not in world.running or not world.largest_side():
        return  # no member could refuse the process
    world.count("another profile" if beside.stranger else "two processes under one name")
    member = world.start_beside(beside.who, stranger=beside.stranger)

    def ends() -> None:
        if not member.ended:
            world.crash(member)

    world.agenda.after(beside.lasts, ends)


def forget_peer(world: World, forget: CloseConnection) -> None:
    """The application at one member closes its connection with another."""
    one, other = world.running.get(forget.who), world.running.get(forget.other)
    if one is not None and other is not None and one is not other:
        world.count("peer forgotten")
        one.ask(ForgetPeer(other.address))


def begin_misleading(world: World, mislead: Mislead) -> None:
    """Give late, outdated or incomplete answers of the directory for a time."""
    world.count(f"directory: {mislead.how}")
    world.directory.mislead(mislead.how, world.agenda.now + mislead.lasts)
