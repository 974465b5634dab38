"""Vouching: an operator confirms that the process of a member has ended for good, where a majority decides.

Such a member is in no further view, and does not count: more than half of the other members decide, or half of them
with the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pygroups.core.address import Address
from pygroups.core.events import VouchedFor

from ..layer import Gms
from ..membership import Phase
from .blocking import Blocking
from .rebirth import Rebirth


class Vouching:
    """The confirmations of operators that this member gets or hears of; `Outgoing` has the members."""

    def __init__(self, gms: Gms, rebirth: Rebirth, blocking: Blocking) -> None:
        self.gms = gms
        self.blocking = blocking
        self.env = gms.env
        self.rebirth = rebirth

    def asked(self, member: Address) -> None:
        """An operator vouches for a member at this member.  A process that this member hears has not ended."""
        gms = self.gms
        if gms.phase is Phase.JOINING and member in self.rebirth.missing():
            self.rebirth.take_vouched([member])
            gms.above.append(VouchedFor(member, "taken" if member in self.rebirth.vouched else "alive"))
        elif gms.phase is not Phase.MEMBER or not gms.knows(member):
            gms.above.append(VouchedFor(member, "unknown"))
        elif member == self.env.me or member not in gms.suspicions.known:
            gms.above.append(VouchedFor(member, "alive"))
        else:
            self.take([member])
            gms.above.append(VouchedFor(member, "taken"))

    def take(self, members: Iterable[Address]) -> None:
        """Take the confirmation of an operator, from the operator or from another member."""
        gms = self.gms
        new = [member for member in members if gms.knows(member) and member not in (self.env.me, *gms.outgoing.vouched)]
        for member in new:
            self.env.count("vouched")
            self.env.record("suspect", peer=member, reason="vouched")
            gms.outgoing.vouch(member)
            gms.suspicions.elsewhere(member)  # also if frames of it arrive
        if new:
            self.blocking.give_up_what_is_lost()
            gms.answering.heard_again(at_once=True)
            gms.leading.change.heard_again(new[0])
