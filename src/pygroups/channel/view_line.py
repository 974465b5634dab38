"""The log line of a view: the members, the changes with their reasons, and the losses of this member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pygroups.core.address import Address
from pygroups.core.events import Gap, NewView

from .channel_events import View

SILENT = "it was silent for too long"
ENDED = "its process has ended"
SHOWN: Final = 5  # absent members that a line names at most


class ViewLine(NamedTuple):
    """The text, and whether the view brings a loss: of members that did not leave by themselves, of messages, of the
    state of this member, or of `View.primary`."""

    text: str
    is_loss: bool


def why_suspected(proven: bool) -> str:
    """The reason of a suspicion."""
    return ENDED if proven else SILENT


def view_line(event: NewView, before: View | None, suspected: Mapping[Address, bool]) -> ViewLine:
    """The log line of the view `event`.  `before`: the last view of this member.  `suspected`: the suspected members of
    that view, and whether the end of their processes is proven."""
    members = event.view.members
    parts = [f"view {event.view.id.number}: {_names(members)}"]
    if before is not None and event.joined and not event.subgroups:
        parts.append(f"joined: {_names(event.joined)}")
    gone = [member for member in event.left if member not in event.expelled]
    if left := [member for member in gone if member not in suspected]:
        parts.append(f"left: {_names(left)}")
    losses = [f"lost: {member} ({why_suspected(suspected[member])})" for member in gone if member in suspected]
    if event.subgroups:
        sides = [f"[{_names(sorted(side.members))}]" for side in event.subgroups]
        parts.append(f"a merge of {' and '.join(sides)}")
    losses += filter(None, [_state(event), _gaps(event.gaps), _primary(event, before)])
    if before is not None and event.primary and not before.primary:
        parts.append("this side is primary again")
    return ViewLine("; ".join([*parts, *losses]), bool(losses))


def _state(event: NewView) -> str:
    """The state of this member is replaced by that of the side that wins."""
    if event.winner is None or not any(member in event.losers for member in event.transitional):
        return ""
    return f"this member takes the state of [{_names(sorted(event.subgroups[event.winner].members))}]"


def _gaps(gaps: tuple[Gap, ...]) -> str:
    if not gaps:
        return ""
    count, origins = sum([gap.count for gap in gaps]), sorted({gap.origin for gap in gaps})
    return f"only other members delivered {count} messages of {_names(origins)} (see the events Gap)"


def _primary(event: NewView, before: View | None) -> str:
    if event.primary or (before is not None and not before.primary):
        return ""
    names = _names([*event.absent][:SHOWN]) + (" and others" if len(event.absent) > SHOWN else "")
    lacks = f": it lacks {names} of the last primary view, which may go on without it" if names else ""
    return f"this side is not primary{'' if before is None else ' any more'}{lacks}"


def _names(members: Iterable[Address]) -> str:
    return ", ".join([str(member) for member in members])
