"""SEQUENCER: all members deliver multicasts in one order, the coordinator's.

A member sends its multicast to the coordinator, which multicasts it on the member's behalf.  Failover: in each new view
every member forwards to the new coordinator what it has not delivered, and the duplicate filter of each member (the
mark `received`) drops what comes twice.  Agreement at a crash comes from the flush below, not from here.  Note:
docs/layers/sequencer.md; design note 000.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Block, Dropped, Event, Excluded, Gone, Hold, Marks, NewView, Release
from pygroups.core.layer import NEVER, Env, PassingLayer
from pygroups.core.limits import MEMBERS_MAX, MILLISECOND
from pygroups.core.run import Run
from pygroups.core.services import UNIFORM
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, ViewId

from .streams.marks import forget_outside

SHARE_PATIENCE: Final = 500 * MILLISECOND  # for which own runs of the coordinator wait for those of others


class Forward(msgspec.Struct, array_like=True, tag=80):
    """Member to coordinator: multicast this run on my behalf."""

    view: ViewId  # the sender's view: an older one's Forward is sent again by its sender, a newer one's is kept
    more: bool = False  # a sender waits for room in my window: more follows as soon as there is room


class Data(msgspec.Struct, array_like=True, tag=81):
    """Coordinator to all: a run of another origin, or its own.  The place of the run in the coordinator's stream is its
    place in the order."""


class Again(msgspec.Struct, array_like=True, tag=82):
    """Coordinator to member: I could not keep all runs that you forwarded before I had this view; send your table
    again."""

    view: ViewId


class Early:
    """Forwards of views that are not installed here yet.  Early Forwards are bounded in all, and to a quarter of that
    per sender. A sender whose Forwards are refused is asked for them again."""

    __slots__ = ("bytes", "bytes_max", "count", "refused", "runs", "runs_max", "sizes")

    tables: ClassVar[Tables] = {
        "refused": "members_max",
        "runs": "future_runs_max",
        "runs[]": "future_runs_max",
        "sizes": "future_runs_max",
    }

    def __init__(self, runs_max: int, bytes_max: int) -> None:
        self.runs_max = runs_max
        self.bytes_max = bytes_max
        self.runs: dict[Address, list[Run]] = {}  # by sender
        self.sizes: dict[Address, int] = {}  # their bytes
        self.count = 0
        self.bytes = 0
        self.refused: dict[Address, None] = {}  # senders with a refused run: all their later runs are refused too

    def keep(self, run: Run) -> bool:
        """Keep `run` and return True, or refuse it and all later runs of its sender."""
        sender, size = run.src, len(run.body)
        kept, share = self.runs.get(sender, []), self.sizes.get(sender, 0) + size
        full = self.count >= self.runs_max or self.bytes + size > self.bytes_max
        if sender in self.refused or full or 4 * len(kept) >= self.runs_max or 4 * share > self.bytes_max:
            self.refuse(sender)
            return False
        kept.append(run)
        self.runs[sender], self.sizes[sender] = kept, share
        self.count += 1
        self.bytes += size
        return True

    def refuse(self, sender: Address) -> None:
        """A Forward of `sender` was dropped: ask for it again when the view is installed."""
        if len(self.refused) < MEMBERS_MAX:
            self.refused[sender] = None


class Share:
    """The coordinator's share of the order.  Its own runs make no way to it and back, so its window would turn faster.
    Own runs therefore wait while this member is ahead, in bytes, of all members of which more is about to come."""

    __slots__ = ("ends_at", "lead", "lead_max", "me")

    tables: ClassVar[Tables] = {"lead": "members"}

    def __init__(self, me: Address, lead_max: int) -> None:
        self.me = me
        self.lead_max = lead_max  # what is longer ago is forgotten
        self.lead: dict[Address, int] = {}  # by member with more to come, the bytes of own runs ordered beyond its own
        self.ends_at = NEVER  # own runs wait, at most so long if no member with more to come brings it

    def heard(self, sender: Address, more: bool) -> None:
        """A run of `sender` came to be ordered, with or without more behind it."""
        if more:
            self.lead.setdefault(sender, 0)
        else:
            self.lead.pop(sender, None)

    def ordered(self, origin: Address, size: int) -> None:
        """A run was ordered: one of a member with more to come, an own one, or another."""
        if origin in self.lead:
            self.ends_at = NEVER
            self.lead[origin] = max(self.lead[origin] - size, -self.lead_max)
        elif origin == self.me:
            self.ends_at = NEVER
            for member in self.lead:
                self.lead[member] += size

    def waits(self) -> bool:
        """Whether this member is ahead of all that have more to come."""
        return bool(self.lead) and min(self.lead.values()) > 0


class Sequencer(PassingLayer):
    """One order for all members of a view."""

    __slots__ = (
        "blocked",
        "early",
        "forward_table",
        "in_doubt",
        "pieces",
        "queued",
        "queues",
        "received",
        "share",
        "view",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"FIFO_MULTICAST", "FIFO_UNICAST", "VIRTUAL_SYNCHRONY"})
    gives: ClassVar[frozenset[str]] = frozenset({"TOTAL"})
    heads: ClassVar[tuple[type, ...]] = (Forward, Data, Again)
    events_down: ClassVar[tuple[type[Event], ...] | None] = (Gone,)

    tables: ClassVar[Tables] = {
        "forward_table": "window_runs",
        "pieces": "members",
        "queued": "members",
        "queued[]": "fixed",
        "queues": "members",
        "queues[]": "window_runs",
        "received": "marks",
        **under("early", Early.tables),
        **under("share", Share.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: AgreedView | None = None
        self.blocked = False  # the view is about to end: a run that is ordered now would be lost with the view
        self.in_doubt = False  # the others may have left the view behind: nothing is ordered until that is known
        # Own runs not yet delivered here, by first number and index, oldest first.
        self.forward_table: dict[tuple[int, int], Run] = {}
        self.received: Marks = {}  # per origin, also of former members, the next number not yet delivered
        self.pieces: dict[Address, int] = {}  # per origin, how many pieces of that message were delivered
        self.queued: dict[Address, tuple[int, int]] = {}  # at the coordinator: the last piece of each origin in a queue
        self.queues: dict[Address, deque[Run]] = {}  # at the coordinator: the runs that wait to be ordered, by origin
        self.early = self._no_early()
        self.share = Share(env.me, env.config.window)
        env.own_body = self._own_body

    # -- sending

    def down(self, run: Run) -> None:
        if run.dest is not None or run.origin is None:
            self.below.append(run)
            return
        self.forward_table[run.first, run.index] = run
        if self.view is not None and not self.blocked:
            self._ask(self.view, run)

    def _ask(self, view: AgreedView, run: Run) -> None:
        me = self.env.me
        if view.coordinator == me:
            self._queue(run)
        else:
            self.below.append(run.readdressed(me, view.coordinator).push(Forward(view.id, self.env.sender_waits)))

    def on_again(self, again: Again, src: Address) -> None:
        """The runs behind a refused Forward were ordered before it, and all members dropped them: forward the whole
        table again, in order."""
        view = self.view
        if view is None or again.view != view.id or src != view.coordinator or self.blocked:
            self.env.drop("forwards wanted for another view")
        else:
            self.env.count("forwarded again")
            self._ask_all(view)

    def _ask_all(self, view: AgreedView) -> None:
        for run in self.forward_table.values():
            self._ask(view, run)

    # -- ordering, at the coordinator

    def _queue(self, run: Run) -> None:
        assert run.origin is not None
        if run.index:
            if not self._follows(run.origin, run):
                self.env.drop("forward behind a hole")  # STABLE would count the piece; all pieces come again
                return
            self.queued[run.origin] = (run.first, run.index)
        queue = self.queues.get(run.origin)
        if queue is None:
            queue = self.queues[run.origin] = deque()
        queue.append(run)

    def _follows(self, origin: Address, piece: Run) -> bool:
        """Whether the piece before this one was the last one queued.  The first piece may come again."""
        return piece.index == 1 or self.queued.get(origin) == (piece.first, piece.index - 1)

    def end_turn(self) -> None:
        """Order the runs of this turn, one run of each origin in turn; own runs wait in the same queues."""
        if not self.queues or self.blocked or self.in_doubt:
            return
        me = self.env.me
        own, others = self.queues.pop(me, None), list(self.queues.values())
        while others or (own and not self.share.waits()):
            for queue in others:
                self._order(queue.popleft())
            if own and not self.share.waits():
                self._order(own.popleft())
            others = [queue for queue in others if queue]
        self.queues = {me: own} if own else {}
        if not own:
            self.share.ends_at = NEVER
        elif self.share.ends_at == NEVER:
            self.share.ends_at = self.env.now + SHARE_PATIENCE
            self.wake_at(self.share.ends_at)

    def _order(self, run: Run) -> None:
        if self.share.lead:
            assert run.origin is not None
            self.share.ordered(run.origin, len(run.body))
        self.below.append(run.readdressed(self.env.me, None).push(Data()))

    def timer(self) -> None:
        """Own runs have waited long enough: those who said that more would come have stopped, or their senders gave
        up."""
        self.wake = self.share.ends_at
        if self.wake <= self.env.now:
            self.env.count("own runs waited in vain")
            self._share_anew()

    def _share_anew(self) -> None:
        self.share, self.wake = Share(self.env.me, self.env.config.window), NEVER

    # -- receiving

    def rise(self, run: Run) -> Run | None:
        head = run.heads[-1] if run.heads else None
        if type(head) is Data:
            if run.origin is None or run.dest is not None:
                self.env.drop("order without payloads")
            elif self.view is None or run.stream != self.view.members[0]:  # its coordinator
                self.env.drop("order of a process that does not order")
            else:
                return self._ordered(run, run.origin)
        elif isinstance(head, Forward):
            self._on_forward(head, run)
        elif isinstance(head, Again):
            self.on_again(head, run.src)
        else:
            return run
        return None

    def _ordered(self, run: Run, origin: Address) -> Run | None:
        """The run to deliver, which is the next one in the order; None if all members drop it."""
        first, index = run.first, run.index
        expected = self.received.get(origin, 1)
        if first < expected:
            self._drop(run, "ordered twice")  # the last coordinator ordered it already
            return None
        if first > expected:
            self._drop(run, "hole in an origin's order")  # behind a refused Forward; all members drop the same
            return None
        if index and index != self.pieces.get(origin, 0) + 1:
            self._drop(run, "piece ordered twice")  # because its sender was asked to send again
            return None
        self.received[origin] = first + run.count
        if index:
            self.pieces[origin] = 0 if run.count else index
        if origin == self.env.me:
            self.forward_table.pop((first, index), None)
        return run.pop()

    def _own_body(self, ordered: Run) -> bytes | None:
        """The body of an own run that comes in the order without it; None if the run is delivered already."""
        run = self.forward_table.get((ordered.first, ordered.index))
        return run.body if run is not None and run.count == ordered.count else None

    def _drop(self, run: Run, reason: str) -> None:
        """All members drop this run, at the same place in the order."""
        self.env.drop(reason)
        if UNIFORM in self.env.services and run.stream is not None:
            self.above.append(Dropped(run.stream, run.seq))

    def _on_forward(self, head: Forward, run: Run) -> None:
        view = self.view
        if view is not None and head.view > view.id and not self.blocked:
            self.env.drop("forward of a view that does not follow")  # for one that does, this member was asked to stop
            self.early.refuse(run.src)
        elif view is None or head.view > view.id:
            if not self.early.keep(run):
                self.env.drop("too many early forwards")  # asked for again when that view is installed
        elif head.view < view.id or self.blocked:
            self.env.drop("forward of an old view")  # its sender sends it again in the next view
        elif view.coordinator != self.env.me:
            self.env.drop("forward to a member that does not order")
        elif run.src not in view.members or run.origin != run.src:
            self.env.drop("forward of a stranger")
        else:
            if head.more or self.share.lead:
                self.share.heard(run.src, head.more)
            self._queue(run.pop())

    # -- membership

    def down_event(self, event: Event) -> None:
        self.below.append(event)
        if isinstance(event, Gone):
            self._stop()  # the top takes nothing any more: nothing may be ordered that it does not deliver

    def _stop(self) -> None:
        self.blocked = True
        self.queues = {}  # their origins send them again in the next view
        self._share_anew()

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Hold | Release):
            self.in_doubt = isinstance(event, Hold)
        elif isinstance(event, Block | Excluded):
            self._stop()
        elif isinstance(event, NewView):
            self._install(event)

    def _install(self, event: NewView) -> None:
        self.view, self.blocked, self.queues = event.view, False, {}
        self.queued, self.pieces = {}, {}
        self._share_anew()
        self.forward_table = {key: run for key, run in self.forward_table.items() if not run.index}  # see FRAGMENTATION
        self.in_doubt = False
        if event.starts is not None:
            self.received = dict(event.starts)
        for gap in event.gaps:
            self.received[gap.origin] = gap.next
            if gap.origin == self.env.me:
                self._drop_delivered(gap.next)
        forget_outside(self.received, event.view.members, self.env.config.marks_max)
        self._ask_all(event.view)
        early, self.early = self.early, self._no_early()
        for runs in early.runs.values():
            for run in runs:
                head = run.head
                assert isinstance(head, Forward)
                self._on_forward(head, run)
        if event.view.coordinator == self.env.me:
            for sender in early.refused:
                if sender in event.view.members and sender != self.env.me:
                    self.tell(sender, Again(event.view.id))

    def _drop_delivered(self, below: int) -> None:
        """Forward no run that another subgroup has delivered: its numbers were announced as a gap here."""
        delivered = [key for key in self.forward_table if key[0] < below]
        if delivered:
            self.env.count("runs delivered elsewhere", len(delivered))
        for key in delivered:
            del self.forward_table[key]

    def _no_early(self) -> Early:
        return Early(self.env.config.future_runs_max, self.env.config.future_bytes)

    def waits_for(self) -> tuple[Address, ...]:
        """The coordinator, while it has not ordered all own runs; () otherwise, and at the coordinator itself."""
        view = self.view
        return () if view is None or not self.forward_table or view.coordinator == self.env.me else (view.coordinator,)

    def gauges(self) -> dict[str, int]:
        return {
            "forward_table": len(self.forward_table),
            "queued": sum(len(queue) for queue in self.queues.values()),
            "early": self.early.count,
        }
