"""The events that a channel gives to its application, in one ordered stream."""

from __future__ import annotations

from typing import Literal

import msgspec

from pygroups.core import events as core
from pygroups.core import merge_events
from pygroups.core.address import Address
from pygroups.core.suspicion_events import Suspect
from pygroups.core.view import ViewId


class Event(msgspec.Struct, frozen=True):
    """Base of all events of a channel."""


class Message(Event, frozen=True, gc=False):
    """A delivered message.

    `number` counts the messages of `sender` to all members, from 1.  Messages to this member alone have increasing
    numbers of their own.  `position` is the place of the message in the view, from 0, and is the same at every member
    in the profiles `total` and `uniform`.  `position` is None for a message to this member alone.
    """

    sender: Address
    payload: bytes
    number: int
    view: ViewId | None
    position: int | None


class View(Event, frozen=True):
    """The members have agreed on a new list of members.

    `members` are in rank order; the first one is the coordinator.  `transitional` are the members that came with this
    member from its previous view, itself included.  These members have delivered exactly the same messages.  `primary`
    is true if this view has more than half of the members of the last primary view, or half of them with its first
    member; members that left by themselves do not count.  It is also true if all the others of that view are known to
    have ended, and no other process of the group is found.  `primary` is a hint: a member that does not know yet that
    the others went on is still in a primary view.
    """

    id: ViewId
    members: tuple[Address, ...]
    coordinator: Address
    primary: bool
    joined: tuple[Address, ...]
    left: tuple[Address, ...]
    transitional: tuple[Address, ...]

    def __repr__(self) -> str:
        names = {what: " ".join([member.name for member in getattr(self, what)]) for what in ("joined", "left")}
        changes = "".join([f", {what}: {who}" for what, who in names.items() if who])
        return f"<View {self.id}, members: {' '.join([member.name for member in self.members])}{changes}>"


class MergeView(View, frozen=True):
    """Views that a fault separated have become one view.

    `subgroups` are the members by the view from which they came, each in the order of the addresses.  The sides of the
    fault may have delivered different messages.  The events Gap that follow name the messages that this member misses.
    `winner` is the subgroup that `on_merge` chose, () if `on_merge` chose none.  With `reset` this member comes from
    another subgroup: the group goes on with the state of the winner, and the channel has just set this state if it has
    `state=`.
    """

    subgroups: tuple[tuple[Address, ...], ...]
    reset: bool = False
    winner: tuple[Address, ...] = ()


class Gap(Event, frozen=True):
    """The `count` messages of `sender` from number `first` on were delivered by other members and never come here.

    The event follows a MergeView; in the profile `gossip` it comes at any time, without a `subgroup`, when no member
    sends the messages any more.  `subgroup` are the members of the side that is ahead that delivered the messages;
    () if none of these is known to be in this view.  A member that has the messages with its state only, because it
    joined after them, is not named.  `sender` can be this member: then the other side delivered messages of this member
    that its own side did not.

    Behind a MergeView with `reset` the gaps name all messages that the new state does not contain, also those that this
    program has read, and those that an earlier merge took from the side of the new state.
    """

    sender: Address
    first: int
    count: int
    subgroup: tuple[Address, ...]


class Suspected(Event, frozen=True):
    """`member` seems to have crashed.  If `member` does not answer, a view without it follows."""

    member: Address


class Slow(Event, frozen=True):
    """The window has been full for `seconds` with messages that `member` has not read.

    The event comes after 5 seconds, and again each time the duration has doubled.
    """

    member: Address
    seconds: float


class Blocked(Event, frozen=True):
    """Too few members of the view are reached for a majority, for the `reason`.  This member delivers nothing, and the
    messages that this member sends wait.  Unblocked, a view or Left follows.

    The event comes only in a group in which a majority decides each view.
    """

    reason: str


class Unblocked(Event, frozen=True):
    """A majority of the view is reached again.  The event follows Blocked, and a view follows it."""


class StaysApart(Event, frozen=True):
    """`peer` is in another view of this group, and the two views do not become one.

    `reason` is "names" (a process of each has the same name), "links" (two processes do not hear each other) or
    "settings" (the groups were born apart with different settings); `detail` names the two.  The event comes once for
    each `peer`; for "names" and "links" again only after `peer` was in one view with this member.
    """

    peer: Address
    reason: Literal["names", "links", "settings"]
    detail: str


class Undelivered(Event, frozen=True):
    """`to` did not acknowledge these messages, and they will not be sent again.  `to` may have received them."""

    to: Address
    numbers: range


class JournalLost(Event, frozen=True):
    """The journal cannot be written.  The event comes once for each outage; `stats()` counts the missing records.

    The member goes on without a journal, and tries to write again once a second.  With
    `Config(on_journal_lost="leave")` the member leaves its group.
    """

    reason: str


class Left(Event, frozen=True):
    """The last event: this process is not a member any more.  With `rejoin=True` the process joins again after
    "excluded", and a View follows.

    `reason` is "left", "excluded", "name taken" (a newer process of this name is in the group, and this one ended for
    it), "journal lost" or "crashed".  `unknown` are the numbers of this member's messages
    that were accepted and not delivered here.  Other members may have delivered these messages.
    """

    reason: str
    unknown: list[int]


def first_view(me: Address, skipped: list[View], view: View) -> View:
    """The first view for the application, in which the changes of the `skipped` earlier views are included."""
    if not skipped:
        return view
    joined = {member for other in (*skipped, view) for member in other.joined}
    return msgspec.structs.replace(
        view, joined=tuple([member for member in view.members if member in joined]), left=(), transitional=(me,)
    )


def folded(skipped: list[View], view: View) -> View:
    """The one view in place of the `skipped` earlier views and of `view`, for a program whose side lost a merge among
    them: as if the program came from its last view before these straight into `view`."""
    first = (*skipped, view)[0]
    before = [*[member for member in first.members if member not in first.joined], *first.left]
    sides = [other for other in (*skipped, view) if isinstance(other, MergeView)]
    lost = next((side for side in reversed(sides) if side.winner), sides[-1])
    came = [member for member in first.transitional if all(member in other.transitional for other in (*skipped, view))]
    subgroups = [tuple([member for member in side if member in view.members]) for side in lost.subgroups]
    return MergeView(
        view.id,
        view.members,
        view.coordinator,
        view.primary,
        joined=tuple([member for member in view.members if member not in before]),
        left=tuple([member for member in before if member not in view.members]),
        transitional=tuple(came),
        subgroups=tuple([side for side in subgroups if side]),
        reset=True,
        winner=tuple([member for member in lost.winner if member in view.members]),
    )


def gap_of(event: core.Gap) -> Gap:
    """The application's event for a core gap."""
    return Gap(event.origin, event.first, event.count, event.subgroup)


def translated(event: object) -> Event | None:
    """The application's event for a core event; None for a core event that the application does not get."""
    if isinstance(event, core.NewView):
        members = event.view.members
        changes = (event.primary, event.joined, event.left, event.transitional)
        if not event.subgroups:
            return View(event.view.id, members, members[0], *changes)
        subgroups = tuple([tuple(sorted(side.members)) for side in event.subgroups])
        winner = () if event.winner is None else subgroups[event.winner]
        reset = any(member in event.losers for member in event.transitional)
        return MergeView(event.view.id, members, members[0], *changes, subgroups, reset, winner)
    if isinstance(event, core.Gap):
        return gap_of(event)
    if isinstance(event, Suspect):
        return Suspected(event.member)
    if isinstance(event, core.Blocked):
        return Blocked(event.reason)
    if isinstance(event, core.Unblocked):
        return Unblocked()
    if isinstance(event, merge_events.StaysApart):
        return StaysApart(event.peer, event.reason, event.detail)
    if isinstance(event, core.Undelivered):
        return Undelivered(event.to, event.numbers)
    return None
