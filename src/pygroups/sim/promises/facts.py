"""What the checks are told: each fact stands for one line of a member's journal."""

from __future__ import annotations

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import ViewId


class Viewed(msgspec.Struct, frozen=True):
    """`member` installed the view `id`, having come from `came_from` (as seen here, not as it says)."""

    member: Address
    id: ViewId
    members: tuple[Address, ...]
    came_from: ViewId | None
    previous: ViewId | None  # what it says it came from
    transitional: tuple[Address, ...]
    digest: Marks | None  # per origin, the number of the first message not covered by the state it begins with


class Delivery(msgspec.Struct, frozen=True):
    """`member` delivered the multicasts [first, first + count) of `origin`, in `view`."""

    member: Address
    view: ViewId | None
    position: int
    origin: Address
    first: int
    count: int
    body: bytes


class UnicastDelivery(msgspec.Struct, frozen=True):
    """`member` was given the messages [first, first + count) that `origin` sent to it alone."""

    member: Address
    origin: Address
    first: int
    count: int
    body: bytes


class Rest(msgspec.Struct, frozen=True):
    """How one living member stands when all should have settled."""

    member: Address
    accepted: int  # the number of its next multicast
    unsent: int  # payloads that its application could not send yet
    gauges: dict[str, int]
    blocked: bool
    leaving: bool


class Check:
    """One or a few promises.  A check overrides what it wants to be told, and raises Broken."""

    promises: tuple[str, ...] = ()

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        """`member` accepted a payload from its application: a multicast, or to the member `to`."""

    def viewed(self, view: Viewed) -> None:
        """A view was installed."""

    def delivered(self, delivery: Delivery) -> None:
        """Multicasts were delivered."""

    def received(self, delivery: UnicastDelivery) -> None:
        """Unicasts were delivered."""

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        """`member` was told that these were not acknowledged."""

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """`member` was told that own multicasts below `delivered` are delivered here, below `stable` everywhere."""

    def leaving(self, member: Address) -> None:
        """`member` began to leave."""

    def disturbed(self) -> None:
        """From now on a process that lives may look as if it were dead: it is paused, cut off, or frames are lost."""

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        """`member`'s life is over: it crashed (None), or it stopped and listed own messages of unknown fate."""

    def state_given(self, member: Address, view: ViewId, digest: Marks) -> None:
        """`member` took its state at the start of `view`; it holds what is below `digest`."""

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks) -> None:
        """`member` was given the state of the start of `view`."""

    def settled(self, rests: list[Rest]) -> None:
        """All should be well: these live."""
