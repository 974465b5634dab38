"""What a schedule's steps do to the world."""

from __future__ import annotations

from collections.abc import Iterable

from .member import Member
from .schedule import Action, Break, Crash, Cut, Leave, Pause, Send, Start
from .world import World


def apply(world: World, action: Action) -> None:
    """Let `action` happen now; nothing happens when whom it means is not there."""
    if isinstance(action, Start):
        world.start(action.who)
    elif isinstance(action, Send):
        _send(world, action)
    elif isinstance(action, Cut):
        _cut(world, action)
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
    elif isinstance(action, Pause):
        _note(world, "pause", [member])
        member.pause()
        world.agenda.after(action.lasts, member.resume)
    else:
        _crash(world, member, action)


def _crash(world: World, member: Member, action: Crash) -> None:
    _note(world, "crash", [member])
    if action.leaves == "all":
        world.crash(member)
    else:
        member.doomed = action.leaves


def _cut(world: World, cut: Cut) -> None:
    side = [member.address.name if (member := world.named(who)) else who for who in cut.side]
    hosts = world.schedule.names
    side = [name for name in side if name in hosts]
    others = [name for name in cut.others or hosts if name not in side]
    links: list[tuple[str, str]] = []
    if cut.way in ("both", "out"):
        links += [(one, other) for one in side for other in others]
    if cut.way in ("both", "in"):
        links += [(other, one) for one in side for other in others]
    isolated = len(side) == 1 and cut.others is None and cut.way == "both"
    kind = "isolation" if isolated else f"cut {cut.way}"
    _note(world, kind, [world.running[name] for name in side if name in world.running])
    world.network.cut(links)
    world.agenda.after(cut.lasts, _mend, world, links)


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
