"""NAKACK: the multicasts of each member of a view arrive in the order sent, once, without holes; a receiver asks for
the runs that it misses, and any member that holds them may answer.

Every member numbers its multicasts, from 0 in each view, and keeps the multicasts of all members until all have
delivered them.  Here are the heads and the announcements of an idle sender; streams/ does the rest.
Note: docs/layers/nakack.md; design note 002.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import (
    Acknowledged,
    AllInstalled,
    Event,
    Excluded,
    Fetch,
    HeldQuery,
    NewView,
    Stability,
    Stop,
    Unacknowledged,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import XMIT_RANGES_MAX
from pygroups.core.run import Loose, Run, Tracked
from pygroups.core.suspicion_events import Suspect, Unsuspect
from pygroups.core.view import ViewId

from .streams.stream import UNLIMITED
from .streams.view_streams import ViewStreams

Seq = Annotated[int, Meta(ge=0, le=UNLIMITED)]
Ranges = Annotated[tuple[tuple[Seq, Seq], ...], Meta(max_length=XMIT_RANGES_MAX)]


class Data(msgspec.Struct, Tracked, array_like=True, frozen=True, tag=60):
    """On a run: its place in the stream.  A run that is sent again keeps its place."""

    view: ViewId  # streams begin anew in each view: the same number of another view is another run
    stream: Address  # the member whose stream it is: it multicast the run, and need not have written it
    seq: Seq  # from 0 in each view


class XmitReq(msgspec.Struct, Loose, array_like=True, tag=61):
    """To a member that may hold the runs: send me these runs of `stream` again.  The sender repeats the request itself,
    and does not use the reliable lane: there each repetition would wait, arrive and be answered."""

    view: ViewId
    stream: Address
    ranges: Ranges  # half-open and ascending


class HighestSeq(msgspec.Struct, array_like=True, tag=62):
    """From a member that has become idle, to all: no later run would show the receivers that they lost its last one."""

    view: ViewId
    next: Seq  # of the sender's own stream: everything below was sent at least a period ago


class Nakack(Layer):
    """Numbers the multicasts of this member, and delivers the multicasts of each member in order, once and without
    holes.  As a layer with numbered streams, NAKACK answers HeldQuery, Fetch and Stability."""

    __slots__ = ("announce_at", "announce_pause", "streams")

    needs: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "FIFO_UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"STREAMS", "FIFO_MULTICAST"})
    heads: ClassVar[tuple[type, ...]] = (Data, XmitReq, HighestSeq)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.streams = ViewStreams(self, XmitReq)  # one for each member of the view, in rank order
        self.announce_at = NEVER
        self.announce_pause = 0

    # -- sending

    def down(self, run: Run) -> None:
        if run.dest is not None or run.origin is None:
            self.below.append(run)
            return
        env, streams = self.env, self.streams
        assert streams.view is not None, "a multicast before the first view"
        sent = run.push(Data(streams.view, env.me, streams.own.next))
        self.below.append(sent)
        streams.number(sent)
        self.announce_pause = env.config.nakack_period * 3 // 2  # received and answered within two periods (NAK-I2)
        self.announce_at = env.now + self.announce_pause
        if self.wake > self.announce_at:
            self.wake = self.announce_at

    def _announce(self) -> None:
        """Report the end of the own stream, after pauses that double.  Stop when all members have the whole stream."""
        own, env, view = self.streams.own, self.env, self.streams.view
        if own.held == 0 or self.announce_pause > env.config.announce_max:
            self.announce_at = NEVER
            return
        assert view is not None
        self.tell(None, HighestSeq(view, own.next))
        self.announce_pause *= 2
        self.announce_at = env.now + self.announce_pause

    # -- receiving

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, Data):
            self.streams.take(head.view, head.stream, head.seq, run)
        elif isinstance(head, HighestSeq):
            self.on_highest_seq(head, run)
        elif isinstance(head, XmitReq):
            self.streams.requested(head.view, head.stream, head.ranges, run)
        else:
            self.above.append(run)

    def on_highest_seq(self, head: HighestSeq, run: Run) -> None:
        self.streams.announced(head.view, run.src, head.next, run)

    # -- requests and reports of the layers above

    def down_event(self, event: Event) -> None:
        if isinstance(event, Stability):
            self.streams.stability(event)
        elif isinstance(event, HeldQuery):
            self.streams.held(event)
        elif isinstance(event, Fetch):
            self.streams.fetch(event)
        else:
            self.below.append(event)

    # -- membership and time

    def up_event(self, event: Event) -> None:
        if isinstance(event, Unacknowledged):
            self.streams.answer_waits(event.peer, event.head)
            return
        if isinstance(event, Acknowledged):
            self.streams.answers_arrived(event.peer, event.heads)
            return
        if isinstance(event, AllInstalled):
            self.streams.all_installed(event.view)
            return
        self.above.append(event)
        if isinstance(event, Suspect):
            self.streams.holes.suspects[event.member] = None
        elif isinstance(event, Unsuspect):
            self.streams.holes.suspects.pop(event.member, None)
        elif isinstance(event, Stop):
            self.streams.stop()
            self.announce_at = NEVER
        elif isinstance(event, NewView):
            self._begin(event.view.id, event.view.members)
            for run in self.streams.take_future():
                self.up(run)
        elif isinstance(event, Excluded):
            self._begin(self.streams.view, ())
            self.streams.take_future()

    def _begin(self, view: ViewId | None, members: tuple[Address, ...]) -> None:
        self.streams.begin(view, members, names=members)
        self.announce_at = self.wake = NEVER

    def timer(self) -> None:
        self.streams.check_holes()
        if self.announce_at <= self.env.now:
            self._announce()
        self.wake = min(self.announce_at, self.streams.next_check())

    def gauges(self) -> dict[str, int]:
        return self.streams.gauges()
