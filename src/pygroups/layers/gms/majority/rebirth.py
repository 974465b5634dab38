"""Rebirth: a group whose members have all ended begins anew, where a majority decides each view.

A process whose folder shows a former incarnation founds no group, and takes part in no birth, before every member of
the last view has ended for certain: another process answers for it, or an operator vouches.  Until then the former
group might live.  So the processes tell each other what their folders show, and for which members an operator vouches
(Formerly). Both stay true, so a process without a view forgets neither.  The new group has a new history.

A process without a view may itself be named in the last view: all members that installed it ended before they sent the
view on.  If no other member is missing, the process gives up its place in the former group, and enters no view of the
former history any more.  For the others that is as good as its end.  If the other missing members live without a view,
too, the first of them by address does so first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.detection import detection
from pygroups.core.driver_events import Contacts, Found
from pygroups.core.events import Blocked, Unblocked
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Loose
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, ViewId

from ..decisions.proposal import difference_in, proposal_of
from ..heads import Difference, Members
from ..member.joining import DOUBLINGS
from ..membership import Membership, Phase

NAMED_MAX: Final = 2 * MEMBERS_MAX * (MEMBERS_MAX + 1)  # missing members: of the last and next views of all heard


class Formerly(msgspec.Struct, Loose, array_like=True, tag=67):
    """To a process that looks for the group: what the folder of the sender shows."""

    ended: Members  # all incarnations of the folder; the sender, if it gave up its place in the former group; and the
    # members of `view` and of the accepted one that other processes, which may have ended since, have told of
    view: (
        AgreedView | None
    )  # the last view of the last incarnation, without contacts, or a later one of its history that
    # another process has told of; None: that incarnation had no view
    accepted: Difference | None  # the next one, if an incarnation of that view accepted it
    asks: bool  # the receiver is to send the same to the sender
    vouched: Members = ()  # members of former views: an operator vouches that they have ended for good


HEADS: Final = (Formerly,)


def missing(shown: Collection[Formerly], vouched: Iterable[Address]) -> list[Address]:
    """The members of the last view of each history that may still live, by address.  A next view that was accepted may
    have been decided: its members count, too."""
    views = [(one.view, one.accepted) for one in shown if one.view is not None]
    last = {view.history: view.id for view, _ in sorted(views, key=lambda each: each[0].id)}
    needed: dict[Address, None] = {}
    for view, accepted in views:
        if view.id == last[view.history]:
            next_one = None if accepted is None else proposal_of(accepted, None)
            needed.update(dict.fromkeys((*view.members, *(() if next_one is None else next_one.view.members))))
    ended = {member: None for one in shown for member in one.ended}
    return sorted(member for member in needed if member not in ended and member not in vouched)


def newest(own: Formerly, heard: Iterable[Formerly]) -> Formerly:
    """`own` with the last view of its history that is known, and the proposal that was accepted in that view under the
    highest ballot: no other one may have been decided."""
    view = own.view
    if view is None:
        return own
    known = [own, *(one for one in heard if one.view is not None and one.view.history == view.history)]
    last = max(known, key=_progress)
    return msgspec.structs.replace(own, view=last.view, accepted=last.accepted)


def _progress(one: Formerly) -> tuple[ViewId, tuple[object, ...]]:
    assert one.view is not None
    return one.view.id, () if one.accepted is None else one.accepted.ballot


class Rebirth:
    """The former incarnations that the processes without a view know of."""

    tables: ClassVar[Tables] = {
        "alive": "members_max",
        "found_members": "found",
        "given_up": "members_max",
        "heard": "members_max",
        "heard[].ended": "members_max",
        "heard[].vouched": "members_max",
        **under("heard[].accepted", Difference.tables),
        "told": NAMED_MAX,
        "vouched": "members_max",
    }

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env
        self.heard: dict[Address, Formerly] = {}  # by the process that sent it
        self.vouched: dict[Address, None] = {}
        self.alive: dict[Address, int] = {}  # members of a former view, and when they were heard or found last
        self.given_up: dict[str, None] = {}  # the histories in which this process has no place any more
        self.found_members: dict[Address, None] = {}  # the members that discovery named last
        self.told: list[Address] | None = None  # the missing members of the last `Blocked`

    def missing(self) -> list[Address]:
        """The members of the former group that may still live."""
        return missing(self._shown(), self.vouched)

    def is_given_up(self, view: AgreedView) -> bool:
        """Whether this process gave up its place in the history of `view`."""
        return view.history in self.given_up

    def _give_up(self) -> None:
        """Give up this process's place in the former group, if it is the first of the missing members, and the others
        live and have told that they have no view."""
        me, missing = self.env.me, self.missing()
        if missing[:1] != [me] or not all(self._seeks(one) for one in missing[1:]):
            return
        self.env.count("places given up in a former group")
        for one in self.heard.values():
            next_one = None if one.accepted is None else proposal_of(one.accepted, None)
            for view in (one.view, None if next_one is None else next_one.view):
                if view is not None and me in view.members and len(self.given_up) < MEMBERS_MAX:
                    self.given_up[view.history] = None

    def _seeks(self, member: Address) -> bool:
        """Whether `member` lives and looks for the group, as far as known."""
        return member in self.heard and member not in self.found_members and self.is_alive(member)

    def lives_on(self, member: Address) -> bool:
        """Whether `member` may live, as far as the folders show."""
        return not any(member in one.ended for one in self._shown())

    def have_ended(self, members: Iterable[Address]) -> bool:
        """Whether all of these members have ended for certain, and no member of a former group may still live."""
        shown = self._shown()
        ended = {member: None for one in shown for member in one.ended}
        return all(one in ended or one in self.vouched for one in members) and not missing(shown, self.vouched)

    def _shown(self) -> list[Formerly]:
        """The contents of the folders of the processes that were heard, and of this one."""
        own = self._own(asks=False)
        return [*(() if own is None else (own,)), *self.heard.values()]

    def _own(self, *, asks: bool) -> Formerly | None:
        life, vouched = self.env.former, tuple(self.vouched)
        gone = (self.env.me,) if self.given_up else ()
        if life is None:
            named = self.env.me in missing(self.heard.values(), ())  # the others wait for it: it has no view
            return Formerly(gone, None, None, asks, vouched) if vouched or gone or named else None
        shown = Formerly((*life.ended, *gone), life.view, difference_in(life.accepted), asks, vouched)
        shown = newest(shown, self.heard.values())
        told = {member: None for one in self.heard.values() for member in one.ended}
        also = [member for member in missing([shown], ()) if member in told]
        return msgspec.structs.replace(shown, ended=(*shown.ended, *also)[:MEMBERS_MAX])

    def hears(self, members: Iterable[Address]) -> None:
        """These processes are heard, or discovery has found them.  Members of the former group among them are alive."""
        missing = self.missing()
        for member in members:
            if member in missing and (member in self.alive or len(self.alive) < MEMBERS_MAX):
                self.alive[member] = self.env.now

    def is_alive(self, member: Address) -> bool:
        """Whether `member` was heard lately, or found by one of the last searches."""
        heard_at, config = self.alive.get(member), self.env.config
        lately = detection(config, len(self.alive)) + (config.join_retry << DOUBLINGS)
        return heard_at is not None and self.env.now <= heard_at + lately

    def take_vouched(self, members: Iterable[Address]) -> None:
        """Take members for which an operator vouches that they have ended for good.  Members that are alive are not
        taken."""
        missing = self.missing()
        for member in members:
            if member in missing and not self.is_alive(member) and len(self.vouched) < MEMBERS_MAX:
                self.vouched[member] = None

    def found(self, event: Found) -> Found:
        """Ask the other processes without a view.  Returns the answer of discovery, without a permission to found the
        group as long as a member of the former group may live."""
        self.found_members = dict.fromkeys(event.members)
        self._tell(event.seekers, asks=True)
        self.hears(event.members)
        if event.members or not self.missing():
            return event
        return Found(event.members, False, event.seekers)

    def _tell(self, contacts: dict[Address, str], *, asks: bool) -> None:
        own = self._own(asks=asks)
        if own is not None and contacts:
            self.membership.below.append(Contacts(contacts))
            for one in sorted(contacts):
                self.membership.tell(one, own)

    def on_formerly(self, src: Address, head: Formerly) -> None:
        """Another process reports the contents of its folder."""
        if self.membership.phase is Phase.JOINING:
            self.heard.pop(src, None)
            self.heard[src] = head
            if len(self.heard) > MEMBERS_MAX:
                del self.heard[next(iter(self.heard))]
            self.take_vouched(head.vouched)
            self._give_up()
            own = self._own(asks=False)
            if head.asks and own is not None:
                self.membership.tell(src, own)

    def tell_application(self, *, alone: bool) -> None:
        """Inform the application which processes are missing, if no member of a group is there.  `Unblocked` comes with
        the view."""
        missing = self.missing() if alone else []
        if missing and missing != self.told:
            names = ", ".join(map(str, missing))
            reason = f"the group begins anew when all members of its last view are back; missing: {names}"
            self.membership.above.append(Blocked(reason))
            self.told = missing

    def ends(self) -> None:
        """This process has a view."""
        if self.told:
            self.membership.above.append(Unblocked())
        self.told, self.heard, self.alive, self.found_members = None, {}, {}, {}
