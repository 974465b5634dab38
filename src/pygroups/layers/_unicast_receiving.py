"""The receiving side of UNICAST2: runs are handed up once and in order; a run that came early waits for the runs that
are missing before it.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import DeliveredTo
from pygroups.core.layer import Env, Layer
from pygroups.core.run import Run

from ._unicast_heads import Ack, Closed, Data, SendFirst, Start
from ._unicast_journal import TO_SELF, is_own, record
from ._unicast_lanes import UNOPENED, Inbox, InLane
from ._unicast_peers import Memory, Peers


class Receiving:
    """The connections from peers to this member."""

    __slots__ = ("env", "inboxes", "layer", "peers", "tombstones")

    def __init__(self, layer: Layer, peers: Peers) -> None:
        self.layer = layer
        self.env: Env = layer.env
        self.peers = peers
        self.inboxes: dict[Address, Inbox] = {}
        config = layer.env.config
        self.tombstones: Memory[Inbox] = Memory(config.tombstone, config.tombstones_max)  # where connections ended

    # -- runs

    def on_data(self, data: Data, run: Run) -> None:
        """A run came on a connection."""
        if self.peers.gone or data.low > data.seq:
            self.env.drop("unicast after the end" if self.peers.gone else "malformed unicast")
            return
        peer = run.src
        box = self.inboxes.get(peer)
        if box is None or box.conn != data.conn:
            box = self._accept(peer, data.conn)
            if box is None:
                return
        if box.lost_at:
            box.lost_at = box.tell_at = 0
            self.peers.look_after(peer, self.env.now + self.env.config.unicast_period)
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
            self._acknowledge(peer, box, data.lane)
        elif lane.unreported and not owed:
            self.peers.look_after(peer, self.env.now + self.env.config.unicast_period)

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
            self.env.drop("repeated unicast")  # our acknowledgement was lost, or is on its way

    def _keep(self, peer: Address, box: Inbox, data: Data, run: Run) -> None:
        """`run` came early: it waits, bounded, for the runs that are missing before it."""
        config, now, lane = self.env.config, self.env.now, box.lanes[data.lane]
        if not lane.waits():
            lane.find_hole(data.seq, now, config.unicast_period)
            self.peers.look_after(peer, lane.ask_at)
            if lane.next == UNOPENED:
                self.layer.tell(peer, SendFirst(box.conn, data.lane))
        refusal = lane.keep(data, run, config.unicast_early_max, now)
        if refusal is not None:
            self.env.drop(refusal)

    def take_own(self, run: Run) -> None:
        """A run that this member sends to itself: it is not lost on its way, and needs no number."""
        record(self.env, "unicast_send", run, self.env.me, TO_SELF)
        self._hand_up(run, TO_SELF)
        if is_own(run):
            self.layer.above.append(DeliveredTo(self.env.me, run.next))

    def _hand_up(self, run: Run, conn: int) -> None:
        if is_own(run):
            if run.origin != run.src:
                self.env.drop("unicast of another origin")
                return
            record(self.env, "unicast_deliver", run, self.env.me, conn)
        self.layer.above.append(run)

    def _hand_up_early(self, box: Inbox, lane: InLane) -> None:
        while (run := lane.early.pop(lane.next, None)) is not None:
            lane.next += 1
            lane.unreported += 1
            self._hand_up(run, box.conn)

    def _go_on_at(self, box: Inbox, lane: InLane, seq: int) -> None:
        late = lane.go_on_at(seq, self.env.config.unicast_early_max)
        if late:
            self.env.drop("repeated unicast", late)
        self._hand_up_early(box, lane)

    # -- connections

    def _accept(self, peer: Address, conn: int) -> Inbox | None:
        """The connection `conn` of `peer`, which is not the one that is open; None if `conn` is an old one.

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
        self.peers.dead.remove(peer)
        self.tombstones.remove(peer)
        if peer not in self.inboxes:
            self.peers.make_room(self.inboxes)
        self.inboxes[peer] = box
        return box

    def forget(self, peer: Address) -> None:
        """Close the connection from `peer`.  For a time a tombstone keeps the end of the connection."""
        box = self.inboxes.pop(peer, None)
        if box is not None:
            self._close(box)
            if self.tombstones.put(peer, box, self.env.now):
                self.env.drop("end of a connection forgotten too soon")

    def _close(self, box: Inbox | None) -> None:
        if box is not None and (count := box.close()):
            self.env.drop("early on a closed connection", count)

    # -- answers of the sender

    def on_start(self, peer: Address, start: Start) -> None:
        """The peer no longer holds the requested runs: this member or its earlier incarnation had them already."""
        box = self._answered_about(peer, start.conn)
        if box is not None and start.seq > box.lanes[start.lane].next:
            self._go_on_at(box, box.lanes[start.lane], start.seq)
            self.peers.look_after(peer, self.env.now + self.env.config.unicast_period)

    def on_closed(self, peer: Address, closed: Closed) -> None:
        """The peer gave up the connection that was asked about."""
        self._close(self._answered_about(peer, closed.conn))

    def _answered_about(self, peer: Address, conn: int) -> Inbox | None:
        box = self.inboxes.get(peer)
        if box is not None and box.conn == conn:
            return box
        self.env.drop("answer about another connection")
        return None

    # -- losses that the driver reports

    def on_lost(self, peer: Address) -> None:
        """An acknowledgement to the peer may be lost.  The peer may know of no loss, so it gets the acknowledgement
        again."""
        box, config, now = self.inboxes.get(peer), self.env.config, self.env.now
        if box is not None:
            when = box.lose(now, config.unicast_period, config.unicast_backoff_max, config.connection_age)
            if when is not None:
                self.peers.look_after(peer, when)

    # -- time: acknowledgements, and requests for missing runs

    def owes(self, peer: Address) -> bool:
        """Whether `peer` is to be sent an acknowledgement or a request."""
        box = self.inboxes.get(peer)
        return box is not None and box.owes()

    def look_after(self, peer: Address) -> None:
        """Acknowledge the delivered runs, and request the missing runs."""
        box = self.inboxes.get(peer)
        if box is None:
            return
        for which, lane in enumerate(box.lanes):
            if lane.unreported:
                self._acknowledge(peer, box, which)
            if lane.waits() and lane.ask_at <= self.env.now:
                self._ask_for_holes(peer, box, which)
            if lane.waits():
                self.peers.look_after(peer, lane.ask_at)

    def acknowledge_all(self) -> None:
        """Acknowledge at once all that was delivered: this member leaves."""
        for peer, box in self.inboxes.items():
            for which, lane in enumerate(box.lanes):
                if lane.unreported:
                    self._acknowledge(peer, box, which)

    def _acknowledge(self, peer: Address, box: Inbox, which: int) -> None:
        lane = box.lanes[which]
        lane.unreported = 0
        self.layer.tell(peer, Ack(box.conn, which, lane.next))

    def _ask_for_holes(self, peer: Address, box: Inbox, which: int) -> None:
        lane, config, now = box.lanes[which], self.env.config, self.env.now
        if now - lane.fed_at >= config.connection_age:
            self.env.drop("unicast kept for too long", len(lane.early))
            lane.early, lane.beyond = {}, 0  # not acknowledged: if their sender lives, it still holds them
            return
        for request in lane.requests(box.conn, which, config.unicast_request_runs):
            self.layer.tell(peer, request)
        lane.asked(now, config.unicast_period, config.unicast_backoff_max)
