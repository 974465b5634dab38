"""The part of GMS that works with MERGE2: it reports whether this member may take part in a merge, and begins
merges."""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.merge_events import MergeFailed, MergeWanted, Occupied
from pygroups.core.tables import Tables

from ..membership import Membership, Phase
from .leading import Leading


class Merging:
    """Reports to MERGE2 whether this member may take part in a merge, and begins merges.  merge_attempt.py has the
    merge itself."""

    tables: ClassVar[Tables] = {
        "told": "fixed",
    }

    def __init__(self, membership: Membership, leading: Leading) -> None:
        self.membership = membership
        self.leading = leading
        self.told: tuple[bool, int] | None = None  # the last report

    def report(self) -> None:
        """Report to MERGE2 whether this member may take part in a merge, when that changes."""
        state = (self.is_busy(), self.membership.highest)
        if state != self.told:
            self.told = state
            self.membership.below.append(Occupied(*state))

    def is_busy(self) -> bool:
        """Whether this member takes part in a view change, or is no member."""
        handover = self.leading.handover
        welcomes = handover is not None and not handover.welcomed
        under_way = self.membership.binding.ballot is not None or self.leading.change.attempt is not None
        return self.membership.phase is not Phase.MEMBER or under_way or welcomes

    def begin(self, wanted: MergeWanted) -> None:
        """Begin a merge that MERGE2 has prepared, unless another view change has begun or another member leads.

        A member that would lead here and takes part on another side has answered that it is in another view.  Such a
        member leaves this view first."""
        membership = self.membership
        still = membership.current.id == wanted.sides[0][0].id
        others = [member for _, members in wanted.sides[1:] for member in members]
        leader = membership.leader()
        if still and leader in others:
            membership.suspicions.elsewhere(leader)
            membership.below.append(MergeFailed(wanted.merge))
        elif not still or leader != membership.env.me or self.is_busy():
            membership.below.append(MergeFailed(wanted.merge))
        else:
            self.leading.change.begin_merge(wanted)
