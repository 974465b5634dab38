"""The voting side of STABLE: counts the messages that this member has delivered and consumed, and writes its votes.
vote_clock.py decides when a vote leaves.

Note: docs/layers/stable.md.
"""

from __future__ import annotations

from collections import deque

from pygroups.core.address import Address
from pygroups.core.events import Marks, NewView, Positions
from pygroups.core.layer import Env, Layer
from pygroups.core.run import Run
from pygroups.core.services import waits_for_all
from pygroups.core.view import ViewId

from ..streams.marks import before_cut, forget_outside
from .vote_clock import Reason, VoteClock
from .votes import Origin, StabilityMsg, Vote, Wanted


class Voter(Layer):
    """A member's own counts and votes.  stable.py adds the coordinator's count of all votes, and its result."""

    __slots__ = (
        "awaited",
        "clock",
        "delivered",
        "last",
        "members",
        "origins",
        "passed",
        "quantum",
        "rank",
        "round",
        "run_min",
        "runs_due",
        "stopped",
        "want",
        "want_told",
    )

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.run_min = env.config.run_bytes_min
        self.quantum = min(env.config.stable_bytes, env.config.window // 4)
        self.runs_due = env.config.stable_runs * (1 if waits_for_all(env.services) else 4)
        self.members: tuple[Address, ...] = ()
        self.rank = 0  # of this member among them; 0 counts the votes
        self.delivered: Positions = {}  # per stream of the view, in rank order, the first seq not delivered
        self.origins: dict[Address, Origin] = {}  # for all views of this incarnation; also former members'
        self.stopped = True  # no view, or one that is on its way out
        # By stream, runs that do not count yet: fetched since the stop, or held back by a layer above.  At the end of
        # the view a run counts if it lies before the cut.
        self.passed: dict[Address, deque[Run]] = {}
        self.last: StabilityMsg | None = None  # the last one received in this view

        self.round = 0  # of the own votes in this view
        self.clock = VoteClock(env.config)  # when this member votes next
        self.awaited: Marks = {}  # per sender of the view, this one too: it waits until all have the numbers below
        self.want = 0  # a sender here waits until own multicasts below this are stable
        self.want_told = 0  # the value of `want` that the others were sent in this view

    # -- delivered runs

    def _count(self, run: Run, stream: Address) -> None:
        assert run.origin is not None
        if self.stopped:
            self._keep(run, stream)
            return
        origin = self.origins.get(run.origin)
        if origin is None:
            origin = self._origin(run.origin)
        origin.deliver(run.first, run.count, max(len(run.body), self.run_min))
        self.delivered[stream] = run.seq + 1
        if (
            not self.clock.news
            or origin.runs == self.runs_due
            or origin.consumed_bytes >= origin.due
            or origin.next >= origin.wanted
        ):
            self._news(origin)

    def _keep(self, run: Run, stream: Address) -> None:
        """The run counts later."""
        waiting = self.passed.get(stream)
        if waiting is None:
            waiting = self.passed[stream] = deque()
        waiting.append(run)

    def _released(self, stream: Address, below: int) -> None:
        """A layer above has handed up the runs of `stream` below `below`.  After a stop they count with the next
        view."""
        waiting = self.passed.get(stream)
        while not self.stopped and waiting and waiting[0].seq < below:
            self._count(waiting.popleft(), stream)

    def _origin(self, member: Address) -> Origin:
        origin = self.origins.get(member)
        if origin is None:
            origin = self.origins[member] = Origin(1, self.quantum, member == self.env.me)
        return origin

    def _begin_marks(self, event: NewView) -> None:
        """Begin with the marks of a given state, or with the own marks and the runs that were fetched up to the cut."""
        me, quantum = self.env.me, self.quantum
        passed, self.passed = self.passed, {}
        if event.starts is not None:
            self.origins = {origin: Origin(start, quantum, origin == me) for origin, start in event.starts.items()}
        else:
            for run in (run for runs in passed.values() for run in runs):
                if run.origin is not None and before_cut(run, event.cut):
                    size = max(len(run.body), self.run_min)
                    self._origin(run.origin).deliver(run.first, run.count, size)
        for origin, (mark, _) in event.digest.items():
            self._origin(origin).skip_to(mark)
        forget_outside(self.origins, self.members, self.env.config.marks_max)

    # -- senders that wait

    def _on_stable_wanted(self, below: int) -> None:
        """A sender here waits until its multicasts below `below` are stable."""
        self.want = max(self.want, below)

    def _tell_wanted(self) -> None:
        """At the end of a turn, behind the messages themselves, ask all members to vote as soon as they have delivered
        them."""
        if self.want > self.want_told and not self.stopped:
            self.want_told = self.want
            if len(self.members) > 1:
                self.tell(None, Wanted(self.want))
            self._want(self.env.me, self.want)

    def on_wanted(self, wanted: Wanted, src: Address) -> None:
        if src in self.delivered:
            self._want(src, wanted.below)
        else:
            self.env.drop("request of a process outside the view")

    def _want(self, sender: Address, below: int) -> None:
        origin = self._origin(sender)
        self.awaited[sender] = max(below, self.awaited.get(sender, 0))
        origin.want(below)
        if origin.presses:
            self._news(origin)

    # -- voting

    def _news(self, origin: Origin) -> None:
        """Messages of `origin` were delivered or consumed: the clock decides when the next vote leaves."""
        if self.stopped:
            return
        clock, now = self.clock, self.env.now
        if not clock.news:
            clock.first_news(now, self.env.rng.randrange(0, clock.chances()))
        reason = origin.reason(self.runs_due)
        if reason is not None:
            clock.arises(reason, now)
        if clock.at < self.wake:
            self.wake = clock.at

    def _to_vote(self, reason: Reason) -> None:
        """There is a reason to vote that concerns no single origin."""
        self.clock.arises(reason, self.env.now)
        self.wake_at(self.clock.at)

    def _vote(self, view: ViewId, seen: Positions) -> None:
        clock, origins = self.clock, [self._origin(member) for member in self.members]
        numbers = [origin.next for origin in origins]
        consumed = [origin.consumed for origin in origins]
        self.round += 1
        seen_here = [seen.get(member, 0) for member in self.members]
        vote = Vote(view, self.round, list(self.delivered.values()), seen_here, numbers, consumed, clock.urgent)
        if self.env.journaling:
            self.env.record("stable", digest=dict(self.delivered))
        for origin in origins:
            origin.voted()
        clock.voted(self.env.now)
        self.wake_at(clock.at)
        if self.rank == 0:
            self._count_own(vote)
        else:
            self.tell(self.members[0], vote)

    def _count_own(self, vote: Vote) -> None:
        """Add this member's own vote.  Only the coordinator, which counts the votes, calls this function."""
        raise NotImplementedError

    def _settled(self) -> bool:
        """Whether, as far as this member knows, everything is stable and consumed everywhere.

        The coordinator counts the votes, so it always knows how far its own messages are consumed.  Any other member
        may have missed the message that reports this.
        """
        last = self.last
        if last is None:
            return False
        known = zip(last.purge, last.seen, self.delivered.values(), strict=True)
        reported = zip(last.consumed, self.members, strict=True)
        return all(purge >= max(seen, delivered) for purge, seen, delivered in known) and all(
            consumed >= self._origin(member).consumed
            for consumed, member in reported
            if member != self.env.me or self.rank
        )
