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
    """What any member delivers in a view, every member delivers there that goes on or that reaches quiet.

    A history that begins after the word of an operator, or without the folders of former lives, may lack what the lost
    processes delivered, and has what they dropped."""

    promises = ("uniform-agreement", "same-view-delivery")

    def __init__(self) -> None:
        self.by_view: dict[ViewId, dict[Key, Address]] = {}  # what was delivered, each with its first deliverer
        self.home: dict[tuple[str, Key], ViewId] = {}  # by history: another one may send the message again
        self.own: dict[Address, dict[Key, None]] = {}  # by member, in its present view
        self.last: dict[Address, ViewId] = {}
        self.histories: dict[ViewId, str] = {}
        self.gone_on: dict[ViewId, Address] = {}  # the first member that went on in the same history
        self.branched: dict[Address, None] = {}  # members that began another history
        self.late: dict[Address, tuple[Address, Key, ViewId]] = {}  # what was delivered after others had gone on
        self.elsewhere: list[tuple[Address, Address, Key, ViewId]] = []  # deliveries of one message in two views
        self.any_vouched = False
        self.over: dict[Address, None] = {}
        self.judged = self.agreed = self.rest = 0

    def facts(self) -> dict[str, int]:
        return {"uniform-agreement": self.agreed + self.rest, "same-view-delivery": self.judged}

    def delivered(self, delivery: Delivery) -> None:
        view, member, key = delivery.view, delivery.member, (delivery.origin, delivery.first)
        if view is None:
            return  # initial-view reports this
        self.judged += 1
        home = self.home.setdefault((self.histories.get(view, ""), key), view)
        if home != view:
            self.elsewhere.append((member, self.by_view[home][key], key, view))
        self.own.setdefault(member, {})[key] = None
        known = self.by_view.setdefault(view, {})
        if key not in known:
            known[key] = member
            if view in self.gone_on:
                self.late.setdefault(member, (self.gone_on[view], key, view))

    def viewed(self, view: Viewed) -> None:
        member, old = view.member, view.came_from
        own, self.own[member] = self.own.get(member, {}), {}
        self.last[member] = view.id
        self.histories[view.id] = view.history
        late = self.late.pop(member, None)
        if old is None:
            return
        if view.history != self.histories[old]:
            self.branched[member] = None
            return
        if late is not None:
            self._lacks(late[0], member, *late[1:])
        self.agreed += self._compare(member, own, old)
        self.gone_on.setdefault(old, member)

    def vouched(self, member: Address) -> None:
        self.any_vouched = True

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self.over[member] = None
        late = self.late.pop(member, None)
        if late is not None and not self.branches(member):
            self._lacks(late[0], member, *late[1:])

    def branches(self, member: Address) -> bool:
        """Whether `member` began another history, or has ended and may have been about to."""
        return member in self.branched or (self.any_vouched and member in self.over)

    def settled(self, rests: list[Rest]) -> None:
        self.rest = 0
        for member, other, key, view in self.elsewhere:
            if not self.branches(member) and not self.branches(other):
                detail = f"another member delivered the message in {self.home[self.histories[view], key]}"
                self.broken("same-view-delivery", detail, member=member, other=other, message=key, view=view)
        for one in rests:
            late = self.late.pop(one.member, None)
            if late is not None:
                self._lacks(late[0], one.member, *late[1:])
            last = self.last.get(one.member)
            if last is not None and not one.blocked:
                self.rest += self._compare(one.member, self.own.get(one.member, {}), last)

    def _compare(self, member: Address, own: dict[Key, None], view: ViewId) -> int:
        known = self.by_view.get(view, {})
        if len(known) != len(own):  # `own` is a part of `known`
            lacking = [key for key, first in known.items() if key not in own and first not in self.branched]
            if lacking:
                self._lacks(member, known[lacking[0]], lacking[0], view)
        return len(known)

    def _lacks(self, member: Address, other: Address, key: Key, view: ViewId) -> None:
        detail = "one member delivered the message, and another one of the same view goes on without it"
        self.broken("uniform-agreement", detail, member=member, other=other, message=key, view=view)


class GlobalOrder(Check):
    """One order for ever: in a history a message has the same view and position at all members, these rise at each
    member, and no two messages share them."""

    promises = ("total-order-global",)

    def __init__(self, agreement: UniformAgreement) -> None:
        self.agreement = agreement  # knows who began another history
        self.labels: dict[tuple[str, Key], tuple[Label, Address]] = {}
        self.messages: dict[Label, Key] = {}
        self.last: dict[Address, Label] = {}
        self.elsewhere: list[tuple[Address, Address, Key, ViewId]] = []  # deliveries of one message in two places
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"total-order-global": self.judged}

    def delivered(self, delivery: Delivery) -> None:
        if delivery.view is None:
            return
        self.judged += 1
        history = self.agreement.histories.get(delivery.view, "")
        member, key, label = delivery.member, (delivery.origin, delivery.first), (delivery.view, delivery.position)
        known, first = self.labels.setdefault((history, key), (label, member))
        if known != label:
            self.elsewhere.append((member, first, key, delivery.view))
        for right, what in (
            (self.messages.setdefault(label, key) == key, "another message has this place at another member"),
            (self.last.get(member, label) <= label, "the place is before that of the message delivered last"),
        ):
            if not right:
                self.broken("total-order-global", what, member=member, message=key, view=delivery.view)
        self.last[member] = label

    def settled(self, rests: list[Rest]) -> None:
        for member, other, key, view in self.elsewhere:
            if not self.agreement.branches(member) and not self.agreement.branches(other):
                detail = "the message has another place at another member"
                self.broken("total-order-global", detail, member=member, other=other, message=key, view=view)
