"""What a schedule's steps do to the world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pygroups.core.events import Block, NewView
from pygroups.core.limits import MILLISECOND
from pygroups.core.stack import Output
from pygroups.core.top import Delivered

from .member import Member
from .schedule import Action, Break, Crash, Cut, Gather, Leave, Pause, Send, Start, stream
from .world import Sending, World

RESTART: Final = 100 * MILLISECOND  # until a process that was ended is there again


def apply(world: World, action: Action) -> None:
    """Let `action` happen now; nothing happens when whom it means is not there."""
    if isinstance(action, Start):
        world.start(action.who)
    elif isinstance(action, Send):
        _send(world, action)
    elif isinstance(action, Cut):
        _aim_cut(world, action)
    elif isinstance(action, Gather):
        _gather(world)
    elif isinstance(action, Break):
        one, other = world.named(action.who), world.named(action.other)
        if one is not None and other is not None and one is not other:
            _note(world, "connection lost", [one, other])
            world.lose_connection(one, other)
    else:
        member = world.named(action.who)
        if member is not None:
            _to_one(world, member, action)


def _to_one(world: World, member: Member, action: Crash | Pause | Leave) -> None:
    if isinstance(action, Leave):
        world.tell(member.address.name, "begins to leave")
        world.count("leaves")
        member.leave()
    elif action.moment != "now":
        member.armed.append((action.moment, action))
    elif isinstance(action, Pause):
        _pause(world, member, action)
    else:
        _note(world, "crash", [member])
        world.crash(member)


def _pause(world: World, member: Member, action: Pause) -> None:
    world.judge.disturbed()
    _note(world, "pause", [member])
    member.pause()
    world.agenda.after(action.lasts, member.resume)


def _gather(world: World) -> None:
    largest = world.largest_side()
    for member in [one for one in world.running.values() if one not in largest]:
        world.count("gathered")
        world.crash(member)
        world.agenda.after(RESTART, world.start, member.address.name)


# -- faults that wait for a moment


def at_moments(world: World, member: Member, output: Output) -> list[Sending]:
    """`member` did all this in a turn: let what waited for it happen.  What of the turn's frames leaves."""
    frames = output.frames
    done = {
        "sends": bool(frames),
        "delivers": any(isinstance(event, Delivered) for event in output.events),
        "stops": any(isinstance(event, Block) for event in output.events),
        "installs": any(isinstance(event, NewView) for event in output.events),
    }
    due = [action for moment, action in member.armed if done[moment]]
    member.armed = [(moment, action) for moment, action in member.armed if not done[moment]]
    for action in due:
        if isinstance(action, Crash) and not member.ended:
            frames = _last_words(world, member, action, frames)
        elif isinstance(action, Pause):
            _pause(world, member, action)
        elif isinstance(action, Cut):
            _cut(world, action, (member.address.name, *action.side[1:]))
    return frames


def _last_words(world: World, member: Member, crash: Crash, frames: list[Sending]) -> list[Sending]:
    """`member` crashes between its journal and the network, or behind it."""
    _note(world, "crash", [member])
    _note(world, f"crash when it {crash.moment}", [])
    world.agenda.at(world.agenda.now, world.crash, member)
    if crash.leaves == "nothing":
        return []
    if crash.leaves == "some":
        chance = stream(world.schedule.seed, "last words", *member.address)
        frames = [(tuple(dest for dest in dests if chance.random() < 0.5), batch) for dests, batch in frames]
    return frames


# -- cuts


def _cut(world: World, cut: Cut, names: Sequence[str]) -> None:
    hosts = world.schedule.names
    side = [name for name in names if name in hosts]
    others = [name for name in cut.others or hosts if name not in side]
    links: list[tuple[str, str]] = []
    if cut.way in ("both", "out"):
        links += [(one, other) for one in side for other in others]
    if cut.way in ("both", "in"):
        links += [(other, one) for one in side for other in others]
    isolated = len(side) == 1 and cut.others is None and cut.way == "both"
    kind = "isolation" if isolated else f"cut {cut.way}"
    _note(world, kind, [world.running[name] for name in side if name in world.running])
    world.judge.disturbed()
    world.network.cut(links)
    world.agenda.after(cut.lasts, _mend, world, links)


def _aim_cut(world: World, cut: Cut) -> None:
    first = world.named(cut.side[0])
    if cut.moment == "now":
        _cut(world, cut, [first.address.name if first else cut.side[0], *cut.side[1:]])
    elif first is not None:
        first.armed.append((cut.moment, cut))


def _mend(world: World, links: list[tuple[str, str]]) -> None:
    if not world.healed:
        world.tell("-", "a cut heals")
        world.network.mend(links)


def _note(world: World, kind: str, members: Iterable[Member]) -> None:
    """Count a fault, write it into every journal and the story."""
    whom = list(members)
    world.count(kind)
    for member in whom:
        view = member.view
        if view is not None and view.coordinator == member.address:
            world.count(f"{kind} of a coordinator")
    world.mark_all("fault", reason=kind, members=tuple(member.address for member in whom))
    world.tell(" ".join(member.address.name for member in whom) or "-", f"fault: {kind}")


def _send(world: World, send: Send) -> None:
    """The payloads go to `who`, or to the next name whose process is in the group and stays there."""
    names = world.schedule.names
    begin = names.index(send.who)
    to = world.running.get(send.to) if send.to is not None else None
    if send.to is not None and to is None:
        return
    for name in (*names[begin:], *names[:begin]):
        member = world.running.get(name)
        if member is None or member.view is None or member.leaving or member is to:
            continue
        member.order(send.count, send.size, to.address if to is not None else None)
        return
