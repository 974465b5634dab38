"""TOTAL of 1999: all members deliver multicasts in one order, the order of the ids that the first member assigns.

A member sends its multicast to the sequencer as a request.  The sequencer broadcasts the request under the next id,
over a multicast that may lose it, and members ask for the ids that they miss.  TOTAL is a numbered stream of the flush,
in place of NAKACK and SEQUENCER: agreement at a crash comes from the flush above.
Note: docs/layers/total.md; design note 001.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import Event, Gone, Hold, NewView, Release, Stop
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import XMIT_RANGES_MAX
from pygroups.core.run import Loose, OfApplication, Run, Tracked
from pygroups.core.tables import Tables, under
from pygroups.core.view import ViewId
from pygroups.layers.streams.view_streams import ViewStreams

from .streams.holes import Ranges
from .streams.numbering import Numbering
from .streams.stream import UNLIMITED, Stream

Id = Annotated[int, Meta(ge=0, le=UNLIMITED)]


class Unicast(msgspec.Struct, OfApplication, array_like=True, tag=100):
    """On a unicast of the application, which TOTAL does not order."""


class Bcast(msgspec.Struct, Tracked, array_like=True, frozen=True, tag=101):
    """Sequencer to all, or any holder to a member that asked: a multicast, with its place in the order."""

    view: ViewId
    first: Id  # the first id of the view, so that a lost NewViewId costs nothing
    id: Id  # consecutive in the view


class Request(msgspec.Struct, array_like=True, tag=102):
    """Member to sequencer: broadcast this run on my behalf."""

    view: ViewId  # an older view's request is dropped: its sender sends it again in the next view
    number: Id  # of the sender's requests in this view, from 0: a repeated request is ordered once


class NewViewId(msgspec.Struct, Loose, array_like=True, tag=103):
    """Sequencer to all (TOTAL_NEW_VIEW): the ids of the view begin with `first`.  Repeated while a member has not
    answered, or has not acknowledged all ids below `next`: so a lost last broadcast is found."""

    view: ViewId
    first: Id
    next: Id  # the next id that the sequencer assigns


class NewViewIdAck(msgspec.Struct, Loose, array_like=True, tag=104):
    """Member to sequencer: I know the first id of the view, and have no broadcast of the view yet."""

    view: ViewId


class CumSeqAck(msgspec.Struct, Loose, array_like=True, tag=105):
    """Member to sequencer: I hold all broadcasts of the view below id `next`."""

    view: ViewId
    next: Id


class SeqAck(msgspec.Struct, Loose, array_like=True, tag=106):
    """Member to sequencer: the broadcast with this id, for which I asked, has come, and a lower one is missing."""

    view: ViewId
    id: Id


class Resend(msgspec.Struct, Loose, array_like=True, tag=107):
    """To the sequencer, or to another member that may hold them: send me the broadcasts with these ids again."""

    view: ViewId
    first: Id  # the first id of the view; 0 if the sender does not know it: then the ids count from 0
    ranges: Annotated[tuple[tuple[Id, Id], ...], Meta(max_length=XMIT_RANGES_MAX)]  # half-open and ascending


class Total(Numbering):
    """One order for all members of a view, in one numbered stream, that of the view's first member."""

    __slots__ = (
        "ack_at",
        "acked",
        "acked_at",
        "deferred",
        "first",
        "gone",
        "in_doubt",
        "looked",
        "members",
        "order",
        "ordered",
        "requested",
        "table",
        "unacked",
        "unused",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "FIFO_UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"STREAMS", "FIFO_MULTICAST", "TOTAL"})
    heads: ClassVar[tuple[type, ...]] = (
        Unicast,
        Bcast,
        Request,
        NewViewId,
        NewViewIdAck,
        CumSeqAck,
        SeqAck,
        Resend,
    )

    tables: ClassVar[Tables] = {
        "acked": "members",
        "deferred": "stream_runs",
        "members": "members",
        "ordered": "members",
        "table": "window_runs",
        **under("order", Stream.tables),
        **under("streams", ViewStreams.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env, self._resend)
        self.members: tuple[Address, ...] = ()  # of the view; the first one is the sequencer
        self.order = Stream()  # the sequencer's stream; its number 0 has the id `first`
        self.first: int | None = None  # the first id of the view; None: not heard of yet
        self.unused = 0  # this member has heard of no id from here on
        self.in_doubt = False  # the others may have left the view behind: nothing is ordered until that is known
        self.gone = False  # this process is no member any more
        self.table: dict[tuple[int, int], Run] = {}  # own runs that did not come back, by first number and index
        self.requested = 0  # requests sent in this view
        self.looked = 0  # own runs in the order below this left the table
        self.unacked = 0  # broadcasts that came since the last CumSeqAck
        self.ack_at = NEVER  # when to acknowledge them at the latest
        self.acked_at = -NEVER  # when this member acknowledged last in this view
        self.ordered: dict[Address, int] = {}  # at the sequencer: per origin, the number of its next request
        self.deferred: list[Run] = []  # at the sequencer in doubt: the requests to order when the doubt is over
        self.acked: dict[Address, int] = {}  # at the sequencer: per member that answered, how much of the order it has

    @property
    def is_sequencer(self) -> bool:
        """Whether this member assigns the ids of the view."""
        return self.members[:1] == (self.env.me,)

    @property
    def ends(self) -> bool:
        """Whether the view is about to end, or has ended, for this member."""
        return self.streams.stopped or self.gone

    def _resend(self, view: ViewId, _stream: Address, ranges: Ranges) -> Resend:
        first = self.first or 0
        return Resend(view, first, tuple([(first + low, first + high) for low, high in ranges]))

    # -- sending

    def down(self, run: Run) -> None:
        if run.origin is None or (run.dest is not None and run.heads):
            self.below.append(run)
        elif run.dest is not None:
            self.below.append(run.push(Unicast()))
        else:
            self.table[run.first, run.index] = run
            self._ask(run)

    def _ask(self, run: Run) -> None:
        """Have an own run ordered, if the sequencer is known to have this view."""
        if self.first is None or self.ends or self.in_doubt:
            return
        if self.is_sequencer:
            self._order(run)
        else:
            assert self.streams.view is not None
            head = Request(self.streams.view, self.requested)
            self.requested += 1
            self.below.append(run.readdressed(self.env.me, self.members[0]).push(head))

    def _hear(self, first: int) -> bool:
        """The sequencer has the view, whose first id is `first`: own requests may leave.  Returns False if `first` is
        not the id that was heard before."""
        if self.first is None:
            self.first = first
            for run in list(self.table.values()):
                self._ask(run)
        elif self.first != first:
            self.env.drop("another first id of the view")
            return False
        return True

    # -- ordering, at the sequencer

    def on_request(self, head: Request, run: Run) -> None:
        if head.view != self.streams.view or self.ends:
            self.env.drop("request of another view")  # its sender sends it again in the next view
        elif not self.is_sequencer:
            self.env.drop("request to a member that does not order")
        elif run.origin != run.src or run.src not in self.members:
            self.env.drop("request of a stranger")
        elif head.number != self.ordered.get(run.src, 0):
            self.env.drop("request ordered before" if head.number < self.ordered.get(run.src, 0) else "request too far")
        else:
            self.ordered[run.src] = head.number + 1
            if self.in_doubt:
                self.deferred.append(run.pop())
            else:
                self._order(run.pop())

    def _order(self, run: Run) -> None:
        """Broadcast `run` under the next id."""
        view, first = self.streams.view, self.first
        assert view is not None and first is not None
        sent = run.readdressed(self.env.me, None).push(Bcast(view, first, first + self.order.next))
        self.below.append(sent)
        self.streams.number(sent)
        self._take_back()
        self.sent_in_stream()

    def announce(self) -> bool:
        """Repeat the first and the next id while a member has not acknowledged all broadcasts.  The announcement takes
        the way of the broadcasts: a unicast could arrive before them, and members would request what is on its way."""
        view, first, have = self.streams.view, self.first, self.order.next
        if not self.is_sequencer or first is None or view is None or self.gone:
            return False
        behind = any(self.acked.get(member, -1) < have for member in self.members[1:])
        if behind:
            self.tell(None, NewViewId(view, first, first + have))
        self.announce_pause = min(self.announce_pause, self.env.config.announce_max // 2)
        return behind

    def on_ack(self, view: ViewId, have: int, member: Address) -> None:
        """`member` holds all broadcasts of the view below number `have`.  All members hold what all acknowledged: this
        member need not send it again."""
        if view != self.streams.view or not self.is_sequencer or member not in self.members:
            self.env.drop("acknowledgement of another view")
        elif have > self.order.next:
            self.env.drop("acknowledgement of what was not sent")
        elif have > self.acked.get(member, -1):
            self.acked[member] = have
            self.order.forget(min([self.acked.get(other, 0) for other in self.members[1:]]))

    def on_seq_ack(self, head: SeqAck, member: Address) -> None:
        if head.view != self.streams.view or not self.is_sequencer or member not in self.members:
            self.env.drop("acknowledgement of another view")
        else:
            self.streams.answers.acknowledge(member, self.env.me, self.order, self._place(head.id))

    # -- receiving

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, Bcast):
            self.on_bcast(head, run)
        elif isinstance(head, Request):
            self.on_request(head, run)
        elif isinstance(head, Unicast):
            self.above.append(run.pop())
        elif isinstance(head, CumSeqAck):
            self.on_ack(head.view, self._place(head.next), run.src)
        elif isinstance(head, NewViewIdAck):
            self.on_ack(head.view, 0, run.src)
        elif isinstance(head, SeqAck):
            self.on_seq_ack(head, run.src)
        elif isinstance(head, NewViewId):
            self.on_new_view_id(head, run)
        elif isinstance(head, Resend):
            ranges = tuple([(low - head.first, high - head.first) for low, high in head.ranges])
            self.streams.requested(head.view, self._sequencer(), ranges, run)
        else:
            self.above.append(run)

    def _place(self, number: int) -> int:
        """The number in the stream of the broadcast with this id."""
        return number - (self.first or 0)

    def _sequencer(self) -> Address:
        return self.members[0] if self.members else self.env.me

    def on_bcast(self, head: Bcast, run: Run) -> None:
        here = head.view == self.streams.view
        if head.id < head.first or run.origin is None:
            self.env.drop("malformed broadcast")
        elif here and run.src != self._sequencer() and (run.dest is None or run.src not in self.streams.holes.members):
            self.env.drop("broadcast of a process that does not order")
        elif not here or self._hear(head.first):
            stream, seq = self.order, head.id - head.first
            before, asked = stream.next, stream.asked
            above = self.streams.take(head.view, self._sequencer(), seq, run)
            if above is not None:
                self.above.append(above)
            self._came(before)
            if here and stream.next <= seq < asked and not self.ends:
                self.tell(self._sequencer(), SeqAck(head.view, head.id))

    def on_new_view_id(self, head: NewViewId, run: Run) -> None:
        if head.next < head.first:
            self.env.drop("malformed first id")
            return
        if head.view != self.streams.view:
            self.streams.announced(head.view, self._sequencer(), head.next - head.first, run)  # kept, or dropped as old
        elif run.src != self._sequencer() or self.is_sequencer:
            self.env.drop("first id of a member that does not order")
        elif self._hear(head.first) and not self.ends:
            self.streams.announced(head.view, run.src, head.next - head.first, run)
            if self.unacked or self.env.now >= self.acked_at + self.env.config.nakack_period:
                self._acknowledge()  # otherwise another member is behind; or this is repeated

    def _came(self, before: int) -> None:
        """The order may reach further than `before`."""
        self._take_back()
        came = self.order.next - before
        if not came or self.ends or self.is_sequencer:
            return
        if not self.unacked:
            self.ack_at = self.env.now + self.env.config.nakack_period
            self.wake_at(self.ack_at)
        self.unacked += came
        if self.unacked >= self.env.config.unicast_ack_runs:
            self._acknowledge()

    def _acknowledge(self) -> None:
        self.unacked, self.ack_at, self.acked_at = 0, NEVER, self.env.now
        view, first, have = self.streams.view, self.first, self.order.next
        if view is not None and first is not None:
            self.tell(self._sequencer(), CumSeqAck(view, first + have) if have else NewViewIdAck(view))

    def _take_back(self, cut: int | None = None) -> None:
        """Own runs in the order need no further request.  While it is open where the view ends, they stay: the runs
        beyond its cut belong to the next view."""
        if cut is None and (self.streams.stopped or self.in_doubt):
            return
        order = self.order
        end = order.next if cut is None else min(order.next, cut)
        for seq in range(max(self.looked, order.low), end):
            run = order.runs[seq]
            if run.origin == self.env.me:
                self.table.pop((run.first, run.index), None)
        self.looked = end

    # -- membership and time

    def down_event(self, event: Event) -> None:
        super().down_event(event)
        if isinstance(event, Gone):
            self.gone = True  # the top takes nothing any more: nothing may be ordered that it does not deliver
            self.announce_at = NEVER

    def up_event(self, event: Event) -> None:
        super().up_event(event)
        if isinstance(event, Stop):
            self.deferred, self.unacked, self.ack_at = [], 0, NEVER
        elif isinstance(event, Hold):
            self.in_doubt = True
        elif isinstance(event, Release):
            self._go_on()

    def _go_on(self) -> None:
        """The view goes on after a doubt."""
        self.in_doubt = False
        self._take_back()
        deferred, self.deferred = self.deferred, []
        for run in deferred:
            self._order(run)

    def install(self, event: NewView) -> None:
        """Begin anew, and have the own runs ordered that the old view did not order."""
        self._take_back(event.cut.get(self._sequencer(), 0))
        first_left, _ = event.digest.get(self.env.me, (0, 0))
        elsewhere = len([key for key in self.table if key[0] < first_left])
        if elsewhere:
            self.env.count("runs delivered elsewhere", elsewhere)
        # Pieces go again from the first: see FRAGMENTATION.
        self.table = {key: run for key, run in self.table.items() if key[0] >= first_left and not run.index}
        self.begin(event)
        if self.is_sequencer:
            if len(self.members) > 1:
                self.tell(None, NewViewId(event.view.id, self.unused, self.unused))
                self.sent_in_stream()
            self._hear(self.unused)

    def begin(self, event: NewView | None) -> None:
        if self.first is not None:
            self.unused = max(self.unused, self.first + self.order.seen)
        super().begin(event)
        self.members = () if event is None else event.view.members
        self.order = self.streams.by_name.get(self._sequencer()) or Stream()
        self.first, self.in_doubt, self.requested, self.looked = None, False, 0, 0
        self.unacked, self.ack_at, self.acked_at = 0, NEVER, -NEVER
        self.ordered, self.deferred, self.acked = {}, [], {}

    def timer(self) -> None:
        if self.ack_at <= self.env.now:
            self._acknowledge()
        super().timer()
        self.wake_at(self.ack_at)

    def waits_for(self) -> tuple[Address, ...]:
        """The sequencer, while it has not ordered all own runs; () otherwise, and at the sequencer itself."""
        return self.members[:1] if self.table and not self.is_sequencer else ()

    def gauges(self) -> dict[str, int]:
        return {**super().gauges(), "requests": len(self.table), "deferred": len(self.deferred)}
