"""UNIFORM: a run is delivered when every member of the view holds it.  So what any member delivers, even one that
crashes at once, all members deliver that go on in the primary component.

The stages of design note 003, each cumulative for one stream: PREPARE is the run itself, PREPARE-ACK reports how far a
member holds the stream, COMMIT releases it.  COMMIT-ACK is the vote of STABLE, ACK the stability that follows from all
votes, and COLLECT the question of the flush.  The owner of a stream collects: the coordinator where SEQUENCER is below,
otherwise each sender.  Note: docs/layers/uniform.md.
"""

from __future__ import annotations

from collections import deque
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import (
    Block,
    Dropped,
    Event,
    Excluded,
    Gone,
    Hold,
    Leave,
    NewView,
    Positions,
    Release,
    Released,
    Stability,
    StableWanted,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Loose, Run
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId

from .streams.marks import before_cut

Seq = Annotated[int, Meta(ge=0, le=1 << 62)]


class PrepareAck(msgspec.Struct, Loose, array_like=True, tag=83):
    """Member to the owner of a stream: I hold your stream below `held`.  Repeated until the release is known."""

    view: ViewId  # it stands for the seed's list of members
    held: Seq


class Commit(msgspec.Struct, Loose, array_like=True, tag=84):
    """The owner of a stream to all, or to a member that repeats its PrepareAck: every member holds my stream below
    `below`."""

    view: ViewId
    below: Seq


class Uniform(Layer):
    """Holds runs back until all members of the view have them."""

    __slots__ = (
        "acked",
        "closed",
        "commits",
        "draining",
        "early",
        "held",
        "leave",
        "news",
        "own",
        "pause",
        "prepared",
        "released",
        "stable",
        "told",
        "view",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"FIFO_MULTICAST", "VIRTUAL_SYNCHRONY", "PRIMARY", "MARKS"})
    gives: ClassVar[frozenset[str]] = frozenset({"UNIFORM"})
    heads: ClassVar[tuple[type, ...]] = (PrepareAck, Commit)

    tables: ClassVar[Tables] = {
        "acked": "members",
        "commits": "members",
        "draining": "members",
        "early": "members_max",
        "held": "members",
        "news": "members",
        "prepared": "members",
        "prepared[]": "stream_runs",
        "released": "members",
        "stable": "members",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: ViewId | None = None
        self.closed = True  # no view, one that is on its way out, or one that the others may have left behind
        self.prepared: dict[Address, deque[Run]] = {}  # by stream, oldest first: held here and not released
        self.held: Positions = {}  # by stream, the first number that is not held here
        self.commits: Positions = {}  # by stream, below which all members hold it, as far as known
        self.released: Positions = {}  # by stream, below which runs were handed up
        self.stable: Positions = {}  # by stream, below which all members have delivered it: ACK
        self.acked: dict[Address, int] = {}  # by other member, how far it holds the own stream
        self.early: dict[Address, PrepareAck] = {}  # acknowledgements in a view that is not installed here yet
        self.news: dict[Address, None] = {}  # streams of others that grew in this turn
        self.told = 0  # the own stream's release that the others were told
        self.pause = 0  # until an acknowledgement is repeated; doubles while nothing is released
        self.own = 1  # the number after the last own message that came back
        self.leave: Leave | None = None  # it goes down when the three stages are empty
        self.draining: Positions = {}  # how far the streams reached at the leave

    # -- PREPARE and PREPARE-ACK

    def up(self, run: Run) -> None:
        head = run.head
        if run.stream is not None:
            self._prepare(run.stream, run.seq, run)
        elif isinstance(head, PrepareAck):
            self.on_prepare_ack(head, run.src)
        elif isinstance(head, Commit):
            self.on_commit(head, run.src)
        else:
            self.above.append(run)

    def _prepare(self, stream: Address, seq: int, run: Run | None) -> None:
        """Number `seq` of `stream` is held here.  None: all members drop the run with this number."""
        if run is not None:
            self.prepared[stream].append(run)
            if run.origin == self.env.me:
                self.own = run.next
        self.held[stream] = seq + 1
        if stream == self.env.me:
            self._commit()  # this member may be alone
        else:
            self.news[stream] = None

    def end_turn(self) -> None:
        """At most one head to each member: the acknowledgement of its stream, and one to all: the own release."""
        if self.closed or self.view is None:
            return
        for stream in self.news:
            self.tell(stream, PrepareAck(self.view, self.held[stream]))
        self.news = {}
        if self.released[self.env.me] > self.told and self.acked:
            self.told = self.released[self.env.me]
            self.tell(None, Commit(self.view, self.told))
        if self.wake == NEVER and self._unreleased():
            self._repeat_later(self.env.config.nakack_period)

    def _unreleased(self) -> list[Address]:
        """The other members whose streams are held here further than released."""
        return [stream for stream, held in self.held.items() if held > self.released[stream] and stream != self.env.me]

    def _repeat_later(self, pause: int) -> None:
        self.pause = min(pause, self.env.config.nakack_backoff_max)
        self.wake = self.env.now + self.pause

    def timer(self) -> None:
        """Nothing was released for a while: the acknowledgement or its answer may be lost."""
        self.wake, waiting = NEVER, self._unreleased()
        if self.closed or not waiting:
            return
        self.news = dict.fromkeys(waiting)
        self.env.count("acknowledgements repeated", len(waiting))
        self._repeat_later(2 * self.pause)

    def on_prepare_ack(self, ack: PrepareAck, src: Address) -> None:
        """How far `src` holds the own stream.  A repeated one is answered: `src` may lack the COMMIT."""
        if self.view is None or ack.view > self.view:
            if src in self.early or len(self.early) < MEMBERS_MAX:
                self.early[src] = ack
            else:
                self.env.drop("too many acknowledgements of a later view")
        elif ack.view < self.view:
            self.env.drop("old view")
        elif src not in self.acked:
            self.env.drop("acknowledgement of no member")
        elif ack.held > self.held[self.env.me]:
            self.env.drop("acknowledgement of runs that were not sent")
        elif ack.held > self.acked[src]:
            self.acked[src] = ack.held
            self._commit()
        elif not self.closed:
            self.tell(src, Commit(self.view, self.released[self.env.me]))

    # -- COMMIT

    def _commit(self) -> None:
        """Release the own stream as far as every member holds it.  A suspicion changes nothing: only a view does."""
        me = self.env.me
        below = min(self.acked.values(), default=self.held[me])
        if below > self.commits[me]:
            self.commits[me] = below
            self._release(me)

    def on_commit(self, commit: Commit, src: Address) -> None:
        if commit.view != self.view:
            self.env.drop("old view" if self.view is not None and commit.view < self.view else "commit of a later view")
        elif src not in self.acked:
            self.env.drop("commit of no member")
        elif commit.below > self.held[src]:
            self.env.drop("commit of runs that are not held here")
        elif commit.below > self.commits[src]:
            self.commits[src] = commit.below
            self._release(src)
        else:
            self.env.count("commit heard again")

    def _release(self, stream: Address) -> None:
        """Hand up `stream` as far as it is committed, in its order."""
        below, waiting = self.commits[stream], self.prepared[stream]
        if self.closed or below <= self.released[stream]:
            return
        while waiting and waiting[0].seq < below:
            self.above.append(waiting.popleft())
        self.released[stream] = below
        self.below.append(Released(stream, below))  # STABLE reports it: COMMIT-ACK
        if self.wake < NEVER:
            self.wake = NEVER  # end_turn() sets it again while anything is held back

    # -- ACK, and leaving

    def _learn(self, event: Stability) -> None:
        self.stable = dict(event.purge)
        self._leave_if_drained()

    def _leave_if_drained(self) -> None:
        """Leave when all members have delivered what was under way at this member when it began to leave."""
        if self.leave is None:
            return
        open_here = [stream for stream, end in self.draining.items() if end > self.stable.get(stream, 0)]
        if not open_here or not self.acked:
            self.below.append(self.leave)
            self.leave, self.draining = None, {}

    def down_event(self, event: Event) -> None:
        if isinstance(event, Leave) and not self.closed:
            self.leave, self.draining = event, dict(self.held)
            if self.own > 1:
                self.below.append(StableWanted(self.own))  # members vote at once
            self._leave_if_drained()
            return
        self.below.append(event)
        if isinstance(event, Gone):
            self.closed = True

    # -- membership

    def up_event(self, event: Event) -> None:
        if isinstance(event, Dropped):
            self._prepare(event.stream, event.seq, None)
            return
        if isinstance(event, NewView):
            self._hand_up_rest(event.cut)
        elif isinstance(event, Excluded):
            self._hand_up_rest({} if event.cut is None else event.cut)  # a decided view has them; else nobody may
            self._begin(())
            self.closed = True
        elif isinstance(event, Block | Hold):
            self.closed = True
        self.above.append(event)
        if isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Release):
            self.closed = False
            for stream in self.commits:
                self._release(stream)
        elif isinstance(event, Stability):
            self._learn(event)

    def _hand_up_rest(self, cut: Positions) -> None:
        """The view was decided by members that hold everything below `cut`."""
        for waiting in self.prepared.values():
            for run in waiting:
                if before_cut(run, cut):
                    self.above.append(run)
                else:
                    self.env.drop("run beyond the cut")
            waiting.clear()

    def _install(self, event: NewView) -> None:
        self.view, self.closed = event.view.id, False
        self._begin(event.view.members)
        self._leave_if_drained()
        early, self.early = self.early, {}
        for member, ack in early.items():
            self.on_prepare_ack(ack, member)

    def _begin(self, members: tuple[Address, ...]) -> None:
        """Tables begin anew: of the old view nothing is left to acknowledge."""
        self.wake = NEVER
        self.prepared = {member: deque() for member in members}
        self.held, self.commits, self.released, self.stable = (dict.fromkeys(members, 0) for _ in range(4))
        self.acked = {member: 0 for member in members if member != self.env.me}
        self.news, self.told, self.draining = {}, 0, {}

    # -- what is under way

    def waits_for(self) -> tuple[Address, ...]:
        """The members for which releases wait: those that lack runs of the own stream, and the owners of the streams
        that are held back here.  () when nothing is held back."""
        mine = self.held.get(self.env.me, 0)
        lack = [member for member, held in self.acked.items() if held < mine]
        return tuple(dict.fromkeys([*lack, *self._unreleased()]))

    def gauges(self) -> dict[str, int]:
        """The tables of the seed, in numbers of runs."""
        me = self.env.me
        held, released, stable = (table.get(me, 0) for table in (self.held, self.released, self.stable))
        all_held, all_released, all_stable = (sum(table.values()) for table in (self.held, self.released, self.stable))
        return {
            "preparing": held - released,
            "committing": released - stable,
            "prepared": all_held - all_released,
            "committed": all_released - all_stable,
            "early": len(self.early),
        }
