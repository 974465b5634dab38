"""UNICAST2: runs from one member to another arrive once, in order, without holes, for each connection.

Works without a group and towards non-members.  The receiver acknowledges what it delivered and asks for what it misses;
the sender repeats its last run until it is acknowledged.  Two lanes a peer, so that control never waits behind data.
Note: docs/layers/unicast2.md; seed 004.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.events import Event, Forget, Gone, NewView, Suspect, Undelivered
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import Loose, Run

from ._unicast_heads import CONTROL, DATA, Ack, Closed, Data, Resend, SendFirst, Start
from ._unicast_lanes import NO_INBOX, TO_SELF, UNOPENED, Inbox, InLane, Memory, Outbox, OutLane, is_own, what, who


class Unicast2(Layer):
    """Once and in order for each connection; a higher connection id replaces a connection, nothing else does."""

    __slots__ = ("conns", "dead", "due", "gone", "inboxes", "members", "outboxes", "tombstones")

    needs: ClassVar[frozenset[str]] = frozenset({"UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST"})
    heads: ClassVar[tuple[type, ...]] = (Data, Ack, Resend, SendFirst, Start, Closed)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.members: dict[Address, None] = {}  # of the view: their connections do not age
        self.outboxes: dict[Address, Outbox] = {}
        self.inboxes: dict[Address, Inbox] = {}
        most = env.config.unicast_peers_max
        self.tombstones: Memory[Inbox] = Memory(env.config.tombstone, most)  # where forgotten connections ended
        self.dead: Memory[bool] = Memory(env.config.connection_age, most)  # proven to have ended: nothing is sent there
        self.due: dict[Address, int] = {}  # peers of whom something is open, and when to look after them
        self.conns = 0  # connections opened in this life
        self.gone = False  # nobody above takes anything any more: it must not be acknowledged

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
            self._undelivered(dest, None, [run])
            return None
        self._make_room(self.outboxes)
        self.conns += 1
        self.env.record("connection", peer=dest, connection=self.conns, detail="opened")
        box = self.outboxes[dest] = Outbox(self.conns)
        return box

    def _record(self, kind: str, run: Run, receiver: Address, conn: int) -> None:
        """Runs of the application are journaled; what other layers send is theirs to journal."""
        if self.env.journaling and is_own(run):
            self.env.record(kind, **what(run, receiver, conn))

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

    def on_data(self, data: Data, run: Run) -> None:
        if self.gone or data.low > data.seq:
            self.env.drop("unicast after the end" if self.gone else "malformed unicast")
            return
        peer = run.src
        box = self.inboxes.get(peer)
        if box is None or box.conn != data.conn:
            box = self._accept(peer, data.conn)
            if box is None:
                return
        lane = box.lanes[data.lane]
        owed = lane.unreported
        if data.seq == lane.next:
            lane.next += 1
            lane.unreported += 1
            self._hand_up(run.pop(), data.conn)
            if lane.early:
                self._hand_up_early(box, lane)
        else:
            self._take_other(peer, box, data, run.pop())
        if lane.unreported >= self.env.config.unicast_ack_runs:
            self._report(peer, box, data.lane)
        elif lane.unreported and not owed:
            self._look_after(peer, self.env.now + self.env.config.unicast_period)

    def _take_other(self, peer: Address, box: Inbox, data: Data, run: Run) -> None:
        """A run that was not the next one: the lane opens with it, or skips, or the run came twice, or early."""
        lane = box.lanes[data.lane]
        begin = lane.begin(data.seq, data.low, data.opens)
        if begin is not None:
            self._go_on_at(box, lane, begin)
        if data.seq > lane.next:
            self._keep(peer, box, data, run)
            return
        lane.unreported += 1
        if data.seq == lane.next:
            lane.next += 1
            self._hand_up(run, box.conn)
            self._hand_up_early(box, lane)
        else:
            self.env.drop("unicast had already")  # our acknowledgement was lost, or is on its way

    def _keep(self, peer: Address, box: Inbox, data: Data, run: Run) -> None:
        """`run` came early: it waits, bounded, for what is missing before it."""
        config, now, lane = self.env.config, self.env.now, box.lanes[data.lane]
        if not lane.waits():
            lane.find_hole(data.seq, now, config.unicast_period)
            self._look_after(peer, lane.ask_at)
            if lane.next == UNOPENED:
                self.tell(peer, SendFirst(box.conn, data.lane))
        refusal = lane.keep(data, run, config.unicast_early_max, now)
        if refusal is not None:
            self.env.drop(refusal)

    def _accept(self, peer: Address, conn: int) -> Inbox | None:
        """The connection `conn` of `peer`, which is not the one we have.

        Only a higher id opens, and only the same id revives: an old duplicate must not bring a dead connection back.
        """
        box = self.inboxes.get(peer) or self.tombstones.get(peer, self.env.now)
        if box is not None and conn < box.conn:
            self.env.drop("unicast of an old connection")
            return None
        if box is None or conn > box.conn:
            self._close(box)
            box = Inbox(conn)
            self.env.record("connection", peer=peer, connection=conn, detail="accepted")
        self.dead.remove(peer)
        self.tombstones.remove(peer)
        if peer not in self.inboxes:
            self._make_room(self.inboxes)
        self.inboxes[peer] = box
        return box

    def _hand_up(self, run: Run, conn: int) -> None:
        if is_own(run):
            if run.origin != run.src:
                self.env.drop("unicast of another origin")
                return
            self._record("unicast_deliver", run, self.env.me, conn)
        self.above.append(run)

    def _hand_up_early(self, box: Inbox, lane: InLane) -> None:
        while (run := lane.early.pop(lane.next, None)) is not None:
            lane.next += 1
            lane.unreported += 1
            self._hand_up(run, box.conn)

    def _go_on_at(self, box: Inbox, lane: InLane, seq: int) -> None:
        late = lane.go_on_at(seq, self.env.config.unicast_early_max)
        if late:
            self.env.drop("unicast had already", late)
        self._hand_up_early(box, lane)

    # -- what the sender says, asked by us

    def on_start(self, peer: Address, start: Start) -> None:
        box = self._answered_about(peer, start.conn)
        if box is not None and start.seq > box.lanes[start.lane].next:
            self._go_on_at(box, box.lanes[start.lane], start.seq)
            self._look_after(peer, self.env.now + self.env.config.unicast_period)

    def on_closed(self, peer: Address, closed: Closed) -> None:
        self._close(self._answered_about(peer, closed.conn))

    def _answered_about(self, peer: Address, conn: int) -> Inbox | None:
        box = self.inboxes.get(peer)
        if box is not None and box.conn == conn:
            return box
        self.env.drop("answer about another connection")
        return None

    # -- forgetting

    def forget(self, peer: Address) -> None:
        """Close what there is with `peer`, both ways; a short memory of where it ended stays."""
        self._give_up(peer)
        box = self.inboxes.pop(peer, None)
        if box is not None:
            self._close(box)
            self.tombstones.put(peer, box, self.env.now)
        self._leave_alone(peer)

    def _give_up(self, peer: Address) -> None:
        box = self.outboxes.pop(peer, None)
        if box is not None:
            low, high = box.lanes[DATA].low, box.lanes[DATA].next
            self.env.record("connection", peer=peer, connection=box.conn, low=low, high=high, detail="given up")
            self._undelivered(peer, box.conn, [run for lane in box.lanes for run in lane.sent.values()])

    def _undelivered(self, peer: Address, conn: int | None, runs: list[Run]) -> None:
        """Nobody will send these again.  The application is told of its own: they follow one another."""
        own = [run for run in runs if is_own(run)]
        if len(own) < len(runs):
            self.env.drop("given up with its connection", len(runs) - len(own))
        for run in own:
            self.env.record("undelivered", **who(run), peer=peer, connection=conn)
        if own:
            self.above.append(Undelivered(peer, range(own[0].first, own[-1].next)))

    def _close(self, box: Inbox | None) -> None:
        if box is not None and (count := box.close()):
            self.env.drop("early on a closed connection", count)

    def _make_room(self, table: Mapping[Address, object]) -> None:
        """One more fits into `table`: the oldest outsider goes if it must."""
        if len(table) >= self.env.config.unicast_peers_max:
            for oldest in [peer for peer in table if peer not in self.members][:1]:
                self.forget(oldest)

    # -- events

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Suspect) and event.proven:
            self.forget(event.member)
            self.dead.put(event.member, True, self.env.now)

    def down_event(self, event: Event) -> None:
        if isinstance(event, Forget):
            self.forget(event.peer)
            return
        self.below.append(event)
        if isinstance(event, NewView):
            self.members = dict.fromkeys(event.view.members)
        elif isinstance(event, Gone):
            self.gone = True
            for peer in list(self.outboxes):
                self.forget(peer)

    # -- time

    def _look_after(self, peer: Address, when: int) -> None:
        if when < self.due.get(peer, NEVER):
            self.due[peer] = when
            self.wake_at(when)

    def _leave_alone(self, peer: Address) -> None:
        """Nothing is open with `peer`: no round for it alone."""
        if self.due.pop(peer, NEVER) <= self.wake:
            self.wake = min(self.due.values(), default=NEVER)

    def timer(self) -> None:
        for peer in [peer for peer, when in self.due.items() if when <= self.env.now]:
            del self.due[peer]
            if peer in self.inboxes:
                self._look_after_incoming(peer, self.inboxes[peer])
            if peer in self.outboxes:
                self._look_after_outgoing(peer, self.outboxes[peer])
        self.wake = min(self.due.values(), default=NEVER)

    def _look_after_incoming(self, peer: Address, box: Inbox) -> None:
        for which, lane in enumerate(box.lanes):
            if lane.unreported:
                self._report(peer, box, which)
            if lane.waits() and lane.ask_at <= self.env.now:
                self._ask(peer, box, which)
            if lane.waits():
                self._look_after(peer, lane.ask_at)

    def _report(self, peer: Address, box: Inbox, which: int) -> None:
        lane = box.lanes[which]
        lane.unreported = 0
        self.tell(peer, Ack(box.conn, which, lane.next))

    def _ask(self, peer: Address, box: Inbox, which: int) -> None:
        lane, config, now = box.lanes[which], self.env.config, self.env.now
        if now - lane.fed_at >= config.connection_age:
            self.env.drop("unicast kept for too long", len(lane.early))
            lane.early, lane.beyond = {}, 0  # not acknowledged: whoever sent it has it, if it still lives
            return
        for request in lane.requests(box.conn, which, config.unicast_request_runs):
            self.tell(peer, request)
        lane.asked(now, config.unicast_period, config.unicast_backoff_max)

    def _look_after_outgoing(self, peer: Address, box: Outbox) -> None:
        config, now = self.env.config, self.env.now
        if box.waits() and peer not in self.members and now - box.answered_at >= config.connection_age:
            self._give_up(peer)
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
