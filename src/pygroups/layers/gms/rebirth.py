"""Rebirth: a group whose members have all ended begins anew, where a majority decides each view.

A process whose folder shows a former life founds no group, and takes part in no birth, before every member of the last
view has ended for certain: another process answers for it, or an operator vouches.  Until then the former group might
live.  So the processes tell each other what their folders show (Formerly).  The new group has a new history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts, Found
from pygroups.core.events import Blocked, Unblocked
from pygroups.core.run import Loose
from pygroups.core.view import AgreedView

from .heads import Difference, Members
from .membership import Membership, Phase
from .proposal import difference_in, proposal_of


class Formerly(msgspec.Struct, Loose, array_like=True, tag=67):
    """To a process that looks for the group: what the folder of the sender shows."""

    ended: Members  # all lives of the folder
    view: AgreedView | None  # the last one of the last life, without contacts; None: it had none
    accepted: Difference | None  # the next one, if that life accepted it
    asks: bool  # the receiver is to tell the sender the same


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


class Rebirth:
    """The former lives that the processes without a view know of."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env
        self.heard: dict[Address, tuple[Formerly, int]] = {}  # by the process that said it, and when
        self.vouched: dict[Address, None] = {}
        self.told: list[Address] | None = None  # the missing ones that the application was told about

    def missing(self) -> list[Address]:
        """The members of the former group that may still live."""
        return missing(self._shown(), self.vouched)

    def have_ended(self, members: Iterable[Address]) -> bool:
        """Whether all of these have ended for certain, and no member of a former group may still live."""
        shown = self._shown()
        ended = {member: None for one in shown for member in one.ended}
        return all(one in ended or one in self.vouched for one in members) and not missing(shown, self.vouched)

    def _shown(self) -> list[Formerly]:
        """The contents of the folders of the processes that were heard lately, and of this one."""
        oldest = self.env.now - 4 * self.env.config.join_retry
        self.heard = {one: said for one, said in self.heard.items() if said[1] >= oldest}
        own = self._own(asks=False)
        shown = [said for said, _ in self.heard.values()]
        return shown if own is None else [own, *shown]

    def _own(self, *, asks: bool) -> Formerly | None:
        life = self.env.former
        if life is None:
            return None
        return Formerly(life.ended, life.view, difference_in(life.accepted), asks)

    def found(self, event: Found) -> Found:
        """Ask the other processes without a view.  Returns the answer of discovery, without a permission to found the
        group as long as a member of the former group may live."""
        self._tell(event.seekers, asks=True)
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
        """Another process tells what its folder shows."""
        if self.membership.phase is Phase.JOINING:
            self.heard[src] = (head, self.env.now)
            own = self._own(asks=False)
            if head.asks and own is not None:
                self.membership.tell(src, own)

    def tell_application(self, *, alone: bool) -> None:
        """Say which processes are missing, if no member of a group is there."""
        missing = self.missing() if alone else []
        if missing != (self.told or []):
            names = ", ".join(map(str, missing))
            reason = f"the group begins anew when all members of its last view are back; missing: {names}"
            self.membership.above.append(Blocked(reason) if missing else Unblocked())
        self.told = missing

    def ends(self) -> None:
        """This process has a view."""
        if self.told:
            self.membership.above.append(Unblocked())
        self.told, self.heard = None, {}
