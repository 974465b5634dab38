"""UNICAST2: runs from one member to another arrive once, in order, without holes, for each connection.

Works without a group and towards processes of no group.  The receiver acknowledges delivered runs and requests missing
runs.  The sender retransmits its last run until it is acknowledged.  Each connection has two lanes, so that control
never waits behind data.  The sending side is in sending.py, the receiving side in receiving.py; this
layer hands each run and head to its side, and closes both.  Note: docs/layers/unicast2.md; design note 004.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.driver_events import Lost
from pygroups.core.events import Event, Forget, Gone, Leave, NewView
from pygroups.core.layer import Env, PassingLayer
from pygroups.core.merge_events import SignOfLife
from pygroups.core.run import Loose, Run
from pygroups.core.services import MEMBERSHIP
from pygroups.core.suspicion_events import Suspect, Unsuspect
from pygroups.core.tables import Tables, under

from .alone import Alone
from .heads import Ack, Closed, Data, Resend, SendFirst, Start
from .peers import Peers
from .receiving import Receiving
from .sending import Sending


class Unicast2(PassingLayer):
    """Once and in order for each connection.  Only a higher connection id replaces a connection."""

    __slots__ = ("alone", "peers", "receiving", "sending")

    needs: ClassVar[frozenset[str]] = frozenset({"UNICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST"})
    heads: ClassVar[tuple[type, ...]] = (Data, Ack, Resend, SendFirst, Start, Closed)

    tables: ClassVar[Tables] = {
        **under("peers", Peers.tables),
        **under("receiving", Receiving.tables),
        **under("sending", Sending.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.peers = Peers(self, self.forget)
        self.sending = Sending(self, self.peers)
        self.receiving = Receiving(self, self.peers)
        self.alone = None if MEMBERSHIP in env.services else Alone(self, self.peers, self.sending, self.receiving)

    # -- runs

    def down(self, run: Run) -> None:
        dest = run.dest
        if dest is None or isinstance(run.head, Loose):
            self.below.append(run)
        elif dest == self.env.me:
            self.receiving.take_own(run)
        else:
            self.sending.send(dest, run)

    def rise(self, run: Run) -> Run | None:
        if run.dest is None or isinstance(run.head, Loose):
            return run  # no multicast is for this layer, even with a head of this layer
        self._take(run)
        return None

    def _take(self, run: Run) -> None:
        head = run.head
        if isinstance(head, Data):
            self.receiving.on_data(head, run)
        elif isinstance(head, Ack):
            self.on_ack(run.src, head)
        elif isinstance(head, Resend):
            self.sending.on_resend(run.src, head)
        elif isinstance(head, SendFirst):
            self.sending.on_send_first(run.src, head)
        elif isinstance(head, Start):
            self.receiving.on_start(run.src, head)
        elif isinstance(head, Closed):
            self.receiving.on_closed(run.src, head)
        else:
            self.env.drop("unicast without a connection")

    def on_ack(self, peer: Address, ack: Ack) -> None:
        if self.sending.on_ack(peer, ack) and not self.receiving.owes(peer):
            self.peers.leave_alone(peer)
        if self.alone is not None and self.alone.leaving:
            self.alone.end_if_all_acknowledged()

    # -- closing

    def forget(self, peer: Address) -> None:
        """Close both connections with `peer`.  For a time a tombstone keeps the end of the incoming one."""
        unsent = self.sending.give_up(peer)
        self.receiving.forget(peer)
        self.peers.leave_alone(peer)
        if peer in self.peers.members and not self.peers.gone:
            for run in unsent:  # of layers that rely on it as long as the view has the peer: on a new connection
                self.down(run)
        elif unsent:
            self.env.drop("given up with its connection", len(unsent))
        if self.alone is not None:
            self.alone.end_if_all_acknowledged()

    # -- events

    def up_event(self, event: Event) -> None:
        if isinstance(event, Lost):
            self.sending.on_lost(event.peer)
            self.receiving.on_lost(event.peer)
            return
        if self.alone is not None:
            self.alone.take(event)
            return
        self.above.append(event)
        if isinstance(event, Suspect) and event.proven:
            self.peers.ended(event.member)
        elif isinstance(event, Unsuspect):
            self.peers.lives(event.member)

    def down_event(self, event: Event) -> None:
        if isinstance(event, Forget):
            self.forget(event.peer)
            return
        if isinstance(event, SignOfLife):
            self.peers.lives(event.peer)
            return
        if isinstance(event, Leave) and self.alone is not None:
            self.alone.leave()
            return
        self.below.append(event)
        if isinstance(event, NewView):
            self.peers.install(event.view.members)
        elif isinstance(event, Gone):
            self.peers.gone = True
            for peer in list(self.sending.connections):
                self.forget(peer)

    # -- time

    def timer(self) -> None:
        for peer in self.peers.take_due():
            self.receiving.look_after(peer)
            self.sending.look_after(peer)
        if self.alone is not None:
            self.alone.end_if_all_acknowledged()
        self.wake = self.peers.next_due()

    def gauges(self) -> dict[str, int]:
        """Runs that are not acknowledged, and runs that came early."""
        return {
            "sent": sum(len(lane.sent) for one in self.sending.connections.values() for lane in one.lanes),
            "early": sum(len(lane.early) for one in self.receiving.connections.values() for lane in one.lanes),
        }
