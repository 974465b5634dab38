"""The steps that concern processes and their applications: start, pause, slowness, not reading, sending, leaving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pygroups.core.address import Address
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.services import MEMBERSHIP, MERGING, PRIMARY

from ..promises.chain import Chain, is_majority
from ..schedules.steps import (
    DiskFull,
    Gather,
    Jump,
    Leave,
    Pause,
    Send,
    SlowReader,
    StartProcess,
    Unread,
)
from .member import SimulatedMember
from .operators import vouches
from .victims import after, coordinates, named, note
from .world import World

LONG_PAUSE: Final = 20 * SECOND
RESTART: Final = 100 * MILLISECOND  # time until an ended process starts again


def start(world: World, start: StartProcess) -> None:
    """Start a process under this name, unless one runs under it."""
    name = start.who
    if name in world.running:
        return
    if name in world.births:
        world.count("restarts")
    if world.schedule.habits[name].drift:
        world.count("drifting clocks")
    world.start(name)


def begin_pause(world: World, member: SimulatedMember, pause: Pause) -> None:
    """Stop `member` for a while."""
    world.judge.disturbed()
    note(world, "pause", [member])
    if pause.lasts > LONG_PAUSE:
        world.count("long pause")
    member.pause()
    after(world, pause.lasts, member.resume)


def begin_slow(world: World, slow: SlowReader) -> None:
    """Make the process late for a while."""
    member = named(world, slow.who)
    if member is not None:
        world.judge.disturbed()
        note(world, "slow member", [member])
        member.slow_down(slow.loop_delay)
        after(world, slow.lasts, member.speed_up, slow.loop_delay)


def begin_unread(world: World, unread: Unread) -> None:
    """Stop the application's reading for a while."""
    member = named(world, unread.who)
    if member is not None:
        note(world, "reads nothing", [member])
        member.read_nothing()
        after(world, unread.lasts, member.read_again)


def fill_disk(world: World, fault: DiskFull) -> None:
    """Let no record reach the process's journal for a while."""
    member = named(world, fault.who)
    if member is not None:
        note(world, "disk full", [member])
        member.disk_full += 1
        member.leaves_without_journal = fault.leaves
        after(world, fault.lasts, member.free_disk)


def jump_clock(world: World, jump: Jump) -> None:
    """Shift the wall clock of the process's host."""
    member = named(world, jump.who)
    if member is not None:
        note(world, "clock jumps", [member])
        name = member.address.name
        world.wall_ahead[name] = world.wall_ahead.get(name, 0) + jump.by


def leave(world: World, leave: Leave) -> None:
    """Let the application ask to leave."""
    member = named(world, leave.who)
    if member is not None and not member.leaving:
        world.tell(member.address.name, "begins to leave")
        world.count("leaves")
        if coordinates(member):
            world.count("coordinator leaves")
        member.leave()


def gather(world: World, _: Gather) -> None:
    """Restart each process in a view that is not on the largest side, unless sides merge by themselves, or a majority
    decides each view.  A group that lost its majority begins anew."""
    if PRIMARY in world.judge.around.services:
        begin_anew_if_lost(world)
    if MERGING in world.judge.around.services or PRIMARY in world.judge.around.services:
        return
    largest = world.largest_side()
    for member in [one for one in world.running.values() if one.view is not None and one not in largest]:
        world.count("gathered")
        world.tell(member.address.name, "fault: restarted to join the largest side")
        world.crash(member)
        world.agenda.after(RESTART, world.start, member.address.name)


def begin_anew_if_lost(world: World) -> None:
    """Restart the members of each group of which a majority has ended: no view can follow."""
    chains = [check for check in world.judge.checks if isinstance(check, Chain)]
    if world.folders:
        _return_all(world, chains)
        return
    members = [member for member in world.running.values() if member.view is not None and chains]
    here = [member.address for member in members]
    held = {member.view.id for member in members if member.view is not None}
    lasts = [(one, chains[0].last_of(one.view.id, held)) for one in members if one.view is not None]
    for member, last in lasts:
        if not is_majority(last, here) and not vouches(world):
            world.count("majority lost")
            world.tell(member.address.name, "fault: restarted, because a majority of the group has ended")
            world.crash(member)
            world.agenda.after(RESTART, world.start, member.address.name)
    if world.judge.around.expect and all(member.view is None for member in world.running.values()):
        _start_all(world)


def _return_all(world: World, chains: Sequence[Chain]) -> None:
    """Start the processes that have ended, and begin anew if that is not enough, because folders were lost."""
    for name in world.schedule.names:
        world.agenda.after(RESTART, _start_if_ended, world, name)
    world.agenda.after(3 * RESTART, _begin_anew_without_folders, world, chains)


def _begin_anew_without_folders(world: World, chains: Sequence[Chain]) -> None:
    members = [member for member in world.running.values() if member.view is not None]
    formers = [member.env.former for member in world.running.values() if member.view is None]
    former = {life.address: life.view for life in formers if life is not None and life.view is not None}
    gone = chains[0].vouched_ones if chains else {}  # no process answers for these (operators.py)
    here = [*[member.address for member in members], *former]
    held = {member.view.id for member in members if member.view is not None}
    held |= {view.id for view in former.values() if view is not None}
    if members and chains:
        lasts = [chains[0].last_of(member.view.id, held) for member in members if member.view is not None]
        lost = not any(is_majority(last, here, gone) for last in lasts)
        # A view that only a former incarnation accepted waits for all that may hold its runs.
        accepted = [life.view for life in formers if life is not None and life.view is not None and life.accepted]
        needed = [one for view in accepted if view.id in held for one in view.members if one not in gone]
        lost = lost or any(one not in here for one in needed)
    else:
        ended = [one for life in formers if life is not None for one in life.ended]
        lost = any(one not in ended for view in former.values() if view is not None for one in view.members)
        lost = lost or _miss_a_lost_folder(world, chains, ended)
    if lost and not vouches(world):
        world.folders.clear()
        _start_all(world)


def _miss_a_lost_folder(world: World, chains: Sequence[Chain], ended: Sequence[Address]) -> bool:
    """Whether a process waits for a member of the last view that has ended and lost its folder.  It may know this view
    from another process, which has ended since and lost its folder, too.  `ended`: the folders that are there."""
    gone = [one for chain in chains for one in chain.last_members() if world.lives[one].ended and one not in ended]
    running = [member.address for member in world.running.values()]
    return any(chain.waits_for(who, one) for chain in chains for one in gone for who in running)


def _start_all(world: World) -> None:
    """Restart all processes.  More than half of all processes must run for a birth, and no process may know a group
    that has ended."""
    world.count("all started for a birth")
    for member in list(world.running.values()):
        world.tell(member.address.name, "fault: restarted, because the whole group has ended")
        world.crash(member)
    for name in world.schedule.names:
        world.agenda.after(RESTART, _start_if_ended, world, name)


def _start_if_ended(world: World, name: str) -> None:
    if name not in world.running:
        world.start(name)


def send(world: World, send: Send) -> None:
    """Give the payloads to `who`, or to the next name whose process is a member and is not leaving."""
    names = world.schedule.names
    begin = names.index(send.who)
    if MEMBERSHIP not in world.judge.around.services:
        _send_without_group(world, send, (*names[begin:], *names[:begin]))
        return
    to = world.running.get(send.to) if send.to is not None else None
    if send.to is not None and to is None:
        return
    for name in (*names[begin:], *names[:begin]):
        member = world.running.get(name)
        if member is None or member.view is None or member.leaving or (member is to and send.who != send.to):
            continue
        if to is not None and member.judge is not to.judge:
            continue  # of the group with other settings: a program sends to members of its group
        member.order(send.count, send.size, to.address if to is not None else None)
        return


def _send_without_group(world: World, send: Send, names: Sequence[str]) -> None:
    """Give the payloads to the first of `names` that runs.  Without a receiver they are for the name after it."""
    for name in names:
        member = world.running.get(name)
        if member is not None and not member.leaving:
            place = send.to or world.schedule.names[(world.schedule.names.index(name) + 1) % len(names)]
            member.order_at(send.count, send.size, place)
            return
