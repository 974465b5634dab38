"""The decisions of HINTS as pure functions: the next view, its difference on the wire, and the union of a merge."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pygroups.core.address import Address
from pygroups.core.events import NewView
from pygroups.core.view import AgreedView, Subgroup, ViewId

from .heads import Announce, SideOf

Side = tuple[AgreedView, tuple[Address, ...]]  # an earlier view, and the members that come from it


def leader(view: AgreedView, out: Collection[Address]) -> Address | None:
    """The first member of the view that is not in `out`; None if all are."""
    return next((member for member in view.members if member not in out), None)


def next_view(
    view: AgreedView, id: ViewId, out: Collection[Address], joiners: Mapping[Address, str]
) -> AgreedView | None:
    """The view after `view`: without the members in `out`, and with the joiners at its end; None if it is empty."""
    stay = [rank for rank, member in enumerate(view.members) if member not in out]
    new = [joiner for joiner in joiners if joiner not in view.members]
    members = (*[view.members[rank] for rank in stay], *new)
    contacts = (*[view.contacts[rank] for rank in stay], *[joiners[joiner] for joiner in new])
    since = (*[view.joined(view.members[rank]) for rank in stay], *[id.number] * len(new))
    return AgreedView(id, members, contacts, "", since) if members else None


def difference(old: AgreedView, new: AgreedView, *, primary: bool) -> Announce:
    """The announcement of `new` to the members that have `old`."""
    left = [rank for rank, member in enumerate(old.members) if member not in new.members]
    joined = {m: contact for m, contact in zip(new.members, new.contacts, strict=True) if m not in old.members}
    return Announce(new.id, old.id, left, joined, primary)


def announced(old: AgreedView, head: Announce) -> AgreedView | None:
    """The view that `head` announces to a member that has `old`; None if that is no view."""
    if any(rank >= len(old.members) for rank in head.left):
        return None
    out = {old.members[rank]: None for rank in head.left}
    return next_view(old, head.id, out, head.joined)


def is_primary(before: Sequence[Address], members: Collection[Address]) -> bool:
    """Whether more than half of the members of a primary view go on, or half with the first."""
    stay = [member for member in before if member in members]
    return 2 * len(stay) > len(before) or (2 * len(stay) == len(before) and before[0] in stay)


def went_on(old: AgreedView, new: AgreedView) -> bool:
    """Whether more than half of the members of `old` are in `new`, so that `new` is no other side of a split."""
    return 2 * sum([member in new.members for member in old.members]) > len(old.members)


def union(id: ViewId, sides: Sequence[Side]) -> AgreedView:
    """The view of all members of a merge, in the order of their addresses."""
    found = {member: (view.contact(member), view.joined(member)) for view, here in sides for member in here}
    members = tuple(sorted(found))
    contacts, since = tuple([found[m][0] for m in members]), tuple([found[m][1] for m in members])
    return AgreedView(id, members, contacts, "", since)


def sides_of(view: AgreedView, sides: Sequence[Side]) -> tuple[SideOf, ...]:
    """The sides of a merge on the wire."""
    return tuple([SideOf(old.id, [view.members.index(member) for member in here]) for old, here in sides])


def subgroups(view: AgreedView, sides: Sequence[SideOf]) -> tuple[Subgroup, ...] | None:
    """The sides of the merged `view`; None if they name a member that the view does not have."""
    if any(rank >= len(view.members) for side in sides for rank in side.ranks):
        return None
    return tuple([Subgroup(side.view, tuple([view.members[rank] for rank in side.ranks])) for side in sides])


def change(old: AgreedView | None, new: AgreedView, *, primary: bool, sides: tuple[Subgroup, ...] = ()) -> NewView:
    """The event for a member that comes from `old`.  The members that seem to come along are a hint, too."""
    before = () if old is None else old.members
    mine = next((side.members for side in sides if old is not None and side.view == old.id), before)
    return NewView(
        view=new,
        previous=None if old is None else old.id,
        transitional=tuple([member for member in new.members if member in mine]),
        joined=tuple([member for member in new.members if member not in before]),
        left=tuple([member for member in before if member not in new.members]),
        primary=primary,
        starts=None,
        subgroups=sides,
    )
