"""What a schedule's steps do to the world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Final

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.stack import Output

from ..schedules.schedule import stream
from ..schedules.steps import (
    FOLLOWER,
    SUCCESSOR,
    WHOEVER,
    Action,
    Aimed,
    Beside,
    Break,
    Clog,
    Crash,
    Cut,
    Far,
    Flap,
    Forget,
    Gather,
    Jump,
    Leave,
    Mislead,
    Pause,
    Replay,
    Ring,
    Send,
    Slow,
    Start,
    Unread,
    Way,
)
from .member import Member
from .moments import arm, due, last_frames
from .surroundings import begin_beside, begin_misleading, forget_peer
from .world import World

LONG_PAUSE: Final = 20 * SECOND
RESTART: Final = 100 * MILLISECOND  # until a process that was ended is there again
Links = list[tuple[str, str]]


def apply(world: World, action: Action) -> None:
    """Let `action` happen now; nothing happens when whom it means is not there."""
    _EFFECTS[type(action)](world, action)


def at_moments(world: World, member: Member, output: Output) -> Output:
    """The layers of `member` left this in a turn: let what waited for it happen.  What of it is dealt out then."""
    frames = output.frames
    for fault in due(member, output):
        if isinstance(fault, Crash) and not member.ended:
            _note(world, "crash", [member])
            world.count(f"crash at {fault.moment}")
            if fault.leaves == "unwritten" and output.records:
                member.dies_unwritten = True
            else:
                world.agenda.at(world.agenda.now, world.crash, member)
                frames = last_frames(world, member, fault, frames)
        elif isinstance(fault, Pause):
            world.count(f"pause at {fault.moment}")
            _pause(world, member, fault)
        elif isinstance(fault, Cut):
            world.count(f"cut at {fault.moment}")
            _cut(world, fault, (member.address.name, *fault.side[1:]))
        elif isinstance(fault, Clog):
            world.count(f"clog at {fault.moment}")
            _clog(world, fault, member)
        elif isinstance(fault, Release) and world.agenda.now < fault.at:
            world.count(f"clog over at {fault.moment}")
            world.release(fault.links)
    return output._replace(frames=frames)


# -- processes


def _start(world: World, start: Start) -> None:
    name = start.who
    if name in world.running:
        return
    if name in world.births:
        world.count("restarts")
    if world.schedule.habits[name].drift:
        world.count("drifting clocks")
    world.start(name)


def _aim(world: World, fault: Crash | Pause | Clog) -> None:
    """Hit the member that is meant, now or at the moment that is meant."""
    if _waits(world, fault, fault.who):
        return
    member = _named(world, fault.who)
    if member is None:
        return
    if isinstance(fault, Clog):
        _clog(world, fault, member)
    elif isinstance(fault, Pause):
        _pause(world, member, fault)
    else:
        _note(world, "crash", [member])
        world.crash(member)


def _waits(world: World, fault: Aimed, who: str) -> bool:
    """Whether `fault` has to wait for what its victim does; it does so now."""
    if fault.moment != "now":
        if who == WHOEVER:
            arm(world.running.values(), fault)
        elif (member := _named(world, who)) is not None:
            arm([member], fault)
    return fault.moment != "now"


def _pause(world: World, member: Member, pause: Pause) -> None:
    world.judge.disturbed()
    _note(world, "pause", [member])
    if pause.lasts > LONG_PAUSE:
        world.count("long pause")
    member.pause()
    _after(world, pause.lasts, member.resume)


def _slow(world: World, slow: Slow) -> None:
    member = _named(world, slow.who)
    if member is not None:
        world.judge.disturbed()
        _note(world, "slow member", [member])
        member.slow_down(slow.loop_delay)
        _after(world, slow.lasts, member.speed_up, slow.loop_delay)


def _unread(world: World, unread: Unread) -> None:
    member = _named(world, unread.who)
    if member is not None:
        _note(world, "reads nothing", [member])
        member.read_nothing()
        _after(world, unread.lasts, member.read_again)


def _jump(world: World, jump: Jump) -> None:
    member = _named(world, jump.who)
    if member is not None:
        _note(world, "clock jumps", [member])
        name = member.address.name
        world.wall_ahead[name] = world.wall_ahead.get(name, 0) + jump.by


def _leave(world: World, leave: Leave) -> None:
    member = _named(world, leave.who)
    if member is not None and not member.leaving:
        world.tell(member.address.name, "begins to leave")
        world.count("leaves")
        if _coordinates(member):
            world.count("coordinator leaves")
        member.leave()


def _gather(world: World, _: Gather) -> None:
    largest = world.largest_side()
    for member in [one for one in world.running.values() if one.view is not None and one not in largest]:
        world.count("gathered")
        world.tell(member.address.name, "fault: gathered to the largest side")
        world.crash(member)
        world.agenda.after(RESTART, world.start, member.address.name)


# -- the network


def _aim_cut(world: World, cut: Cut) -> None:
    if not _waits(world, cut, cut.side[0]):
        first = _named(world, cut.side[0])
        _cut(world, cut, [first.address.name if first else cut.side[0], *cut.side[1:]])


def _cut(world: World, cut: Cut, names: Sequence[str]) -> None:
    side = [name for name in names if name in world.schedule.names]
    if not side:
        return
    links = _links(world, side, cut.others, cut.way)
    isolated = len(side) == 1 and cut.others is None and cut.way == "both"
    kind = "isolation" if isolated else f"cut {cut.way}"
    _note(world, kind, [world.running[name] for name in side if name in world.running])
    if cut.refused:
        world.count("refused")
    if cut.stays:
        world.count("cut that stays")
    _separate(world, links, cut.lasts, refused=cut.refused, stays=cut.stays)
    for src, dest in links if cut.refused else ():
        world.connections.reset(src, dest)


def _far(world: World, far: Far) -> None:
    name = _name(world, far.who)
    if name is None:
        return
    links = _links(world, [name], (far.other,) if far.other else None, "both")
    _note(world, "far", [world.running[name]])
    world.judge.disturbed()
    world.network.move(links, far.by)
    if far.stays:
        world.staying.append(lambda: world.network.move(links, far.by))
    else:
        _after(world, far.lasts, world.network.move, links, -far.by)


def _ring(world: World, ring: Ring) -> None:
    order = [name for name in ring.order if name in world.schedule.names]
    apart = [(one, other) for one, other in combinations(range(len(order)), 2) if other - one > 1]
    if len(order) > 3:
        apart.remove((0, len(order) - 1))
    _note(world, "ring", [])
    _separate(world, [link for i, j in apart for link in ((order[i], order[j]), (order[j], order[i]))], ring.lasts)


def _flap(world: World, flap: Flap) -> None:
    name = _name(world, flap.who)
    if name is None:
        return
    links = _links(world, [name], (flap.other,) if flap.other else None, "both")
    _note(world, "flapping", [world.running[name]])
    for turn in range(flap.times):
        _after(world, turn * (flap.down + flap.up), _separate, world, links, flap.down)


class Release(Aimed, frozen=True, kw_only=True):
    """What a clog that ends at a moment leaves to happen then, if that comes before `at`, when it is over anyway."""

    links: list[tuple[str, str]]


def _clog(world: World, clog: Clog, member: Member) -> None:
    _note(world, "clog", [member])
    world.judge.disturbed()
    other = _successor(member) if clog.other == SUCCESSOR else clog.other
    links = _links(world, [member.address.name], (other,) if other else None, clog.way)
    over = world.agenda.now + clog.lasts
    world.judge.unsettled(over)
    world.network.clog(links, over)
    if clog.until != "now":
        arm(world.running.values(), Release(at=over, moment=clog.until, links=links))


def _successor(member: Member) -> str | None:
    """Who is next in the member's view."""
    if member.view is None:
        return None
    members = member.view.members
    return members[(members.index(member.address) + 1) % len(members)].name


def _replay(world: World, action: Replay) -> None:
    _note(world, "replay", [])
    world.replay(action.who, action.other, action.since)


def _break(world: World, action: Break) -> None:
    one, other = _named(world, action.who), _named(world, action.other)
    if one is not None and other is not None and one is not other:
        _note(world, "connection lost", [one, other])
        world.connections.lose(one, other)


def _links(world: World, side: Sequence[str], others: Sequence[str] | None, way: Way) -> Links:
    """From every host of the side to every other one, and back, as `way` says."""
    pairs = [
        (one, other)
        for one in side
        for other in (world.schedule.names if others is None else others)
        if other not in side
    ]
    out = pairs if way != "in" else []
    return [*out, *([(other, one) for one, other in pairs] if way != "out" else [])]


def _separate(world: World, links: Links, lasts: int, *, refused: bool = False, stays: bool = False) -> None:
    def cut() -> None:
        world.network.cut(links, refused=refused)

    world.judge.disturbed()
    cut()
    if stays:
        world.staying.append(cut)
    else:
        _after(world, lasts, _mend, world, links, refused)


def _mend(world: World, links: Links, refused: bool) -> None:
    world.tell("-", "a cut heals")
    world.network.mend(links, refused=refused)


# -- what all have in common


def _named(world: World, who: str) -> Member | None:
    """The living process that a schedule means by `who`."""
    if who == WHOEVER:
        chance = stream(world.schedule.seed, WHOEVER, world.agenda.now)
        return chance.choice(list(world.running.values())) if world.running else None
    if who != FOLLOWER:
        return world.named(who)
    followers = [one for one in world.running.values() if one.view is not None and not _coordinates(one)]
    chance = stream(world.schedule.seed, FOLLOWER, world.agenda.now)
    return chance.choice(followers) if followers else None


def _name(world: World, who: str) -> str | None:
    """The name under which whom `who` means runs."""
    member = _named(world, who)
    return member.address.name if member is not None else None


def _after(world: World, delay: int, do: Callable[..., None], *args: Any) -> None:
    """Call it then, unless everything has healed by itself meanwhile."""
    phase = world.phase

    def unless_healed() -> None:
        if world.phase == phase:
            do(*args)
            world.judge.unsettled()

    world.agenda.after(delay, unless_healed)


def _note(world: World, kind: str, members: Iterable[Member]) -> None:
    """Count a fault, write it into every journal and the story."""
    whom = list(members)
    world.judge.unsettled()
    world.count(kind)
    for member in whom:
        if _coordinates(member):
            world.count(f"{kind} of a coordinator")
    world.mark_all("fault", reason=kind, members=tuple(member.address for member in whom))
    world.tell(" ".join(member.address.name for member in whom) or "-", f"fault: {kind}")


def _coordinates(member: Member) -> bool:
    return member.view is not None and member.view.coordinator == member.address


def _send(world: World, send: Send) -> None:
    """The payloads go to `who`, or to the next name whose process is in the group and stays there."""
    names = world.schedule.names
    begin = names.index(send.who)
    to = world.running.get(send.to) if send.to is not None else None
    if send.to is not None and to is None:
        return
    for name in (*names[begin:], *names[:begin]):
        member = world.running.get(name)
        if member is None or member.view is None or member.leaving or (member is to and send.who != send.to):
            continue
        member.order(send.count, send.size, to.address if to is not None else None)
        return


_EFFECTS: Final[dict[type, Callable[[World, Any], None]]] = {
    Start: _start,
    Send: _send,
    Crash: _aim,
    Pause: _aim,
    Leave: _leave,
    Cut: _aim_cut,
    Far: _far,
    Ring: _ring,
    Flap: _flap,
    Clog: _aim,
    Replay: _replay,
    Break: _break,
    Slow: _slow,
    Unread: _unread,
    Jump: _jump,
    Gather: _gather,
    Forget: forget_peer,
    Beside: begin_beside,
    Mislead: begin_misleading,
}
