"""The events between layers.  Each docstring names the direction, the sender and the receivers of the event.

The events between the stack and its driver are in driver_events.py, those about suspicions in suspicion_events.py.

An answer names the layer that asked, and only that layer handles it (design note 002, "GET_DIGEST vs.
GET_DIGEST_STATE").
Marks and positions are half-open: they give the first number that has not arrived.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .address import Address
from .standing import Standing
from .view import AgreedView, Ballot, Lacks, Merged, Subgroup, ViewId

Marks = dict[Address, int]  # per origin, the number of the first message that has not arrived
Ranges = tuple[tuple[int, int], ...]  # numbers [low, high)
Missing = dict[Address, Ranges]  # per origin, the messages below its mark that never arrive
Positions = dict[Address, int]  # per numbered stream, the first seq that has not arrived


class Event(msgspec.Struct):
    """Base of all events."""


class Expel(Event):
    """Down, flow_control to gms: exclude `member` by policy, because it keeps the window of this member full.

    `reason` is a sentence about `member`, without its subject; all members get the sentence, `member` too.  With
    `if_silent` the member is excluded only if it leaves Ready unanswered.
    """

    member: Address
    reason: str
    if_silent: bool = False


# -- membership and the flush


class Join(Event):
    """Down, top to gms: join the group."""


class Leave(Event):
    """Down, top to gms: leave the group.  Each layer passes the event on when the layer holds no message that only this
    member has."""


class Invited(Event):
    """Down, gms to discovery: a group is about to admit this joiner (`invited`), or the attempt has failed."""

    invited: bool


class JoinRefused(Event):
    """Up, gms to the application: this member refused `joiner`, for the `reason`."""

    joiner: Address
    reason: str


class Gone(Event):
    """Down, gms or top to all below: this process is not a member any more.  Such a process orders, votes and
    acknowledges nothing, and sends no retransmission and no heartbeat.  Messages sent earlier in the same turn still
    leave, once."""


class Gap(Event):
    """Up, part of NewView, and from the top to the application: messages that members of another subgroup delivered
    before a merge, and that this member never delivers.  Up, pbcast to top: messages that no member sends any more."""

    origin: Address
    first: int
    count: int
    subgroup: tuple[Address, ...]  # the members that delivered the messages; () if none of them is in the view
    size: int = 0  # of this member's own messages: their bytes in its window

    @property
    def next(self) -> int:
        """The number after the last missing message."""
        return self.first + self.count


class NewView(Event):
    """Up and down from gms: the new view.  All runs of the old view passed before this event, and none passes after."""

    view: AgreedView
    previous: ViewId | None  # the view this member comes from; None: it is new, by joining or founding
    transitional: tuple[Address, ...]  # the members that come from the same view as this member, with this member
    joined: tuple[Address, ...]
    left: tuple[Address, ...]
    primary: bool
    starts: Marks | None  # the first number of each origin here; None: go on from the numbers known
    standings: dict[Address, Standing] = {}  # of the members that go on, the same at all members
    cut: Positions = {}  # where the streams of the old view end, for members that come from it
    with_state: bool = (
        False  # StateArrived follows: with the state of the start of the view, or the word that none is left
    )
    expelled: dict[Address, str] = {}  # members that left because the others excluded them by policy, with the reason
    subgroups: tuple[Subgroup, ...] = ()  # of a merged view: the earlier views, each with the members that come from it
    digest: Merged = {}  # of a merged view: every member begins with these marks
    lacks: Lacks | None = {}  # of a merged view: the members without some messages; None: too many, no gap names any
    gaps: tuple[Gap, ...] = ()  # of a merged view: the messages that this member misses; FLUSH fills it in
    winner: int | None = None  # of a merged view: the subgroup whose state all take; None: each keeps its state
    absent: dict[Address, str] = {}  # of a view that is not primary: the electors that it lacks, and their contacts
    without_state: tuple[Gap, ...] | None = None  # with_state: the gaps in place of `gaps` if no state comes, if others

    @property
    def is_new(self) -> bool:
        """Whether this is the first view of this member."""
        return self.previous is None

    @property
    def losers(self) -> tuple[Address, ...]:
        """The members of a merged view that come from another subgroup than the one that wins."""
        if self.winner is None:
            return ()
        return tuple([m for n, side in enumerate(self.subgroups) if n != self.winner for m in side.members])


class Stop(Event):
    """Up, gms to flush: this member takes part in `ballot`.  Accept and deliver no further run of this view."""

    ballot: Ballot


class HeldQuery(Event):
    """Down: ask for the positions of the streams.  `asker` is the class of the asking layer."""

    asker: type


class Held(Event):
    """Up, the layer with streams to `asker`: the answer to HeldQuery."""

    asker: type
    held: Positions  # the end of the runs without a hole
    seen: Positions  # the end of all runs that were received or announced, holes included


class Bound(Event):
    """Down, flush to gms: the answer to Stop."""

    ballot: Ballot
    held: Positions
    marks: Marks = {}  # per origin, the number after the last message in the runs that are held
    missing: Missing = {}  # the messages below these marks that this member never delivers


class FetchTo(Event):
    """Up, gms to flush: `cut` is the end of the view in `ballot`.  Fetch the missing runs, and deliver nothing yet."""

    ballot: Ballot
    cut: Positions
    holders: dict[Address, Address]  # per stream, a member that holds all runs up to the cut: ask this member first.
    # If the holder does not answer, ask the other members of the view that are not suspected.  They hold the runs too,
    # or they fetch the runs and serve them later.


class Fetch(Event):
    """Down, flush to the layer with streams: fetch [low, high) of `stream` from `holder`."""

    stream: Address
    low: int
    high: int
    holder: Address


class Dropped(Event):
    """Up, an ordering layer to uniform: every member drops the run with the number `seq` of `stream`."""

    stream: Address
    seq: int


class Released(Event):
    """Down, uniform to stable: the runs of `stream` below `below` were handed up.  Until then STABLE counts no run as
    delivered."""

    stream: Address
    below: int


class Served(Event):
    """Up, the layer with streams to flush: all runs of `stream` below `high` are here."""

    stream: Address
    high: int


class Fetching(Event):
    """Down, the layer with streams to gms: some runs of a fetch have arrived, and others are still missing."""


class Fetched(Event):
    """Down, flush to gms: all runs up to the cut of `ballot` are here."""

    ballot: Ballot


class Block(Event):
    """Up, flush to all above: number and order no run until the next view."""


class Hold(Event):
    """Up, gms to the layers above: this member took no turn for so long that the others may have gone on without it.
    Order and number no multicast, and hand none up, until `Release` or the next view."""


class Release(Event):
    """Up, gms to the layers above: enough members have answered that they are still in this member's view."""


class Blocked(Event):
    """Up, gms to the application: too few members of the view are reached for a majority.  This member delivers
    nothing, and new messages wait.  `Unblocked`, with a view, or `Excluded` follows when enough members are reached
    again."""

    reason: str


class Unblocked(Event):
    """Up, gms to the application: a majority is reached again.  The next view follows at once."""


class Vouched(Event):
    """Down, application to gms: an operator vouches that the process of `member` has ended for good.  `VouchedFor` is
    the answer."""

    member: Address


class VouchedFor(Event):
    """Up, gms to the application: the answer to `Vouched`.

    `taken`: from now on the view changes without `member`.  `unknown`: `member` is not in this member's view.  `alive`:
    this member hears `member`, or heard `member` lately.
    """

    member: Address
    answer: Literal["taken", "unknown", "alive"]


class AllInstalled(Event):
    """Up, gms to the streams: all members have `view`, and none of them fetches runs of the view before any more."""

    view: ViewId


class Installed(Event):
    """Down, flush to gms: `view` is installed here.  `marks`: per origin, the messages delivered before the view."""

    view: ViewId
    marks: Marks


class Excluded(Event):
    """Up, gms to top: this process is not a member any more, and gets no further events.

    `reason` is one of "left", "excluded", "refused", "name taken".
    """

    reason: str
    detail: str
    cut: Positions | None = None  # the end of the streams of its last view, if this member knows the decision
    policy: str = ""  # why the others excluded this process by policy: a sentence without its subject


# -- progress, stability and flow


class Consumed(Event):
    """Down, the application to flow_control and stable: new marks of all messages that the application has consumed."""

    marks: Marks  # multicasts
    unicasts: Marks = {}  # messages to this member alone


class StableWanted(Event):
    """Down, the application to stable: `send` waits here until its own multicasts below `below` are stable."""

    below: int


class SlowestWanted(Event):
    """Down, flow_control or the application to stable, at the coordinator: name the members that have consumed least.
    A Stability answers.  Other members need not ask: their repeated votes are answered."""


class Stability(Event):
    """Up and down from stable: every member has delivered the runs below `purge`; runs below `seen` exist somewhere.

    All other members have delivered this member's own messages below `delivered`, and consumed those below `consumed`.
    `slowest`: the members that have consumed least of them; () if this event does not name them.  `idle`: for how long
    each of these has consumed no message of any other member, in microseconds.
    """

    purge: Positions
    seen: Positions
    delivered: int
    consumed: int
    slowest: tuple[Address, ...] = ()
    idle: tuple[int, ...] = ()


class Freed(Event):
    """Up, flow_control to top: this many bytes of all own multicasts so far have left the window."""

    total_bytes: int


class FreedTo(Event):
    """Up, flow_control to top: this many bytes of all own messages to `to` alone so far have left its window.  None:
    all have left it, and the count starts again at 0, because `to` is not in the view."""

    to: Address
    total_bytes: int | None


# -- unicasts


class Forget(Event):
    """Down, top to unicast2: close the connection with `peer`.  A later message to `peer` opens a new one."""

    peer: Address


class Unacknowledged(Event):
    """Up, unicast2 to the layer of a head that is Tracked: its unicast to `peer` is sent until `peer` has it."""

    peer: Address
    head: object


class Acknowledged(Event):
    """Up, unicast2 to the layer of heads that are Tracked: `peer` has the unicasts with these heads."""

    peer: Address
    heads: list[object]


class DeliveredTo(Event):
    """Up, unicast2 to the application: `to` has acknowledged the own messages to it alone below number `below`."""

    to: Address
    below: int


class Undelivered(Event):
    """Up, unicast2 to top: `to` has not acknowledged these own messages, and they will not be sent again.  Down,
    fragmentation to flow_control: the same of a message whose pieces `to` has lost."""

    to: Address
    numbers: range


class ConnectionClosed(Event):
    """Up, unicast2 to all above, in a profile without a group: the connections with `peer` were closed.  A message to
    it opens a new connection.  Undelivered comes before this event."""

    peer: Address
