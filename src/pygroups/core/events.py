"""What layers tell each other beside runs.  Each event says who sends it, which way, and who answers.

Events that were asked for name their asker: an answer goes to the layer that asked and to no other (seed 002,
"GET_DIGEST vs. GET_DIGEST_STATE").  Marks and stream positions are half-open: `next` is the first not yet had.
"""

from __future__ import annotations

import msgspec

from .address import Address
from .standing import Standing
from .view import Ballot, View, ViewId

Marks = dict[Address, int]  # per origin, the number of the first message not yet had
Positions = dict[Address, int]  # per numbered stream, the first seq not yet had


class Event(msgspec.Struct):
    """Base of all events."""


# -- from the driver, handed to the bottom of the stack with Stack.happened


class Found(Event):
    """Up, driver to discovery, gms: the answer to Find.

    `members`: those that say they have a view; `may_found`: nobody has one, and whoever is told so is the only one
    who is, until it has announced its own view or ended.
    """

    members: dict[Address, str]  # where each listens
    may_found: bool


class Answered(Event):
    """Up, driver to failure: a connection to `peer`'s contact was made and the same life answered on it."""

    peer: Address


class Ended(Event):
    """Up, driver to failure: a connection with `peer` ended.  No proof of anything yet."""

    peer: Address


class Dead(Event):
    """Up, driver to failure: a new connection to `peer`'s contact was refused, or another life answered there."""

    peer: Address


# -- to the driver: what comes out of the bottom of the stack


class Find(Event):
    """Down, gms to driver: who is there?  Answered by Found."""


class Announce(Event):
    """Down, discovery to driver: I am a member now and may be found (`member`), or am not any more; or somebody is
    taking me in (`invited`), and nobody founds a group until it is clear what comes of it."""

    member: bool
    invited: bool = False


class Invited(Event):
    """Down, gms to discovery: a group asked this joiner whether it is there (`invited`), or nothing has come of it."""

    invited: bool


class Contacts(Event):
    """Down, gms to driver: where to reach these."""

    contacts: dict[Address, str]


class Probe(Event):
    """Down, failure to driver: connect to `peer` anew and say Answered or Dead; say nothing on a time-out."""

    peer: Address


class Disconnect(Event):
    """Down, failure to driver: nobody here needs `peer` any more."""

    peer: Address


# -- suspicion


class Silent(Event):
    """Up, failure to verify_suspect: nothing was heard of `member` for the heartbeat timeout."""

    member: Address


class Proven(Event):
    """Up, failure to verify_suspect: `member`'s process is taken to have ended; Heard takes this back, too."""

    member: Address


class Heard(Event):
    """Up, failure to verify_suspect: `member`, which was silent or taken to have ended, was heard."""

    member: Address


class Suspect(Event):
    """Up, verify_suspect to gms and all above: `member` is taken to be gone."""

    member: Address
    proven: bool  # a new connection was refused; an Unsuspect follows if the same incarnation is heard again


class Unsuspect(Event):
    """Up, verify_suspect to gms and all above: `member` was heard after all."""

    member: Address


class VerifyLife(Event):
    """Down, gms to failure: is `member`'s process still there?  Answered by LifeVerified, or by Suspect(proven)."""

    member: Address


class LifeVerified(Event):
    """Up, failure to gms: `member` answered."""

    member: Address


class HeartbeatOf(Event):
    """Up, failure to gms: `member` says that it is in `view`, which is not this member's view, or `member` is not in
    it."""

    member: Address
    view: ViewId


# -- membership and the flush


class Join(Event):
    """Down, top to gms: become a member of the group."""


class Leave(Event):
    """Down, top to gms: leave it.  Passed on by each layer once it has nothing left that only this member can send."""


class Gone(Event):
    """Down, gms or top to all below: this member is no member any more; nobody orders, votes or acknowledges for it.

    What was sent before in the same turn still leaves once; nothing is repeated, nobody hears a heartbeat again.
    """


class NewView(Event):
    """Up and down from gms: this is the view now.  Every run of the old view passed before it, none passes after."""

    view: View
    previous: ViewId | None  # the view this member comes from; None: it is new, by joining or founding
    transitional: tuple[Address, ...]  # who comes with this member from the same view, itself included
    joined: tuple[Address, ...]
    left: tuple[Address, ...]
    primary: bool
    starts: Marks | None  # where each origin starts here, in place of what this member knew; None: it knows
    standings: dict[Address, Standing] = {}  # of those who go on, as all who install the view know them
    cut: Positions = {}  # where the streams of the view before end, for those who come from it
    with_state: bool = False  # this member begins the view with a state that another member gives

    @property
    def is_new(self) -> bool:
        """Whether this is the first view of this member."""
        return self.previous is None


class Stop(Event):
    """Up, gms to flush: bound to `ballot`.  Take no run of this view any more, hand nothing up."""

    ballot: Ballot


class HeldQuery(Event):
    """Down: how far do the streams reach?  `asker` is the class name of the layer that wants to know."""

    asker: str


class Held(Event):
    """Up, the layer with streams to `asker`."""

    asker: str
    held: Positions  # received without a hole
    seen: Positions  # beyond the highest received or heard of, holes or not


class Bound(Event):
    """Down, flush to gms: the answer to Stop."""

    ballot: Ballot
    held: Positions


class FetchTo(Event):
    """Up, gms to flush: this is the cut of `ballot`; get what is missing, hand up nothing."""

    ballot: Ballot
    cut: Positions
    holders: dict[Address, Address]  # per stream, one member that holds everything up to the cut: ask it first.
    # A holder that does not answer is no reason to wait: any other member of the view that is not suspected may hold
    # the runs too, or fetches them itself and serves them then.


class Fetch(Event):
    """Down, flush to the layer with streams: get [low, high) of `stream` from `holder`."""

    stream: Address
    low: int
    high: int
    holder: Address


class Served(Event):
    """Up, the layer with streams to flush: `stream` is held up to `high`."""

    stream: Address
    high: int


class Fetching(Event):
    """Down, the layer with streams to gms: a part of what the flush wants has come, and more is awaited."""


class Fetched(Event):
    """Down, flush to gms: everything up to the cut of `ballot` is held here."""

    ballot: Ballot


class Block(Event):
    """Up, flush to all above: number and order nothing until the next view."""


class Installed(Event):
    """Down, flush to gms: `view` is installed here; `marks` is how far each origin was handed up before it."""

    view: ViewId
    marks: Marks


class Excluded(Event):
    """Up, gms to top: the others went on without this member, or it has left; nothing more will come.

    `reason` is one of "left", "excluded", "refused", "name taken".
    """

    reason: str
    detail: str
    cut: Positions | None = None  # where the streams of its last view end, if that was decided and it knows


# -- progress, stability and flow


class Consumed(Event):
    """Down, the application to flow_control and stable: what it has consumed; cumulative, only what changed."""

    marks: Marks  # of the multicasts of each origin
    unicasts: Marks = {}  # of what each origin sent to this member alone


class StableWanted(Event):
    """Down, the application to stable: a sender here waits until its own multicasts below `below` are stable."""

    below: int


class Stability(Event):
    """Up and down from stable: `purge` was delivered by every member of the view, `seen` exists somewhere.

    `delivered` and `consumed` are about this member's own messages: below which number all other members have
    delivered and consumed them.  `slowest`: now and then, who has consumed least of them; () says nothing.
    """

    purge: Positions
    seen: Positions
    delivered: int
    consumed: int
    slowest: tuple[Address, ...] = ()


class Freed(Event):
    """Up, flow_control to top: of the bytes of all own multicasts so far, this many are out of the window."""

    total_bytes: int


class FreedTo(Event):
    """Up, flow_control to top: of the bytes of all own messages to `to` alone so far, this many are out of its window.

    With None all are, and counting begins anew: `to` is not in the view.
    """

    to: Address
    total_bytes: int | None


# -- unicasts


class Forget(Event):
    """Down, top to unicast2: close the connection with `peer`; a later message to it opens another one."""

    peer: Address


class Undelivered(Event):
    """Up, unicast2 to top: these own messages to `to` were not acknowledged, and nobody will send them again."""

    to: Address
    numbers: range


# -- state transfer


class StateStanding(Event):
    """Down, state_transfer to gms: how this member stands to the group's state from now on."""

    standing: Standing


class StateWanted(Event):
    """Up, state_transfer to the application: give `joiners` the state of the start of `view`; the view comes next."""

    view: ViewId
    joiners: tuple[Address, ...]
    digest: Marks  # what that state holds: the marks of this member just before the view


class StateChunk(Event):
    """Down, the application to state_transfer, at the provider: the next part of the state for `joiner`.

    With `none` there is no state here to give: the joiner begins with what it has.
    """

    view: ViewId
    joiner: Address
    data: bytes
    last: bool
    none: bool = False


class StateFailed(Event):
    """Down, the application to state_transfer, at the provider: get_state() raised or timed out; this member gives
    `joiner` no state of the start of `view`."""

    view: ViewId
    joiner: Address
    reason: str


class ViewWanted(Event):
    """Down, state_transfer to gms: this joiner's provider will not give its state; a view change must choose another
    provider."""


class StateTaken(Event):
    """Up, state_transfer to the application, at the provider: `joiner` has `chunks` parts, or needs no more (None)."""

    view: ViewId
    joiner: Address
    chunks: int | None


class StateArrived(Event):
    """Up, state_transfer to the application, at the joiner: the next part of the state of the start of `view`.

    With `none` there is no state to be had: nobody who is left has one.
    """

    view: ViewId
    provider: Address
    data: bytes
    last: bool
    none: bool = False
