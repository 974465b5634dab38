"""UNICAST2: runs from one member to another arrive once, in order, without holes, for each connection.

Works without a group and towards non-members.  The receiver acknowledges what it delivered and asks for what it misses;
the sender repeats its last run until it is acknowledged.  Two lanes a peer, so that control never waits behind data.
Here is what is sent; what is received stands in _unicast_in.py.  Note: docs/layers/unicast2.md; seed 004.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.events import Event, Forget, Gone, NewView, Suspect, Undelivered, Unsuspect
from pygroups.core.layer import NEVER, Env
from pygroups.core.run import Loose, Run

from ._unicast_heads import CONTROL, DATA, Ack, Closed, Data, Resend, SendFirst, Start
from ._unicast_in import Incoming
from ._unicast_lanes import NO_INBOX, TO_SELF, Outbox, OutLane, is_own, who


class Unicast2(Incoming):
    """Once and in order for each connection; a higher connection id replaces a connection, nothing else does."""

    __slots__ = ("conns", "outboxes", "proven")

    needs: ClassVar[frozenset[str]] = frozenset({"UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST"})
    heads: ClassVar[tuple[type, ...]] = (Data, Ack, Resend, SendFirst, Start, Closed)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.proven: dict[Address, None] = {}  # members of the view that are proven to have ended, truly or not
        self.outboxes: dict[Address, Outbox] = {}
        self.conns = 0  # connections opened in this life

    # -- sending

    def down(self, run: Run) -> None:
        dest = run.dest
        if dest is None or (not run.count and isinstance(run.head, Loose)):
            self.below.append(run)
            return
        box = self.outboxes.get(dest) or self._open(dest, run)
        if box is None:
            return
        which = DATA if run.count else CONTROL
        lane = box.lanes[which]
        seq = lane.next
        if lane.low == seq:
            self._begin_to_wait(dest, box, lane)
        lane.sent[seq] = run
        lane.next, lane.sent_at = seq + 1, self.env.now
        self.below.append(run.push(Data(box.conn, which, seq, lane.low, seq == 0)))
        if self.env.journaling:
            self._record("unicast_send", run, dest, box.conn)

    def _open(self, dest: Address, run: Run) -> Outbox | None:
        """A connection to `dest` for its first run; None when the run was dealt with otherwise."""
        if dest == self.env.me:  # nothing is lost on this way, and nothing is out of order
            self._record("unicast_send", run, dest, TO_SELF)
            self._hand_up(run, TO_SELF)
            return None
        if self.gone or self.dead.get(dest, self.env.now):
            if self._undelivered(dest, None, [run]):
                self.env.drop("sent to a peer that ended")
            return None
        self._make_room(self.outboxes)
        self.conns += 1
        self.env.record("connection", peer=dest, connection=self.conns, detail="opened")
        box = self.outboxes[dest] = Outbox(self.conns)
        return box

    def _begin_to_wait(self, dest: Address, box: Outbox, lane: OutLane) -> None:
        """From now on the peer owes an acknowledgement of what is first in `lane`."""
        if not box.waits():
            box.answered_at = self.env.now
        lane.pause = 2 * self.env.config.unicast_period  # the acknowledgement may take one period to leave the peer
        self._look_after(dest, self.env.now + lane.pause)

    def _send_again(self, box: Outbox, which: int, seq: int, *, opens: bool = False) -> None:
        lane = box.lanes[which]
        self.env.count("unicast runs sent again")
        self.below.append(lane.sent[seq].push(Data(box.conn, which, seq, lane.low, opens or seq == 0)))

    # -- what the receiver says

    def on_ack(self, peer: Address, ack: Ack) -> None:
        box = self.outboxes.get(peer)
        if box is None or box.conn != ack.conn or ack.next > box.lanes[ack.lane].next:
            self.env.drop("acknowledgement of what was not sent on this connection")
            return
        lane = box.lanes[ack.lane]
        box.answered_at = self.env.now
        if lane.acknowledge(ack.next):
            if lane.sent:
                self._begin_to_wait(peer, box, lane)
            elif not box.waits() and not self.inboxes.get(peer, NO_INBOX).owes():
                self._leave_alone(peer)

    def on_resend(self, peer: Address, resend: Resend) -> None:
        box = self._asked_about(peer, resend.conn)
        if box is None:
            return
        lane = box.lanes[resend.lane]
        if resend.low < lane.low:
            self.tell(peer, Start(box.conn, resend.lane, lane.low))
        for seq in lane.held(resend.low, resend.high, self.env.config.unicast_request_runs):
            self._send_again(box, resend.lane, seq)

    def on_send_first(self, peer: Address, send_first: SendFirst) -> None:
        box = self._asked_about(peer, send_first.conn)
        if box is None:
            return
        lane = box.lanes[send_first.lane]
        if not lane.may_send_first(self.env.now, self.env.config.unicast_period // 2):
            self.env.drop("asked for the first run too often")
        elif lane.sent:
            self._send_again(box, send_first.lane, lane.low, opens=True)
        else:
            self.tell(peer, Start(box.conn, send_first.lane, lane.low))

    def _asked_about(self, peer: Address, conn: int) -> Outbox | None:
        """The connection that a peer asks about; if it was given up the peer is told."""
        box = self.outboxes.get(peer)
        if box is not None and box.conn == conn:
            box.answered_at = self.env.now
            return box
        self.env.drop("request about another connection")
        if conn <= self.conns:
            self.tell(peer, Closed(conn))
        return None

    # -- receiving

    def up(self, run: Run) -> None:
        head = run.head
        if run.dest is None or isinstance(head, Loose):
            self.above.append(run)  # multicasts are not for this layer, whatever their head
            return
        if isinstance(head, Data):
            self.on_data(head, run)
        elif isinstance(head, Ack):
            self.on_ack(run.src, head)
        elif isinstance(head, Resend):
            self.on_resend(run.src, head)
        elif isinstance(head, SendFirst):
            self.on_send_first(run.src, head)
        elif isinstance(head, Start):
            self.on_start(run.src, head)
        elif isinstance(head, Closed):
            self.on_closed(run.src, head)
        else:
            self.env.drop("unicast without a connection")

    # -- forgetting

    def forget(self, peer: Address) -> None:
        """Close what there is with `peer`, both ways; a short memory of where it ended stays."""
        unsent = self._give_up(peer)
        box = self.inboxes.pop(peer, None)
        if box is not None:
            self._close(box)
            if self.tombstones.put(peer, box, self.env.now):
                self.env.drop("end of a connection forgotten too soon")
        self._leave_alone(peer)
        if peer in self.members and not self.gone:
            for run in unsent:  # of layers that rely on it as long as the view has the peer: on a new connection
                self.down(run)
        elif unsent:
            self.env.drop("given up with its connection", len(unsent))

    def _give_up(self, peer: Address) -> list[Run]:
        """Close the connection to `peer`, and report what the application sent on it.  What other layers sent."""
        box = self.outboxes.pop(peer, None)
        if box is None:
            return []
        low, high = box.lanes[DATA].low, box.lanes[DATA].next
        self.env.record("connection", peer=peer, connection=box.conn, low=low, high=high, detail="given up")
        return self._undelivered(peer, box.conn, [run for lane in box.lanes for run in lane.sent.values()])

    def _undelivered(self, peer: Address, conn: int | None, runs: list[Run]) -> list[Run]:
        """The application is told which of its own nobody will send again: they follow one another.  The others."""
        own = [run for run in runs if is_own(run)]
        for run in own:
            self.env.record("undelivered", **who(run), peer=peer, connection=conn)
        if own:
            self.above.append(Undelivered(peer, range(own[0].first, own[-1].next)))
        return [run for run in runs if not is_own(run)]

    # -- events

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Suspect) and event.proven:
            self._ended(event.member)
        elif isinstance(event, Unsuspect):
            self.proven.pop(event.member, None)
            self.dead.remove(event.member)

    def _ended(self, peer: Address) -> None:
        """`peer` is proven to have ended.  A proof may be wrong: a member of the view loses its connection with it only
        when a view goes on without it."""
        if peer in self.members:
            self.proven[peer] = None
        else:
            self.forget(peer)
            self.dead.put(peer, True, self.env.now)

    def _install(self, members: tuple[Address, ...]) -> None:
        now, proven = self.env.now, self.proven
        self.members, self.proven = dict.fromkeys(members), {m: None for m in members if self.dead.get(m, now)}
        for member in self.proven:
            self.dead.remove(member)
        for peer in proven:
            self._ended(peer)

    def down_event(self, event: Event) -> None:
        if isinstance(event, Forget):
            self.forget(event.peer)
            return
        self.below.append(event)
        if isinstance(event, NewView):
            self._install(event.view.members)
        elif isinstance(event, Gone):
            self.gone = True
            for peer in list(self.outboxes):
                self.forget(peer)

    # -- time

    def timer(self) -> None:
        for peer in [peer for peer, when in self.due.items() if when <= self.env.now]:
            del self.due[peer]
            if peer in self.inboxes:
                self._look_after_incoming(peer, self.inboxes[peer])
            if peer in self.outboxes:
                self._look_after_outgoing(peer, self.outboxes[peer])
        self.wake = min(self.due.values(), default=NEVER)

    def _look_after_outgoing(self, peer: Address, box: Outbox) -> None:
        config, now = self.env.config, self.env.now
        if box.waits() and peer not in self.members and now - box.answered_at >= config.connection_age:
            if unsent := self._give_up(peer):
                self.env.drop("given up with its connection", len(unsent))
            return
        for which, lane in enumerate(box.lanes):
            if lane.sent and lane.sent_at + lane.pause <= now:
                for seq in lane.to_repeat(2 * config.unicast_period):
                    self._send_again(box, which, seq)
                lane.sent_at, lane.pause = now, min(2 * lane.pause, config.unicast_backoff_max)
            if lane.sent:
                self._look_after(peer, lane.sent_at + lane.pause)

    def gauges(self) -> dict[str, int]:
        return {
            "sent": sum(len(lane.sent) for box in self.outboxes.values() for lane in box.lanes),
            "early": sum(len(lane.early) for box in self.inboxes.values() for lane in box.lanes),
        }
