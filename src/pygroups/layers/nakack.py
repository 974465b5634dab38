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
from pygroups.core.layer import Env, PassingLayer
from pygroups.core.limits import XMIT_RANGES_MAX
from pygroups.core.run import Loose, Run, Tracked
from pygroups.core.tables import Tables, under
from pygroups.core.view import ViewId
from pygroups.layers.streams.view_streams import ViewStreams

from .streams.numbering import Numbering
from .streams.stream import UNLIMITED

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


class Nakack(Numbering, PassingLayer):
    """Numbers the multicasts of this member, and delivers the multicasts of each member in order, once and without
    holes.  As a layer with numbered streams, NAKACK answers HeldQuery, Fetch and Stability."""

    __slots__ = ()

    needs: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "FIFO_UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"STREAMS", "FIFO_MULTICAST"})
    heads: ClassVar[tuple[type, ...]] = (Data, XmitReq, HighestSeq)

    tables: ClassVar[Tables] = {
        **under("streams", ViewStreams.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env, XmitReq)

    # -- sending

    def down(self, run: Run) -> None:
        if run.dest is not None or run.origin is None:
            self.below.append(run)
            return
        streams = self.streams
        assert streams.view is not None, "a multicast before the first view"
        sent = run.push(Data(streams.view, self.env.me, streams.own.next))
        self.below.append(sent)
        streams.number(sent)
        self.sent_in_stream()

    def announce(self) -> bool:
        """Report the end of the own stream, after pauses that double.  Stop when all members have the whole stream."""
        own, view = self.streams.own, self.streams.view
        if own.held == 0 or self.announce_pause > self.env.config.announce_max:
            return False
        assert view is not None
        self.tell(None, HighestSeq(view, own.next))
        return True

    # -- receiving

    def rise(self, run: Run) -> Run | None:
        head = run.heads[-1] if run.heads else None
        if type(head) is Data:
            return self.streams.take(head.view, head.stream, head.seq, run)
        if isinstance(head, HighestSeq):
            self.on_highest_seq(head, run)
        elif isinstance(head, XmitReq):
            self.streams.requested(head.view, head.stream, head.ranges, run)
        else:
            return run
        return None

    def on_highest_seq(self, head: HighestSeq, run: Run) -> None:
        self.streams.announced(head.view, run.src, head.next, run)
