"""MERGE2: views that a fault separated find each other, and their members agree to be merged.

Every member asks the processes that it knows outside its view for their views (search.py).  The lowest of the
acting coordinators of all views leads (rules.py): it asks every member of these views whether it takes part.
GMS then merges the views of those that do (gms/decisions/merge_attempt.py).  Note: docs/layers/merge2.md; design note
002.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from pygroups.core import driver_events
from pygroups.core.address import Address
from pygroups.core.events import Event, Gone, NewView
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import MEMBERS_MAX, PATIENCE_MAX
from pygroups.core.merge_events import MergeFailed, MergeWanted, Occupied, Replaced, Reserved, RoundTrips
from pygroups.core.run import Run
from pygroups.core.services import GOSSIP
from pygroups.core.suspicion_events import HeartbeatOf, LifeOver, Suspect, Unsuspect
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, MergeId, ViewId

from . import rules
from .heads import HEADS, FindReq, FindRsp, GiveWay, KeptApart, MergeOver, MergeReq, MergeRsp, OtherSettings, Sighted
from .search import ViewSearch

# In paces: a pace is an interval, or the longest round trip to a process of other views if that is longer.
RESERVED_FOR: Final = 4  # or twice the time for an answer in a view change if that is longer
ANSWERS_FOR: Final = 2  # for which the leader waits for answers; one more after a merge that was cancelled

TURN: Final = 3  # after which a member leads in place of another one; for each member before it
DOUBLINGS: Final = 3  # of the pause after merges that were cancelled
LASTS: Final = 3  # merges in a row that were cancelled, after which the views count as staying apart


def contacts_of(views: Iterable[AgreedView]) -> dict[Address, str]:
    """The members of all these views, and where each listens."""
    return {m: contact for view in views for m, contact in zip(view.members, view.contacts, strict=True)}


class Round:
    """The questions of this member as the leader of a merge, and their answers."""

    tables: ClassVar[Tables] = {
        "answers": "members_max",
        "answers[].hears": "members_max",
        "changing": "members_max",
        "contacts": "members_max",
        "reserved": "members_max",
        "views": "members_max",
    }

    def __init__(self, merge: MergeId, views: dict[ViewId, AgreedView], round_trip: int, now: int) -> None:
        self.merge = merge
        self.views = views  # their members are asked
        self.contacts = contacts_of(views.values())
        self.round_trip = round_trip  # of the slowest of them
        self.since = now
        self.ask_at = now  # the processes that have not answered are asked again then
        self.answers: dict[Address, rules.MergeAnswer | None] = {}  # None: the process refuses
        self.changing: dict[Address, None] = {}  # the processes that refuse because their view is about to change
        self.reserved: dict[Address, None] = {}  # the processes that refuse because of another merge; asked again, too
        self.highest = 0

    def asked(self, ask_at: int) -> None:
        """The open processes are asked, and again at `ask_at`."""
        self.ask_at = ask_at

    def answered(self, src: Address, head: MergeRsp, answer: rules.MergeAnswer | None) -> None:
        """`src` takes part with this answer, or refuses."""
        self.answers[src] = answer
        self.reserved.pop(src, None)
        if head.changes:
            self.changing[src] = None
        elif answer is None:
            self.reserved[src] = None
        self.highest = max(self.highest, head.highest)

    def open(self, me: Address) -> list[Address]:
        """The others that have not answered, or that are reserved for another merge."""
        return [one for one in self.contacts if one != me and (one not in self.answers or one in self.reserved)]


class Merge2(Layer):
    """Finds other views, and agrees with their members on a merge."""

    __slots__ = (
        "answer_at",
        "cancelled",
        "counter",
        "failures",
        "finding",
        "handed",
        "led_since",
        "occupied",
        "pause_until",
        "requested",
        "reserved",
        "reserved_until",
        "round",
        "tick_at",
        "union",
        "waits_since",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"DISCOVERY", "FIFO_UNICAST", "SUSPICION"})
    gives: ClassVar[frozenset[str]] = frozenset({"MERGING"})
    heads: ClassVar[tuple[type, ...]] = HEADS
    own_heads_only: ClassVar[bool] = True

    tables: ClassVar[Tables] = {
        "requested.views": "members_max",
        **under("finding", ViewSearch.tables),
        **under("round", Round.tables),
        **under("cancelled", Round.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.finding = ViewSearch(self)
        self.union = GOSSIP in env.services  # views are hints: a merge announces their union, and no pair must hear
        # each other but the leader and every other process
        self.occupied = Occupied(True, 0)
        self.tick_at = NEVER
        self.led_since: int | None = None  # since when this member has been the leader of a merge
        self.waits_since: int | None = None  # since when another member has been the leader, in the present view
        self.pause_until = 0
        self.failures = 0  # merges in a row that were cancelled
        self.cancelled: Round | None = None  # the last merge that this member led, until the pause after it ends early
        self.counter = 0  # of the merges that this member led
        self.round: Round | None = None
        self.handed: Round | None = None  # the merge under way in GMS
        self.reserved: MergeId | None = None
        self.reserved_until = 0
        self.requested: MergeReq | None = None  # to be answered at `answer_at`, or when all in it have answered
        self.answer_at = NEVER

    # -- the leader of a merge

    def _lead_or_report(self) -> None:
        """At the end of an interval: lead, or tell the leader which processes this member sees in other views."""
        leader = rules.leader(self.finding.views())
        if leader != self.env.me:
            self.led_since = None
            if leader is not None:
                self._report(leader)
                self._lead_in_place_of_others()
        elif self.led_since is None:
            self.led_since = self.env.now
        elif self.env.now >= self.led_since + self.env.config.merge_interval and self._may_lead():
            self._begin()

    def _lead_in_place_of_others(self) -> None:
        """The members with lower addresses may never be able to merge their views with this one, or may not even see
        it.  Other views must not wait for them."""
        now, pace = self.env.now, self._pace(self.finding.longest_round_trip())
        if self.waits_since is None:
            self.waits_since = now
        lower = rules.leaders_before(self.env.me, self.finding.views())
        waited = now >= self.waits_since + TURN * (1 + len(lower)) * pace
        if waited and self.finding.coordinates() and self._may_lead():
            self.env.count("merges led in place of others")
            self._begin()

    def _report(self, leader: Address) -> None:
        sightings = self.finding.sightings
        contacts = {peer: sighting.view.contact(peer) for peer, sighting in sightings.items() if peer != leader}
        if contacts:
            self.tell(leader, Sighted(dict(list(contacts.items())[:MEMBERS_MAX])))

    def _may_lead(self) -> bool:
        under_way = self.occupied.busy or self.round is not None or self.handed is not None
        reserved = self.reserved is not None and self.reserved.leader != self.env.me
        return not (under_way or reserved or self.finding.suspects) and self.env.now >= self.pause_until

    def _begin(self) -> None:
        """Ask all members of all views that this member knows of."""
        self.env.count("merges begun")
        views: dict[ViewId, AgreedView] = {}
        size = 0
        for view in [self.finding.current, *self.finding.views().values()]:
            if view.id not in views and size + len(view.members) <= MEMBERS_MAX:
                views[view.id], size = view, size + len(view.members)
        self.counter += 1
        round_trip = self.finding.longest_round_trip()
        round = self.round = Round(MergeId(self.counter, self.env.me), views, round_trip, self.env.now)
        self._reserve(round.merge, round_trip)
        self.finding.learn_views(views.values())
        self.finding.ask(self.finding.unheard(round.contacts))
        self._ask_to_merge(round)

    def _ask_to_merge(self, round: Round) -> None:
        round.asked(self.env.now + self._pace(round.round_trip) // 4)
        for peer in round.open(self.env.me):
            self.tell(peer, MergeReq(round.merge, tuple(round.views.values()), round.round_trip))

    def on_merge_rsp(self, src: Address, head: MergeRsp) -> None:
        round = self.round
        if round is None or head.merge != round.merge or src not in round.contacts:
            self.env.drop("answer to no merge")
            self._answers_late(src, head)
            return
        view = head.view if head.id is None else round.views.get(head.id)
        if view is None and head.id is not None:
            self.env.drop("answer with an unknown view")
            return
        round.answered(src, head, None if view is None else rules.MergeAnswer(view, dict.fromkeys(head.hears)))
        if not round.open(self.env.me):
            self._decide(round)

    def _answers_late(self, src: Address, head: MergeRsp) -> None:
        """A process takes part in a merge of this member that may be over: the request was late, or the news of the
        end was lost."""
        mine = self.handed or self.round
        over = head.merge.leader == self.env.me and (mine is None or head.merge != mine.merge)
        if over and (head.id is not None or head.view is not None):
            self.tell(src, MergeOver(head.merge))

    def _decide(self, round: Round) -> None:
        """Decide on the merge: all processes have answered, or the time for their answers is over."""
        self.round, self.cancelled = None, round
        hears = self.finding.hears(round.contacts)
        if self.union:
            hears |= {peer: None for peer, answer in round.answers.items() if answer is not None}
        round.answers[self.env.me] = rules.MergeAnswer(self.finding.current, hears)
        for older, newer in rules.replaced(round.answers).items():
            self._tell_replaced(older, GiveWay(round.merge, newer))
        sides = rules.take_part(self.env.me, round.answers, round.changing)
        if sides and not self.occupied.busy:
            self.handed = round
            self.above.append(RoundTrips(self.finding.round_trips(round.contacts)))
            self.above.append(MergeWanted(round.merge, round.highest, sides))
        else:
            self._cancel(round)

    def _cancel(self, round: Round) -> None:
        """Release those that take part, and pause before the next merge, twice as long each time."""
        self.env.count("merges cancelled")
        for peer in round.contacts:
            if peer != self.env.me and (peer not in round.answers or round.answers[peer] is not None):
                self.tell(peer, MergeOver(round.merge))
        self.failures += 1
        if self.failures >= LASTS and self.cancelled is not None:
            self._tell_why_apart(self.cancelled)
        self.handed = None
        longest = self._pace(self.finding.longest_round_trip()) << min(self.failures, DOUBLINGS)
        self.pause_until = self.env.now + longest // 2 + self.env.rng.randrange(0, longest)
        if self.reserved is not None and self.reserved.leader == self.env.me:
            self._reserve(None)

    def _hears(self, member: Address, peers: Iterable[Address]) -> None:
        """`member` hears `peers`.  The pause after a cancelled merge ends when a link works that did not work in this
        merge."""
        round = self.cancelled
        if round is not None and rules.hears_more(round.answers.get(member), round.contacts, peers):
            self.env.count("pauses between merges ended")
            self.cancelled, self.pause_until = None, self.env.now

    def _tell_why_apart(self, round: Round) -> None:
        """The views stay apart: report the reason, if it is none that passes."""
        why = rules.why_apart(self.env.me, round.contacts, round.answers)
        if why is not None and self.finding.tell_apart(*why):
            for peer in round.contacts:
                if peer != self.env.me:
                    self.tell(peer, KeptApart(*why))

    def on_apart(self, src: Address, head: KeptApart) -> None:
        """Two views stay apart.  Each process passes the reason on to its view once: the leader may not reach all."""
        if self.finding.tell_apart(head.reason, head.one, head.other):
            for member in self.finding.here():
                if member not in (self.env.me, src):
                    self.tell(member, head)

    # -- two processes of one name

    def _tell_replaced(self, older: Address, head: GiveWay) -> None:
        self.env.count("processes replaced")
        if older == self.env.me:
            self.above.append(Replaced(head.newer))
        else:
            self.tell(older, head)

    def on_replaced(self, src: Address, head: GiveWay) -> None:
        """The leader of the merge in which this member takes part has found a newer process of its name."""
        me = self.env.me
        if head.merge != self.reserved or head.merge.leader != src or head.newer == me or head.newer.name != me.name:
            self.env.drop("newer process without a merge")
        else:
            self.above.append(Replaced(head.newer))

    # -- taking part

    def on_merge_req(self, src: Address, head: MergeReq) -> None:
        if head.merge.leader != src:
            self.env.drop("merge of another leader")
        elif sum(len(view.members) for view in head.views) > MEMBERS_MAX:
            self.env.drop("merge of too many")
        elif self.env.now < self.finding.deaf_until:
            self.env.drop("merge soon after a pause")
        elif self._refuses(head.merge):
            self.tell(src, MergeRsp(head.merge, None, None, changes=self._changes()))
        elif self.requested is None or self.requested.merge != head.merge:  # otherwise it waits for answers
            self._take_part(head)

    def on_merge_over(self, src: Address, head: MergeOver) -> None:
        """The leader has cancelled the merge for which this member is reserved."""
        if head.merge != self.reserved or head.merge.leader != src:
            self.env.drop("end of another merge")
            return
        self.requested, self.answer_at = None, NEVER
        self.reserved_until = self.env.now
        if not self.occupied.busy:
            self._reserve(None)

    def _take_part(self, head: MergeReq) -> None:
        """Answer when all processes in the request have been heard, or when the time for their answers is over."""
        self.finding.learn_views(head.views)
        self._reserve(head.merge, head.round_trip)
        self.requested, self.answer_at = head, self.env.now + (0 if self.union else self._pace(head.round_trip))
        if not self.union:
            self.finding.ask(self.finding.unheard(contacts_of(head.views)))
        self._answer_if_all_heard()

    def _refuses(self, merge: MergeId) -> bool:
        """Whether this member takes part in another merge or view change."""
        reserved = self.reserved
        free = reserved is None or (reserved.leader == merge.leader and reserved <= merge)
        return self._changes() or not (free or self.env.now >= self.reserved_until)

    def _changes(self) -> bool:
        """Whether the view of this member is about to change, by a view change or by a merge that it leads."""
        return self.occupied.busy or self.round is not None or self.handed is not None

    def _answer_if_all_heard(self) -> None:
        requested = self.requested
        if requested is None:
            return
        peers, mine = contacts_of(requested.views), self.finding.current
        if self.env.now >= self.answer_at or not self.finding.unheard(peers):
            self.requested, self.answer_at = None, NEVER
            hears = (*self.finding.here(), *self._others(peers))
            changes = self._changes()
            named = any(view.id == mine.id for view in requested.views)
            id = mine.id if named and not changes else None
            view = None if named or changes else mine
            answer = MergeRsp(requested.merge, id, view, self.occupied.highest, hears, changes)
            self.tell(requested.merge.leader, answer)

    def _others(self, peers: Iterable[Address]) -> Iterable[Address]:
        """Those of `peers` in other views with which this member can share a view, as far as it knows."""
        if self.union:
            return [peer for peer in peers if peer not in self.finding.suspects]
        return [peer for peer in peers if peer in self.finding.sightings]

    def _reserve(self, merge: MergeId | None, round_trip: int = 0) -> None:
        lasts = max(RESERVED_FOR * self._pace(round_trip), 2 * self.env.config.flush_timeout)
        self.reserved_until = self.env.now + lasts
        if merge != self.reserved:
            self.reserved = merge
            self.above.append(Reserved(merge, round_trip))

    def _pace(self, round_trip: int) -> int:
        config = self.env.config
        return max(config.merge_interval, min(round_trip, PATIENCE_MAX))

    # -- runs and events

    def up(self, run: Run) -> None:
        head, src, finding = run.head, run.src, self.finding
        if not isinstance(head, HEADS):
            self.above.append(run)
        elif finding.view is None:
            self.env.drop("merge before the first view")
        elif isinstance(head, FindReq):
            finding.on_find_req(src, head)
        elif isinstance(head, FindRsp):
            finding.on_find_rsp(src, head)
            self._hears(self.env.me, (src,) if src in finding.sightings else ())
            self._answer_if_all_heard()
        elif isinstance(head, OtherSettings):
            finding.on_other_settings(src, head)
        elif isinstance(head, Sighted):
            finding.learn(head.contacts)
            self._hears(src, head.contacts)
        elif isinstance(head, MergeReq):
            self.on_merge_req(src, head)
        elif isinstance(head, MergeRsp):
            self.on_merge_rsp(src, head)
        elif isinstance(head, MergeOver):
            self.on_merge_over(src, head)
        elif isinstance(head, KeptApart):
            self.on_apart(src, head)
        elif isinstance(head, GiveWay):
            self.on_replaced(src, head)
        self._set_wake()

    def up_event(self, event: Event) -> None:
        finding = self.finding
        if isinstance(event, LifeOver):
            finding.life_over(event.member, certain=event.certain)
            return
        if isinstance(event, driver_events.Found):
            finding.shown.shows(event, self.env.now)
        if finding.view is not None:
            if isinstance(event, driver_events.Found):
                finding.found(event.members)
            elif isinstance(event, driver_events.Incompatible):
                finding.stays_apart(event.peer, event.detail)
            elif isinstance(event, Suspect) and event.member in finding.view.members:
                finding.suspects[event.member] = None
            elif isinstance(event, Unsuspect):
                finding.suspects.pop(event.member, None)
            elif isinstance(event, HeartbeatOf):
                finding.named(event.member, event.view)
        self.above.append(event)

    def down_event(self, event: Event) -> None:
        if isinstance(event, Occupied):
            self.occupied = event
            return
        if isinstance(event, MergeFailed):
            if self.handed is not None and event.merge == self.handed.merge:
                self._cancel(self.handed)
            return
        self.below.append(event)
        if isinstance(event, NewView):
            if event.subgroups:
                measured = RoundTrips(self.finding.round_trips(event.view.members))
                self.above.append(measured)
                self.below.append(measured)
            self._install(event)
        elif isinstance(event, Gone):
            self.finding.view = self.round = self.requested = self.handed = None
            self.tick_at = self.answer_at = NEVER
            self._set_wake()

    def _install(self, event: NewView) -> None:
        self.finding.installed(event)
        self.led_since = self.waits_since = self.round = self.handed = None
        if event.subgroups:
            self.env.count("merged views")
            if event.view.id.leader == self.env.me:
                self.env.count("merges")
            self.failures, self.pause_until, self.cancelled = 0, 0, None
            self._reserve(None)
        if self.tick_at == NEVER:
            self.tick_at = self.env.now + self.env.rng.randrange(0, self.env.config.merge_interval)
        self._set_wake()

    # -- time

    def after_pause(self) -> None:
        """This member was paused for long."""
        self.finding.after_pause()

    def timer(self) -> None:
        now, interval, round = self.env.now, self.env.config.merge_interval, self.round
        if round is not None and now >= round.since + self._waits(round):
            self._decide(round)
        elif round is not None and now >= round.ask_at:
            self._ask_to_merge(round)
        self._answer_if_all_heard()
        if now >= self.tick_at:
            self.tick_at = now + interval * 7 // 10 + self.env.rng.randrange(0, interval * 6 // 10 + 1)
            if self.reserved is not None and now >= self.reserved_until and not self.occupied.busy:
                self._reserve(None)
            self.finding.look()
            self._lead_or_report()
        self._set_wake()

    def _waits(self, round: Round) -> int:
        """The time for answers.  The members that answered first must still be reserved at its end."""
        pace = self._pace(round.round_trip)
        return (ANSWERS_FOR + min(self.failures, 1)) * pace

    def _set_wake(self) -> None:
        ask_at = NEVER if self.round is None else self.round.ask_at
        self.wake = min(self.tick_at, self.answer_at, ask_at)

    def gauges(self) -> dict[str, int]:
        """The merge that this member leads, and the processes that it sees in other views."""
        under_way = self.round is not None or self.handed is not None
        return {"merging": int(under_way), "sightings": len(self.finding.sightings)}
