"""Regaining: a view that is not primary becomes primary again, in a new view with the same members.

A view has enough electors if a merge or a restart brought them back, or if all other electors have ended and no other
process of the group is found.  MERGE2 searches for such processes, and reports each interval (`Accounted`).
"""

from __future__ import annotations

from typing import Final

from ..decisions import decide
from ..membership import Membership
from .admission import Admission

LOOKS: Final = 2  # reports in a row, after which the other members have found nobody either
PAUSE: Final = 16  # intervals of MERGE2 until the next try, if a member does not agree; twice as many each time
DOUBLINGS: Final = 6


class Regaining:
    """The reports of MERGE2 at the leader of a view that is not primary."""

    def __init__(self, membership: Membership, admission: Admission) -> None:
        self.membership, self.admission = membership, admission
        self.env = membership.env
        self.in_a_row = 0  # reports that no other process is found
        self.pause_until = 0
        self.tries = 0  # in a row

    def installed(self) -> None:
        """A new view."""
        self.in_a_row = 0
        self.tries = 0 if self.membership.primary else self.tries

    def look(self) -> None:
        """MERGE2 reports: ask for a view if the members of this one are enough."""
        membership = self.membership
        accounted = membership.accounted
        self.in_a_row = self.in_a_row + 1 if accounted.alone else 0
        if membership.view is None or membership.primary or membership.leaving or not membership.leads():
            return
        here, ballot, alone = membership.view.members, membership.next_ballot(), self.in_a_row >= LOOKS
        enough = not decide.electors_of_next(ballot, membership.electors, here, (), accounted.ended, alone=alone)
        if enough and membership.binding.ballot is None and self.env.now >= self.pause_until:
            self.env.count("views to become primary")
            self.pause_until = self.env.now + (PAUSE << self.tries) * self.env.config.merge_interval
            self.tries = min(self.tries + 1, DOUBLINGS)
            self.admission.on_view_wanted()
