"""STABLE: finds out what every member of a view has delivered, so that it may be forgotten, and what some member has,
so that a lost last message is found; and tells each origin how far its messages were delivered and consumed.

Members vote, the coordinator combines the votes.  Votes only ever grow and belong to one view, so any two of a view
may be combined, and a lost one costs a period.  Note: docs/layers/stable.md; seed 002.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.events import (
    Consumed,
    Event,
    Excluded,
    Gone,
    Held,
    HeldQuery,
    NewView,
    Positions,
    Stability,
    Stop,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Run
from pygroups.core.view import ViewId

from ._marks import before_cut, forget_outside
from ._votes import Origin, StabilityMsg, Vote, Votes, vectors

_ASKER: Final = "Stable"


class Stable(Layer):
    """See the module.  `suspend` and `resume` are the seed's; no profile with a flush uses them."""

    __slots__ = (
        "combine_at",
        "combined_at",
        "delivered",
        "due",
        "early",
        "fetched",
        "hurry",
        "last",
        "members",
        "news",
        "origins",
        "pause",
        "quantum",
        "rank",
        "round",
        "runs_due",
        "stopped",
        "suspended_until",
        "to_combine",
        "urgent",
        "view",
        "vote_at",
        "voted_at",
        "votes",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"STREAMS", "MEMBERSHIP"})
    gives: ClassVar[frozenset[str]] = frozenset({"MARKS"})
    heads: ClassVar[tuple[type, ...]] = (Vote, StabilityMsg)

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.quantum = min(env.config.stable_bytes, env.config.window // 4)
        self.runs_due = env.config.stable_runs * (1 if env.waits_for_all else 4)
        self.view: ViewId | None = None
        self.members: tuple[Address, ...] = ()
        self.rank = 0  # of this member among them; 0 counts the votes
        self.delivered: Positions = {}  # per stream of the view, in rank order, the first seq not delivered
        self.origins: dict[Address, Origin] = {}  # of a life, not of a view; also former members'
        self.stopped = True  # no view, or one that is on its way out
        self.fetched: list[Run] = []  # since the stop: it counts if it lies before the cut
        self.suspended_until = 0

        self.round = 0  # of the own votes in this view
        self.news = False  # something was delivered or consumed since the last vote
        self.due = False  # vote at the end of this turn
        self.urgent = False  # a sender may wait for what the next vote says
        self.vote_at = NEVER  # vote then, if there is anything to say
        self.voted_at = 0
        self.pause = 0  # before the next vote that repeats

        self.last: StabilityMsg | None = None  # what was heard last in this view
        self.early: dict[Address, Vote] = {}  # of views that are not installed here yet
        self.votes = Votes(())
        self.to_combine = False  # a vote brought something new
        self.hurry = False  # one of those since all were last told was urgent
        self.combine_at = NEVER
        self.combined_at = 0  # when all were last told

    # -- what passes on its way up

    def up(self, run: Run) -> None:
        if run.stream is not None:
            self._count(run, run.stream)
            self.above.append(run)
            return
        head = run.head
        if isinstance(head, Vote):
            self.on_vote(head, run.src)
        elif isinstance(head, StabilityMsg):
            self.on_stability_msg(head, run.src)
        else:
            self.above.append(run)

    def _count(self, run: Run, stream: Address) -> None:
        assert run.origin is not None
        if self.stopped:
            self.fetched.append(run)
            return
        origin = self.origins.get(run.origin)
        if origin is None:
            origin = self._origin(run.origin)
        origin.deliver(run.first, run.count, len(run.body))
        self.delivered[stream] = run.seq + 1
        if not self.news or origin.runs == self.runs_due or origin.consumed_bytes >= origin.due:
            self._news(origin)

    def _origin(self, member: Address) -> Origin:
        origin = self.origins.get(member)
        if origin is None:
            origin = self.origins[member] = Origin(1, self.quantum, member == self.env.me)
        return origin

    def down_event(self, event: Event) -> None:
        if isinstance(event, Consumed):
            for member, mark in event.marks.items():
                origin = self._origin(member)
                if origin.consume(mark):
                    self._news(origin)
            return
        if isinstance(event, Gone):
            self._stop()  # the top takes nothing any more: what comes in this turn was not delivered
        self.below.append(event)

    # -- voting

    def _news(self, origin: Origin) -> None:
        """Something of `origin` was delivered or consumed: see that the coordinator hears of it in time."""
        if self.stopped:
            return
        config, now = self.env.config, self.env.now
        if not self.news:
            self.news = True
            self.pause = config.stable_period
            half = config.stable_period // 2
            chance = self.env.rng.randrange(0, half + 1)  # so that not all vote at once
            self._vote_by(max(self.voted_at + half + chance, now + chance // 5))
        if origin.consumed_bytes >= origin.due:
            self.due = self.urgent = True
        elif origin.runs >= self.runs_due:
            self.urgent = True
            self._vote_by(self.voted_at + config.stable_pause)

    def _vote_by(self, when: int) -> None:
        if when <= self.env.now:
            self.due = True
        elif when < self.vote_at:
            self.vote_at = when
            self.wake_at(when)

    def end_turn(self) -> None:
        if self.env.now < self.suspended_until:
            return
        if self.due:
            self.due = False
            self.below.append(HeldQuery(_ASKER))  # the vote leaves when it is answered, in this turn
        elif self.to_combine:
            self._combine(again=False)

    def _vote(self, view: ViewId, seen: Positions) -> None:
        now, origins = self.env.now, [self._origin(member) for member in self.members]
        numbers = [origin.next for origin in origins]
        consumed = [origin.consumed for origin in origins]
        self.round += 1
        seen_here = [seen.get(member, 0) for member in self.members]
        vote = Vote(view, self.round, list(self.delivered.values()), seen_here, numbers, consumed, self.urgent)
        if self.env.journaling:
            self.env.record("stable", digest=dict(self.delivered))
        for origin in origins:
            origin.voted()
        self.news = self.urgent = False
        self.voted_at, self.vote_at = now, NEVER
        self._vote_by(now + self.pause)
        self.pause = min(2 * self.pause, self.env.config.stable_backoff_max)
        if self.rank == 0:
            self.hurry = self.hurry or vote.urgent
            self._combine(again=not self.votes.add(self.env.me, vote))
        else:
            self.tell(self.members[0], vote)

    def _settled(self) -> bool:
        """Whether, as far as this member knows, everything is stable and consumed everywhere.

        Who counts the votes knows without asking how far its own messages are consumed; the message that tells anybody
        else may have been lost on its way to this member alone.
        """
        last = self.last
        if last is None:
            return False
        known = zip(last.purge, last.seen, self.delivered.values(), strict=True)
        told = zip(last.consumed, self.members, strict=True)
        return all(purge >= max(seen, delivered) for purge, seen, delivered in known) and all(
            consumed >= self._origin(member).consumed for consumed, member in told if member != self.env.me or self.rank
        )

    # -- counting, at the coordinator

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
        elif self.votes.add(voter, vote):
            self.to_combine, self.hurry = True, self.hurry or vote.urgent
        elif self.last is not None:
            self.tell(voter, self.last)  # it says again what it said: it may not have heard the answer

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
        """Tell all how far all are, if that is news; if this member says `again` what it said, tell them also what is
        known to exist, and once more what somebody may not have heard."""
        if self.view is None or not self.votes.all_set():
            return
        last, now, config = self.last, self.env.now, self.env.config
        soonest = self.combined_at + (config.stable_combine if self.hurry or again else config.stable_quiet)
        if now < soonest and len(self.votes.since) < len(self.members):
            self.to_combine, self.combine_at = False, soonest
            self.wake_at(soonest)
            return
        self.to_combine, self.combine_at = False, NEVER
        msg = self.votes.combined(self.view, 1 if last is None else last.round + 1)
        rose = last is None or [msg.purge, msg.delivered, msg.consumed] != [last.purge, last.delivered, last.consumed]
        seen_rose = last is None or msg.seen != last.seen
        if rose or (again and (seen_rose or not self._settled())):
            self.votes.since, self.combined_at, self.hurry = {}, now, False
            self.tell(None, msg)
            self._learn(msg)
        elif seen_rose:
            self.news = True
            self._vote_by(now + config.stable_period)

    # -- what the coordinator found

    def on_stability_msg(self, msg: StabilityMsg, src: Address) -> None:
        if msg.view != self.view:
            old = self.view is not None and msg.view < self.view
            self.env.drop("old view" if old else "stability of a later view")  # it needs our vote, so it is none
        elif self.stopped:
            self.env.drop("stability after the stop")
        elif src != self.members[0] or self.rank == 0:
            self.env.drop("stability from a member that does not count")
        elif any(len(vector) != len(self.members) for vector in (msg.purge, msg.seen, msg.delivered, msg.consumed)):
            self.env.drop("malformed stability")
        elif any(purge > had for purge, had in zip(msg.purge, self.delivered.values(), strict=True)):
            self.env.drop("stability above what was delivered here")
        elif self.env.now < self.suspended_until:
            self.env.drop("stability while suspended")
        elif self.last is None or msg.round > self.last.round:
            self._learn(msg)
        else:
            self.env.count("stability heard again")

    def _learn(self, msg: StabilityMsg) -> None:
        before, self.last = self.last, msg
        purge = dict(zip(self.members, msg.purge, strict=True))
        if self.env.journaling and msg.purge != (before.purge if before else [0] * len(self.members)):
            self.env.record("purge", digest=purge)
        seen = dict(zip(self.members, msg.seen, strict=True))
        stability = Stability(purge, seen, msg.delivered[self.rank], msg.consumed[self.rank])
        self.above.append(stability)
        self.below.append(stability)

    # -- suspension

    def suspend(self, duration: int) -> None:
        """Neither vote nor purge for `duration` microseconds, `stable_suspend_max` at most, or until resume()."""
        self.suspended_until = self.env.now + min(duration, self.env.config.stable_suspend_max)
        self.wake_at(self.suspended_until)

    def resume(self) -> None:
        """Go on; what was missed meanwhile comes with the next vote."""
        self.suspended_until = 0
        self._vote_by(self.env.now + 1)

    # -- membership and time

    def up_event(self, event: Event) -> None:
        if isinstance(event, Held) and event.asker == _ASKER:
            if self.view is not None and not self.stopped:
                self._vote(self.view, event.seen)
            return
        self.above.append(event)
        if isinstance(event, Stop):
            self._stop()
        elif isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Excluded):
            self._stop()
            self.delivered, self.last, self.early, self.fetched = {}, None, {}, []

    def _stop(self) -> None:
        """What is delivered from here on is delivered with the next view, by all who come along."""
        self.stopped = True
        self.due = self.news = self.urgent = self.to_combine = self.hurry = False
        self.vote_at = self.combine_at = NEVER

    def _install(self, event: NewView) -> None:
        self._stop()
        self.stopped = False
        self.view, self.members = event.view.id, event.view.members
        self.rank = self.members.index(self.env.me)
        self.delivered = dict.fromkeys(self.members, 0)
        self.votes, self.last, self.round = Votes(self.members), None, 0
        self.pause = self.env.config.stable_period
        self.due = True  # windows of origins wait for the votes of those who are here now
        self._begin_marks(event)
        early, self.early = self.early, {}
        for voter, vote in early.items():
            self.on_vote(vote, voter)

    def _begin_marks(self, event: NewView) -> None:
        """The marks of a given state, or our own with what was fetched up to the cut."""
        me, quantum = self.env.me, self.quantum
        fetched, self.fetched = self.fetched, []
        if event.digest is not None:
            self.origins = {origin: Origin(start, quantum, origin == me) for origin, start in event.digest.items()}
        else:
            for run in fetched:
                if run.origin is not None and before_cut(run, event.cut):
                    self._origin(run.origin).deliver(run.first, run.count, len(run.body))
        forget_outside(self.origins, self.members, self.env.config.marks_max)

    def timer(self) -> None:
        now = self.env.now
        if 0 < self.suspended_until <= now:
            self.resume()
        if self.vote_at <= now:
            self.vote_at = NEVER
            self.due = self.due or self.news or not self._settled()
        if self.combine_at <= now:
            self.combine_at, self.to_combine = NEVER, True
        resume_at = self.suspended_until or NEVER
        self.wake = min(self.vote_at, self.combine_at, resume_at)

    def gauges(self) -> dict[str, int]:
        purged = sum(self.last.purge) if self.last else 0
        return {"unstable": sum(self.delivered.values()) - purged, "early": len(self.early)}
