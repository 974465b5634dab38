"""Faults that wait for what their victim does: they strike in the turn in which it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pygroups.core.events import Block, NewView
from pygroups.core.stack import Output
from pygroups.core.top import Delivered

from .member import Armed, Member
from .schedule import Crash, Cut, Pause, stream
from .world import Sending, World

_DONE: Final[dict[str, Callable[[Output], bool]]] = {
    "sends": lambda output: bool(output.frames),
    "delivers": lambda output: any(isinstance(event, Delivered) for event in output.events),
    "stops": lambda output: any(isinstance(event, Block) for event in output.events),
    "installs": lambda output: any(isinstance(event, NewView) for event in output.events),
}


def arm(member: Member, fault: Crash | Pause | Cut) -> None:
    """`fault` waits until `member` has done that for the nth time from now on."""
    member.armed.append(Armed(fault, fault.nth, _sent(member, fault.moment)))


def due(member: Member, output: Output) -> list[Crash | Pause | Cut]:
    """What waited for what `member` did in this turn; the rest goes on waiting."""
    for armed in member.armed:
        moment = armed.fault.moment
        if moment in _DONE:
            armed.left -= _DONE[moment](output)
        else:
            sent = _sent(member, moment)
            armed.left, armed.sent = armed.left - (sent - armed.sent), sent
    struck = [armed.fault for armed in member.armed if armed.left <= 0]
    member.armed = [armed for armed in member.armed if armed.left > 0]
    return struck


def _sent(member: Member, label: str) -> int:
    return member.watched.count(label) if member.watched is not None else 0


def last_frames(world: World, member: Member, crash: Crash, frames: list[Sending]) -> list[Sending]:
    """What of a turn's frames leaves although `member` crashes in it."""
    if crash.leaves == "all":
        return frames
    dests = dict.fromkeys(dest for some, _ in frames for dest in some)
    if crash.leaves == "nothing":
        reached = {}
    elif crash.leaves == "first":
        reached = dict.fromkeys(list(dests)[: crash.reaches])
    else:
        chance = stream(world.schedule.seed, "last words", *member.address)
        reached = {dest: None for dest in dests if chance.random() < 0.5}
    return [(tuple(dest for dest in some if dest in reached), batch) for some, batch in frames]
