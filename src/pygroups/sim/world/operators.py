"""An operator who vouches that processes have ended, where a majority decides each view.

The operator is honest: only processes that have ended are vouched for, and only where no other process may know of a
later view.  So the operator vouches at a process in the last view of the chain that a running process has, and only
while no link and no process is disturbed.  This process informs the other members.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Vouched
from pygroups.core.former import FormerLife
from pygroups.core.services import PRIMARY

from ..schedules.schedule import stream
from ..schedules.steps import Vouch
from .member import SimulatedMember
from .world import World


def vouch(world: World, step: Vouch) -> None:
    """Vouch for one ended process, at `who` or at the next process that waits for it."""
    names = world.schedule.names
    begin = names.index(step.who)
    waiting = processes_that_wait(world)
    for name in (*names[begin:], *names[:begin]):
        if name in waiting:
            gone = missing(world, waiting[name])
            vouch_for(world, waiting[name], stream(world.schedule.seed, "operator", step.at).choice(gone))
            return


def vouches(world: World) -> bool:
    """If this schedule has an operator who may vouch now, vouch for all members that a waiting process misses.  Returns
    whether there is such an operator."""
    has_operator = is_calm(world) and any(isinstance(step, Vouch) for step in world.schedule.actions)
    if has_operator:
        for member in processes_that_wait(world).values():
            for gone in missing(world, member):
                vouch_for(world, member, gone)
    return has_operator


def processes_that_wait(world: World) -> dict[str, SimulatedMember]:
    """By their names, the processes at which an operator may vouch for some process."""
    if PRIMARY not in world.judge.around.services or not is_calm(world):
        return {}
    views = [member.view.id for member in world.running.values() if member.view is not None]
    last = max(views, default=None)
    return {
        name: member
        for name, member in world.running.items()
        if member.told and (member.view is None or member.view.id == last) and missing(world, member)
    }


def is_calm(world: World) -> bool:
    """Whether each process runs and reaches each other one."""
    paused = any(member.paused for member in world.running.values())
    return not paused and not world.network.is_disturbed(world.agenda.now)


def missing(world: World, member: SimulatedMember) -> list[Address]:
    """The members of the last view of this process, or those that a process without a view was told it misses, that
    have ended.  Members for which a process answers are left out, and before a birth those of which a process knows
    that they have ended."""
    named = [one for one in world.lives if str(one) in member.told]
    members = named if member.view is None else member.view.members
    lives = [one.env.former for one in world.running.values()]
    known = [life for life in lives if life is not None]
    answered = [one for life in known for one in (life.ended if member.view is None else _answered_for(life))]
    return [one for one in members if world.lives[one].ended and one not in answered]


def _answered_for(life: FormerLife) -> tuple[Address, ...]:
    """The process that has this former life answers for it, if its folder has the records."""
    return (life.address,) if life.view or life.bound else ()


def vouch_for(world: World, member: SimulatedMember, gone: Address) -> None:
    """Confirm to `member` that `gone` has ended for good."""
    world.count("operator vouches")
    world.count("operator vouches before a birth" if member.view is None else "operator vouches in a view")
    world.tell(member.address.name, f"an operator vouches for {gone}")
    if gone.name not in world.running:
        world.folders.pop(gone.name, None)  # no process answers for it at members that do not know the word
    member.ask(Vouched(gone))
