"""Which messages come next, and which archive has them: pure functions over archives.

The stream is what a member would deliver that never fails.  It goes from view to view with members that go together,
and so each message comes once: virtual synchrony lets all of them deliver the same set in the view that they leave.  At
a split it goes with one side, and the messages of the other side never come, as at a member of that side.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    """The view in which a new stream begins: the earliest one, of two with one number that of more members."""
    found = {view: stay for archive in archives for view, stay in archive.stays.items()}
    return min(found, key=lambda view: (view[0], -len(found[view].members), view[1]), default=None)


def ahead(archives: Sequence[Archive], view: View, position: int, *, skips: bool = False) -> Iterator[Piece]:
    """The pieces behind a place that are stable, in their order.

    Raises Hole where the archives go on behind views that none of them has; with `skips` the stream goes on there.
    """
    while True:
        stays = _stays_in(archives, view)
        if following := _following(archives, stays):
            high = max(stay.end for stay in stays if stay.next == following)
            yield Piece(view, position, max(position, high), following)
        else:
            stable = max((stay.stable for stay in stays), default=0)
            later = _later(archives, view)
            if stable > position or later is None:
                if stable > position:
                    yield Piece(view, position, stable, None)
                if later is None:
                    return
            if not skips:
                raise Hole(f"no archive tells how view {_name(view)} ended, and view {_name(later)} came later")
            yield Piece(view, max(position, stable), max(position, stable), later)
            following = later
        view, position = following, 0


def _stays_in(archives: Iterable[Archive], view: View) -> list[Stay]:
    return [archive.stays[view] for archive in archives if view in archive.stays]


def _following(archives: Sequence[Archive], stays: Iterable[Stay]) -> View | None:
    """The view that follows, of the sides of a split the primary one, then the one to which most members came."""
    nexts = {stay.next for stay in stays if stay.next is not None}
    known = {view: stay for archive in archives for view, stay in archive.stays.items() if view in nexts}
    return max(known, key=lambda view: (known[view].primary, known[view].came, -view[0], view[1]), default=None)


def _later(archives: Sequence[Archive], view: View) -> View | None:
    """The earliest later view, if no archive can tell any more how this one ended.

    The archive of a member that has stopped, or whose name has a newer process in a later view, tells nothing more.
    """
    later = {at: stay for archive in archives for at, stay in archive.stays.items() if at[0] > view[0]}
    if not later:
        return None
    names = {member.partition("@")[0]: member for stay in later.values() for member in stay.members}
    waiting = [archive for archive in archives if view in archive.stays and not archive.over]
    if any(names.get(archive.address.partition("@")[0], archive.address) == archive.address for archive in waiting):
        return None
    return first_view([Archive("", "", stays=later)])


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


def _reach(span: Span) -> int:
    return span.high


def _missing(piece: Piece, at: int, bare: Sequence[Archive]) -> str:
    what = f"no archive has the message at position {at:,} of view {_name(piece.view)}"
    if not bare:
        return what
    return f"{what} with its payload: {bare[0].address} was opened without journal_payloads=True"


def _name(view: View) -> str:
    return f"{view[0]} of {view[1]}"
