"""What members that go together promise: virtual-synchrony, same-view-delivery, agreement."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .broken import Broken
from .facts import Check, Delivery, Rest, Viewed

Key = tuple[Address, int]


class Synchrony(Check):
    """Members that go together from one view to the next delivered the same set in it."""

    promises = ("virtual-synchrony", "same-view-delivery", "agreement")

    def __init__(self) -> None:
        self.delivered_in: dict[Address, dict[Key, None]] = {}  # in its present view, by member
        self.last: dict[Address, ViewId] = {}
        self.steps: dict[tuple[ViewId, ViewId], tuple[Address, dict[Key, None]]] = {}  # with the first who took it
        self.ways: dict[Address, dict[ViewId, ViewId]] = {}  # by member: from a view to the next
        self.home: dict[Key, tuple[ViewId, Address]] = {}  # where a message was delivered first, and by whom
        self.scattered: dict[Key, dict[ViewId, list[Address]]] = {}  # those delivered in more than one view

    def delivered(self, delivery: Delivery) -> None:
        view, member, key = delivery.view, delivery.member, (delivery.origin, delivery.first)
        assert view is not None
        self.delivered_in.setdefault(member, {})[key] = None
        home, first = self.home.setdefault(key, (view, member))
        if home != view:  # rare: only somebody who goes another way delivers it in another view
            self.scattered.setdefault(key, {home: [first]}).setdefault(view, []).append(member)

    def viewed(self, view: Viewed) -> None:
        member = view.member
        delivered = self.delivered_in.pop(member, {})
        self.delivered_in[member] = {}
        self.last[member] = view.id
        if view.came_from is None:
            return
        step = (view.came_from, view.id)
        self.ways.setdefault(member, {})[view.came_from] = view.id
        if step not in self.steps:
            self.steps[step] = (member, delivered)
            return
        first, expected = self.steps[step]
        self._same("virtual-synchrony", view.came_from, (first, expected), (member, delivered))

    def settled(self, rests: list[Rest]) -> None:
        first: dict[ViewId, Address] = {}
        for rest in rests:
            view = self.last.get(rest.member)
            if view is None:
                continue
            one = first.setdefault(view, rest.member)
            sets = [(member, self.delivered_in.get(member, {})) for member in (one, rest.member)]
            self._same("agreement", view, *sets)
        for key, views in self.scattered.items():
            self._check_scattered(key, views)

    def _same(
        self, promise: str, view: ViewId, one: tuple[Address, dict[Key, None]], other: tuple[Address, dict[Key, None]]
    ) -> None:
        if one[1].keys() == other[1].keys():
            return
        for (has, more), (lacks, less) in ((one, other), (other, one)):
            for key in more:
                if key not in less:
                    detail = "one delivered it before the end of the view, the other did not"
                    raise Broken(promise, detail, member=lacks, other=has, message=key, view=view)

    def _check_scattered(self, key: Key, views: dict[ViewId, list[Address]]) -> None:
        """Two that went together out of either view must have delivered the message in the same one."""
        for view, members in views.items():
            for other_view, others in views.items():
                if view == other_view:
                    continue
                for one in members:
                    for other in others:
                        if self._went_together(one, other, view):
                            detail = f"delivered in {view} and in {other_view} by members that went together"
                            raise Broken("same-view-delivery", detail, member=one, other=other, message=key, view=view)

    def _went_together(self, one: Address, other: Address, view: ViewId) -> bool:
        next_view = self.ways.get(one, {}).get(view)
        return next_view is not None and next_view == self.ways.get(other, {}).get(view)
