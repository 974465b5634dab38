"""Joining: a process finds members and asks them to admit it, or founds a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from pygroups.core import driver_events
from pygroups.core.address import Address
from pygroups.core.layer import Layer
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.tables import Tables

from ..gms.heads import Join

ASK_MAX: Final = 3  # members that a joiner asks at once
DOUBLINGS: Final = 2  # of the pause between two searches


class Search:
    """The search of a joiner for members."""

    __slots__ = ("apart", "env", "found", "has_asked", "layer", "searches")

    tables: ClassVar[Tables] = {
        "apart": "members_max",
        "found": "members_max",
    }

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.env = layer.env
        self.searches = 0
        self.found: dict[Address, None] = {}  # by this search
        self.has_asked = False  # some member, in any search
        self.apart: dict[Address, str] = {}  # members with other settings, and the difference: they are not asked

    def again(self) -> None:
        """Ask discovery for the members of the group, and again after `join_retry`, later after twice and four times
        as long."""
        self.found = {}
        self.layer.below.append(driver_events.Find())
        self.layer.wake_at(self.env.now + (self.env.config.join_retry << min(self.searches, DOUBLINGS)))
        self.searches += 1

    def on_found(self, event: driver_events.Found) -> None:
        """Ask some of the members that were found."""
        self.layer.below.append(driver_events.Contacts(event.members))
        new = sorted(event.members)
        self.env.rng.shuffle(new)
        for member in new[: MEMBERS_MAX - len(self.found)]:
            self.found[member] = None
        self._ask(new)

    def _ask(self, members: Iterable[Address]) -> None:
        for member in [member for member in members if member not in self.apart][:ASK_MAX]:
            self.has_asked = True
            self.layer.tell(member, Join(self.env.me, self.env.contact, self.env.fingerprint))

    def stays_apart(self, peer: Address, detail: str) -> None:
        """`peer` has other settings, or another version of the wire.  Another member may have those of this process."""
        self.apart[peer] = detail
        if len(self.apart) > MEMBERS_MAX:
            del self.apart[next(iter(self.apart))]
        self._ask([member for member in self.found if member not in self.apart][:1])

    def refused_by_all(self) -> str | None:
        """The reason, if the last search found only members that refuse; None otherwise."""
        if not self.apart or any(member not in self.apart for member in self.found):
            return None
        return next(iter(self.apart.values()))
