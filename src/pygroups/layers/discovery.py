"""DISCOVERY: other processes can find this one while it is a member of the group.

The driver finds processes, in a folder or on the network.  This layer begins and ends the time in which this member may
be found.
Needs nothing.  Note: docs/layers/discovery.md; seed 002.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.driver_events import Announce
from pygroups.core.events import Event, Gone, Invited, NewView
from pygroups.core.layer import Env, Layer


class Discovery(Layer):
    """Announces this member when it has its first view, and withdraws the announcement when it has left."""

    __slots__ = ("announced", "gone")

    gives: ClassVar[frozenset[str]] = frozenset({"DISCOVERY"})

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.announced = False
        self.gone = False  # an incarnation that was a member once never is one again

    def down_event(self, event: Event) -> None:
        if isinstance(event, Invited):
            self.below.append(Announce(False, event.invited))
            return
        self.below.append(event)
        if isinstance(event, NewView):
            if not self.announced and not self.gone:
                self.announced = True
                self.below.append(Announce(True))
        elif isinstance(event, Gone) and not self.gone:
            self.gone = True
            self.below.append(
                Announce(False)
            )  # a process that was allowed to found, and did not, gives the permission back with it
