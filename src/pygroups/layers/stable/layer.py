"""STABLE: finds out which messages every member of a view has delivered, so that they can be forgotten, and which some
member has, so that a lost last message is found.  STABLE reports to each origin how far its messages were delivered
and consumed.

Each member votes with its digest, the numbers that it has delivered (vote_clock.py decides when a vote leaves), and the
coordinator combines the votes.  A vote belongs to one view, and no number in a later vote is below that in an earlier
vote.  So any votes of a view can be combined, and a lost vote costs one period.  Note: docs/layers/stable.md; design
note 002.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import (
    Consumed,
    Event,
    Excluded,
    Gone,
    Held,
    HeldQuery,
    Hold,
    Marks,
    NewView,
    Positions,
    Release,
    Released,
    SlowestWanted,
    Stability,
    StableWanted,
    Stop,
)
from pygroups.core.layer import NEVER, Env, PassingLayer
from pygroups.core.limits import MEMBERS_MAX, STABLE_COMBINE, STABLE_QUIET, WINDOW_RUNS
from pygroups.core.run import Run
from pygroups.core.services import UNIFORM, waits_for_all
from pygroups.core.tables import Tables, under
from pygroups.core.view import ViewId

from ..streams.marks import before_cut, forget_outside
from .vote_clock import RESUMED, SEEN, Reason, VoteClock
from .votes import Origin, StabilityMsg, Vote, Votes, Wanted, vectors


class Stable(PassingLayer):
    """A member's counts and votes; at the coordinator also the combination of all votes; at every member the use of the
    result.  `suspend` and `resume` are those of design note 002; no profile with a flush uses them."""

    __slots__ = (
        "awaited",
        "clock",
        "combine_at",
        "combined_at",
        "delivered",
        "early",
        "holds_back",
        "hurry",
        "last",
        "members",
        "origins",
        "passed",
        "quantum",
        "rank",
        "ranked_at",
        "round",
        "run_min",
        "runs_due",
        "stopped",
        "suspended_until",
        "to_combine",
        "view",
        "votes",
        "want",
        "want_told",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"STREAMS", "MEMBERSHIP"})
    gives: ClassVar[frozenset[str]] = frozenset({"MARKS", "WINDOW"})
    heads: ClassVar[tuple[type, ...]] = (Vote, StabilityMsg, Wanted)

    tables: ClassVar[Tables] = {
        "awaited": "members",
        "delivered": "members",
        "early": "members_max",
        "early[].consumed": "members_max",
        "early[].delivered": "members_max",
        "early[].numbers": "members_max",
        "early[].seen": "members_max",
        "last.consumed": "members",
        "last.delivered": "members",
        "last.idle": "members",
        "last.purge": "members",
        "last.seen": "members",
        "last.slowest": "members",
        "last.slowest[]": "slowest",
        "members": "members",
        "origins": "marks",
        "passed": "members",
        "passed[]": "stream_runs",
        **under("clock", VoteClock.tables),
        **under("origins[]", Origin.tables),
        **under("votes", Votes.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.holds_back = UNIFORM in env.services  # a layer above hands runs up later
        self.run_min = env.config.run_bytes_min
        self.quantum = min(env.config.stable_bytes, env.config.window // 4)
        self.runs_due = env.config.stable_runs if waits_for_all(env.services) else WINDOW_RUNS  # no sender waits
        self.view: ViewId | None = None
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
        self.suspended_until = 0

        self.early: dict[Address, Vote] = {}  # votes of views that are not installed here yet
        self.votes = Votes(())
        self.to_combine = False  # a vote brought something new
        self.hurry = False  # an urgent vote arrived since the last result was sent
        self.combine_at = NEVER
        self.combined_at = 0  # when the last result was sent
        self.ranked_at = 0  # when the slowest members were last reported

    # -- runs and events that pass

    def rise(self, run: Run) -> Run | None:
        if run.stream is not None:
            if self.holds_back:
                self._keep(run, run.stream)
                self._first_news()  # its number: the announcements of its end may all have been lost
            else:
                self._count(run, run.stream)
            return run
        head = run.head
        if isinstance(head, Vote):
            self.on_vote(head, run.src)
        elif isinstance(head, StabilityMsg):
            self.on_stability_msg(head, run.src)
        elif isinstance(head, Wanted):
            self.on_wanted(head, run.src)
        else:
            return run
        return None

    def down_event(self, event: Event) -> None:
        if isinstance(event, Consumed):
            for member, mark in event.marks.items():
                origin = self.origins.get(member) or self._origin(member)
                if origin.consume(mark):
                    self._news(origin)
            return
        if isinstance(event, Released):
            self._released(event.stream, event.below)
            return
        if isinstance(event, StableWanted):
            self._on_stable_wanted(event.below)
            return
        if isinstance(event, SlowestWanted):
            if self.last is not None and self.rank == 0 and not self.stopped:
                self._learn(self._with_slowest(self.last))
            return
        if isinstance(event, Gone):
            self._stop()  # the top takes nothing any more: the runs of this turn are not delivered
        self.below.append(event)

    def end_turn(self) -> None:
        if self.env.now < self.suspended_until:
            return
        if self.want > self.want_told:
            self._tell_wanted()
        if self.clock.due:
            self.clock.due = False
            self.below.append(HeldQuery(Stable))  # the vote leaves when it is answered, in this turn
        elif self.to_combine:
            self._combine(again=False)

    # -- delivered runs

    def _count(self, run: Run, stream: Address) -> None:
        assert run.origin is not None
        if self.stopped:
            self._keep(run, stream)
            return
        origin = self.origins.get(run.origin)
        if origin is None:
            origin = self._origin(run.origin)
        size = len(run.body)
        origin.deliver(run.first, run.count, size if size > self.run_min else self.run_min)
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
        self._first_news()
        reason = origin.reason(self.runs_due)
        if reason is not None:
            self.clock.arises(reason, self.env.now)
        self.wake_at(self.clock.at)

    def _first_news(self) -> None:
        clock = self.clock
        if not (clock.news or self.stopped):
            clock.first_news(self.env.now, self.env.rng.randrange(0, clock.chances()))
            self.wake_at(clock.at)

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
        self._set_timer()  # the reasons of this vote are over
        if self.rank == 0:
            self._count_own(vote)
        else:
            self.tell(self.members[0], vote)

    def _settled(self) -> bool:
        """Whether, as far as this member knows, everything is stable and consumed everywhere.

        The coordinator counts the votes, so it always knows how far its own messages are consumed.  Any other member
        may have missed the message that reports this.
        """
        last = self.last
        if last is None or any(self.passed.values()):  # runs that are held back are not stable
            return False
        known = zip(last.purge, last.seen, self.delivered.values(), strict=True)
        reported = zip(last.consumed, self.members, strict=True)
        return all(purge >= max(seen, delivered) for purge, seen, delivered in known) and all(
            consumed >= self._origin(member).consumed
            for consumed, member in reported
            if member != self.env.me or self.rank
        )

    # -- counting, at the coordinator

    def _count_own(self, vote: Vote) -> None:
        self.hurry = self.hurry or vote.urgent
        self._combine(again=not self.votes.add(self.env.me, vote, self.env.now))

    def on_vote(self, vote: Vote, voter: Address) -> None:
        if vote.view != self.view:
            self._vote_of_another_view(vote, voter)
        elif self.stopped:
            self.env.drop("vote after the stop")
        elif self.rank != 0:
            self.env.drop("vote to a member that does not count")
        elif voter not in self.delivered:
            self.env.drop("vote of no member")
        elif any(len(vector) != len(self.members) for vector in vectors(vote)):
            self.env.drop("malformed vote")
        elif self.votes.repeats(voter, vote):
            self.env.drop("repeated vote")
        elif self.votes.add(voter, vote, self.env.now):
            self.to_combine, self.hurry = True, self.hurry or vote.urgent
        elif self.last is not None and self.env.now >= self.suspended_until:
            # The vote repeats an earlier one: the voter may not have heard the answer, or its window stays full.
            self.tell(voter, self._with_slowest(self.last))

    def _with_slowest(self, msg: StabilityMsg) -> StabilityMsg:
        """`msg` with the names of the members that have consumed least, if some have consumed less than others."""
        slowest = self.votes.slowest()
        idle = self.votes.idle(self.env.now) if slowest else []
        return msgspec.structs.replace(msg, slowest=slowest, idle=idle)

    def _vote_of_another_view(self, vote: Vote, voter: Address) -> None:
        if self.view is not None and vote.view < self.view:
            self.env.drop("old view")
        elif self.view is not None and not self.stopped:
            self.env.drop("vote of a view that does not follow")  # for one that does, this member was asked to stop
        elif voter in self.early or len(self.early) < MEMBERS_MAX:
            self.early[voter] = vote
        else:
            self.env.drop("too many votes of a later view")

    def _combine(self, again: bool) -> None:
        """Send the result of all votes to all members, if it is new.  With `again`, when the own vote repeats an
        earlier one, also report the runs known to exist, and repeat results that some member may have missed."""
        if self.view is None or not self.votes.all_set():
            return
        last, now, config = self.last, self.env.now, self.env.config
        soonest = self.combined_at + (STABLE_COMBINE if self.hurry or again else STABLE_QUIET)
        if now < soonest and len(self.votes.since) < len(self.members) and not self._ends_a_wait():
            self.to_combine, self.combine_at = False, soonest
            self.wake_at(soonest)
            return
        self.to_combine, self.combine_at = False, NEVER
        msg = self.votes.combined(self.view, 1 if last is None else last.round + 1)
        rose = last is None or [msg.purge, msg.delivered, msg.consumed] != [last.purge, last.delivered, last.consumed]
        seen_rose = last is None or msg.seen != last.seen
        if rose or (again and (seen_rose or not self._settled())):
            self.votes.since, self.combined_at, self.hurry = {}, now, False
            if now >= self.ranked_at + config.stable_period:
                self.ranked_at, msg = now, self._with_slowest(msg)
            self.tell(None, msg)
            self._learn(msg)
        elif seen_rose:
            self._to_vote(SEEN)

    def _ends_a_wait(self) -> bool:
        """Whether a sender waits for the message that would leave now."""
        return any(self.votes.all_have(self.members.index(sender), mark) for sender, mark in self.awaited.items())

    # -- the result of the coordinator

    def on_stability_msg(self, msg: StabilityMsg, src: Address) -> None:
        if msg.view != self.view:
            old = self.view is not None and msg.view < self.view
            self.env.drop("old view" if old else "stability of a later view")  # stability needs the vote of this member
        elif self.stopped:
            self.env.drop("stability after the stop")
        elif src != self.members[0] or self.rank == 0:
            self.env.drop("stability from a member that does not count")
        elif any(len(vector) != len(self.members) for vector in (msg.purge, msg.seen, msg.delivered, msg.consumed)) or (
            msg.slowest and not len(msg.slowest) == len(msg.idle) == len(self.members)
        ):
            self.env.drop("malformed stability")
        elif any(purge > had for purge, had in zip(msg.purge, self.delivered.values(), strict=True)):
            self.env.drop("stability of messages that were not delivered here")
        elif self.env.now < self.suspended_until:
            self.env.drop("stability while suspended")
        elif any(rank >= len(self.members) for ranks in msg.slowest for rank in ranks):
            self.env.drop("malformed stability")
        elif (
            self.last is None
            or msg.round > self.last.round
            or (msg.round == self.last.round and msg.slowest and msg.slowest[self.rank])
        ):
            self._learn(msg)
        else:
            self.env.count("stability heard again")

    def _learn(self, msg: StabilityMsg) -> None:
        before, self.last = self.last, msg
        if self.awaited:
            reached = dict(zip(self.members, msg.delivered, strict=True))
            self.awaited = {sender: mark for sender, mark in self.awaited.items() if mark > reached[sender]}
        purge = dict(zip(self.members, msg.purge, strict=True))
        if self.env.journaling and msg.purge != (before.purge if before else [0] * len(self.members)):
            self.env.record("purge", digest=purge)
        seen = dict(zip(self.members, msg.seen, strict=True))
        ranks = msg.slowest[self.rank] if msg.slowest else []
        slowest, idle = tuple(self.members[rank] for rank in ranks), tuple(msg.idle[rank] for rank in ranks)
        stability = Stability(purge, seen, msg.delivered[self.rank], msg.consumed[self.rank], slowest, idle)
        self.above.append(stability)
        self.below.append(stability)

    # -- suspension

    def suspend(self, duration: int) -> None:
        """Neither vote nor purge for `duration` microseconds, `stable_suspend_max` at most, or until resume()."""
        self.suspended_until = self.env.now + min(duration, self.env.config.stable_suspend_max)
        self.wake_at(self.suspended_until)

    def resume(self) -> None:
        """End the suspension.  The next vote has the numbers that were not reported meanwhile."""
        self.suspended_until = 0
        self._to_vote(RESUMED)

    # -- membership and time

    def up_event(self, event: Event) -> None:
        if isinstance(event, Held) and event.asker is Stable:
            if self.view is not None and not self.stopped:
                self._vote(self.view, event.seen)
            return
        self.above.append(event)
        if isinstance(event, Stop | Hold):
            self._stop()
        elif isinstance(event, Release):
            self._go_on()
        elif isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Excluded):
            self._stop()
            self.delivered, self.last, self.early, self.passed = {}, None, {}, {}

    def _stop(self) -> None:
        """Count no delivery until the next view: all members that go on to it deliver these runs before it."""
        self.stopped = True
        self.clock.stop()
        self.to_combine = self.hurry = False
        self.combine_at = NEVER

    def _go_on(self) -> None:
        """The view goes on after a doubt: the runs that FLUSH held back meanwhile are delivered now."""
        self.stopped = False
        if UNIFORM not in self.env.services:
            passed, self.passed = self.passed, {}
            for stream, runs in passed.items():
                for run in runs:
                    self._count(run, stream)
        self._to_vote(RESUMED)

    def _install(self, event: NewView) -> None:
        self._stop()
        self.stopped = False
        self.view, self.members = event.view.id, event.view.members
        self.rank = self.members.index(self.env.me)
        self.delivered = dict.fromkeys(self.members, 0)
        self.votes, self.last, self.round = Votes(self.members, self.votes), None, 0
        self.clock.begin(self.env.now)
        self._begin_marks(event)
        self.want_told, self.awaited = 0, {}
        mine = self.origins.get(self.env.me)
        if mine is not None and mine.next >= self.want:
            self.want = 0  # runs that were sent before the view are stable with it
        early, self.early = self.early, {}
        for voter, vote in early.items():
            self.on_vote(vote, voter)

    def timer(self) -> None:
        now = self.env.now
        if 0 < self.suspended_until <= now:
            self.resume()
        self.clock.look(now, self._settled)
        if self.combine_at <= now:
            self.combine_at, self.to_combine = NEVER, True
        self._set_timer()

    def _set_timer(self) -> None:
        self.wake = min(self.clock.at, self.combine_at, self.suspended_until or NEVER)

    def gauges(self) -> dict[str, int]:
        purged = sum(self.last.purge) if self.last else 0
        return {"unstable": sum(self.delivered.values()) - purged, "early": len(self.early)}
