"""The sending side of UNICAST2: runs are numbered per connection, kept until the peer acknowledges them, and sent again
when the peer asks or stays silent.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.driver_events import Probe
from pygroups.core.events import Acknowledged, ConnectionClosed, DeliveredTo, Unacknowledged, Undelivered
from pygroups.core.layer import Env, Layer
from pygroups.core.limits import UNICAST_PATIENCE, UNICAST_PERIOD
from pygroups.core.run import Run, Tracked
from pygroups.core.services import MEMBERSHIP
from pygroups.core.tables import Tables

from .heads import CONTROL, DATA, Ack, Closed, Data, Resend, SendFirst, Start
from .lanes import OutgoingConnection, OutLane
from .peers import Peers, is_own, record


class Sending:
    """The connections from this member to its peers."""

    __slots__ = ("connections", "conns", "env", "layer", "peers")

    tables: ClassVar[Tables] = {
        "connections": "peers",
        "connections[].lanes": "fixed",
        "connections[].lanes[].sent": "lane_runs",
    }

    def __init__(self, layer: Layer, peers: Peers) -> None:
        self.layer = layer
        self.env: Env = layer.env
        self.peers = peers
        self.connections: dict[Address, OutgoingConnection] = {}
        self.conns = 0  # connections opened since this member started

    # -- runs

    def send(self, dest: Address, run: Run) -> None:
        """Send `run` to `dest`, another process, on the connection to it or on a new one."""
        connection = self.connections.get(dest) or self._open(dest, run)
        if connection is None:
            return
        which = CONTROL if run.origin is None else DATA
        lane = connection.lanes[which]
        seq = lane.next
        if lane.low == seq:
            self._begin_to_wait(dest, connection, lane)
        if which == DATA and isinstance(run.head, Tracked):
            lane.tracked += 1
            self.layer.above.append(Unacknowledged(dest, run.head))
        lane.sent[seq] = run
        lane.next, lane.sent_at = seq + 1, self.env.now
        self.layer.below.append(run.push(Data(connection.conn, which, seq, lane.low, seq == 0)))
        if self.env.journaling:
            record(self.env, "unicast_send", run, dest, connection.conn)

    def _open(self, dest: Address, run: Run) -> OutgoingConnection | None:
        """A connection to `dest` for its first run; None if no connection may be opened, and the run is given up."""
        if not self.peers.may_send_to(dest):
            if self._report_undelivered(dest, None, [run]):
                self.env.drop("sent to a peer that ended")
            self._tell_closed(dest)
            return None
        self.peers.make_room(self.connections)
        self.conns += 1
        self.env.record("connection", peer=dest, connection=self.conns, detail="opened")
        connection = self.connections[dest] = OutgoingConnection(self.conns)
        return connection

    def _begin_to_wait(self, dest: Address, connection: OutgoingConnection, lane: OutLane) -> None:
        """From now on the peer owes an acknowledgement of the first run in `lane`."""
        if not connection.waits():
            connection.answered_at = self.env.now
        lane.pause = self._first_pause(lane)
        self.peers.look_after(dest, self.env.now + lane.pause)

    def _first_pause(self, lane: OutLane) -> int:
        """How long the runs of `lane` wait for an acknowledgement before the last one is sent again.

        A busy receiver acknowledges late.  If the driver reports losses, a late acknowledgement is no sign of one.
        """
        if self.env.lossless and not lane.in_doubt():
            return UNICAST_PATIENCE
        return 2 * UNICAST_PERIOD  # the acknowledgement may take one period to leave the peer

    def _send_again(self, connection: OutgoingConnection, which: int, seq: int, *, opens: bool = False) -> None:
        lane = connection.lanes[which]
        self.env.count("unicast runs sent again")
        self.env.count("unicast bytes sent again", len(lane.sent[seq].body))
        self.layer.below.append(lane.sent[seq].push(Data(connection.conn, which, seq, lane.low, opens or seq == 0)))

    # -- answers of the receiver

    def on_ack(self, peer: Address, ack: Ack) -> bool:
        """The peer has delivered runs.  Returns whether this acknowledgement leaves no run unacknowledged."""
        connection = self.connections.get(peer)
        if connection is None or connection.conn != ack.conn or ack.next > connection.lanes[ack.lane].next:
            self.env.drop("acknowledgement of a run that was not sent on this connection")
            return False
        lane = connection.lanes[ack.lane]
        connection.answered_at = self.env.now
        had = lane.acknowledge(ack.next)
        if not had:
            return False
        if ack.lane == DATA:
            self._report_delivered(peer, had)
        if lane.tracked:
            self._report_acknowledged(peer, lane, had)
        if lane.sent:
            self._begin_to_wait(peer, connection, lane)
        return not connection.waits()

    def _report_delivered(self, peer: Address, had: list[Run]) -> None:
        last = next((run for run in reversed(had) if is_own(run)), None)
        if last is not None:
            self.layer.above.append(DeliveredTo(peer, last.next))

    def _report_acknowledged(self, peer: Address, lane: OutLane, had: list[Run]) -> None:
        heads = [run.head for run in had if isinstance(run.head, Tracked)]
        if heads:
            lane.tracked -= len(heads)
            self.layer.above.append(Acknowledged(peer, list(heads)))

    def on_resend(self, peer: Address, resend: Resend) -> None:
        """The peer lacks runs."""
        connection = self._asked_about(peer, resend.conn)
        if connection is None:
            return
        lane = connection.lanes[resend.lane]
        if resend.low < lane.low:
            self.layer.tell(peer, Start(connection.conn, resend.lane, lane.low))
        for seq in lane.held(resend.low, resend.high, self.env.config.unicast_request_runs):
            self.env.requested += lane.sent[seq].origin is not None
            self._send_again(connection, resend.lane, seq)

    def on_send_first(self, peer: Address, send_first: SendFirst) -> None:
        """The peer does not know where the lane begins."""
        connection = self._asked_about(peer, send_first.conn)
        if connection is None:
            return
        lane = connection.lanes[send_first.lane]
        if not lane.may_send_first(self.env.now, UNICAST_PERIOD // 2):
            self.env.drop("asked for the first run too often")
            return
        lane.first_at = self.env.now
        if lane.sent:
            self._send_again(connection, send_first.lane, lane.low, opens=True)
        else:
            self.layer.tell(peer, Start(connection.conn, send_first.lane, lane.low))

    def _asked_about(self, peer: Address, conn: int) -> OutgoingConnection | None:
        """The connection that a peer asks about, or None.  The peer of a closed connection gets Closed."""
        connection = self.connections.get(peer)
        if connection is not None and connection.conn == conn:
            connection.answered_at = self.env.now
            return connection
        self.env.drop("request about another connection")
        if conn <= self.conns:
            self.layer.tell(peer, Closed(conn))
        return None

    # -- losses that the driver reports

    def on_lost(self, peer: Address) -> None:
        """Runs to the peer, or its acknowledgements, may be lost: retransmit the last runs until it acknowledges."""
        connection = self.connections.get(peer)
        for lane in () if connection is None else connection.lanes:
            if lane.lose():
                lane.sent_at, lane.pause = self.env.now, self._first_pause(lane)
                self.peers.look_after(peer, lane.sent_at + lane.pause)

    # -- time

    def look_after(self, peer: Address) -> None:
        """Retransmit the runs that the peer has not acknowledged in time, or give up the connection."""
        connection = self.connections.get(peer)
        if connection is None:
            return
        config, now = self.env.config, self.env.now
        if (
            connection.waits()
            and peer not in self.peers.members
            and now - connection.answered_at >= config.connection_age
        ):
            if unsent := self.give_up(peer):
                self.env.drop("given up with its connection", len(unsent))
            return
        for which, lane in enumerate(connection.lanes):
            if lane.sent and lane.sent_at + lane.pause <= now:
                for seq in lane.to_repeat(2 * UNICAST_PERIOD):
                    self._send_again(connection, which, seq)
                self._doubt_life(peer, connection)
                first = self._first_pause(lane)
                lane.sent_at, lane.pause = now, max(first, min(2 * lane.pause, config.unicast_backoff_max))
            if lane.sent:
                self.peers.look_after(peer, lane.sent_at + lane.pause)

    def _doubt_life(self, peer: Address, connection: OutgoingConnection) -> None:
        """Without a group no layer watches a silent peer: check whether its process still runs at its address."""
        if (
            MEMBERSHIP not in self.env.services
            and self.env.now - connection.answered_at >= self.env.config.verify_timeout
        ):
            self.layer.below.append(Probe(peer))

    def waits_for(self, peer: Address) -> bool:
        """Whether `peer` owes an acknowledgement."""
        connection = self.connections.get(peer)
        return connection is not None and connection.waits()

    def has_unacknowledged(self) -> bool:
        """Whether some peer has not acknowledged a run with payload."""
        return any(connection.lanes[DATA].sent for connection in self.connections.values())

    # -- closing

    def give_up(self, peer: Address) -> list[Run]:
        """Close the connection to `peer`, and report the messages of the application that were not acknowledged.

        Returns the runs of other layers that were not acknowledged, in order.
        """
        connection = self.connections.pop(peer, None)
        if connection is None:
            return []
        low, high = connection.lanes[DATA].low, connection.lanes[DATA].next
        self.env.record("connection", peer=peer, connection=connection.conn, low=low, high=high, detail="given up")
        others = self._report_undelivered(
            peer, connection.conn, [run for lane in connection.lanes for run in lane.sent.values()]
        )
        self._tell_closed(peer)
        return others

    def _tell_closed(self, peer: Address) -> None:
        if MEMBERSHIP not in self.env.services and not self.peers.gone:
            self.layer.above.append(ConnectionClosed(peer))  # in a group a view without the peer reports the end

    def _report_undelivered(self, peer: Address, conn: int | None, runs: list[Run]) -> list[Run]:
        """Tell the application which of its messages are not sent again; they follow one another.  Returns the runs of
        other layers."""
        own = [run for run in runs if is_own(run)]
        for run in own:
            if run.count:  # FRAGMENTATION reports a message of which only some pieces were sent
                self.env.record("undelivered", **run.columns(), peer=peer, connection=conn)
        if own:
            self.layer.above.append(Undelivered(peer, range(own[0].first, own[-1].next)))
        return [run for run in runs if not is_own(run)]
