"""What a channel tells its application, in one ordered stream of events."""

from __future__ import annotations

import msgspec

from pygroups.core import events as core
from pygroups.core.address import Address
from pygroups.core.view import ViewId


class Happening(msgspec.Struct, frozen=True):
    """Base of all that a channel yields."""


class Message(Happening, frozen=True, gc=False):
    """A message was delivered.

    `number` counts what `sender` sent to everyone in its life, from 1, or rises with what it sent to this member alone.
    `position` is the message's place in the view, from 0, the same at every member in profile `total`; None if it was
    sent to this member alone.
    """

    sender: Address
    payload: bytes
    number: int
    view: ViewId | None
    position: int | None


class View(Happening, frozen=True):
    """The members agreed on who they are now.

    `members` stand in rank order, the first one coordinates.  `transitional` are those who came with this member from
    its last view, itself included: they have seen exactly the same messages.  `primary` is true if this view has more
    than half of the members of the last primary view.  It is a hint: two sides of a split can both have it for a while.
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


class Suspected(Happening, frozen=True):
    """`member` seems to be gone; unless it answers, a view without it follows."""

    member: Address


class Slow(Happening, frozen=True):
    """`member` has read none of this member's messages for `seconds`, and the window is full of them.

    Told after 5 seconds, and again each time that it has lasted twice as long.
    """

    member: Address
    seconds: float


class Undelivered(Happening, frozen=True):
    """These messages to `to` were not acknowledged, and nobody will send them again; it may have had them."""

    to: Address
    numbers: range


class JournalLost(Happening, frozen=True):
    """The journal cannot be written.  The member goes on without; `stats()` counts what is missing."""

    reason: str


class Left(Happening, frozen=True):
    """The last event: this member is in the group no more.

    `reason` is "left" or "excluded"; `unknown` are the numbers of own messages that were accepted and not delivered
    here: the others may have delivered them or not.
    """

    reason: str
    unknown: list[int]


def first_view(me: Address, skipped: list[View], view: View) -> View:
    """The first view that the application is given, after some that it was not given."""
    if not skipped:
        return view
    joined = {member for other in (*skipped, view) for member in other.joined}
    return msgspec.structs.replace(
        view, joined=tuple([member for member in view.members if member in joined]), left=(), transitional=(me,)
    )


def translated(event: object) -> Happening | None:
    """A core event as the application sees it; None for what it does not see."""
    if isinstance(event, core.NewView):
        members = event.view.members
        return View(event.view.id, members, members[0], event.primary, event.joined, event.left, event.transitional)
    if isinstance(event, core.Suspect):
        return Suspected(event.member)
    if isinstance(event, core.Undelivered):
        return Undelivered(event.to, event.numbers)
    return None
