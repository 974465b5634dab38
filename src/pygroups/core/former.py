"""The end of a former life, as the journal folder of a process shows it.

A process that starts under the name and the folder of a former life holds that folder's lock, and so proves that the
former life has ended.  It can answer for that life, where a majority decides each view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .address import Address
from .view import AgreedView, Ballot, ViewId


class FormerLife(msgspec.Struct):
    """The last life of a folder that took part in a group."""

    address: Address
    ended: tuple[Address, ...] = ()  # all lives of the folder, this one included: they have ended
    view: AgreedView | None = None  # the last one, without contacts
    bound: Ballot | None = None  # by an answer to Collect in that view
    accepted: str = ""  # the proposal that it accepted last in that view, as the `detail` of its record

    def take(self, kind: str, view: ViewId | None, fields: Mapping[str, Any]) -> None:
        """Take the next record of that life."""
        if kind == "view" and view is not None:
            members = tuple(fields["members"])
            self.view = AgreedView(view, members, ("",) * len(members), fields.get("history") or "")
            self.bound, self.accepted = None, ""
        elif kind == "flush" and fields["stage"] in ("collect", "accepted"):
            ballot = Ballot(fields["ballot_number"], fields["ballot_leader"])
            self.bound = ballot if self.bound is None else max(self.bound, ballot)
            if fields["stage"] == "accepted":
                self.accepted = fields.get("detail") or ""
        elif kind == "flush" and fields["stage"] == "installed" and fields.get("detail"):
            members = tuple(fields["members"])
            id = ViewId(fields["next_number"], fields["next_creator"])
            self.view = AgreedView(id, members, ("",) * len(members), fields["detail"])
            self.bound, self.accepted = None, ""
