"""Exclusion by policy of a living member: it keeps the window of another member full, or a newer process has its name.

The member with the full window sends `Expel` to all members, also to the slow one.  The leader makes a view without
the slow member, which takes part in the view change as a leaver does: the others lose none of its messages.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Expel as Wish
from pygroups.core.limits import TEXT_MAX

from ..heads import Expel
from ..membership import Membership, Phase


class Expelling:
    """The requests of this member to exclude others, and the requests of other members."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env

    def wants(self, wish: Wish) -> None:
        """FLOW_CONTROL here asks for the exclusion of a member."""
        membership = self.membership
        if membership.phase is not Phase.MEMBER or wish.member not in membership.current.members:
            return
        reason = "unanswering" if wish.if_silent else "slow"
        self.env.record("suspect", peer=wish.member, reason=reason, detail=wish.reason)
        self.env.count("exclusion asked for")
        head = Expel(membership.current.id, wish.member, wish.reason[:TEXT_MAX], wish.if_silent)
        membership.tell_others(membership.current.members, head)
        self.on_expel(self.env.me, head)

    def gives_way(self, newer: Address) -> None:
        """`newer` has the name of this member, and joined later.  This member asks for its own exclusion, so that the
        others lose none of its messages.  MERGE2 repeats this while both live."""
        membership, me = self.membership, self.env.me
        if membership.phase is not Phase.MEMBER:
            return
        membership.replaced_by(newer)
        reason = f"was replaced by {newer}, which joined later under the same name"
        self.env.record("suspect", peer=me, reason="replaced", detail=reason)
        self.env.count("gave way to a newer process")
        if membership.current.members == (me,):
            membership.left("excluded", "", None, reason)
            return
        head = Expel(membership.current.id, me, reason[:TEXT_MAX], False)
        membership.tell_others(membership.current.members, head)
        self.on_expel(me, head)

    def on_expel(self, src: Address, head: Expel) -> None:
        """A member asks for an exclusion.  The leader acts; the others keep the reason, because one of them may lead
        next."""
        membership = self.membership
        if membership.view is None or not membership.knows(src):
            self.env.drop("exclusion by a stranger")
        elif head.view == membership.view.id and membership.knows(head.member):
            self._keep(head)
        elif membership.binding.is_on_the_way_to(head.view):
            membership.keep_for_later(src, head)
        else:
            self.env.drop("exclusion in another view")

    def _keep(self, head: Expel) -> None:
        if not head.if_silent or head.member != self.env.me:
            self.membership.outgoing.expel(head.member, head.reason, if_silent=head.if_silent)
