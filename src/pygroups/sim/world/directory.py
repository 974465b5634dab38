"""The directory in which the simulated processes find each other, in place of the real driver's folder or list of
hosts.

Unlike the folder, this directory waits for a joiner that was invited and is paused, as long as the pause lasts.
"""

from __future__ import annotations

from random import Random

from pygroups.core.address import Address
from pygroups.core.driver_events import Found

from ..schedules.steps import How


class Directory:
    """Contains the running processes that have announced a view, and lets one process at a time found a group."""

    def __init__(self) -> None:
        self.members: dict[Address, str] = {}
        self.invited: dict[Address, None] = {}  # joiners that a group is admitting
        # Processes that may found a group and have not announced themselves yet:
        self.founders: dict[Address, None] = {}
        self.apart: tuple[str, ...] = ()  # processes that find, and are found by, each other only
        self.former: dict[Address, str] = {}  # all processes that were members
        self.seekers: dict[Address, str] = {}  # the processes that looked for members, and have no view
        self.births = False  # whether processes take part in a birth, and no lock decides who founds the group
        self._wrong: dict[How, int] = {}  # the kinds of wrong answers, with the ends of their periods

    def parts(self, names: tuple[str, ...]) -> None:
        """From now on the processes of `names` find, and are found by, each other only."""
        self.apart = names

    def meets(self) -> None:
        """From now on all processes find each other."""
        self.apart = ()

    def _finds(self, who: Address, other: Address) -> bool:
        return other != who and (other.name in self.apart) == (who.name in self.apart)

    def mislead(self, how: How, until: int) -> None:
        """Make answers wrong in this way until `until`; steps.Mislead says what each way means."""
        self._wrong[how] = max(until, self._wrong.get(how, 0))

    def misled_until(self) -> int:
        """The end of the last period so far in which answers to a process without a view are wrong in any way."""
        return max((until for how, until in self._wrong.items() if how != "nobody"), default=0)

    def tells_the_truth(self, now: int) -> None:
        """Make all answers from `now` on right again."""
        self._wrong = {how: min(until, now) for how, until in self._wrong.items()}

    def is_wrong(self, how: How, now: int) -> bool:
        """Whether answers are wrong in this way now."""
        return now < self._wrong.get(how, 0)

    def told(self, who: Address, now: int, chance: Random, founding: bool = True) -> Found:
        """The answer that `who` gets, which a fault may have made wrong.  The permission to found a group comes from a
        lock and is always right."""
        found = self.find(who, founding)
        if found.may_found:
            return found
        if who in self.members and self.is_wrong("nobody", now):
            return Found({}, False)
        former = {one: contact for one, contact in self.former.items() if self._finds(who, one) or one == who}
        members = {**former, **found.members} if self.is_wrong("former", now) else found.members
        some = self.is_wrong("some", now)
        if some:
            shown = {member: contact for member, contact in members.items() if chance.random() < 0.5}
            if self.births and who not in self.members and found.members and not shown.keys() & found.members.keys():
                first = min(found.members)  # who has lost its folder cannot know of a group that nobody names
                shown[first] = found.members[first]
            members = shown
        return Found(members, False, found.seekers, found.complete and not some)

    def find(self, who: Address, founding: bool = True) -> Found:
        """The right answer to `who`.  A process that wants to found the group (`founding`) may do so if there is no
        member and no other process may."""
        others = {member: contact for member, contact in self.members.items() if self._finds(who, member)}
        if who not in self.members:
            self.seekers[who] = who.name
        seekers = {one: contact for one, contact in self.seekers.items() if self._finds(who, one)}
        if others or not founding or any(self._finds(who, one) for one in (*self.founders, *self.invited)):
            return Found(others, False, seekers, not self.apart)
        self.founders[who] = None
        return Found({}, True, seekers)

    def announce(self, who: Address, contact: str, member: bool, invited: bool = False) -> None:
        """Record that `who` has a view now, or has none any more, or is being admitted (`invited`)."""
        self.invited.pop(who, None)
        if invited:
            self.invited[who] = None
        self.founders.pop(who, None)  # a founder announces that it is a member, or gives the permission back
        if not member:
            self.members.pop(who, None)
            return
        self.members[who] = self.former[who] = contact
        self.seekers.pop(who, None)

    def ended(self, who: Address) -> None:
        """Remove the ended process `who`; its kernel has released its locks."""
        self.members.pop(who, None)
        self.seekers.pop(who, None)
        self.invited.pop(who, None)
        self.founders.pop(who, None)
