"""FAILURE: which members are heard of, and whose process is proven to have ended.

Any run of a member is a sign of its life; heartbeats are for those that have nothing to say.  Evidence comes before
timers: the driver tells of connections that ended and were refused.  Note: docs/layers/failure.md.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import (
    Answered,
    Dead,
    Disconnect,
    Ended,
    Event,
    Gone,
    Heard,
    HeartbeatOf,
    LifeVerified,
    NewView,
    Probe,
    Proven,
    Silent,
    VerifyLife,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import Run
from pygroups.core.view import ViewId


class Heartbeat(msgspec.Struct, array_like=True, tag=1):
    """To all members of the sender's view, each period: I am alive."""

    view: ViewId  # the sender's: whoever is in another one learns that somebody missed something


class Failure(Layer):
    """Tells who falls silent, who is heard again, and who is proven dead.  It decides about nobody."""

    __slots__ = ("asked", "beat_at", "heard", "leaving", "silent", "view")

    needs: ClassVar[frozenset[str]] = frozenset({"UNICAST", "MULTICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"HEARTBEAT", "ENDS"})
    heads: ClassVar[tuple[type, ...]] = (Heartbeat,)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: ViewId | None = None
        self.heard: dict[Address, int] = {}  # the other members of the view, and when each was heard last
        self.silent: dict[Address, None] = {}  # those of them that were reported and not heard since
        self.asked: dict[Address, None] = {}  # whose life gms wants to know of, and has no answer yet
        self.leaving: dict[Address, int] = {}  # who left the view, and when its connection may go
        self.beat_at = NEVER

    # -- runs

    def up(self, run: Run) -> None:
        src = run.src
        if src in self.heard:
            self.heard[src] = self.env.now
            if self.silent:
                self._hear(src)
        head = run.head
        if isinstance(head, Heartbeat):
            if head.view != self.view or src not in self.heard:
                self.above.append(HeartbeatOf(src, head.view))
        else:
            self.above.append(run)

    def _hear(self, peer: Address) -> None:
        if peer in self.silent:
            del self.silent[peer]
            self.above.append(Heard(peer))

    # -- evidence, from the driver

    def up_event(self, event: Event) -> None:
        if isinstance(event, Ended):
            if event.peer in self.heard or event.peer in self.asked:
                self.below.append(Probe(event.peer))
        elif isinstance(event, Answered):
            self._on_answered(event.peer)
        elif isinstance(event, Dead):
            self._on_dead(event.peer)
        else:
            self.above.append(event)

    def _on_dead(self, peer: Address) -> None:
        if peer not in self.heard and peer not in self.asked:
            self.env.drop("end of a stranger")  # it left politely while the probe ran
            return
        self.asked.pop(peer, None)
        self.above.append(Proven(peer))

    def _on_answered(self, peer: Address) -> None:
        """The same life answered: only the connection was lost."""
        if peer in self.heard:
            self.heard[peer] = self.env.now
            self._hear(peer)
        if peer in self.asked:
            del self.asked[peer]
            self.above.append(LifeVerified(peer))

    # -- membership

    def down_event(self, event: Event) -> None:
        if isinstance(event, VerifyLife):
            self._ask(event.member)
            return
        self.below.append(event)
        if isinstance(event, NewView):
            self._watch(event)
        elif isinstance(event, Gone):
            self.view, self.heard, self.silent, self.asked, self.leaving = None, {}, {}, {}, {}
            self.beat_at = self.wake = NEVER

    def _ask(self, peer: Address) -> None:
        if len(self.asked) >= self.env.config.unicast_peers_max:
            del self.asked[next(iter(self.asked))]  # the oldest: a probe that never ended says nothing
        self.asked[peer] = None
        self.below.append(Probe(peer))

    def _watch(self, event: NewView) -> None:
        """Keep what was heard of those that stay; newcomers begin with a fresh time-out."""
        env, members = self.env, event.view.members
        self.view = event.view.id
        self.heard = {member: self.heard.get(member, env.now) for member in members if member != env.me}
        self.silent = {member: None for member in self.silent if member in self.heard}
        self.leaving = {peer: when for peer, when in self.leaving.items() if peer not in self.heard}
        for peer in event.left:
            self.leaving[peer] = env.now + env.config.leave_timeout  # its last messages, and ours, get through
        if self.beat_at == NEVER:
            self.beat_at = env.now + env.config.heartbeat
        self._set_wake()

    # -- time

    def timer(self) -> None:
        now = self.env.now
        self._stretch(now - self.wake)
        self._accuse(now - self.env.config.heartbeat_timeout)
        if now >= self.beat_at:
            assert self.view is not None, "heartbeats without a view"
            self.tell(None, Heartbeat(self.view))
            self.beat_at = now + self.env.config.heartbeat
        for peer in [peer for peer, when in self.leaving.items() if when <= now]:
            del self.leaving[peer]
            self.below.append(Disconnect(peer))
        self._set_wake()

    def _stretch(self, late: int) -> None:
        """Nobody is accused by a member that was late itself: what the others sent may lie unread in its sockets.

        The time it was late counts for nobody, and it gets the same time again to read; if that was long, all begin
        anew.
        """
        if late < self.env.config.lateness:
            return  # every timer rings a little late: if that moved deadlines, none would ever come
        now, fresh = self.env.now, late >= self.env.config.heartbeat // 2
        for member, when in self.heard.items():
            self.heard[member] = now if fresh else min(now, when + 2 * late)

    def _accuse(self, heard_by: int) -> None:
        for member, when in self.heard.items():
            if when <= heard_by and member not in self.silent:
                self.silent[member] = None
                self.above.append(Silent(member))

    def _set_wake(self) -> None:
        timeout = self.env.config.heartbeat_timeout
        deadlines = [when + timeout for member, when in self.heard.items() if member not in self.silent]
        self.wake = min([self.beat_at, *self.leaving.values(), *deadlines])
