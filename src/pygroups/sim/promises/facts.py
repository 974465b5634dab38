"""What the checks are told: each fact stands for one line of a member's journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Marks, Positions
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.view import ViewId

from .broken import Broken, Witness

Link = tuple[str, str]  # from one host to another
Written = tuple[str, object, Mapping[str, Any]]  # a record: its kind, the view it happened in, the kind's fields


class Viewed(msgspec.Struct, frozen=True):
    """`member` installed the view `id`, having come from `came_from` (as seen here, not as it says)."""

    member: Address
    id: ViewId
    members: tuple[Address, ...]
    came_from: ViewId | None
    previous: ViewId | None  # what it says it came from
    transitional: tuple[Address, ...]
    digest: Marks | None  # per origin, the number of the first message not covered by the state it begins with
    at: int = 0  # when, in microseconds of the world's time
    joined: tuple[Address, ...] = ()
    left: tuple[Address, ...] = ()
    primary: bool = True


class Delivery(msgspec.Struct, frozen=True):
    """`member` delivered the multicasts [first, first + count) of `origin`, in `view`."""

    member: Address
    view: ViewId | None
    position: int
    origin: Address
    first: int
    count: int
    body: bytes
    stream: Address | None = None  # the numbered stream of the view that they came in, and their number there
    seq: int = 0


class UnicastDelivery(msgspec.Struct, frozen=True):
    """`member` was given the messages [first, first + count) that `origin` sent to `to` alone."""

    member: Address
    origin: Address
    to: Address
    first: int
    count: int
    body: bytes


class OnConnection(msgspec.Struct, frozen=True):
    """`member` sent, or was given, a run of unicasts on a connection of `origin`."""

    member: Address
    sent: bool
    origin: Address
    to: Address
    first: int
    count: int
    connection: int


class Rest(msgspec.Struct, frozen=True):
    """How one living member stands when all should have settled."""

    member: Address
    accepted: int  # the number of its next multicast
    unsent: int  # payloads that its application could not send yet
    gauges: dict[str, int]
    blocked: bool
    leaving: bool


class Stand(msgspec.Struct, frozen=True):
    """How one process stands that has not ended."""

    member: Address
    runs: bool  # it is not paused
    reads: bool  # its application takes what it is given
    view: ViewId | None
    members: tuple[Address, ...]  # of that view
    blocked: bool
    leaving: bool
    accepted: int  # the number of its next multicast
    unsent: int  # payloads that its application could not send yet
    stateless: bool = False  # it waits for the state that it begins with
    born: int = 0  # when its process began


class Situation(msgspec.Struct, frozen=True):
    """Everything there is at an instant of a stretch in which no link and no process changes."""

    now: int
    since: int  # when the stretch began
    bound: int
    cut: frozenset[Link]  # the links on which nothing passes
    stands: tuple[Stand, ...]
    changes: int = 0  # how often a link or a process has changed so far
    distant: bool = False  # some links are much longer than usual


class Around(msgspec.Struct):
    """What checks may ask about the world."""

    clock: Callable[[], int] = lambda: 0  # microseconds
    restless: Callable[[], bool] = lambda: False  # whether anything disturbs a process or the network now
    config: Config = Config()  # of all members
    journals: bool = False  # whether checks are told of all that is written into journals
    trip: int = 2 * MILLISECOND  # from one application's turn to another's, at most
    lost_at: int | None = None  # when a frame was lost last that alone is no disturbance
    calm_from: int = 0  # what disturbed before this is over, and what it set going too

    def calm_since(self, then: int) -> bool:
        """Whether nothing has disturbed anybody since `then`, and what did before was over by then."""
        return self.calm_from <= then and not self.restless()


class Check:
    """One or a few promises.  A check overrides what it wants to be told, and calls `broken`."""

    promises: tuple[str, ...] = ()
    around: Around = Around()  # the judge's, which the world fills in
    found: list[Witness] | None = None  # where `broken` puts what it finds, when nothing shall be raised

    def broken(
        self,
        promise: str,
        detail: str,
        *,
        member: Address | None = None,
        other: Address | None = None,
        message: tuple[Address, int] | None = None,
        view: ViewId | None = None,
    ) -> None:
        """`promise` does not hold.  Raises Broken, unless somebody wants to hear of everything that is broken: then the
        check goes on, as if its promise had held until here."""
        broken = Broken(promise, detail, member=member, other=other, message=message, view=view)
        if self.found is None:
            raise broken
        self.found.append(broken.witness)

    def facts(self) -> dict[str, int]:
        """How many facts were judged, by promise: a check that judged none has said nothing."""
        return dict.fromkeys(self.promises, 0)

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        """`member` accepted a payload from its application: a multicast, or to the member `to`."""

    def viewed(self, view: Viewed) -> None:
        """A view was installed."""

    def delivered(self, delivery: Delivery) -> None:
        """Multicasts were delivered."""

    def received(self, delivery: UnicastDelivery) -> None:
        """Unicasts were delivered."""

    def on_connection(self, passed: OnConnection) -> None:
        """Unicasts left or came on a connection."""

    def written(self, member: Address, records: Sequence[Written]) -> None:
        """`member` has written this into its journal: no crash loses it any more."""

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        """`member` was told that these were not acknowledged."""

    def purged(self, member: Address, view: ViewId, below: Positions) -> None:
        """Votes let `member` forget what has lower numbers in the streams of `view`."""

    def consumed(self, member: Address, marks: Marks) -> None:
        """The application of `member` has read all multicasts with lower numbers, per origin."""

    def held_up(self, member: Address) -> None:
        """The application of `member` wants to multicast, and its window has no room."""

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """`member` was told that own multicasts below `delivered` are delivered here, below `stable` everywhere."""

    def leaving(self, member: Address) -> None:
        """`member` began to leave."""

    def disturbed(self) -> None:
        """From now on a process that lives may look as if it were dead: it is paused, cut off, or frames are lost."""

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        """`member`'s life is over: it crashed (None), or it stopped and listed own messages of unknown fate."""

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        """`member` took its state at the start of `view`; it holds what is below `digest`."""

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        """`member` was given the state of the start of `view`."""

    def keeps_no_state(self, member: Address) -> None:
        """The application of `member` has no state, wants none and gives none."""

    def state_refused(self, member: Address) -> None:
        """The application of `member` was asked for its state, and does not give it."""

    def state_none(self, member: Address, view: ViewId) -> None:
        """`member` was told that nobody has a state for it."""

    def looked(self, situation: Situation) -> None:
        """This is how everybody stands now, and which links are cut."""

    def healed(self, deadline: int) -> None:
        """All faults are over; until `deadline` (microseconds, the world's time) what was promised has to happen."""

    def settled(self, rests: list[Rest]) -> None:
        """All should be well: these live."""
