"""What views promise: self-inclusion, view-monotonic, view-agreement, initial-view, transitional-set."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .broken import Broken
from .facts import Check, Delivery, Viewed


class Views(Check):
    """Each member is in its views, their ids rise, and an id means one list everywhere."""

    promises = ("self-inclusion", "view-monotonic", "view-agreement", "initial-view")

    def __init__(self) -> None:
        self.last: dict[Address, ViewId] = {}
        self.lists: dict[ViewId, tuple[tuple[Address, ...], Address]] = {}  # and who installed it first

    def viewed(self, view: Viewed) -> None:
        member, id = view.member, view.id
        if member not in view.members:
            raise Broken("self-inclusion", "a member installs a view that it is not in", member=member, view=id)
        last = self.last.get(member)
        if last is not None and id <= last:
            raise Broken("view-monotonic", f"a view with a lower id comes after {last}", member=member, view=id)
        self.last[member] = id
        known, first = self.lists.setdefault(id, (view.members, member))
        if known != view.members:
            lists = f"{_names(known)} and {_names(view.members)}"
            raise Broken("view-agreement", f"one id, two lists: {lists}", member=first, other=member, view=id)

    def delivered(self, delivery: Delivery) -> None:
        last = self.last.get(delivery.member)
        if last is None or delivery.view != last:
            detail = f"delivered in view {delivery.view}, installed is {last}"
            message = (delivery.origin, delivery.first)
            raise Broken("initial-view", detail, member=delivery.member, message=message)


class TransitionalSet(Check):
    """Of two members of a view, each names the other as coming with it exactly if both came from the same view."""

    promises = ("transitional-set",)

    def __init__(self) -> None:
        self.comers: dict[ViewId, dict[Address, Viewed]] = {}

    def viewed(self, view: Viewed) -> None:
        if view.previous != view.came_from:
            detail = f"it says that it came from {view.previous}, and came from {view.came_from}"
            raise Broken("transitional-set", detail, member=view.member, view=view.id)
        if view.member not in view.transitional:
            raise Broken("transitional-set", "a member does not name itself", member=view.member, view=view.id)
        comers = self.comers.setdefault(view.id, {})
        for other in comers.values():
            self._compare(view, other)
            self._compare(other, view)
        comers[view.member] = view

    def _compare(self, view: Viewed, other: Viewed) -> None:
        together = view.came_from is not None and view.came_from == other.came_from
        named = other.member in view.transitional
        if together != named:
            detail = "names one as coming with it that did not" if named else "does not name one that came with it"
            raise Broken("transitional-set", detail, member=view.member, other=other.member, view=view.id)


def _names(members: tuple[Address, ...]) -> str:
    return "[" + " ".join(map(str, members)) + "]"
