"""DISCOVERY: a process finds the members of its group, and other processes can find it while it is a member.

The driver looks into a folder, or for places on the network, and carries questions and answers.  This layer begins and
ends the time in which this member may be found.  Over the network it also decides which process founds the group
(search.py); in a folder the kernel's locks decide that.
Needs nothing.  Note: docs/layers/discovery.md; design note 002.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.driver_events import Announce, Answer, Ask, Asked, Find, Found, Looked, Nobody, Presence, Replied
from pygroups.core.events import Event, Gone, Invited, NewView
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import DISCOVERY_TIMEOUT, LATENESS, MEMBERS_MAX, MILLISECOND
from pygroups.core.tables import Tables, under

from .search import Search

# A lookup that has failed for now says nothing about the group.  A resolver repeats a lost question after five seconds.
LOOKUP_WAIT: Final = 15  # discovery_timeouts for which a founder waits until each name is known
ASK_PAUSE_MIN: Final = 50 * MILLISECOND  # between two questions of a process that looks for a group; it doubles
SELDOM: Final = 8  # refusals in a row, after which a contact of an earlier view is asked in one of RARELY lookups
RARELY: Final = 64
REFUSALS_MAX: Final = 16  # refusals in a row, after which a contact of an earlier view is forgotten; as in MERGE2


class Discovery(Layer):
    """Announces this member when it has its first view, and withdraws the announcement when it has left."""

    __slots__ = (
        "announced",
        "answered",
        "began",
        "claims",
        "former",
        "gone",
        "here",
        "invited",
        "lookups",
        "pause",
        "search",
        "sure",
    )

    gives: ClassVar[frozenset[str]] = frozenset({"DISCOVERY"})

    tables: ClassVar[Tables] = {
        "former": "members_max",
        "here": "members",
        **under("search", Search.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.announced = False
        self.gone = False  # an incarnation that was a member once never is one again
        self.invited = False  # a group is taking this process in
        self.search = Search(env.me, DISCOVERY_TIMEOUT, 2 * MEMBERS_MAX)
        self.began = NEVER  # when the search over the network began
        self.sure = False  # every lookup of places was answered
        self.claims = False  # no process on the network objects: the driver was asked whether this one may found
        self.answered = False  # this search went up already with a member
        self.pause = ASK_PAUSE_MIN
        self.here: dict[str, None] = {}  # the contacts of the view
        self.former: dict[str, int] = {}  # contacts of earlier views, the newest last, with their refusals in a row
        self.lookups = 0

    @property
    def seeks(self) -> bool:
        """Whether this process looks for a group over the network."""
        return self.began < NEVER and not self.announced and not self.gone

    # -- events from above

    def down_event(self, event: Event) -> None:
        if isinstance(event, Find):
            self._find(event)
            return
        if isinstance(event, Invited):
            self.invited = event.invited
            self.below.append(Announce(False, event.invited))
            return
        self.below.append(event)
        if isinstance(event, NewView):
            self._installed(event)
            if not self.announced and not self.gone:
                self.announced = True
                self.below.append(Announce(True))
                self._tell_seekers()
        elif isinstance(event, Gone) and not self.gone:
            self.gone = True
            self.wake = NEVER
            # A process that was allowed to found, and did not, gives the permission back with this.
            self.below.append(Announce(False))

    def _find(self, event: Find) -> None:
        if self.env.asks and not self.announced and self.began == NEVER:
            self.began = self.env.now
        self.search.forget_the_silent(self.env.now)
        self.answered = bool(self.seeks and self.search.members)
        if self.answered or (self.seeks and self.env.expect):
            seekers = {one: seeker.contact for one, seeker in self.search.seekers.items()}
            self.above.append(Found(self.search.contacts_of_members(), False, seekers))
        self.below.append(Find(event.members_only or self.announced or not self._claim()))

    def _installed(self, event: NewView) -> None:
        """Keep the contacts of members that are in the view no more: they may be in another one."""
        here = dict.fromkeys(event.view.contacts)
        former = {**self.former, **dict.fromkeys(self.here, 0)}
        self.former = {contact: refusals for contact, refusals in former.items() if contact not in here}
        for contact in list(self.former)[: max(0, len(self.former) - MEMBERS_MAX)]:
            del self.former[contact]
        self.here = here

    def _claim(self) -> bool:
        """Claim to found the group, if no process on the network objects.  Returns whether this process claims it."""
        self.claims = not self.env.asks or (self.seeks and self._may_found_at() <= self.env.now)
        return self.claims

    # -- events from below

    def up_event(self, event: Event) -> None:
        if isinstance(event, Looked):
            self._looked(event)
        elif isinstance(event, Replied):
            self.search.replied(event.place, event.presence, event.at, self.env.now)
            if event.place in self.former:
                self.former[event.place] = 0
            self._heard(event.presence)
        elif isinstance(event, Nobody):
            self.search.nobody(event.place, event.at)
            self._refused(event.place)
            self._go_on()
        elif isinstance(event, Asked):
            self.search.heard(event.presence, self.env.now)
            self.below.append(Answer(event.token, self._presence()))
            self._heard(event.presence)
        elif isinstance(event, Found):
            self._found(event)
        else:
            self.above.append(event)

    def _found(self, event: Found) -> None:
        """The driver's answer.  Another process may have objected since the question."""
        if event.may_found and not self._claim():
            self.below.append(Announce(False, self.invited))  # gives the permission back
            return
        self.above.append(event)

    def _looked(self, event: Looked) -> None:
        self.sure = event.sure
        self.search.looked((*event.places, *self._former_to_ask()), event.to_all)
        if self.seeks:
            self._ask_unsettled()
            self._go_on()
        else:
            self._ask([place for place in self.search.places if place not in self.here])

    def _former_to_ask(self) -> list[str]:
        """The contacts of earlier views, and of those that refuse only a few: their processes have probably ended."""
        self.lookups += 1
        refusing = [contact for contact, refusals in self.former.items() if refusals >= SELDOM]
        asked = dict.fromkeys(refusing[self.lookups % RARELY :: RARELY])
        return [contact for contact, refusals in self.former.items() if refusals < SELDOM or contact in asked]

    def _refused(self, place: str) -> None:
        """No process of the group listens at this place.  A firewall can refuse, too: only many refusals in a row let a
        contact of an earlier view be forgotten."""
        refusals = self.former.get(place)
        if refusals is None:
            return
        self.former[place] = refusals + 1
        if self.former[place] >= REFUSALS_MAX:
            del self.former[place]

    def _heard(self, presence: Presence) -> None:
        if presence.member and presence.process != self.env.me and not self.gone and not self.answered:
            found = self.search.contacts_of_members() if self.seeks else {presence.process: presence.contact}
            self.answered = self.seeks and bool(found)  # a joiner asks some members at each of its searches
            if found:
                self.above.append(Found(found, False))
        self._go_on()

    # -- looking for a group

    def timer(self) -> None:
        self._excuse_own_lateness()
        self.wake = NEVER
        if self.seeks:
            self.search.forget_the_silent(self.env.now)
            self._ask(self._places_to_ask_again())
            self.pause = min(2 * self.pause, self.env.config.join_retry)
            self.wake_at(self.env.now + self.pause)
            self._go_on()

    def _go_on(self) -> None:
        """Ask new places, and found the group if no process objects."""
        if not self.seeks:
            return
        self._excuse_own_lateness()
        self._ask_unsettled()
        may = self._may_found_at()
        if may > self.env.now:
            self.claims = False
            self.wake_at(min(may, self.env.now + self.pause))
        elif not self.claims:
            self.claims = True
            self.below.append(Find())

    def _places_to_ask_again(self) -> list[str]:
        """All places if this process may be the founder; otherwise the chosen process, and places that never answered.

        If each of many processes asked all others again and again, the questions alone would keep a machine busy.
        """
        search = self.search
        if search.choose(self.env.now) == self.env.me:
            return list(search.places)
        chosen = search.contact_of_chosen()
        return [name for name, place in search.places.items() if name == chosen or place.settled_at == -NEVER]

    def _excuse_own_lateness(self) -> None:
        """A process that was late itself has not listened meanwhile, so the silence of others began later."""
        late = self.env.now - self.wake
        if late > LATENESS:
            self.search.wait_longer(late)
            self.wake = self.env.now

    def _may_found_at(self) -> int:
        if self.env.expect:
            return NEVER  # a majority decides the first view
        may = self.search.may_found_at(self.env.now)
        return may if self.sure else max(may, self.began + LOOKUP_WAIT * DISCOVERY_TIMEOUT)

    def _ask_unsettled(self) -> None:
        self._ask(self.search.unsettled(self.env.now))

    def _ask(self, names: list[str]) -> None:
        presence = self._presence()
        for name in names:
            if name != self.env.contact:
                self.search.asks(name, self.env.now)
                self.below.append(Ask(name, presence))
            else:
                self.search.nobody(name, self.env.now)

    # -- the announcement of this process

    def _presence(self) -> Presence:
        env = self.env
        member = self.announced and not self.gone
        first, contact = None, ""
        if self.seeks:
            first, contact = env.me, ""
            if not self.invited:  # an invited process may be in the view of a group: no other process founds one
                first, contact = self.search.choose(env.now), self.search.contact_of_chosen()
        return Presence(env.me, env.contact, member, self.seeks, first, contact)

    def _tell_seekers(self) -> None:
        """The processes that wait for this one hear at once that the group exists."""
        self._ask(list(dict.fromkeys([seeker.contact for seeker in self.search.seekers.values()])))
