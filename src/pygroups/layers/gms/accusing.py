"""Accusations: whom this member suspects is told to the whole view, and what others tell is kept for whoever asks.

Nobody is left out because of what is told here: see verification.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX

from .heads import Accuse
from .joining import Phase

if TYPE_CHECKING:
    from .machine import Gms


class Accusing:
    """What suspicions this member tells, and hears of; `gms` is the member."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.accused: dict[Address, bool] = {}  # whom this member has told the others that it suspects
        self.accused_at = -gms.env.config.batch  # when it told them last

    def installed(self) -> None:
        """Nobody in the new view has been told anything."""
        self.accused, self.accused_at = {}, -self.env.config.batch

    def tell(self) -> None:
        """Tell the view whom this member suspects, if that is news: the first change at once, what follows gathered,
        for half of a large group may fall silent within some milliseconds."""
        gms = self.gms
        if gms.phase is not Phase.MEMBER:
            return
        assert gms.view is not None
        own = {member: proven for member, proven in gms.suspicions.own().items() if member in gms.view.members}
        if own == self.accused:
            return
        if self.env.now < self.accused_at + self.env.config.batch:
            gms.wake_at(self.accused_at + self.env.config.batch)
            return
        self.accused, self.accused_at = own, self.env.now
        for member in gms.view.members:
            if member != self.env.me:
                gms.tell(member, Accuse(gms.view.id, own))

    def on_accuse(self, src: Address, head: Accuse) -> None:
        gms = self.gms
        if gms.view is None:
            self._before_the_first_view(src, head)
        elif not gms.knows(src):
            self.env.drop("suspicion of a stranger")
        elif head.view == gms.view.id:
            accused = {m: proven for m, proven in head.suspects.items() if m in gms.view.members}
            for member, proven in gms.suspicions.accuse(src, accused).items():
                gms.leader.verification.on_accused(member, proven=proven)
        elif gms.part.has_accepted(head.view):
            gms.later[src, Accuse] = head
        else:
            self.env.drop("suspicion in another view")

    def _before_the_first_view(self, src: Address, head: Accuse) -> None:
        """Joiners get the view last: others may be in it, and suspect somebody, for a while.  They say it once."""
        later = self.gms.later
        if (src, Accuse) in later or len(later) < MEMBERS_MAX:
            later[src, Accuse] = head
        else:
            self.env.drop("too many suspicions before the first view")
