"""Promise about primary views: one-primary."""

from __future__ import annotations

from typing import Any

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Viewed


class OnePrimary(Check):
    """At any time at most one primary view is whole: all of its members run, have it installed, and have accepted no
    later view.  A member that does not know yet that the others went on is in a view that is not whole.

    Views of groups that were founded apart are not judged, also after these groups have merged.
    """

    promises = ("one-primary",)

    def __init__(self) -> None:
        self.last: dict[Address, Viewed] = {}  # of the members that have not ended
        self.accepted_views: dict[Address, ViewId] = {}  # the highest view that each member accepted
        self.births: dict[ViewId, frozenset[ViewId]] = {}  # per view, the first views of its groups
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"one-primary": self.judged}

    def accepts(self, member: Address, fields: dict[str, Any]) -> None:
        if fields["stage"] == "accepted":
            self.merge_accepted(member, ViewId(0, member), ViewId(fields["next_number"], fields["next_creator"]))

    def merge_accepted(self, member: Address, view: ViewId, merged: ViewId) -> None:
        self.accepted_views[member] = max(merged, self.accepted_views.get(member, merged))

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self.last.pop(member, None)

    def viewed(self, view: Viewed) -> None:
        self.last[view.member] = view
        self._note_birth(view)
        if not (view.primary and self._is_whole(view)):
            return
        self.judged += 1
        for other in self.last.values():
            if other.primary and other.id != view.id and self._are_of_one_group(view, other) and self._is_whole(other):
                detail = (
                    f"the view {other.id} of {_names(other)} is primary at the same time, and all its members have it"
                )
                self.broken("one-primary", detail, member=view.member, other=other.member, view=view.id)

    def _note_birth(self, view: Viewed) -> None:
        came_from = [side.view for side in view.subgroups] or ([view.came_from] if view.came_from else [])
        births = [self.births[source] for source in came_from if source in self.births]
        if not came_from and view.digest is None:
            births = [frozenset([view.id])]
        if births:
            self.births[view.id] = frozenset().union(*births, self.births.get(view.id, ()))

    def _are_of_one_group(self, one: Viewed, other: Viewed) -> bool:
        births = self.births.get(one.id, frozenset())
        return len(births) == 1 and births == self.births.get(other.id)

    def _is_whole(self, view: Viewed) -> bool:
        return all(
            member in self.last
            and self.last[member].id == view.id
            and self.accepted_views.get(member, view.id) <= view.id
            for member in view.members
        )


def _names(view: Viewed) -> str:
    return " ".join(member.name for member in view.members)
