"""Finding other views, for MERGE2: the processes outside the view that this member knows, and their answers.

Note: docs/layers/merge2.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal, NamedTuple

from pygroups.core import driver_events
from pygroups.core.address import Address
from pygroups.core.events import NewView
from pygroups.core.fingerprint import difference, digest
from pygroups.core.layer import Layer
from pygroups.core.limits import MEMBERS_MAX, PATIENCE_MAX
from pygroups.core.merge_events import Accounted, SignOfLife, StaysApart
from pygroups.core.suspicion_events import HeartbeatOf
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView, ViewId

from . import rules
from .heads import FindReq, FindRsp, OtherSettings

ASKS_MAX: Final = 64  # processes that one member asks in an interval
FEW: Final = 8  # a member of a larger view that does not coordinate asks only so many, drawn anew each time
SELDOM: Final = 8  # a process that left so many questions unanswered is asked in one of so many intervals
RARELY: Final = 64  # a process that also refused SELDOM connections is asked in one of so many intervals
REFUSALS_MAX: Final = 16  # connections in a row that a process refused, after which it is forgotten
PROBED_AFTER: Final = 2  # unanswered questions, after which the process is probed, too: it may have ended
SIGHTING_LASTS: Final = 3  # intervals
ALONE_AFTER: Final = 3  # intervals without a sign of another process of the group


class Known:
    """A process outside the view."""

    __slots__ = ("contact", "refused", "unanswered")

    def __init__(self, contact: str) -> None:
        self.contact = contact
        self.unanswered = 0  # questions in a row
        self.refused = 0  # connections in a row


class Sighting(NamedTuple):
    """The answer of a process to a question of this member."""

    view: AgreedView
    asked_at: int
    at: int

    @property
    def took(self) -> int:
        """Microseconds from the question to the answer."""
        return self.at - self.asked_at


class Shown:
    """The members that complete answers of discovery have shown.  A member that they show no more has ended, or left:
    the driver sees the end of its process, and no network is between them."""

    def __init__(self) -> None:
        self.last: dict[Address, int] = {}  # when each was shown last
        self.at = 0  # the time of the last complete answer

    def shows(self, answer: driver_events.Found, now: int) -> None:
        """Note the members of an answer, if it is complete."""
        if answer.complete:
            self.at = now
            for member in answer.members:
                self.last.pop(member, None)
                self.last[member] = now
            for member in list(self.last)[: max(0, len(self.last) - MEMBERS_MAX)]:
                del self.last[member]

    def no_more(self, member: Address, since: int) -> bool:
        """Whether `member` was shown, and no complete answer has shown it after the time `since`, although one came."""
        return member in self.last and self.last[member] < since < self.at


class ViewSearch:
    """The questions of one member, and the views that it learns of."""

    __slots__ = (
        "absent",
        "accounts",
        "apart",
        "asked",
        "astray",
        "deaf_until",
        "ended",
        "env",
        "known",
        "last_views",
        "layer",
        "looks",
        "others_at",
        "shown",
        "sightings",
        "since",
        "suspects",
        "told",
        "view",
    )

    tables: ClassVar[Tables] = {
        "absent": "members_max",
        "apart": "members_max",
        "asked": "known",
        "astray": "members",
        "ended": "members_max",
        "known": "members_max",
        "last_views": "known",
        "shown.last": "members_max",
        "sightings": "known",
        "suspects": "members",
        "told": "members_max",
    }

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.env = layer.env
        self.view: AgreedView | None = None
        self.known: dict[Address, Known] = {}
        self.asked: dict[Address, int] = {}  # when each was asked last
        self.looks = 0  # intervals so far
        self.since = 0  # when the view was installed: answers to earlier questions are outdated
        self.deaf_until = 0  # this member answers no question before this time
        self.sightings: dict[Address, Sighting] = {}
        self.last_views: dict[Address, AgreedView] = {}  # with each known process, the last that this member heard of
        self.apart: dict[Address, None] = {}  # processes with other settings, which are never asked again
        self.told: dict[Address, None] = {}  # processes for which the application heard why two views stay apart
        self.suspects: dict[Address, None] = {}  # members of the view
        self.astray: dict[Address, None] = {}  # members of the view that named another view
        self.absent: dict[Address, str] = {}  # electors that a view lacks which is not primary, and their contacts
        self.accounts = False  # the view is not primary: GMS hears of absent electors
        self.ended: dict[Address, None] = {}  # processes that have ended for certain, which are never asked again
        self.shown = Shown()
        self.others_at = 0  # when a living process outside the view was heard of last

    @property
    def current(self) -> AgreedView:
        """The view of this member.  A caller must first check that there is a view."""
        assert self.view is not None
        return self.view

    # -- the knowledge of this member

    def here(self) -> dict[Address, None]:
        """The members of the view that have it installed, as far as this member knows."""
        members, me = self.current.members, self.env.me
        return {m: None for m in members if m == me or (m not in self.suspects and m not in self.astray)}

    def coordinates(self) -> bool:
        """Whether this member is the acting coordinator of its view."""
        return rules.acting_coordinator(self.current, self.here()) == self.env.me

    def views(self) -> dict[Address, AgreedView]:
        """The views of this member, of the members that are with it, and of the processes that answered."""
        views = dict.fromkeys(self.here(), self.current)
        views.update((peer, sighting.view) for peer, sighting in self.sightings.items())
        return {**views, self.env.me: self.current}

    def hears(self, peers: Iterable[Address]) -> dict[Address, None]:
        """The processes that can speak with this member both ways: the members of its view, also those that are not in
        `peers`, and those of `peers` that answered a question lately."""
        return {**self.here(), **{peer: None for peer in peers if peer in self.sightings}}

    def unheard(self, peers: Iterable[Address]) -> list[Address]:
        """The members of `peers` outside the view that have not answered lately."""
        return [peer for peer in peers if peer in self.known and peer not in self.sightings]

    def round_trips(self, peers: Iterable[Address]) -> dict[Address, int]:
        """Microseconds that each of `peers` took to answer the last time, for those that answered lately."""
        longest = PATIENCE_MAX
        return {peer: min(self.sightings[peer].took, longest) for peer in peers if peer in self.sightings}

    def longest_round_trip(self) -> int:
        """Microseconds that the slowest of the processes that answered lately took to answer; 0 without such a
        process."""
        return max(self.round_trips(self.sightings).values(), default=0)

    def learn(self, contacts: Mapping[Address, str]) -> None:
        """Remember processes outside the view.  Beyond the limit the process that left most questions unanswered is
        forgotten."""
        new = {}
        for peer, contact in contacts.items():
            if peer == self.env.me or peer in self.current.members or peer in self.apart or peer in self.ended:
                continue
            known = self.known.get(peer)
            if known is None or known.contact != contact:
                self.known[peer] = Known(contact)
                new[peer] = contact
        if new:
            self.layer.below.append(driver_events.Contacts(new))
        while len(self.known) > MEMBERS_MAX:
            self._forget(max(self.known, key=lambda peer: self.known[peer].unanswered))

    def found(self, members: Mapping[Address, str]) -> None:
        """Discovery shows these members of the group."""
        self.learn(members)
        if any(peer in self.known for peer in members):
            self.others_at = self.env.now

    def life_over(self, peer: Address, *, certain: bool) -> None:
        """The process of `peer` has ended for certain, or a connection to it was refused.  It is forgotten at once, or
        after some refusals.  An elector that the view lacks is not forgotten before its end is certain."""
        if certain:
            self.ended[peer] = None
            if len(self.ended) > MEMBERS_MAX:
                del self.ended[next(iter(self.ended))]
        known = self.known.get(peer)
        if known is None:
            return
        known.refused += 1
        if certain or (known.refused >= REFUSALS_MAX and peer not in self.absent):
            self.env.count("processes forgotten")
            self._forget(peer)

    def _forget(self, peer: Address) -> None:
        self.known.pop(peer, None)
        self.asked.pop(peer, None)
        self.last_views.pop(peer, None)
        self.sightings.pop(peer, None)

    def learn_views(self, views: Iterable[AgreedView]) -> None:
        """Remember the processes of these views, and for each process the last view that contained it.  A process that
        is still in that view answers with the id only."""
        for view in views:
            self.learn(dict(zip(view.members, view.contacts, strict=True)))
            for member in view.members:
                if member in self.known and member not in self.sightings:
                    self.last_views[member] = view

    def installed(self, event: NewView) -> None:
        """A new view: earlier answers are outdated, and the members that it lacks are outside the view now."""
        old, self.view = self.view, event.view
        members = event.view.members
        self.sightings, self.astray, self.since = {}, {}, self.env.now
        self.suspects = {member: None for member in self.suspects if member in members}
        self.told = {peer: None for peer in self.told if peer not in members}
        self.known = {peer: known for peer, known in self.known.items() if peer not in members}
        self.asked = {peer: asked_at for peer, asked_at in self.asked.items() if peer in self.known}
        self.last_views = {peer: view for peer, view in self.last_views.items() if peer in self.known}
        if old is not None:
            self.learn(dict(zip(old.members, old.contacts, strict=True)))
        self.absent, self.accounts = event.absent, not event.primary
        self.learn(self.absent)
        if old is None or event.left:
            self.others_at = self.env.now

    def named(self, member: Address, view: ViewId | None) -> None:
        """A heartbeat or a question of `member` named `view`."""
        if member in self.current.members and view != self.current.id:
            self.astray[member] = None

    # -- questions and answers

    def look(self) -> None:
        """Ask for the views of other processes, once in each interval."""
        env = self.env
        old = env.now - SIGHTING_LASTS * env.config.merge_interval
        self.sightings = {peer: sighting for peer, sighting in self.sightings.items() if sighting.at >= old}
        self.looks += 1
        coordinates = self.coordinates()
        if coordinates or env.rng.random() * len(self.current.members) < FEW // 2:
            self.layer.below.append(driver_events.Find(members_only=True))
        self.ask(self._chosen(ASKS_MAX if coordinates or len(self.current.members) <= FEW else FEW))
        if self.accounts:
            self._account()

    def _account(self) -> None:
        """Report which absent electors have ended, and whether another process of the group was found lately."""
        before = self.env.now - ALONE_AFTER * self.env.config.merge_interval
        for peer in [peer for peer in self.absent if self.shown.no_more(peer, before)]:
            self.life_over(peer, certain=True)
        ended = tuple([peer for peer in self.absent if peer in self.ended])
        self.layer.above.append(Accounted(ended, alone=self.others_at <= before))

    def _chosen(self, most: int) -> list[Address]:
        """The processes to ask now: all that answer, of the silent ones an eighth in each interval, and fewer of those
        that refuse."""
        chosen = [peer for peer, known in self.known.items() if known.unanswered < SELDOM]
        silent = [peer for peer, known in self.known.items() if known.unanswered >= SELDOM > known.refused]
        refusing = [peer for peer, known in self.known.items() if min(known.unanswered, known.refused) >= SELDOM]
        chosen += silent[self.looks % SELDOM :: SELDOM] + refusing[self.looks % RARELY :: RARELY]
        if len(chosen) > most:
            self.env.rng.shuffle(chosen)
        return [*chosen[:most], *self.astray]

    def ask(self, peers: Iterable[Address]) -> None:
        """Ask each of `peers` for its view."""
        for peer in peers:
            self.asked[peer] = self.env.now
            known = self.known.get(peer)
            if known is not None:
                if known.unanswered >= PROBED_AFTER:
                    self.layer.below.append(driver_events.Probe(peer))
                known.unanswered += 1
            last = self.last_views.get(peer)
            seen = None if last is None else last.id
            settings = digest(self.env.fingerprint)
            self.layer.tell(peer, FindReq(self.env.now, self.env.contact, settings, self.current.id, seen))

    def after_pause(self) -> None:
        """This member was paused for long.  Questions and answers lay in its sockets, so they would measure the pause.
        The processes that asked ask again in the next interval."""
        self.since = self.env.now
        self.deaf_until = self.env.now + self.env.config.merge_interval

    def on_find_req(self, src: Address, head: FindReq) -> None:
        self.ended.pop(src, None)  # its entry may have been removed, although it lives
        self.learn({src: head.contact})
        if head.settings != digest(self.env.fingerprint):
            self._answer_other_settings(src, head)
            return
        if src in self.current.members and head.view != self.current.id:
            self.layer.above.append(HeartbeatOf(src, head.view))
        self.named(src, head.view)
        self._note_life(src)
        if self.env.now < self.deaf_until:
            self.env.drop("question soon after a pause")
            return
        mine = self.current
        named = mine.id in (head.view, head.seen)
        self.layer.tell(src, FindRsp(head.asked_at, mine.id if named else None, None if named else mine))

    def on_find_rsp(self, src: Address, head: FindRsp) -> None:
        last, view = self.sightings.get(src), head.view or self._in_view(src, head.id)
        if not self.since <= head.asked_at <= self.asked.get(src, -1):
            self.env.drop("answer to no question")
        elif last is not None and head.asked_at <= last.asked_at:
            self.env.drop("late answer")
        elif view is None or src not in view.members:
            self.env.drop("view without its member")
        else:
            self._note_life(src)
            if head.view is not None:
                self.learn_views([view])
            if src in self.known:
                self.last_views[src] = view
            self.sightings[src] = Sighting(view, head.asked_at, self.env.now)
            if view.id == self.current.id:
                self.astray.pop(src, None)

    # -- processes with other settings

    def _answer_other_settings(self, src: Address, head: FindReq) -> None:
        """A process with another profile, other layers or other limits asks.  The group of that process never merges
        with this one: the question gets no view as its answer.  `src` is asked, too, so that this member learns the
        difference."""
        self.env.drop("question of a group with other settings")
        if src in self.apart:
            self.layer.below.append(driver_events.Contacts({src: head.contact}))
        self.layer.tell(src, OtherSettings(self.env.fingerprint))

    def on_other_settings(self, src: Address, head: OtherSettings) -> None:
        if src not in self.asked or head.fingerprint == self.env.fingerprint:
            self.env.drop("answer to no question")
        else:
            self.stays_apart(src, difference(self.env.fingerprint, head.fingerprint, "this group", "the other"))

    def stays_apart(self, peer: Address, detail: str) -> None:
        """The group of `peer` never merges with this one.  The application hears this once for each process."""
        if peer in self.apart or peer in self.current.members:
            return
        self._forget(peer)
        self.apart[peer] = None
        if len(self.apart) > MEMBERS_MAX:
            del self.apart[next(iter(self.apart))]
        self.env.count("processes with other settings")
        self.layer.above.append(StaysApart(peer, detail))

    def tell_apart(self, reason: Literal["names", "links"], one: Address, other: Address) -> bool:
        """Two views, of which one is this member's, stay apart because of these two processes.  The application hears
        this once for each process of the other view, until it is in one view with this member.  Returns whether it is
        news."""
        peer = other if one in self.current.members else one
        if (one in self.current.members and other in self.current.members) or peer in self.told:
            return False
        self.told[peer] = None
        if len(self.told) > MEMBERS_MAX:
            del self.told[next(iter(self.told))]
        detail = {
            "names": f"{one} and {other} have the same name",
            "links": f"{one} and {other} do not hear each other",
        }[reason]
        self.env.count("views that stay apart")
        self.layer.above.append(StaysApart(peer, detail, reason))
        return True

    def _in_view(self, src: Address, id: ViewId | None) -> AgreedView | None:
        """The view of `src`, which sends the id only, because the question named it."""
        return next((view for view in (self.current, self.last_views.get(src)) if view and view.id == id), None)

    def _note_life(self, src: Address) -> None:
        """`src` was heard, so this member asks it again in each interval."""
        known = self.known.get(src)
        if known is None:
            return
        if known.unanswered >= SELDOM:
            self.ask((src,))
        known.unanswered = known.refused = 0
        self.others_at = self.env.now
        self.layer.below.append(SignOfLife(src))
