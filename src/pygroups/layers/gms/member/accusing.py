"""Accusations: a member sends its suspicions to the members that may lead, and keeps the accusations of the others.

No member is left out because of an accusation: see verification.py.  A leader that most members do not hear accuses
itself, and so gives way to the next in rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX, Config
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView

from ..decisions.suspicion import Suspicion
from ..heads import Accuse
from ..membership import Membership, Phase


def hearers(view: AgreedView, suspects: Mapping[Address, Suspicion], me: Address, config: Config) -> Iterable[Address]:
    """The other members of `view` that hear of the suspicions of `me`.

    In a small view these are all.  In a large view, those that may lead: the first members in the view's order, and the
    first that are not suspected.  If all members sent them to all others, a crash would cost a message for each pair
    of members.  A leader that gives way sends them to all.
    """
    others = [member for member in view.members if member != me]
    if len(view.members) <= config.heartbeat_all or me in suspects:
        return others
    first = 2 * config.heartbeat_neighbors
    return dict.fromkeys([*others[:first], *[member for member in others if member not in suspects][:first]])


class Accusing:
    """The suspicions that this member sends, and the suspicions that it receives."""

    tables: ClassVar[Tables] = {
        "accused": "members",
        "accused[]": "members",
    }

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env
        self.accused: dict[Address, dict[Address, Suspicion]] = {}  # per member, the suspicions that it was sent last
        self.accused_at = -self.env.config.batch  # when suspicions were last sent

    def installed(self) -> None:
        """A new view, in which no suspicion has been sent yet."""
        self.accused, self.accused_at = {}, -self.env.config.batch

    # -- telling

    def tell(self) -> None:
        """Send the suspicions of this member to each member of `hearers`, and to each member that got other suspicions
        before.  A member that already has exactly these suspicions gets no message.

        The first change is sent at once.  Later changes are gathered for `batch`, because half of a large group may
        become silent within some milliseconds.
        """
        membership = self.membership
        if membership.phase is not Phase.MEMBER:
            return
        view = membership.current
        own = membership.suspicions.own(view.members)
        hear = hearers(view, own, self.env.me, self.env.config)
        news = [member for member in (*hear, *self.accused) if self.accused.get(member, {}) != own]
        if not news:
            return
        if self.env.now < self.accused_at + self.env.config.batch:
            membership.wake_at(self.accused_at + self.env.config.batch)
            return
        self.accused_at = self.env.now
        for member in dict.fromkeys(news):
            self.accused[member] = own
            membership.tell(member, Accuse(view.id, own))

    def give_way_if_unheard(self) -> None:
        """Most members leave Ready unanswered.  If most members also accuse this member, this member gives way.

        The next member in rank may hear this member well, and would never know that the next member has to lead.
        """
        membership, me = self.membership, self.env.me
        leads = membership.leads()  # a member that does not lead may only ask those before it
        if leads and membership.suspicions.is_unheard(me, membership.current.members):
            self.env.count("unheard leader gives way")
            membership.suspicions.gives_way(me)
            self.tell()

    def lead_again_if_heard(self) -> None:
        """Withdraw this member's accusation of itself when most members hear this member again."""
        membership, me = self.membership, self.env.me
        if me in membership.suspicions and not membership.suspicions.is_unheard(me, membership.current.members):
            membership.suspicions.heard(me)
            self.tell()

    # -- hearing

    def on_accuse(self, src: Address, head: Accuse) -> dict[Address, Suspicion]:
        """Keep the accusations of `src`; returns the members that `src` suspects newly, or newly with a proof."""
        membership = self.membership
        if membership.view is None:
            self._before_the_first_view(src, head)
        elif not membership.knows(src):
            self.env.drop("suspicion of a stranger")
        elif head.view == membership.view.id:
            accused = {m: how for m, how in head.suspects.items() if m in membership.view.members}
            return membership.suspicions.accuse(src, accused)
        elif membership.binding.is_on_the_way_to(head.view):
            membership.keep_for_later(src, head)
        else:
            self.env.drop("suspicion in another view")
        return {}

    def _before_the_first_view(self, src: Address, head: Accuse) -> None:
        """Keep an accusation for a joiner's first view.  Others have that view earlier, and send a suspicion once."""
        later = self.membership.later
        if (src, Accuse) in later or len(later) < MEMBERS_MAX:
            self.membership.keep_for_later(src, head)
        else:
            self.env.drop("too many suspicions before the first view")
