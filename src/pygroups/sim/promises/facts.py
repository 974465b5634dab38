"""The facts that checks receive: each fact corresponds to one line of a member's journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks, Positions
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.services import MEMBERSHIP
from pygroups.core.view import Merged, Subgroup, ViewId

from .broken import Broken, Witness

MEMBERS: Final = 16  # the most members of a view in a drawn schedule
Link = tuple[str, str]  # from one host to another
Written = tuple[str, object, Mapping[str, Any]]  # a record: its kind, its view, and the fields of the kind


class Viewed(msgspec.Struct, frozen=True):
    """`member` installed the view `id`.  `came_from` is its last view as observed here, and `previous` its own
    statement."""

    member: Address
    id: ViewId
    members: tuple[Address, ...]
    came_from: ViewId | None
    previous: ViewId | None  # the previous view according to the event
    transitional: tuple[Address, ...]
    digest: Marks | None  # per origin, the number of the first message after the initial state
    at: int = 0  # time of the installation, in microseconds of the world
    joined: tuple[Address, ...] = ()
    left: tuple[Address, ...] = ()
    primary: bool = True
    expelled: tuple[Address, ...] = ()  # members that are not in it because the others excluded them by policy
    subgroups: tuple[Subgroup, ...] = ()  # of a merged view
    merged: Merged = {}  # of a merged view: the marks with which every member begins
    gaps: tuple[Gap, ...] = ()  # messages that the member announces as missing
    history: str = ""  # where a majority decides: of the first view of the chain
    losers: tuple[Address, ...] | None = None  # of a merge that a side wins: the members of the other sides


class Delivery(msgspec.Struct, frozen=True):
    """`member` delivered the multicasts [first, first + count) of `origin`, in `view`."""

    member: Address
    view: ViewId | None
    position: int
    origin: Address
    first: int
    count: int
    body: bytes
    stream: Address | None = None  # the numbered stream of the view, and the number in this stream
    seq: int = 0


class UnicastDelivery(msgspec.Struct, frozen=True):
    """`member` delivered the messages [first, first + count) that `origin` sent to `to` alone."""

    member: Address
    origin: Address
    to: Address
    first: int
    count: int
    body: bytes


class OnConnection(msgspec.Struct, frozen=True):
    """`member` sent or delivered a run of unicasts on a connection of `origin`."""

    member: Address
    sent: bool
    origin: Address
    to: Address
    first: int
    count: int
    connection: int


class Rest(msgspec.Struct, frozen=True):
    """The state of one running member at the end, when the group should have settled."""

    member: Address
    accepted: int  # the number of its next multicast
    unsent: int  # payloads that its application could not send yet
    gauges: dict[str, int]
    blocked: bool
    leaving: bool


class Stand(msgspec.Struct, frozen=True):
    """The state of one process that has not ended."""

    member: Address
    runs: bool  # whether the process is not paused
    reads: bool  # whether its application reads
    view: ViewId | None
    members: tuple[Address, ...]  # of that view
    blocked: bool
    leaving: bool
    accepted: int  # the number of its next multicast
    unsent: int  # payloads that its application could not send yet
    stateless: bool = False  # whether the member waits for its initial state
    born: int = 0  # start of its process
    told: bool = False  # whether it learned that it reaches too few members of its view
    unsent_to: Address | None = None  # whom the first of the unsent payloads is for; None: all members


class Situation(msgspec.Struct, frozen=True):
    """The states of all processes at an instant of a period in which no link and no process changes."""

    now: int
    since: int  # start of the period
    bound: int
    cut: frozenset[Link]  # the links on which no frame passes
    stands: tuple[Stand, ...]
    changes: int = 0  # number of changes of links and processes so far
    distant: bool = False  # whether some links are much slower than usual
    misled_until: int = 0  # until then the directory answers late, incompletely, or with former members
    withheld: bool = False  # whether some application gives no state in time


class WorldFacts(msgspec.Struct):
    """The parts of the world that checks may read."""

    clock: Callable[[], int] = lambda: 0  # microseconds
    restless: Callable[[], bool] = lambda: False  # whether anything disturbs a process or the network now
    config: Config = Config()  # of all members
    journals: bool = False  # whether checks receive all records of the journals
    trip: int = 2 * MILLISECOND  # longest time from one application's turn to another's
    overtaken_by: int = 0  # longest delay of a frame that others overtake; 0: the weather lets none overtake others
    lost_at: int | None = None  # time of the last loss of a single frame that is no disturbance
    services: frozenset[str] = frozenset({MEMBERSHIP})  # of the members' stacks: see core/services.py
    expect: int = 0  # the number of processes that take part in a birth; 0: a lock decides
    calm_from: int = 0  # the effects of all disturbances are over by this time

    def calm_since(self, then: int) -> bool:
        """Whether no disturbance has happened since `then`, and the effects of earlier ones were over by then."""
        return self.calm_from <= then and not self.restless()


class Check:
    """Base of a check of one or a few promises.  A check overrides the methods for the facts that it needs, and
    calls `broken`."""

    promises: tuple[str, ...] = ()
    around: WorldFacts = WorldFacts()  # the object of the judge, which the world fills in
    found: list[Witness] | None = None  # list for the violations, if they are not raised

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
        """Report that `promise` is broken.  Raises Broken, unless violations are collected in `found`.  In that case
        the check continues as if its promise had held until here."""
        broken = Broken(promise, detail, member=member, other=other, message=message, view=view)
        if self.found is None:
            raise broken
        self.found.append(broken.witness)

    def facts(self) -> dict[str, int]:
        """The number of judged facts, by promise.  A promise with 0 facts is not judged."""
        return dict.fromkeys(self.promises, 0)

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        """`member` accepted a payload from its application: a multicast, or a unicast to the member `to`."""

    def viewed(self, view: Viewed) -> None:
        """A view was installed."""

    def delivered(self, delivery: Delivery) -> None:
        """Multicasts were delivered."""

    def gap_announced(self, member: Address, gap: Gap) -> None:
        """`member` announced messages that it never delivers, after a merge or without one."""

    def received(self, delivery: UnicastDelivery) -> None:
        """Unicasts were delivered."""

    def on_connection(self, passed: OnConnection) -> None:
        """Unicasts were sent or delivered on a connection."""

    def written(self, member: Address, records: Sequence[Written]) -> None:
        """`member` has written these records into its journal: no crash loses them any more."""

    def accepts(self, member: Address, fields: dict[str, Any]) -> None:
        """`member` recorded a step of a view change."""

    def runs_requested(self, member: Address, stream: Address, low: int) -> None:
        """`member` requests runs of `stream` that it lacks; the lowest is number `low`."""

    def blocked(self, member: Address, reason: str | None) -> None:
        """`member` learned that it is blocked for this reason: it reaches too few members of its view, or the group is
        to begin anew.  None: `member` is no longer blocked."""

    def vouched(self, member: Address) -> None:
        """An operator vouches that the process of `member` has ended for good."""

    def journal_lost(self, member: Address) -> None:
        """`member` learned that its journal cannot be written."""

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        """`member` learned that these messages were not acknowledged."""

    def purged(self, member: Address, view: ViewId, below: Positions) -> None:
        """Votes let `member` purge all runs with lower numbers in the streams of `view`."""

    def consumed(self, member: Address, marks: Marks) -> None:
        """The application of `member` has read all multicasts with lower numbers, per origin."""

    def held_up(self, member: Address) -> None:
        """The application of `member` has a multicast to send, and its window has no room."""

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """`member` learned that its own multicasts below `delivered` are delivered here, and those below `stable`
        everywhere."""

    def leaving(self, member: Address) -> None:
        """`member` began to leave."""

    def disturbed(self) -> None:
        """From now on a running process may look dead: it is paused or cut off, or frames are lost."""

    def passed_layers(self, member: Address, view: ViewId, layers: Mapping[str, list[ViewId]]) -> None:
        """The application of `member` gets `view`.  `layers` has, per layer, the ids of the views that reached it since
        the earlier ones were taken out."""

    def paused(self, member: Address) -> None:
        """The first turn of `member` after a pause, for which the others may have suspected it, begins."""

    def merge_accepted(self, member: Address, view: ViewId, merged: ViewId) -> None:
        """`member` accepted the merged view `merged`, in `view`."""

    def asked_out(self, member: Address, other: Address, if_silent: bool) -> None:
        """`member` asked the group to exclude `other` by policy: because `other` does not read its messages, or, with
        `if_silent`, if `other` leaves Ready unanswered."""

    def replaced(self, member: Address) -> None:
        """`member` learned that a newer process has its name, and asked the group to exclude it."""

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        """`member` has ended: it crashed (`unknown` is None), or it stopped and listed its own messages of unknown
        fate."""

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        """`member` took its state at the start of `view`; the state contains the messages below `digest`."""

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        """`member` received the state of the start of `view`."""

    def keeps_no_state(self, member: Address) -> None:
        """The application of `member` neither takes nor gives a state."""

    def state_late(self, member: Address) -> None:
        """`member` goes on with no state, because none came in time; other members may have one."""

    def state_refused(self, member: Address) -> None:
        """The application of `member` was asked for its state and does not give it."""

    def state_none(self, member: Address, view: ViewId) -> None:
        """`member` learned that no member has a state for it."""

    def program_given(self, member: Address, origin: Address, first: int, count: int) -> None:
        """The program of `member` gets these multicasts, in order, behind its state if it waited for one."""

    def program_skips(self, member: Address, gap: Gap) -> None:
        """The program of `member` gets this gap."""

    def looked(self, situation: Situation) -> None:
        """`situation` is the present state of every process and link."""

    def healed(self, deadline: int) -> None:
        """All faults have ended; by `deadline` (microseconds, the world's time) every promise must be kept."""

    def settled(self, rests: list[Rest]) -> None:
        """Every promise should be kept by now; `rests` contains the running members."""
