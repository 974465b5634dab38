"""Faults of the network: cuts, clogs, long delays, lost connections, and replayed frames."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ..schedules.steps import (
    SUCCESSOR,
    Aimed,
    Break,
    Clog,
    Cut,
    Far,
    Flap,
    Replay,
    Ring,
    Way,
)
from .member import SimulatedMember
from .moments import arm
from .victims import after, name_of, named, note, waits
from .world import World

Links = list[tuple[str, str]]


def aim_cut(world: World, cut: Cut) -> None:
    """Begin the cut now, or arm it for its moment."""
    if not waits(world, cut, cut.side[0]):
        first = named(world, cut.side[0])
        begin_cut(world, cut, [first.address.name if first else cut.side[0], *cut.side[1:]])


def begin_cut(world: World, cut: Cut, names: Sequence[str]) -> None:
    """Cut the side that consists of `names` from the others."""
    side = [name for name in names if name in _hosts(world)]
    if not side:
        return
    links = _links(world, side, cut.others, cut.way)
    isolated = len(side) == 1 and cut.others is None and cut.way == "both"
    kind = "isolation" if isolated else f"cut {cut.way}"
    note(world, kind, [world.running[name] for name in side if name in world.running])
    if cut.refused:
        world.count("refused")
    if cut.stays:
        world.count("cut that stays")
    _separate(world, links, cut.lasts, refused=cut.refused, stays=cut.stays)
    for src, dest in links if cut.refused else ():
        world.reset(src, dest)


def begin_far(world: World, far: Far) -> None:
    """Delay all frames between a process and others for a while."""
    name = name_of(world, far.who)
    if name is None:
        return
    links = _links(world, [name], (far.other,) if far.other else None, "both")
    note(world, "far", [world.running[name]])
    world.judge.disturbed()
    world.network.move(links, far.by)
    if far.stays:
        world.staying.append(lambda: world.network.move(links, far.by))
    else:
        after(world, far.lasts, world.network.move, links, -far.by)


def begin_ring(world: World, ring: Ring) -> None:
    """Let each process reach its two neighbors only, for a while."""
    order = [name for name in ring.order if name in world.schedule.names]
    apart = [(one, other) for one, other in combinations(range(len(order)), 2) if other - one > 1]
    if len(order) > 3:
        apart.remove((0, len(order) - 1))
    note(world, "ring", [])
    _separate(world, [link for i, j in apart for link in ((order[i], order[j]), (order[j], order[i]))], ring.lasts)


def begin_flap(world: World, flap: Flap) -> None:
    """Cut and mend the network between processes several times."""
    name = name_of(world, flap.who)
    if name is None:
        return
    links = _links(world, [name], (flap.other,) if flap.other else None, "both")
    note(world, "flapping", [world.running[name]])
    for turn in range(flap.times):
        after(world, turn * (flap.down + flap.up), _separate, world, links, flap.down)


class ReleaseOfFaults(Aimed, frozen=True, kw_only=True):
    """The end of a clog at its moment `until`, if that moment comes before `at`, when the clog ends anyway."""

    links: list[tuple[str, str]]


def begin_clog(world: World, clog: Clog, member: SimulatedMember) -> None:
    """Hold all frames to or from `member` for a while; all of them arrive at the end."""
    note(world, "clog", [member])
    world.judge.disturbed()
    other = _successor(member) if clog.other == SUCCESSOR else clog.other
    links = _links(world, [member.address.name], (other,) if other else None, clog.way)
    over = world.agenda.now + clog.lasts
    world.judge.unsettled(over)
    world.network.clog(links, over)
    if clog.until != "now":
        arm(world.running.values(), ReleaseOfFaults(at=over, moment=clog.until, links=links))


def _successor(member: SimulatedMember) -> str | None:
    """The name of the next member in the member's view."""
    if member.view is None:
        return None
    members = member.view.members
    return members[(members.index(member.address) + 1) % len(members)].name


def replay(world: World, action: Replay) -> None:
    """Frames that one process sent to another arrive again."""
    note(world, "replay", [])
    world.replay(action.who, action.other, action.since)


def break_connection(world: World, action: Break) -> None:
    """The connection between two processes is lost."""
    one, other = named(world, action.who), named(world, action.other)
    if one is not None and other is not None and one is not other:
        note(world, "connection lost", [one, other])
        world.lose(one, other)


def _links(world: World, side: Sequence[str], others: Sequence[str] | None, way: Way) -> Links:
    """The links from every host of the side to every other host, and back, as `way` says."""
    pairs = [
        (one, other) for one in side for other in (_hosts(world) if others is None else others) if other not in side
    ]
    out = pairs if way != "in" else []
    return [*out, *([(other, one) for one, other in pairs] if way != "out" else [])]


def _hosts(world: World) -> list[str]:
    """The names of the schedule, and those under which a scenario has started further processes."""
    return list(dict.fromkeys([*world.schedule.names, *world.births]))


def _separate(world: World, links: Links, lasts: int, *, refused: bool = False, stays: bool = False) -> None:
    def cut() -> None:
        world.network.cut(links, refused=refused)

    world.judge.disturbed()
    cut()
    if stays:
        world.staying.append(cut)
    else:
        after(world, lasts, _mend, world, links, refused)


def _mend(world: World, links: Links, refused: bool) -> None:
    world.tell("-", "a cut ends")
    world.network.mend(links, refused=refused)
