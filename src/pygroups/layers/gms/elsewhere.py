"""Those who are somewhere else: what a member says to a process that speaks of a view that is not its own.

It may lack the installation of this view (which is given), have been left behind (Excluded), be in a view that this
member is on its way to (Stuck: give me the installation), or be in a view of its own (Elsewhere).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import View, ViewId

from . import decide
from .heads import Elsewhere, Excluded, Install, Stuck

if TYPE_CHECKING:
    from .machine import Gms

PAST_MAX = 256  # earlier views that are remembered, to explain to stale members what happened
FORMER_MAX = 4_096  # former members of which the last view is remembered, however long ago it was


class Whereabouts:
    """What this member knows of earlier views, and the installation of its own; `gms` is the member."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.kept: Install | None = None  # the installation of this view, until all are known to have it
        self.past: dict[ViewId, None] = {}  # views this member was in
        self.last_view_of: dict[Address, ViewId] = {}  # the last view that a former member shared with this one

    def entered(self, old: View | None, view: View) -> None:
        """`view` follows `old` here."""
        if old is None:
            return
        self.past[old.id] = None
        if len(self.past) > PAST_MAX:
            del self.past[next(iter(self.past))]
        for member in old.members:
            if member not in view.members:
                self.last_view_of.pop(member, None)
                self.last_view_of[member] = old.id
        while len(self.last_view_of) > FORMER_MAX:
            del self.last_view_of[next(iter(self.last_view_of))]

    def digest_is(self, marks: Marks) -> None:
        """Where each origin starts for a joiner is known only when the view is installed here."""
        if self.kept is not None:
            self.kept = Install(self.kept.proposal, marks)

    def give_installation(self, member: Address, theirs: ViewId | None) -> bool:
        """Give the installation of this view to a member of it that lacks it; False if that is not what it lacks."""
        kept, gms = self.kept, self.gms
        if kept is None or gms.view is None or member not in gms.view.members:
            return False
        if theirs is None and member not in kept.proposal.transitional:
            gms.tell(member, kept)
            return True
        if theirs == kept.proposal.old and member in kept.proposal.transitional:
            gms.tell(member, Install(kept.proposal, None))
            return True
        return False

    def was_here(self, theirs: ViewId | None) -> bool:
        """Whether this member has left the view `theirs` behind.  So has each member of this view; None: it has joined
        since."""
        return theirs is None or theirs in self.past

    def explain(self, member: Address, theirs: ViewId, *, asked: bool) -> None:
        """`member` speaks of a view that is not this member's: say what happened, if this member knows."""
        gms, view = self.gms, self.gms.view
        if view is None or theirs == view.id or self.give_installation(member, theirs):
            return
        if member not in view.members and self._was_left_behind(member, theirs):
            gms.tell(member, Excluded(theirs))
        elif gms.part.has_accepted(theirs):
            gms.tell(member, Stuck(theirs, view.id))  # this member is on its way there: it lacks the installation
        elif theirs not in self.past and (asked or decide.cannot_follow(view, theirs)):
            gms.tell(member, Elsewhere(view.id, theirs))

    def _was_left_behind(self, member: Address, theirs: ViewId) -> bool:
        """Whether the others went on from `theirs` without `member`: however many views ago."""
        return theirs in self.past or self.last_view_of.get(member) == theirs
