"""Confirming: a member that was paused for long asks whether its view still exists, before it orders or delivers.

The other members suspect a member that is silent, and may go on without it.  When the process runs again, it still has
its old view: it would order messages, and deliver them, that no other member ever gets.  Therefore it first sends Ready
to all members of its view, and repeats that for those that have not confirmed.  An answer that names this view, and no
ballot, shows that its sender has not left.

Enough answers: of all members, because any of them may have gone on with some of the others.  Where a majority decides,
a majority is enough, because no other view can have been decided without one of its members.  A member that does not
answer is suspected in time, and then the next view ends the doubt.  Note: docs/layers/gms.md.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.events import Hold, Release
from pygroups.core.layer import NEVER
from pygroups.core.tables import Tables
from pygroups.core.view import Ballot

from ..decisions.answer_times import AnswerTimes
from ..heads import Ready, ReadyRsp
from ..membership import Membership, Phase


class Confirming:
    """The doubt of this member about its view, and its question."""

    tables: ClassVar[Tables] = {
        "here": "members",
    }

    def __init__(self, membership: Membership, times: AnswerTimes) -> None:
        self.membership = membership
        self.env = membership.env
        self.times = times
        self.asked: Ballot | None = None  # names the last question; None: there is no doubt
        self.here: dict[Address, None] = {}  # this member, and those that answered this question from this view
        self.ask_at = NEVER  # when the other members are asked again

    def after_pause(self) -> None:
        """The others may have gone on without this member.  Answers to an earlier question do not count any more."""
        membership = self.membership
        self.times.after_pause()
        if membership.phase is not Phase.MEMBER or membership.binding.ballot is not None:
            return  # a bound member never resumes its view anyway
        view, me = membership.current, self.env.me
        if view.members == (me,):
            return
        self.env.count("membership in doubt")
        if self.asked is None:
            membership.above.append(Hold())
        membership.heard_of(membership.next_ballot())  # an earlier Ready may have this number, and its answer wait here
        self.asked, self.here = membership.next_ballot(), {me: None}
        membership.heard_of(self.asked)
        self._ask()

    def go_on(self) -> None:
        """Ask the members again that have not confirmed.  A joiner may have answered before it had the view."""
        membership = self.membership
        if self.asked is None or membership.binding.ballot is not None:
            return
        if self.env.now >= self.ask_at:
            self._ask()
        membership.wake_at(self.ask_at)

    def _ask(self) -> None:
        membership, view = self.membership, self.membership.current
        assert self.asked is not None
        missing = [m for m in view.members if m not in self.here and m not in membership.suspicions]
        for member in missing:
            self.times.ask(member, self.env.now)
            membership.tell(member, Ready(self.asked, view.id))
        self.ask_at = self.env.now + max(self.env.config.ready_timeout, self.times.patience(missing))
        membership.wake_at(self.ask_at)

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        """Go on if enough members are still in this view.  A member that is bound never resumes it."""
        membership = self.membership
        if head.ballot != self.asked or head.bound is not None or membership.binding.ballot is not None:
            return
        view = membership.current
        if head.view == view.id and src in view.members:
            self.here[src] = None
            if membership.quorum.confirms(view, self.here):
                self.ends()
                membership.above.append(Release())

    def ends(self) -> None:
        """The membership is confirmed, or a view was installed."""
        self.asked, self.here = None, {}
