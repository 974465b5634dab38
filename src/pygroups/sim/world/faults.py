"""The effects of a schedule's steps on the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pygroups.core.stack import Output

from ..schedules.steps import (
    Action,
    Attack,
    Beside,
    Break,
    Clog,
    CloseConnection,
    Crash,
    Cut,
    DiskFull,
    Far,
    Flap,
    Gather,
    Jump,
    Leave,
    Mislead,
    Pause,
    Replay,
    Ring,
    Send,
    SlowReader,
    StartProcess,
    Unread,
    Vouch,
)
from .attack import attack
from .link_faults import (
    ReleaseOfFaults,
    aim_cut,
    begin_clog,
    begin_cut,
    begin_far,
    begin_flap,
    begin_ring,
    break_connection,
    replay,
)
from .member import SimulatedMember
from .moments import due, last_frames
from .operators import vouch
from .process_faults import begin_pause, begin_slow, begin_unread, fill_disk, gather, jump_clock, leave, send, start
from .surroundings import begin_beside, begin_misleading, forget_peer
from .victims import named, note, waits
from .world import World


def apply(world: World, action: Action) -> None:
    """Run `action` now; it has no effect if its victim does not run."""
    _EFFECTS[type(action)](world, action)


def at_moments(world: World, member: SimulatedMember, output: Output) -> Output:
    """Let the faults happen that waited for this turn of `member`.  Returns the part of `output` that is still
    distributed."""
    frames = output.frames
    for fault in due(member, output):
        if isinstance(fault, Crash) and not member.ended:
            note(world, "crash", [member])
            world.count(f"crash at {fault.moment}")
            if fault.leaves == "unwritten" and output.records:
                member.dies_unwritten = True
            else:
                world.agenda.at(world.agenda.now, world.crash, member)
                frames = last_frames(world, member, fault, frames)
        elif isinstance(fault, Pause):
            world.count(f"pause at {fault.moment}")
            begin_pause(world, member, fault)
        elif isinstance(fault, Cut):
            world.count(f"cut at {fault.moment}")
            begin_cut(world, fault, (member.address.name, *fault.side[1:]))
        elif isinstance(fault, Clog):
            world.count(f"clog at {fault.moment}")
            begin_clog(world, fault, member)
        elif isinstance(fault, ReleaseOfFaults) and world.agenda.now < fault.at:
            world.count(f"clog released at {fault.moment}")
            world.tell("-", "a clog ends")
            world.release(fault.links)
    return output._replace(frames=frames)


def _aim(world: World, fault: Crash | Pause | Clog) -> None:
    """Hit the victim now, or arm the fault for its moment."""
    if waits(world, fault, fault.who):
        return
    member = named(world, fault.who)
    if member is None:
        return
    if isinstance(fault, Clog):
        begin_clog(world, fault, member)
    elif isinstance(fault, Pause):
        begin_pause(world, member, fault)
    else:
        note(world, "crash", [member])
        world.crash(member)


_EFFECTS: Final[dict[type, Callable[[World, Any], None]]] = {
    StartProcess: start,
    Send: send,
    Crash: _aim,
    Pause: _aim,
    Leave: leave,
    Cut: aim_cut,
    Far: begin_far,
    Ring: begin_ring,
    Flap: begin_flap,
    Clog: _aim,
    Replay: replay,
    Break: break_connection,
    SlowReader: begin_slow,
    Unread: begin_unread,
    DiskFull: fill_disk,
    Jump: jump_clock,
    Gather: gather,
    CloseConnection: forget_peer,
    Beside: begin_beside,
    Mislead: begin_misleading,
    Vouch: vouch,
    Attack: attack,
}
