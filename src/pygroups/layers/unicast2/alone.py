"""UNICAST2 in a process without a group.  Without a group no view closes connections, and no layer below judges whether
a peer has ended: the evidence of the driver comes to this module.  This module also ends a leave, as GMS does in a
group: the process has left when all its messages are acknowledged.  Note: docs/layers/unicast2.md.
"""

from __future__ import annotations

from pygroups.core.driver_events import Answered, Dead, Ended, Probe
from pygroups.core.events import Event, Excluded
from pygroups.core.layer import Layer

from .peers import Peers
from .receiving import Receiving
from .sending import Sending


class Alone:
    """The part of UNICAST2 that stands in for the layers that a process without a group does not have."""

    __slots__ = ("layer", "leaving", "peers", "receiving", "sending")

    def __init__(self, layer: Layer, peers: Peers, sending: Sending, receiving: Receiving) -> None:
        self.layer = layer
        self.peers = peers
        self.sending = sending
        self.receiving = receiving
        self.leaving = False  # the application leaves; the end comes when all its messages are acknowledged

    def take(self, event: Event) -> None:
        """Handle an event of the driver."""
        if isinstance(event, Dead):
            self.peers.ended(event.peer)
        elif isinstance(event, Answered):
            self.peers.lives(event.peer)
        else:
            if isinstance(event, Ended) and self.sending.waits_for(event.peer):
                self.layer.below.append(Probe(event.peer))
            self.layer.above.append(event)

    def leave(self) -> None:
        """Leave as soon as all messages of the application are acknowledged."""
        self.leaving = True
        self.receiving.acknowledge_all()
        self.end_if_all_acknowledged()

    def end_if_all_acknowledged(self) -> None:
        """End a leave if no message waits for an acknowledgement."""
        if self.leaving and not self.peers.gone and not self.sending.has_unacknowledged():
            self.receiving.acknowledge_all()
            self.peers.gone = True
            for peer in list(self.sending.connections):
                self.peers.forget(peer)
            self.layer.above.append(Excluded("left", ""))
