"""Faults that wait for an action of their victim: they happen in the turn of this action."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pygroups.core.events import Block, NewView
from pygroups.core.stack import Output
from pygroups.core.top import Delivered

from ..schedules.schedule import stream
from ..schedules.steps import Aimed, Crash
from .member import SimulatedMember
from .traps import Armed, Trap
from .world import Sending, World

_DONE: Final[dict[str, Callable[[Output], bool]]] = {
    "sends": lambda output: bool(output.frames),
    "delivers": lambda output: any(isinstance(event, Delivered) for event in output.events),
    "stops": lambda output: any(isinstance(event, Block) for event in output.events),
    "installs": lambda output: any(isinstance(event, NewView) for event in output.events),
}


def arm(members: Iterable[SimulatedMember], fault: Aimed) -> None:
    """Let `fault` wait until the members have reached its moment `nth` times from now on, counted over all of
    `members`."""
    trap = Trap(fault, fault.nth)
    for member in members:
        member.armed.append(Armed(trap, _sent(member, fault.moment)))


def due(member: SimulatedMember, output: Output) -> list[Aimed]:
    """The faults whose moment `member` has reached in this turn.  These faults no longer wait for other members."""
    for armed in member.armed:
        trap, moment = armed.trap, armed.trap.fault.moment
        if moment in _DONE:
            trap.left -= _DONE[moment](output)
        else:
            sent = _sent(member, moment)
            trap.left, armed.sent = trap.left - (sent - armed.sent), sent
    struck = [armed.trap.fault for armed in member.armed if armed.trap.left <= 0 and not armed.trap.over]
    for armed in member.armed:
        armed.trap.over = armed.trap.left <= 0
    member.armed = [armed for armed in member.armed if not armed.trap.over]
    return struck


def _sent(member: SimulatedMember, label: str) -> int:
    return member.watched.count(label) if member.watched is not None else 0


def last_frames(world: World, member: SimulatedMember, crash: Crash, frames: list[Sending]) -> list[Sending]:
    """The frames of a turn that still leave when `member` crashes in this turn."""
    if crash.leaves == "all":
        return frames
    dests = dict.fromkeys(dest for some, _ in frames for dest in some)
    if crash.leaves in ("nothing", "unwritten"):
        reached = {}
    elif crash.leaves == "first":
        reached = dict.fromkeys(list(dests)[: crash.reaches])
    else:
        chance = stream(world.schedule.seed, "last words", *member.address)
        reached = {dest: None for dest in dests if chance.random() < 0.5}
    return [(tuple(dest for dest in some if dest in reached), batch) for some, batch in frames]
