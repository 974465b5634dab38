"""Promises of a layer that holds runs back until all members have them: uniform-agreement, total-order-global, and
same-view-delivery for all members that deliver a message, the crashed and the isolated included.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, Viewed

Key = tuple[Address, int]  # origin and first number: which run
Label = tuple[ViewId, int]  # the view, and the place in its order


class UniformAgreement(Check):
    """What any member delivers in a view, every member delivers there that goes on or that reaches quiet."""

    promises = ("uniform-agreement", "same-view-delivery")

    def __init__(self) -> None:
        self.by_view: dict[ViewId, dict[Key, Address]] = {}  # what was delivered, each with its first deliverer
        self.home: dict[Key, ViewId] = {}
        self.own: dict[Address, dict[Key, None]] = {}  # by member, in its present view
        self.last: dict[Address, ViewId] = {}
        self.gone_on: dict[ViewId, Address] = {}  # the first member with a later view
        self.judged = self.agreed = self.rest = 0

    def facts(self) -> dict[str, int]:
        return {"uniform-agreement": self.agreed + self.rest, "same-view-delivery": self.judged}

    def delivered(self, delivery: Delivery) -> None:
        view, member, key = delivery.view, delivery.member, (delivery.origin, delivery.first)
        if view is None:
            return  # initial-view reports this
        self.judged += 1
        home = self.home.setdefault(key, view)
        if home != view:
            detail = f"a member delivered the message in {home}, and another one in {view}"
            other = self.by_view[home][key]
            self.broken("same-view-delivery", detail, member=member, other=other, message=key, view=view)
        self.own.setdefault(member, {})[key] = None
        known = self.by_view.setdefault(view, {})
        if key not in known:
            known[key] = member
            other_one = self.gone_on.get(view)
            if other_one is not None:
                self._lacks(other_one, member, key, view)

    def viewed(self, view: Viewed) -> None:
        own, self.own[view.member] = self.own.get(view.member, {}), {}
        self.last[view.member] = view.id
        old = view.came_from
        if old is not None:
            self.agreed += self._compare(view.member, own, old)
            self.gone_on.setdefault(old, view.member)

    def settled(self, rests: list[Rest]) -> None:
        self.rest = 0
        for one in rests:
            view = self.last.get(one.member)
            if view is not None and not one.blocked:
                self.rest += self._compare(one.member, self.own.get(one.member, {}), view)

    def _compare(self, member: Address, own: dict[Key, None], view: ViewId) -> int:
        known = self.by_view.get(view, {})
        if len(known) != len(own):  # `own` is a part of `known`
            lacking = next(key for key in known if key not in own)
            self._lacks(member, known[lacking], lacking, view)
        return len(known)

    def _lacks(self, member: Address, other: Address, key: Key, view: ViewId) -> None:
        detail = "one member delivered the message, and another one of the same view goes on without it"
        self.broken("uniform-agreement", detail, member=member, other=other, message=key, view=view)


class GlobalOrder(Check):
    """One order for ever: a message has the same view and position at all members, these rise at each member, and no
    two messages share them."""

    promises = ("total-order-global",)

    def __init__(self) -> None:
        self.labels: dict[Key, Label] = {}
        self.messages: dict[Label, Key] = {}
        self.last: dict[Address, Label] = {}
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"total-order-global": self.judged}

    def delivered(self, delivery: Delivery) -> None:
        if delivery.view is None:
            return
        self.judged += 1
        member, key, label = delivery.member, (delivery.origin, delivery.first), (delivery.view, delivery.position)
        for known, what in (
            (self.labels.setdefault(key, label) == label, "the message has another place at another member"),
            (self.messages.setdefault(label, key) == key, "another message has this place at another member"),
            (self.last.get(member, label) <= label, "the place is before that of the message delivered last"),
        ):
            if not known:
                self.broken("total-order-global", what, member=member, message=key, view=delivery.view)
        self.last[member] = label
