"""The end of a former incarnation, as the journal folder of a process shows it.

A process that starts under the name and the folder of a former incarnation holds the lock of that folder, and so proves
that the former incarnation has ended.  Where a majority decides each view, the process can answer for the former
incarnation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .address import Address
from .view import AgreedView, Ballot, ViewId


class FormerLife(msgspec.Struct):
    """The last incarnation of a folder that took part in a group."""

    address: Address
    ended: tuple[Address, ...] = ()  # all incarnations of the folder, this one included: they have ended
    view: AgreedView | None = None  # the last one, without contacts
    bound: Ballot | None = None  # by an answer to Collect in that view
    made: str = ""  # the proposal that became that view, if this incarnation accepted it, as the `detail` of its record
    accepted: str = ""  # the proposal that it accepted last in that view, in the same form
    next: ViewId | None = None  # the view in that proposal

    def take(self, kind: str, view: ViewId | None, fields: Mapping[str, Any]) -> None:
        """Take the next record of the former incarnation."""
        if kind == "view" and view is not None:
            members = tuple(fields["members"])
            self._enter(AgreedView(view, members, ("",) * len(members), fields.get("history") or ""))
        elif kind == "flush" and fields["stage"] in ("collect", "accepted"):
            ballot = Ballot(fields["ballot_number"], fields["ballot_leader"])
            self.bound = ballot if self.bound is None else max(self.bound, ballot)
            if fields["stage"] == "accepted":
                self.accepted = fields.get("detail") or ""
                self.next = ViewId(fields["next_number"], fields["next_creator"])
        elif kind == "flush" and fields["stage"] == "installed" and fields.get("detail"):
            members = tuple(fields["members"])
            id = ViewId(fields["next_number"], fields["next_creator"])
            self._enter(AgreedView(id, members, ("",) * len(members), fields["detail"]))

    def _enter(self, view: AgreedView) -> None:
        self.made = self.accepted if self.next == view.id else ""
        self.view, self.bound, self.accepted, self.next = view, None, "", None
