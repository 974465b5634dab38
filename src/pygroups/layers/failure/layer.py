"""FAILURE: which members are silent, and which processes are proven to have ended.

Any run of a member shows that its process is alive, unless it comes in a frame that the member sent before another one
that was received: a network can repeat old frames of a process that has ended.  Evidence comes
before timers: the driver reports connections that ended and connections that were refused.  The refusal of a member
that is heard afterwards proves nothing.  Note: docs/layers/failure.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Disconnect, Ended, Probe
from pygroups.core.events import Event, Gone, NewView
from pygroups.core.layer import NEVER, Env, PassingLayer
from pygroups.core.limits import LATENESS
from pygroups.core.merge_events import RoundTrips
from pygroups.core.run import Run
from pygroups.core.services import MERGING
from pygroups.core.suspicion_events import Heard, HeartbeatOf, LifeOver, LifeVerified, Proven, Silent, VerifyLife
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId

from .neighbors import Neighbors, neighbors, silences


class Heartbeat(msgspec.Struct, array_like=True, tag=1):
    """To the members of the sender's view, each period: the sender is alive.  In a large view the sender chooses some
    of the members (neighbors.py)."""

    view: ViewId  # the sender's: a receiver in another view learns that one of the two missed a view


class Doubt(msgspec.Struct):
    """A member was heard after a connection to this member was refused.  Either a firewall refused the connection, or
    the member sent the run before it crashed."""

    times: int = 0
    probe_at: int = NEVER  # when to connect again, if no frame arrives until then


class Failure(PassingLayer):
    """Reports members that become silent, that are heard again, and that are proven to have ended.  FAILURE excludes no
    member."""

    __slots__ = (
        "asked",
        "beat_at",
        "beats",
        "doubted",
        "frames",
        "heard",
        "leaving",
        "neighbors",
        "silences",
        "silent",
        "view",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"UNICAST", "MULTICAST"})
    gives: ClassVar[frozenset[str]] = frozenset({"HEARTBEAT", "ENDS"})
    heads: ClassVar[tuple[type, ...]] = (Heartbeat,)

    tables: ClassVar[Tables] = {
        "asked": "unicast_peers_max",
        "doubted": "members",
        "frames": "members",
        "heard": "members",
        "leaving": "members_max",
        "neighbors.far": "members",
        "neighbors.near": "members",
        "silences": "members",
        "silent": "members",
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: ViewId | None = None
        self.heard: dict[Address, int] = {}  # the other members of the view, and when each was heard last; later for a
        # member whose first heartbeat takes long
        self.frames: dict[Address, int] = {}  # the highest number of a frame of each of them
        self.neighbors = Neighbors((), (), 0)
        self.silences: dict[Address, int] = {}  # how long each of them may be silent
        self.silent: dict[Address, bool] = {}  # those reported and not heard since; True: reported as proven
        self.doubted: dict[Address, Doubt] = {}  # members that were heard after a proof
        self.asked: dict[Address, None] = {}  # processes that gms asks about, and that have not answered yet
        self.leaving: dict[Address, int] = {}  # members that left the view, and when their connections may be closed
        self.beat_at = NEVER
        self.beats = 0  # heartbeats so far

    # -- runs

    def rise(self, run: Run) -> Run | None:
        src, frame, heard = run.src, run.frame, self.heard
        if src in heard and (frame < 0 or frame > self.frames.get(src, -1)):
            self.frames[src] = frame
            if self.env.now > heard[src]:
                heard[src] = self.env.now
            if self.silent:
                self._hear(src)
        head = run.heads[-1] if run.heads else None
        if type(head) is not Heartbeat:
            return run
        if head.view != self.view or src not in heard:
            self.above.append(HeartbeatOf(src, head.view))
        return None

    def _hear(self, peer: Address) -> None:
        if peer not in self.silent:
            return
        if self.silent.pop(peer):
            self.env.count("heard after a proof")
            self.doubted.setdefault(peer, Doubt()).times += 1
            self._probe_when_silent(peer)
        self.above.append(Heard(peer))

    # -- doubt: a refused connection was no proof

    def _doubt_time(self, doubt: Doubt) -> int:
        """The silence of a member after which a refusal counts again: longer each time, up to two heartbeats."""
        return min(LATENESS << min(doubt.times, 10), 2 * self.env.config.heartbeat)

    def _probe_when_silent(self, peer: Address) -> None:
        doubt = self.doubted[peer]
        doubt.probe_at = self.heard[peer] + self._doubt_time(doubt)
        self.wake_at(doubt.probe_at)

    def _look_at_doubts(self) -> None:
        for peer, doubt in self.doubted.items():
            if doubt.probe_at <= self.env.now:
                if self.heard[peer] + self._doubt_time(doubt) > self.env.now:
                    self._probe_when_silent(peer)
                else:
                    doubt.probe_at = NEVER
                    self.below.append(Probe(peer))

    # -- evidence, from the driver

    def up_event(self, event: Event) -> None:
        if isinstance(event, Ended):
            if event.peer in self.heard or event.peer in self.asked:
                self.below.append(Probe(event.peer))
        elif isinstance(event, Answered):
            self._on_answered(event.peer)
        elif isinstance(event, Dead):
            self._on_dead(event.peer)
            if MERGING in self.env.services:
                self.above.append(LifeOver(event.peer, event.certain))
        else:
            self.above.append(event)

    def _on_dead(self, peer: Address) -> None:
        if peer not in self.heard and peer not in self.asked:
            self.env.drop("end of a stranger")  # the member left its group while the probe ran
            return
        doubt = self.doubted.get(peer)
        if doubt is not None and self.heard[peer] + self._doubt_time(doubt) > self.env.now:
            self.env.drop("proof of a member that is heard")
            self._probe_when_silent(peer)
            return
        self.asked.pop(peer, None)
        if peer in self.heard:
            self.silent[peer] = True
        self.above.append(Proven(peer))

    def _on_answered(self, peer: Address) -> None:
        """The same incarnation answered: only the connection was lost."""
        if peer in self.heard:
            self.heard[peer] = max(self.heard[peer], self.env.now)
            self._hear(peer)
            self.doubted.pop(peer, None)
        if peer in self.asked:
            del self.asked[peer]
            self.above.append(LifeVerified(peer))

    # -- membership

    def down_event(self, event: Event) -> None:
        if isinstance(event, VerifyLife):
            self._ask(event.member)
            return
        if isinstance(event, RoundTrips):
            self._wait_for(event.times)
            return
        self.below.append(event)
        if isinstance(event, NewView):
            self._watch(event)
        elif isinstance(event, Gone):
            self.view, self.heard, self.silent, self.doubted, self.asked, self.leaving = None, {}, {}, {}, {}, {}
            self.frames, self.neighbors, self.silences = {}, Neighbors((), (), 0), {}
            self.beat_at = self.wake = NEVER

    def _ask(self, peer: Address) -> None:
        if len(self.asked) >= self.env.config.unicast_peers_max:
            del self.asked[next(iter(self.asked))]  # the oldest: a probe that never ended proves nothing
        self.asked[peer] = None
        self.below.append(Probe(peer))

    def _watch(self, event: NewView) -> None:
        """Keep the times of the members that stay; the timeout of a new member begins now."""
        env, members = self.env, event.view.members
        self.view = event.view.id
        self.heard = {member: self.heard.get(member, env.now) for member in members if member != env.me}
        self.frames = {member: number for member, number in self.frames.items() if member in self.heard}
        self.neighbors = neighbors(members, env.me, env.config)
        self.silences = silences(self.neighbors, env.config)
        self.silent = {member: proven for member, proven in self.silent.items() if member in self.heard}
        self.doubted = {member: doubt for member, doubt in self.doubted.items() if member in self.heard}
        self.leaving = {peer: when for peer, when in self.leaving.items() if peer not in self.heard}
        for peer in event.left:
            self.leaving[peer] = env.now + env.config.leave_timeout  # the last messages of both sides get through
        if self.beat_at == NEVER:
            self.beat_at = env.now + env.config.heartbeat
        self._set_wake()

    def _wait_for(self, times: Mapping[Address, int]) -> None:
        """The first heartbeat of a member that comes from another view takes a round trip: its timeout begins then."""
        for member, time in times.items():
            if member in self.heard:
                self.heard[member] = max(self.heard[member], self.env.now + time)
        self._set_wake()

    # -- time

    def timer(self) -> None:
        now = self.env.now
        self._stretch(now - self.wake)
        self._accuse(now)
        self._look_at_doubts()
        if now >= self.beat_at:
            self._beat()
            self.beat_at = now + self.env.config.heartbeat
        for peer in [peer for peer, when in self.leaving.items() if when <= now]:
            del self.leaving[peer]
            self.below.append(Disconnect(peer))
        self._set_wake()

    def _beat(self) -> None:
        assert self.view is not None, "heartbeats without a view"
        if self.neighbors.far:
            for peer in self.neighbors.receivers(self.beats):
                self.tell(peer, Heartbeat(self.view))
        else:
            self.tell(None, Heartbeat(self.view))
        self.beats += 1

    def _stretch(self, late: int) -> None:
        """Extend the timeouts of all members because this member was late itself: frames of the others may lie unread
        in its sockets.

        Each timeout is extended by twice the lateness: once for the time that passed unused, and once for the time to
        read the frames.  After half a heartbeat or more all timeouts begin anew.
        """
        if late < LATENESS:
            return  # every timer fires a little late: if that moved deadlines, no deadline would ever come
        now, fresh = self.env.now, late >= self.env.config.heartbeat // 2
        for member, when in self.heard.items():
            self.heard[member] = max(when, now if fresh else min(now, when + 2 * late))

    def _accuse(self, now: int) -> None:
        """Report the members that were silent for too long, and connect to each anew: the existing connection may be
        waiting before it dials again."""
        for member, when in self.heard.items():
            if when + self.silences[member] <= now and member not in self.silent:
                self.silent[member] = False
                self.above.append(Silent(member))
                self.below.append(Probe(member))

    def _set_wake(self) -> None:
        allowed = self.silences
        deadlines = [when + allowed[member] for member, when in self.heard.items() if member not in self.silent]
        probes = [doubt.probe_at for doubt in self.doubted.values()]
        self.wake = min([self.beat_at, *self.leaving.values(), *deadlines, *probes])
