"""The search for a group over the network, and the decision which process founds it.

Each process asks all places that it knows, and describes itself to each process that it asks.  A process that looks for
a group lets one such process found it: the first by address of those that it knows, until that process has ended or
lets another one found.  Each answer names that process.  A process founds the group if it lets itself found it, and
each place has answered, refused, or been silent for `DISCOVERY_TIMEOUT`.  A process that is only heard of, and does not
answer at its own contact, does not count for long.  Note: docs/layers/discovery.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Presence
from pygroups.core.layer import NEVER
from pygroups.core.tables import Tables

LEASE: Final = 2  # discovery_timeouts for which an answer counts
UNPROVEN: Final = 15  # discovery_timeouts for which a process counts that does not answer at its own contact
MOURNING: Final = 4  # discovery_timeouts after which a process that is not heard counts as ended; longer than a lease


@dataclass(slots=True)
class Inquiry:
    """The questions to one place where a process may listen.  Times are in microseconds."""

    to_all: bool = False  # a multicast address: any number of processes may answer
    asked_since: int = NEVER  # the first question without an answer
    settled_at: int = -NEVER  # the time of the question that the last answer, or the last refusal, belongs to


@dataclass(slots=True)
class Seeker:
    """Another process that looks for a group."""

    contact: str
    heard_at: int
    first: Address | None = None  # the process that it lets found the group, by its last answer
    named: Address | None = None  # the process that it named last, in a question or an answer; a question may be late


def may_found_at(
    me: Address,
    now: int,
    places: Mapping[str, Inquiry],
    seekers: Mapping[Address, Seeker],
    timeout: int,
    yielded_at: int,
) -> int:
    """The time when a process may found the group if nothing else is heard; `now` if it may do so at once.

    `yielded_at`: when it last let another process found.  Since then a place may let a third one found, so an answer
    to an earlier question does not count.
    """
    wait, oldest = now, oldest_that_counts(now, timeout, yielded_at)
    for place in places.values():
        if place.settled_at < oldest:
            wait = max(wait, min(place.asked_since, now) + timeout)
    for seeker in seekers.values():
        there = places.get(seeker.contact)
        unreached = seeker.named == me and there is not None and there.settled_at < oldest  # heard, and not reached
        if seeker.first != me and not unreached:
            return NEVER
    return wait


def oldest_that_counts(now: int, timeout: int, yielded_at: int) -> int:
    """The earliest time of a question whose answer counts now."""
    return max(now - LEASE * timeout, yielded_at + 1)


class Search:
    """The places and the processes that one process knows."""

    tables: ClassVar[Tables] = {
        "members": "found",
        "members[]": "fixed",
        "places": "found",
        "seekers": "found",
        "unproven": "found",
    }

    def __init__(self, me: Address, timeout: int, limit: int) -> None:
        self.me = me
        self.timeout = timeout
        self.limit = limit
        self.places: dict[str, Inquiry] = {}
        self.seekers: dict[Address, Seeker] = {}
        self.members: dict[Address, tuple[str, int]] = {}  # those with a view: the contact, and when they were heard
        # Since when each process was heard that has not answered at its own contact; NEVER: it has; -NEVER: the contact
        # refused.
        self.unproven: dict[Address, int] = {}
        self.chosen = me  # the process that this one lets found the group
        self.yielded_at = -NEVER  # when it last let another process found

    def looked(self, places: tuple[str, ...], to_all: tuple[str, ...]) -> None:
        """Take the places of a lookup.  The places of processes that were heard stay."""
        heard = [*[seeker.contact for seeker in self.seekers.values()], *self.contacts_of_members().values()]
        wanted = dict.fromkeys((*to_all, *places, *heard))
        self.places = {name: place for name, place in self.places.items() if name in wanted}
        for name in wanted:
            self._add(name, to_all=name in to_all)

    def _add(self, name: str, *, to_all: bool = False) -> None:
        if name and name not in self.places and len(self.places) < self.limit:
            self.places[name] = Inquiry(to_all)

    def asks(self, name: str, now: int) -> None:
        """This process sends a question to this place."""
        place = self.places.get(name)
        if place is not None:
            place.asked_since = min(place.asked_since, now)

    def wait_longer(self, late: int) -> None:
        """Extend the wait for all answers by `late` microseconds."""
        for place in self.places.values():
            if place.asked_since != NEVER:
                place.asked_since += late
        for process, since in self.unproven.items():
            if abs(since) != NEVER:
                self.unproven[process] = since + late

    # -- news of other processes

    def nobody(self, name: str, at: int) -> None:
        """No process of the group listened at this place at the time `at`."""
        self._settled(name, at)
        for process in self._forget(lambda contact, heard_at: contact == name and heard_at <= at):
            self._note(process, -NEVER)

    def replied(self, name: str, presence: Presence, at: int, now: int) -> None:
        """The process at this place answered the question of the time `at`."""
        if presence.process == self.me:
            self._settled(name, at)
            return
        if name == presence.contact:
            self._note(presence.process, NEVER)
        self.heard(presence, now)
        seeker = self.seekers.get(presence.process)
        if seeker is not None:
            seeker.first = presence.first
        self._settled(name, at)
        if presence.first != self.me:
            self._add(presence.first_contact)  # that process may have founded, or be about to: it must be asked too

    def heard(self, presence: Presence, now: int) -> None:
        """A process reported these facts about itself, in a question or an answer."""
        process, contact = presence.process, presence.contact
        if process not in self.unproven:
            self._note(process, now)
        if not self._counts(process, now):
            self.seekers.pop(process, None)
            self.members.pop(process, None)
        elif presence.member:
            self.seekers.pop(process, None)
            if process in self.members or len(self.members) < self.limit:
                self.members[process] = (contact, now)
        elif not presence.seeks:
            self.seekers.pop(process, None)
            self.members.pop(process, None)
        elif process not in self.members and (process in self.seekers or len(self.seekers) < self.limit):
            seeker = self.seekers.setdefault(process, Seeker(contact, now))
            seeker.heard_at, seeker.named = now, presence.first
            if presence.first != self.me:
                seeker.first = presence.first
            self._add(contact)

    def _counts(self, process: Address, now: int) -> bool:
        """Whether a process that was heard now may exist: it has answered at its own contact, or has time left to do
        so, and the contact has not refused since it was heard."""
        return self.unproven[process] > now - UNPROVEN * self.timeout

    def _note(self, process: Address, since: int) -> None:
        self.unproven.pop(process, None)
        if len(self.unproven) >= self.limit:
            del self.unproven[next(iter(self.unproven))]
        self.unproven[process] = since

    def _settled(self, name: str, at: int) -> None:
        place = self.places.get(name)
        if place is not None and not place.to_all:
            place.settled_at, place.asked_since = max(place.settled_at, at), NEVER

    # -- decisions

    def forget_the_silent(self, now: int) -> None:
        """Forget the processes that were not heard for a long time."""
        oldest = now - MOURNING * self.timeout
        self._forget(lambda _, heard_at: heard_at <= oldest)

    def _forget(self, is_over: Callable[[str, int], bool]) -> list[Address]:
        """Forget the processes with such a contact that were last heard at such a time, and return them."""
        over = [one for one, seeker in self.seekers.items() if is_over(seeker.contact, seeker.heard_at)]
        over += [one for one, heard in self.members.items() if is_over(*heard)]
        self.seekers = {one: seeker for one, seeker in self.seekers.items() if one not in over}
        self.members = {one: heard for one, heard in self.members.items() if one not in over}
        return over

    def may_found_at(self, now: int) -> int:
        """The time when this process may found the group; NEVER while a member is known."""
        if self.members or self.choose(now) != self.me:
            return NEVER
        return may_found_at(self.me, now, self.places, self.seekers, self.timeout, self.yielded_at)

    def unsettled(self, now: int) -> list[str]:
        """The places without an answer that counts, and without a question under way.  While another process is to
        found the group, any answer will do."""
        oldest = -NEVER + 1 if self.chosen != self.me else oldest_that_counts(now, self.timeout, self.yielded_at)
        return [name for name, place in self.places.items() if place.asked_since == NEVER and place.settled_at < oldest]

    def choose(self, now: int) -> Address:
        """The process that this one lets found the group, or a member of a group.  The choice stays as long as the
        chosen process looks for a group and lets no other process found one."""
        chosen = self.seekers.get(self.chosen)
        if self.members:
            self.chosen = min(self.members)
        elif chosen is None or chosen.named != self.chosen:
            self.chosen = min([self.me, *self.seekers])
        if self.chosen != self.me:
            self.yielded_at = now
        return self.chosen

    def contact_of_chosen(self) -> str:
        """The contact of the chosen process; "" if this process is the chosen one."""
        if self.chosen in self.members:
            return self.members[self.chosen][0]
        return "" if self.chosen == self.me else self.seekers[self.chosen].contact

    def contacts_of_members(self) -> dict[Address, str]:
        """The members that were heard, with their contacts."""
        return {process: contact for process, (contact, _) in self.members.items()}
