"""Which messages come next, and which archive has them: pure functions over archives.

The stream is what a member would deliver that never fails.  It goes from view to view with members that go together,
and so each message comes once: virtual synchrony lets all of them deliver the same set in the view that they leave.  At
a split it goes with one side, and the messages of the other side never come, as at a member of that side.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pygroups.journal.reader import Range
from pygroups.pipeline.ordered.archive import Archive, Span, Stay, View


class Piece(NamedTuple):
    """The messages at [low, high) of a view.  With `next` the view ends with them, and that view follows."""

    view: View
    low: int
    high: int
    next: View | None


class Source(NamedTuple):
    """The messages at [low, high) of a view stand in these bytes."""

    view: View
    low: int
    high: int
    place: Range


class Hole(ValueError):
    """No archive has messages that the stream must give next; the text names them."""


def first_view(archives: Iterable[Archive]) -> View | None:
    """The view in which a new stream begins: the earliest one."""
    return _earliest(archives, _began(archives))


def _began(archives: Iterable[Archive]) -> dict[View, int]:
    began: dict[View, int] = {}
    for archive in archives:
        for view, stay in archive.stays.items():
            began[view] = min(stay.began_us, began.get(view, stay.began_us))
    return began


def _earliest(archives: Iterable[Archive], began: Mapping[View, int]) -> View | None:
    """Of these views the first one.  Clocks differ, so a view that follows another one of them is not the first."""
    follow = {stay.next for archive in archives for view, stay in archive.stays.items() if view in began}
    return min(began.keys() - follow, key=lambda view: (began[view], view), default=None)


def ahead(archives: Sequence[Archive], view: View, position: int, *, skips: bool = False) -> Iterator[Piece]:
    """The pieces behind a place that are stable, in their order.

    Raises Hole where the archives go on behind messages or views that none of them has; with `skips` the stream goes on
    there.
    """
    while True:
        stays = _stays_in(archives, view)
        following = _following(archives, view)
        if following is not None:
            high = max(stay.end for stay in stays if stay.next == following)
        else:
            following = _elsewhere(archives, view)
            high = _delivered_by_all(archives, view, position, skips=skips)
            if following is not None and not skips and _is_missing(archives, view):
                if high > position:
                    yield Piece(view, position, high, None)
                raise Hole(f"no archive tells how view {_name(view)} ended, and view {_name(following)} came later")
        if following is None:
            if high > position:
                yield Piece(view, position, high, None)
            return
        yield Piece(view, position, max(position, high), following)
        view, position = following, 0


def _stays_in(archives: Iterable[Archive], view: View) -> list[Stay]:
    return [archive.stays[view] for archive in archives if view in archive.stays]


def _delivered_by_all(archives: Iterable[Archive], view: View, position: int, *, skips: bool) -> int:
    """Below here all members of the view delivered the same: votes say so, or the archives of all of them.

    The same position is not enough: a member that crashed may have delivered there what no other member had.  What is
    in front of `position` was given, so holes there do not matter.  Raises Hole if all archives have one behind it.
    """
    there = {archive.address: archive.stays[view] for archive in archives if view in archive.stays}
    stays = {address: stay for address, stay in there.items() if stay.hole <= position or skips}
    if there and not stays:
        raise Hole(f"no archive has the message at position {position:,} of view {_name(view)} any more")
    high = max((stay.stable for stay in stays.values()), default=0)
    if all(stays.keys() >= set(stay.members) for stay in stays.values()):
        for runs in zip(*(stay.behind(high) for stay in stays.values()), strict=False):
            if len(set(runs)) > 1:
                break
            high, _ = runs[0]
    return high


def _following(archives: Sequence[Archive], view: View) -> View | None:
    """The view that follows, of the sides of a split the primary one, then the one to which most members came."""
    nexts = {stay.next for stay in _stays_in(archives, view) if stay.next is not None}
    known = {at: stay for archive in archives for at, stay in archive.stays.items() if at in nexts}
    known = {at: stay for at, stay in known.items() if _is_decided(archives, view, at)}
    return max(known, key=lambda at: (known[at].primary, known[at].came, -at[0], at[1]), default=None)


def _is_decided(archives: Iterable[Archive], view: View, following: View) -> bool:
    """Whether no member can leave `view` for another view than `following` if it is to be in the latter.

    A view that some members installed and then crashed may be lost: the others install another one.
    """
    for stay in _stays_in(archives, following):
        if stay.next is not None or stay.stable > 0:
            return True
        members = stay.members
    behind = [archive for archive in archives if view in archive.stays and archive.address in members]
    return all(archive.over or archive.stays[view].next == following for archive in behind)


def _elsewhere(archives: Sequence[Archive], view: View) -> View | None:
    """The view at which to go on if this one is a dead end: its members have ended, and others went on without them, or
    began the group anew.

    That is a primary view, or one with new processes of the members if all of those known here have ended.  The views
    that the other side of a split had alone are left out: they may have messages again that this side gave already.
    """
    began = _began(archives)
    later = {at: us for at, us in began.items() if us > began.get(view, 0)}
    stays = [(at, stay) for archive in archives for at, stay in archive.stays.items() if at in later]
    here = [archive for archive in archives if view in archive.stays]
    former = {_name_of(archive.address): archive.address for archive in here}
    reborn = {
        (at, _name_of(member))
        for at, stay in stays
        for member in stay.members
        if former.get(_name_of(member), member) != member
    }
    names = {name for _, name in reborn}
    alive = {one.address for one in here if not one.over and _name_of(one.address) not in names}
    if any(not alive.isdisjoint(stay.members) for _, stay in stays):
        return None
    found = {at for at, stay in stays if stay.primary} or {at for at, _ in reborn if not alive}
    return _earliest(archives, {at: later[at] for at in found})


def _is_missing(archives: Iterable[Archive], view: View) -> bool:
    """Whether the archive of a member of this view is not there, which may tell how the view ended."""
    known = {archive.address for archive in archives}
    return any(not known.issuperset(stay.members) for stay in _stays_in(archives, view))


def sources(archives: Sequence[Archive], piece: Piece, *, skips: bool = False) -> list[Source]:
    """Where the messages of a piece stand, in their order.

    Raises Hole for messages that no archive has; with `skips` they are left out.
    """
    stays = [(archive, archive.stays[piece.view]) for archive in archives if piece.view in archive.stays]
    if piece.next is not None and any(stay.next == piece.next for _, stay in stays):
        stays = [(archive, stay) for archive, stay in stays if stay.next == piece.next]
    spans = [span for archive, stay in stays if archive.payloads for span in stay.spans]
    found: list[Source] = []
    at = piece.low
    while at < piece.high:
        best = max((span for span in spans if span.low <= at < span.high), key=_reach, default=None)
        if best is None and skips:
            at = min((span.low for span in spans if span.low > at), default=piece.high)
            continue
        if best is None:
            raise Hole(_missing(piece, at, [archive for archive, _ in stays if not archive.payloads]))
        found.append(Source(piece.view, at, min(best.high, piece.high), best.place))
        at = best.high
    return found


def _name_of(address: str) -> str:
    return address.partition("@")[0]


def _reach(span: Span) -> int:
    return span.high


def _missing(piece: Piece, at: int, bare: Sequence[Archive]) -> str:
    what = f"no archive has the message at position {at:,} of view {_name(piece.view)}"
    if not bare:
        return what
    return f"{what} with its payload: {bare[0].address} was opened without journal_payloads=True"


def _name(view: View) -> str:
    return f"{view[0]} of {view[1]}"
