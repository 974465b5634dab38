"""Electors: the members of which a view needs most to be primary.

A primary view elects by its own members.  Each view that is not primary carries the electors of the last primary view,
and a later view is primary again if it has most of them (0132).  A member may have accepted a primary view and not know
whether any member installed it.  Such a proposal counts too: the next primary view needs most of its members.

All electors may end.  Then the members of the views that were not primary since have to be there, or to have ended.
Members that join later never saw those that have ended, so the views carry them too.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView, ViewId

ELECTORS_MAX: Final = 16  # proposals of unknown outcome are few: more than one needs leaders that vanish in a row

Kind = Literal["formed", "proposed", "followed", "ended"]


class Electorate(msgspec.Struct, frozen=True, array_like=True):
    """The members of a primary view, without those that left later.

    `formed`: a member installed the view.  `proposed`: a member accepted it, and perhaps no member installed it.
    In place of the members of one view: `followed`, those of all views since that were not primary, and `ended`, all of
    these that have ended for certain.
    """

    view: AgreedView
    kind: Kind


Electors = Annotated[tuple[Electorate, ...], Meta(max_length=ELECTORS_MAX)]


def latest(known: Iterable[Electorate]) -> tuple[Electorate, ...]:
    """The newest electorate that was formed, all newer proposals, and those of several views.  The older ones are over:
    the newest one had most of their members."""
    by_id: dict[ViewId, Electorate] = {}
    united: dict[Kind, AgreedView] = {}
    for one in known:
        if one.kind in ("followed", "ended"):
            united[one.kind] = _union(one.view, united.get(one.kind, one.view))
        elif (both := _common(one, by_id.get(one.view.id, one))) is not None:
            by_id[one.view.id] = both
    newest = max((id for id, one in by_id.items() if one.kind == "formed"), default=None)
    counting = [by_id[id] for id in sorted(by_id) if newest is None or id >= newest]
    counting += [Electorate(view, kind) for kind, view in sorted(united.items())]
    return (*counting[:1], *counting[1:][-(ELECTORS_MAX - 1) :])


def _union(one: AgreedView, other: AgreedView) -> AgreedView:
    contacts = {member: of.contact(member) for of in (one, other) for member in of.members}
    members = tuple(sorted(contacts))[:MEMBERS_MAX]
    return AgreedView(max(one.id, other.id), members, tuple([contacts[member] for member in members]))


def _common(one: Electorate, other: Electorate) -> Electorate | None:
    """Two versions of one electorate: each may lack members that left."""
    left = [member for member in one.view.members if member not in other.view.members]
    view = one.view.without(left)
    kind: Kind = "formed" if "formed" in (one.kind, other.kind) else "proposed"
    return None if view is None else Electorate(view, kind)


def without(electors: Sequence[Electorate], left: Container[object]) -> tuple[Electorate, ...]:
    """The electors after members left: such a member tells what it accepted, and takes part in no other view."""
    found = [(one, one.view.without(left)) for one in electors]
    return tuple([Electorate(view, one.kind) for one, view in found if view is not None])


def proposed(electors: Sequence[Electorate], current: ViewId, view: AgreedView) -> tuple[Electorate, ...]:
    """The electors of a member of `current` that accepts the primary `view`.  A leader that proposes again in the same
    view has given its earlier proposal up."""
    leader = view.id.leader
    given_up = [one for one in electors if one.kind == "proposed" and one.view.id.leader == leader]
    kept = [one for one in electors if one not in given_up or one.view.id < current]
    return latest((*kept, Electorate(view, "proposed")))


def installed(own: Sequence[Electorate], view: AgreedView, electors: Sequence[Electorate]) -> tuple[Electorate, ...]:
    """The electors of a member that installs `view`, which carries `electors`; without any it is primary.  A later
    proposal that this member accepted may have been decided by other members."""
    later = [one for one in own if one.kind == "proposed" and one.view.id > view.id]
    return latest((*(electors or (Electorate(view, "formed"),)), *later))


def absent(electors: Sequence[Electorate], view: AgreedView) -> dict[Address, str]:
    """The electors that are not in `view`, and where each listened."""
    over = ended_of(electors)
    found = [(one, member) for one in electors for member in one.view.members if member not in (*view.members, *over)]
    return {member: one.view.contact(member) for one, member in found[:MEMBERS_MAX]}


def ended_of(electors: Iterable[Electorate]) -> tuple[Address, ...]:
    """Those that have ended for certain."""
    return tuple([member for one in electors if one.kind == "ended" for member in one.view.members])


def with_ended(electors: Sequence[Electorate], ended: Container[Address]) -> tuple[Electorate, ...]:
    """The electors, when these processes have ended for certain."""
    counting = [one.view.without([m for m in one.view.members if m not in ended]) for one in electors]
    return latest((*electors, *[Electorate(view, "ended") for view in counting if view is not None]))


TABLES: Final[Tables] = {
    "": ELECTORS_MAX,
    "[].view.contacts": "members_max",
    "[].view.members": "members_max",
    "[].view.since": "members_max",
}
"""The rows of electors, under the path of whatever holds them."""
