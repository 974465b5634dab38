"""Promises about members that move together: virtual-synchrony, same-view-delivery, agreement."""

from __future__ import annotations

from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, Viewed

Key = tuple[Address, int]
Keys = dict[Key, None]


class Party(NamedTuple):
    """Members that went from one view to the same next view and delivered the same messages."""

    members: list[Address]
    keys: Keys


class Synchrony(Check):
    """Members that move together from one view to the next delivered the same set of messages in it."""

    promises = ("virtual-synchrony", "same-view-delivery", "agreement")

    def __init__(self) -> None:
        self.delivered_in: dict[Address, Keys] = {}  # messages of the present view, by member
        self.last: dict[Address, ViewId] = {}
        self.parties: dict[ViewId, dict[ViewId, list[Party]]] = {}  # by view and next view; one party, if all agree
        self.ways: dict[Address, dict[ViewId, ViewId]] = {}  # by member: each view and its next view
        self.home: dict[Key, ViewId] = {}  # the view in which each message was first delivered
        self.scattered: dict[Key, dict[ViewId, None]] = {}  # messages that were delivered in several views
        self.same: dict[Address, tuple[Address, int, int]] = {}  # results of the last comparison of members of a view
        self.looked_at = True  # nothing has changed since the scattered messages were judged
        self.judged = 0
        self.compared = 0
        self.agreed = 0

    def facts(self) -> dict[str, int]:
        return {
            "virtual-synchrony": self.compared,
            "same-view-delivery": self.judged,
            "agreement": self.agreed,
        }

    def delivered(self, delivery: Delivery) -> None:
        view, key = delivery.view, (delivery.origin, delivery.first)
        if view is None:
            return  # initial-view reports this
        self.judged += 1
        keys = self.delivered_in.get(delivery.member)
        if keys is None:
            keys = self.delivered_in[delivery.member] = {}
        keys[key] = None
        home = self.home.setdefault(key, view)
        if home != view:  # rare: only members of another side deliver it in another view
            self.scattered.setdefault(key, {home: None})[view] = None
            self.looked_at = False

    def viewed(self, view: Viewed) -> None:
        member = view.member
        keys = self.delivered_in.get(member, {})
        self.delivered_in[member] = {}
        self.last[member] = view.id
        self.looked_at, self.same = False, {}
        if view.came_from is None:
            return
        self.ways.setdefault(member, {})[view.came_from] = view.id
        parties = self.parties.setdefault(view.came_from, {}).setdefault(view.id, [])
        if parties:
            self.compared += len(keys) + (len(parties[0].keys) if len(parties[0].members) == 1 else 0)
        for party in parties:
            if party.keys.keys() == keys.keys():
                party.members.append(member)
                return
        parties.append(Party([member], keys))
        if len(parties) > 1:
            first = parties[0]
            self._differ("virtual-synchrony", view.came_from, (first.members[0], first.keys), (member, keys))

    def settled(self, rests: list[Rest]) -> None:
        first: dict[ViewId, Address] = {}
        self.agreed = 0
        for rest in rests:
            view = self.last.get(rest.member)
            if view is None:
                continue
            one = first.setdefault(view, rest.member)
            if one == rest.member:
                continue
            expected, keys = self.delivered_in[one], self.delivered_in[rest.member]
            self.agreed += len(expected) + len(keys)
            sizes = (one, len(expected), len(keys))
            if self.same.get(rest.member) == sizes:
                continue  # the sets of a view only grow
            if expected.keys() != keys.keys():
                self._differ("agreement", view, (one, expected), (rest.member, keys))
            else:
                self.same[rest.member] = sizes
        if not self.looked_at:
            for key, views in self.scattered.items():
                self._check_scattered(key, list(views))
            self.looked_at = True

    def _differ(self, promise: str, view: ViewId, one: tuple[Address, Keys], other: tuple[Address, Keys]) -> None:
        for (has, more), (lacks, less) in ((one, other), (other, one)):
            for key in more:
                if key not in less:
                    detail = "one member delivered the message before the end of the view, the other one did not"
                    self.broken(promise, detail, member=lacks, other=has, message=key, view=view)
                    return

    def _check_scattered(self, key: Key, views: list[ViewId]) -> None:
        """Two members that left either view together must have delivered the message in the same view."""
        deliverers = {view: self._deliverers(key, view) for view in views}
        for view in views:
            for other_view in views:
                pairs = [(one, other) for one in deliverers[view] for other in deliverers[other_view]]
                for one, other in pairs if view != other_view else []:
                    if one != other and self._went_together(one, other, view):
                        detail = (
                            f"two members with the same next view delivered the message in {view} and in {other_view}"
                        )
                        self.broken("same-view-delivery", detail, member=one, other=other, message=key, view=view)
                        return

    def _deliverers(self, key: Key, view: ViewId) -> list[Address]:
        """The members that delivered the message in `view`: those that went on, and those that are still in it or
        ended in it."""
        parties = [party for ways in self.parties.get(view, {}).values() for party in ways]
        gone = [member for party in parties if key in party.keys for member in party.members]
        return gone + [
            member for member, last in self.last.items() if last == view and key in self.delivered_in[member]
        ]

    def _went_together(self, one: Address, other: Address, view: ViewId) -> bool:
        next_view = self.ways.get(one, {}).get(view)
        return next_view is not None and next_view == self.ways.get(other, {}).get(view)
