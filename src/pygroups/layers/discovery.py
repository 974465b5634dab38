"""DISCOVERY: who is there, and who may be found.

What it takes to find anybody lies in the driver; this layer says when this member may be found, and when not any more.
Needs nothing.  Note: docs/layers/discovery.md; seed 002.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.driver_events import Announce
from pygroups.core.events import Event, Gone, Invited, NewView
from pygroups.core.layer import Env, Layer


class Discovery(Layer):
    """Announces this member once it has a view; takes that back when it is no member any more."""

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
            self.below.append(Announce(False))  # whoever was allowed to found and did not gives that back by it, too
