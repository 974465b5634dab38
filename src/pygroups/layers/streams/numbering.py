"""The base of a layer with numbered streams: its answers to the layers around it, and the clock of its holes and of its
announcements.  The layer brings its heads, and the announcement of an idle sender.

Note: docs/layers/streams.md.
"""

from __future__ import annotations

from pygroups.core.events import (
    Acknowledged,
    AllInstalled,
    Event,
    Excluded,
    Fetch,
    HeldQuery,
    NewView,
    Stability,
    Stop,
    Unacknowledged,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.suspicion_events import Suspect, Unsuspect

from .holes import Request
from .view_streams import ViewStreams


class Numbering(Layer):
    """Answers HeldQuery, Fetch and Stability, stops with the view, and begins anew in the next one.

    The layer calls `sent_in_stream()` after each own multicast, and has two hooks: `announce()`, and `install()` around
    the change of the streams.
    """

    __slots__ = ("announce_at", "announce_pause", "check_at", "streams")

    def __init__(self, env: Env, request: Request) -> None:
        super().__init__(env)
        self.streams = ViewStreams(self, request)  # one for each member of the view, in rank order
        self.announce_at = NEVER
        self.announce_pause = 0
        self.check_at = NEVER  # when the streams are looked at for holes, as known at the last look

    # -- the hooks

    def announce(self) -> bool:
        """Report the end of the own stream to the members that may lack some of it.  Returns whether to report again
        after twice the pause, `announce_pause`."""
        raise NotImplementedError

    def install(self, event: NewView) -> None:
        """Begin the streams of the new view, which the layers above have heard of.  Runs of this view that came early
        are looked at next."""
        self.begin(event)

    # -- announcements of an idle sender

    def sent_in_stream(self) -> None:
        """An own multicast leaves now: its end is announced if no later one shows it."""
        env, before = self.env, self.announce_at
        self.announce_pause = env.config.nakack_period * 3 // 2  # received and answered within two periods (NAK-I2)
        self.announce_at = env.now + self.announce_pause
        if self.wake == before or self.wake > self.announce_at:  # a multicast shows the end of the earlier ones
            self.wake = self.announce_at if self.announce_at < self.check_at else self.check_at

    def _announce(self) -> None:
        if not self.announce():
            self.announce_at = NEVER
            return
        self.announce_pause *= 2
        self.announce_at = self.env.now + self.announce_pause

    # -- requests and reports of the layers above

    def down_event(self, event: Event) -> None:
        if isinstance(event, Stability):
            self.streams.stability(event)
        elif isinstance(event, HeldQuery):
            self.streams.held(event)
        elif isinstance(event, Fetch):
            self.streams.fetch(event)
        else:
            self.below.append(event)

    # -- membership and time

    def up_event(self, event: Event) -> None:
        if isinstance(event, Unacknowledged):
            self.streams.answer_waits(event.peer, event.head)
            return
        if isinstance(event, Acknowledged):
            self.streams.answers_arrived(event.peer, event.heads)
            return
        if isinstance(event, AllInstalled):
            self.streams.all_installed(event.view)
            return
        self.above.append(event)
        if isinstance(event, Suspect):
            self.streams.holes.suspects[event.member] = None
        elif isinstance(event, Unsuspect):
            self.streams.holes.suspects.pop(event.member, None)
        elif isinstance(event, Stop):
            self.streams.stop()
            self.announce_at = NEVER
        elif isinstance(event, NewView):
            self.install(event)
            for run in self.streams.take_future():
                self.up(run)
        elif isinstance(event, Excluded):
            self.begin(None)
            self.streams.take_future()

    def begin(self, event: NewView | None) -> None:
        """Forget all streams, and begin those of the view; None: this process is not a member any more."""
        members = () if event is None else event.view.members
        self.streams.begin(self.streams.view if event is None else event.view.id, members, names=members)
        self.announce_at = self.check_at = self.wake = NEVER

    def timer(self) -> None:
        self.streams.check_holes()
        if self.announce_at <= self.env.now:
            self._announce()
        self.check_at = self.streams.next_check()
        self.wake = min(self.announce_at, self.check_at)

    def gauges(self) -> dict[str, int]:
        return self.streams.gauges()
