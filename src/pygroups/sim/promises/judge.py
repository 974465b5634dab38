"""The judge hears what every member saw, as it happens, and has the checks look at it."""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Marks, NewView
from pygroups.core.top import Delivered
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, UnicastDelivery, Viewed
from .messages import Messages
from .order import Order
from .quiet import Quiet
from .stability import Stability
from .states import States
from .synchrony import Synchrony
from .unicasts import Unicasts
from .views import TransitionalSet, ViewAccuracy, Views

PROFILES: Final = ("fifo", "total")


def checks_of(profile: str) -> list[Check]:
    """The checks of what `profile` promises."""
    if profile not in PROFILES:
        raise UsageError(f"the simulator has no checks for profile {profile!r}; there are: {', '.join(PROFILES)}")
    messages = Messages()
    order: list[Check] = [Order()] if profile == "total" else []
    return [
        Views(),
        TransitionalSet(),
        ViewAccuracy(),
        messages,
        *order,
        Stability(messages),
        States(messages),
        Quiet(messages),
        Synchrony(),
        Unicasts(),
    ]


class Judge:
    """Tells each check what it wants to know.  What a check raises goes through to whoever plays the world."""

    def __init__(self, checks: list[Check]) -> None:
        self.promises = [promise for check in checks for promise in check.promises]
        self._views: dict[Address, ViewId] = {}
        self._accepted = [check.accepted for check in checks if type(check).accepted is not Check.accepted]
        self._viewed = [check.viewed for check in checks if type(check).viewed is not Check.viewed]
        self._delivered = [check.delivered for check in checks if type(check).delivered is not Check.delivered]
        self._received = [check.received for check in checks if type(check).received is not Check.received]
        self._undelivered = [check.undelivered for check in checks if type(check).undelivered is not Check.undelivered]
        self._reached = [check.reached for check in checks if type(check).reached is not Check.reached]
        self._leaving = [check.leaving for check in checks if type(check).leaving is not Check.leaving]
        self._disturbed = [check.disturbed for check in checks if type(check).disturbed is not Check.disturbed]
        self._ended = [check.ended for check in checks if type(check).ended is not Check.ended]
        self._state_given = [check.state_given for check in checks if type(check).state_given is not Check.state_given]
        self._state_set = [check.state_set for check in checks if type(check).state_set is not Check.state_set]
        self._settled = [check.settled for check in checks if type(check).settled is not Check.settled]
        self.counters = {"messages": 0, "deliveries": 0, "views": 0}
        self.senders: dict[Address, None] = {}
        self.heard: dict[Address, int] = {}  # per origin, the first number that nobody has delivered

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        """The stack of `member` took a payload and gave it this number."""
        if to is None:
            self.counters["messages"] += 1
            self.senders.setdefault(member)
        for check in self._accepted:
            check(member, to, number, payload)

    def viewed(self, member: Address, event: NewView) -> None:
        """`member` was given a view."""
        self.counters["views"] += 1
        view = Viewed(
            member,
            event.view.id,
            event.view.members,
            self._views.get(member),
            event.previous,
            event.transitional,
            event.digest,
        )
        self._views[member] = view.id
        for check in self._viewed:
            check(view)

    def delivered(self, member: Address, event: Delivered) -> None:
        """`member` was given a run."""
        run = event.run
        assert run.origin is not None
        if event.position < 0:
            unicast = UnicastDelivery(member, run.origin, run.first, run.count, run.body)
            for received in self._received:
                received(unicast)
            return
        self.counters["deliveries"] += run.count
        if run.next > self.heard.get(run.origin, 1):
            self.heard[run.origin] = run.next
        delivery = Delivery(member, event.view, event.position, run.origin, run.first, run.count, run.body)
        for check in self._delivered:
            check(delivery)

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        """`member` was told that its messages to `to` with these numbers were not acknowledged."""
        for check in self._undelivered:
            check(member, to, numbers)

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """`member` was told how far its own multicasts have come."""
        for check in self._reached:
            check(member, delivered, stable)

    def leaving(self, member: Address) -> None:
        """The application at `member` asked to leave."""
        for check in self._leaving:
            check(member)

    def disturbed(self) -> None:
        """Something happens that may make the living look dead."""
        for check in self._disturbed:
            check()

    def stopped(self, member: Address, reason: str, unknown: range) -> None:
        """`member` is out of the group and was told which of its messages it cannot know the fate of."""
        for check in self._ended:
            check(member, reason, unknown)

    def crashed(self, member: Address) -> None:
        """`member`'s process ended without a word."""
        for check in self._ended:
            check(member, "crashed", None)

    def state_given(self, member: Address, view: ViewId, digest: Marks) -> None:
        """`member` took its state, for those who join in `view`."""
        for check in self._state_given:
            check(member, view, digest)

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks) -> None:
        """`member` has the state of the start of `view`."""
        for check in self._state_set:
            check(member, view, provider, digest)

    def settled(self, rests: list[Rest]) -> None:
        """All should be well by now; raises Broken with the first thing that is not."""
        for check in self._settled:
            check(rests)
