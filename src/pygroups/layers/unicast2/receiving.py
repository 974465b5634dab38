"""The receiving side of UNICAST2: runs are handed up once and in order; a run that came early waits for the runs that
are missing before it.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.events import DeliveredTo
from pygroups.core.layer import Env, Layer
from pygroups.core.limits import UNICAST_ACK_LATE, UNICAST_PERIOD
from pygroups.core.run import OfApplication, Run, Tracked
from pygroups.core.tables import Tables

from .heads import Ack, Closed, Data, SendFirst, Start
from .lanes import UNOPENED, IncomingConnection, InLane
from .peers import TO_SELF, Memory, Peers, is_own, record

AWAITED: Final = (Tracked, OfApplication)  # heads of runs for whose acknowledgement somebody may wait


class Receiving:
    """The connections from peers to this member."""

    __slots__ = ("connections", "env", "layer", "peers", "tombstones")

    tables: ClassVar[Tables] = {
        "connections": "peers",
        "connections[].lanes": "fixed",
        "connections[].lanes[].early": "unicast_early_max",
        "tombstones.things": "tombstones_max",
        "tombstones.things[]": "fixed",
        "tombstones.things[][].lanes": "fixed",
        "tombstones.things[][].lanes[].early": "nothing",
    }

    def __init__(self, layer: Layer, peers: Peers) -> None:
        self.layer = layer
        self.env: Env = layer.env
        self.peers = peers
        self.connections: dict[Address, IncomingConnection] = {}
        config = layer.env.config
        self.tombstones: Memory[IncomingConnection] = Memory(config.tombstone, config.tombstones_max)  # ended ones

    # -- runs

    def on_data(self, data: Data, run: Run) -> None:
        """A run came on a connection."""
        if self.peers.gone or data.low > data.seq:
            self.env.drop("unicast after the end" if self.peers.gone else "malformed unicast")
            return
        peer = run.src
        connection = self.connections.get(peer)
        if connection is None or connection.conn != data.conn:
            connection = self._accept(peer, data.conn)
            if connection is None:
                return
        if connection.lost_at:
            connection.lost_at = connection.tell_at = 0
            self.peers.look_after(peer, self.env.now + UNICAST_PERIOD)
        lane = connection.lanes[data.lane]
        owed, in_order = lane.unreported, data.seq == lane.next
        if in_order:
            lane.next += 1
            lane.unreported += 1
            self._hand_up(run.pop(), data.conn)
            if lane.early:
                self._hand_up_early(connection, lane)
        else:
            self._take_other(peer, connection, data, run.pop())
        if lane.unreported >= self.env.config.unicast_ack_runs:
            self._acknowledge(peer, connection, data.lane)
        elif lane.unreported:
            late = in_order and self._may_wait(run)
            if not (late and owed):
                self.peers.look_after(peer, self.env.now + (UNICAST_ACK_LATE if late else UNICAST_PERIOD))

    def _may_wait(self, run: Run) -> bool:
        """Whether only the memory of its sender waits for the acknowledgement of `run`, which has this layer's head."""
        return self.env.lossless and len(run.heads) > 1 and not isinstance(run.heads[-2], AWAITED)

    def _take_other(self, peer: Address, connection: IncomingConnection, data: Data, run: Run) -> None:
        """A run that was not the next one: the lane opens with this run or skips to the run, or the run came twice or
        early."""
        lane = connection.lanes[data.lane]
        begin = lane.begin(data.seq, data.low, data.opens)
        if begin is not None:
            self._go_on_at(connection, lane, begin)
        if data.seq > lane.next:
            self._keep(peer, connection, data, run)
            return
        lane.unreported += 1
        if data.seq == lane.next:
            lane.next += 1
            self._hand_up(run, connection.conn)
            self._hand_up_early(connection, lane)
        else:
            self.env.drop("repeated unicast")  # the acknowledgement of this member was lost, or is on its way

    def _keep(self, peer: Address, connection: IncomingConnection, data: Data, run: Run) -> None:
        """`run` came early: it waits, bounded, for the runs that are missing before it."""
        config, now, lane = self.env.config, self.env.now, connection.lanes[data.lane]
        if not lane.waits():
            lane.find_hole(data.seq, now, UNICAST_PERIOD)
            self.peers.look_after(peer, lane.ask_at)
            if lane.next == UNOPENED:
                self.layer.tell(peer, SendFirst(connection.conn, data.lane))
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

    def _hand_up_early(self, connection: IncomingConnection, lane: InLane) -> None:
        while (run := lane.early.pop(lane.next, None)) is not None:
            lane.next += 1
            lane.unreported += 1
            self._hand_up(run, connection.conn)

    def _go_on_at(self, connection: IncomingConnection, lane: InLane, seq: int) -> None:
        late = lane.go_on_at(seq, self.env.config.unicast_early_max)
        if late:
            self.env.drop("repeated unicast", late)
        self._hand_up_early(connection, lane)

    # -- connections

    def _accept(self, peer: Address, conn: int) -> IncomingConnection | None:
        """The connection `conn` of `peer`, which is not the one that is open; None if `conn` is an old one.

        Only a higher id opens, and only the same id revives: an old duplicate must not bring a dead connection back.
        """
        connection = self.connections.get(peer) or self.tombstones.get(peer, self.env.now)
        if connection is not None and conn < connection.conn:
            self.env.drop("unicast of an old connection")
            return None
        if connection is None or conn > connection.conn:
            self._close(connection)
            connection = IncomingConnection(conn)
            self.env.record("connection", peer=peer, connection=conn, detail="accepted")
        self.peers.dead.remove(peer)
        self.tombstones.remove(peer)
        if peer not in self.connections:
            self.peers.make_room(self.connections)
        self.connections[peer] = connection
        return connection

    def forget(self, peer: Address) -> None:
        """Close the connection from `peer`.  For a time a tombstone keeps the end of the connection."""
        connection = self.connections.pop(peer, None)
        if connection is not None:
            self._close(connection)
            if self.tombstones.put(peer, connection, self.env.now):
                self.env.drop("end of a connection forgotten too soon")

    def _close(self, connection: IncomingConnection | None) -> None:
        if connection is not None and (count := connection.close()):
            self.env.drop("early on a closed connection", count)

    # -- answers of the sender

    def on_start(self, peer: Address, start: Start) -> None:
        """The peer no longer holds the requested runs: this member or its earlier incarnation had them already."""
        connection = self._answered_about(peer, start.conn)
        if connection is not None and start.seq > connection.lanes[start.lane].next:
            self._go_on_at(connection, connection.lanes[start.lane], start.seq)
            self.peers.look_after(peer, self.env.now + UNICAST_PERIOD)

    def on_closed(self, peer: Address, closed: Closed) -> None:
        """The peer has given up the connection about which this member asked."""
        self._close(self._answered_about(peer, closed.conn))

    def _answered_about(self, peer: Address, conn: int) -> IncomingConnection | None:
        connection = self.connections.get(peer)
        if connection is not None and connection.conn == conn:
            return connection
        self.env.drop("answer about another connection")
        return None

    # -- losses that the driver reports

    def on_lost(self, peer: Address) -> None:
        """An acknowledgement to the peer may be lost.  The peer may know of no loss, so it gets the acknowledgement
        again."""
        connection, config, now = self.connections.get(peer), self.env.config, self.env.now
        if connection is not None:
            when = connection.lose(now, UNICAST_PERIOD, config.unicast_backoff_max, config.connection_age)
            if when is not None:
                self.peers.look_after(peer, when)

    # -- time: acknowledgements, and requests for missing runs

    def owes(self, peer: Address) -> bool:
        """Whether this member owes `peer` an acknowledgement or a request."""
        connection = self.connections.get(peer)
        return connection is not None and connection.owes()

    def look_after(self, peer: Address) -> None:
        """Acknowledge the delivered runs, and request the missing runs."""
        connection = self.connections.get(peer)
        if connection is None:
            return
        for which, lane in enumerate(connection.lanes):
            if lane.unreported:
                self._acknowledge(peer, connection, which)
            if lane.waits() and lane.ask_at <= self.env.now:
                self._ask_for_holes(peer, connection, which)
            if lane.waits():
                self.peers.look_after(peer, lane.ask_at)

    def acknowledge_all(self) -> None:
        """Acknowledge at once all that was delivered: this member leaves."""
        for peer, connection in self.connections.items():
            for which, lane in enumerate(connection.lanes):
                if lane.unreported:
                    self._acknowledge(peer, connection, which)

    def _acknowledge(self, peer: Address, connection: IncomingConnection, which: int) -> None:
        lane = connection.lanes[which]
        lane.unreported = 0
        self.layer.tell(peer, Ack(connection.conn, which, lane.next))

    def _ask_for_holes(self, peer: Address, connection: IncomingConnection, which: int) -> None:
        lane, config, now = connection.lanes[which], self.env.config, self.env.now
        if now - lane.fed_at >= config.connection_age:
            self.env.drop("unicast kept for too long", len(lane.early))
            lane.early, lane.beyond = {}, 0  # not acknowledged: a sender that runs still holds them
            return
        for request in lane.requests(connection.conn, which, config.unicast_request_runs):
            self.layer.tell(peer, request)
        lane.asked(now, UNICAST_PERIOD, config.unicast_backoff_max)
