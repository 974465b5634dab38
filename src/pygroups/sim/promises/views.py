"""Promises about views: self-inclusion, view-monotonic, view-agreement, initial-view, transitional-set,
view-accuracy."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, Viewed


class OwnViews(Check):
    """Each member is in its views, view ids increase, and an id has the same list of members everywhere."""

    promises = ("self-inclusion", "view-monotonic", "view-agreement", "initial-view")

    def __init__(self) -> None:
        self.last: dict[Address, ViewId] = {}
        self.lists: dict[ViewId, tuple[tuple[Address, ...], Address]] = {}  # members, and first installer
        self.installed = 0
        self.passed = 0  # number of accepted multicasts and delivered runs

    def facts(self) -> dict[str, int]:
        views = dict.fromkeys(("self-inclusion", "view-monotonic", "view-agreement"), self.installed)
        return {**views, "initial-view": self.passed}

    def viewed(self, view: Viewed) -> None:
        member, id = view.member, view.id
        self.installed += 1
        if member not in view.members:
            self.broken("self-inclusion", "the member installs a view without itself", member=member, view=id)
        last = self.last.get(member)
        if last is not None and id <= last:
            self.broken(
                "view-monotonic", f"the member installs this view after the higher view {last}", member=member, view=id
            )
        self.last[member] = id
        known, first = self.lists.setdefault(id, (view.members, member))
        if known != view.members:
            lists = f"{_names(known)} and {_names(view.members)}"
            self.broken(
                "view-agreement", f"one view id has two lists of members: {lists}", member=first, other=member, view=id
            )

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is None:
            self.passed += 1
            if member not in self.last:
                self.broken(
                    "initial-view",
                    "the member sent the message before its first view",
                    member=member,
                    message=(member, number),
                )

    def delivered(self, delivery: Delivery) -> None:
        self.passed += 1
        last = self.last.get(delivery.member)
        if last is None or delivery.view != last:
            detail = f"the message is delivered in view {delivery.view}; the installed view is {last}"
            message = (delivery.origin, delivery.first)
            self.broken("initial-view", detail, member=delivery.member, message=message)


class TransitionalSet(Check):
    """Of two members of a view, each names the other as transitional exactly if both came from the same view."""

    promises = ("transitional-set",)

    def __init__(self) -> None:
        self.comers: dict[ViewId, dict[Address, Viewed]] = {}

    def facts(self) -> dict[str, int]:
        return {"transitional-set": sum(map(len, self.comers.values()))}

    def viewed(self, view: Viewed) -> None:
        if view.previous != view.came_from:
            detail = (
                f"the view reports {view.previous} as the previous view of the member; in fact it is {view.came_from}"
            )
            self.broken("transitional-set", detail, member=view.member, view=view.id)
        if view.member not in view.transitional:
            self.broken(
                "transitional-set", "the transitional set lacks the member itself", member=view.member, view=view.id
            )
        comers = self.comers.setdefault(view.id, {})
        for other in comers.values():
            self._compare(view, other)
            self._compare(other, view)
        comers[view.member] = view

    def _compare(self, view: Viewed, other: Viewed) -> None:
        together = view.came_from is not None and view.came_from == other.came_from
        named = other.member in view.transitional
        if together != named:
            detail = (
                "the transitional set has a member that did not move to this view together with this member"
                if named
                else "the transitional set lacks a member that moved to this view together with this member"
            )
            self.broken("transitional-set", detail, member=view.member, other=other.member, view=view.id)


class ViewAccuracy(Check):
    """While no fault makes a running process look dead, a view loses only members that began to leave or ended, and
    no member is left behind.  In a later calm period a view loses no other members either.  quiet.py judges the end."""

    promises = ("view-accuracy",)

    def __init__(self) -> None:
        self.undisturbed = True
        self.gone: dict[Address, None] = {}  # members that a view may omit
        self.last: dict[Address, Viewed] = {}
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"view-accuracy": self.judged}

    def disturbed(self) -> None:
        self.undisturbed = False

    def leaving(self, member: Address) -> None:
        self.gone[member] = None

    def replaced(self, member: Address) -> None:
        self.gone[member] = None

    def asked_out(self, member: Address, other: Address, if_silent: bool) -> None:
        if not if_silent:
            self.gone[other] = None  # exclusions.py judges the reason

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        inside = member in self.last  # otherwise the group had refused it
        if self.undisturbed and reason != "crashed" and inside and member not in self.gone:
            self.broken(
                "view-accuracy",
                f"the member was excluded ({reason}), although it neither left nor looked crashed",
                member=member,
            )
        self.gone[member] = None

    def viewed(self, view: Viewed) -> None:
        before = self.last.get(view.member)
        self.last[view.member] = view
        if not self.undisturbed and not self.around.calm_since(self.around.clock()):
            return
        self.judged += 1
        for member in before.members if before is not None else ():
            if member not in view.members and member not in self.gone:
                detail = "the member is not in the view any more, although it neither left nor looked crashed"
                self.broken("view-accuracy", detail, member=member, other=view.member, view=view.id)

    def settled(self, rests: list[Rest]) -> None:
        if not self.undisturbed:
            return
        ids = {rest.member: self.last[rest.member].id for rest in rests if rest.member in self.last}
        for member, id in ids.items():
            first = next(iter(ids))
            if id != ids[first]:
                detail = f"the member is in another view than {first}, although nothing ever separated the two"
                self.broken("view-accuracy", detail, member=member, other=first, view=id)


def _names(members: tuple[Address, ...]) -> str:
    return "[" + " ".join(map(str, members)) + "]"
