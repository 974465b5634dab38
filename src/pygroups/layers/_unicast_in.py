"""The receiving side of UNICAST2, and what both sides keep: the peers of whom something is open.

A run comes once and in order; what came early waits for what is missing before it.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from pygroups.core.address import Address
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import Run

from ._unicast_heads import Ack, Closed, Data, SendFirst, Start
from ._unicast_lanes import UNOPENED, Inbox, InLane, Memory, is_own, what


class Incoming(Layer):
    """What a peer sends; unicast2.py adds what is sent to it."""

    __slots__ = ("dead", "due", "gone", "inboxes", "members", "tombstones")

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.members: dict[Address, None] = {}  # of the view: their connections are never given up
        self.inboxes: dict[Address, Inbox] = {}
        config = env.config
        self.tombstones: Memory[Inbox] = Memory(config.tombstone, config.tombstones_max)  # where connections ended
        self.dead: Memory[bool] = Memory(config.connection_age, config.unicast_peers_max)  # outsiders: nothing is sent
        self.due: dict[Address, int] = {}  # peers of whom something is open, and when to look after them
        self.gone = False  # nobody above takes anything any more: it must not be acknowledged

    def forget(self, peer: Address) -> None:
        """Close what there is with `peer`, both ways."""
        raise NotImplementedError

    # -- runs

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

    def _make_room(self, table: Mapping[Address, object]) -> None:
        """One more fits into `table`: the oldest outsider goes if it must."""
        if len(table) >= self.env.config.unicast_peers_max:
            for oldest in [peer for peer in table if peer not in self.members][:1]:
                self.forget(oldest)

    def _hand_up(self, run: Run, conn: int) -> None:
        if is_own(run):
            if run.origin != run.src:
                self.env.drop("unicast of another origin")
                return
            self._record("unicast_deliver", run, self.env.me, conn)
        self.above.append(run)

    def _record(self, kind: str, run: Run, receiver: Address, conn: int) -> None:
        """Runs of the application are journaled; what other layers send is theirs to journal."""
        if self.env.journaling and is_own(run):
            self.env.record(kind, **what(run, receiver, conn))

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

    def _close(self, box: Inbox | None) -> None:
        if box is not None and (count := box.close()):
            self.env.drop("early on a closed connection", count)

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

    # -- what is open, and when to look after it

    def _look_after(self, peer: Address, when: int) -> None:
        if when < self.due.get(peer, NEVER):
            self.due[peer] = when
            self.wake_at(when)

    def _leave_alone(self, peer: Address) -> None:
        """Nothing is open with `peer`: no round for it alone."""
        if self.due.pop(peer, NEVER) <= self.wake:
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
