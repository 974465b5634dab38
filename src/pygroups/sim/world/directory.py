"""Where the simulated processes find each other: it stands for the folder, or the list of hosts, of the real driver.

Other than the folder it waits for whoever is invited and paused as long as that lasts.
"""

from __future__ import annotations

from random import Random

from pygroups.core.address import Address
from pygroups.core.driver_events import Found

from ..schedules.steps import How


class Directory:
    """Knows who lives and says that it has a view, and lets one process found at a time."""

    def __init__(self) -> None:
        self.members: dict[Address, str] = {}
        self.invited: dict[Address, None] = {}  # whom a group is taking in
        self.founder: Address | None = None  # who was told to found and has not announced itself
        self.former: dict[Address, str] = {}  # who was a member once
        self._wrong: dict[How, int] = {}  # what is wrong with the answers, and until when

    def mislead(self, how: How, until: int) -> None:
        """Until then answers are late, name former members too, or only some."""
        self._wrong[how] = max(until, self._wrong.get(how, 0))

    def tells_the_truth(self) -> None:
        """Everything is right again."""
        self._wrong = {}

    def is_wrong(self, how: How, now: int) -> bool:
        """Whether that is the matter with answers now."""
        return now < self._wrong.get(how, 0)

    def told(self, who: Address, now: int, chance: Random) -> Found:
        """What `who` hears.  Who may found a group is decided by a lock, and always right."""
        found = self.find(who)
        if found.may_found:
            return found
        members = {**self.former, **found.members} if self.is_wrong("former", now) else found.members
        if self.is_wrong("some", now):
            members = {member: contact for member, contact in members.items() if chance.random() < 0.5}
        return Found(members, False)

    def find(self, who: Address) -> Found:
        """The answer to `who` asking who is there."""
        others = {member: contact for member, contact in self.members.items() if member != who}
        if others or self.founder not in (None, who) or any(one != who for one in self.invited):
            return Found(others, False)
        self.founder = who
        return Found({}, True)

    def announce(self, who: Address, contact: str, member: bool, invited: bool = False) -> None:
        """`who` has a view now, or has none any more, or is being taken in."""
        self.invited.pop(who, None)
        if invited:
            self.invited[who] = None
        if not member:
            self.members.pop(who, None)
            return
        self.members[who] = self.former[who] = contact
        if self.founder == who:
            self.founder = None

    def ended(self, who: Address) -> None:
        """`who`'s process is gone; the kernel has given back its locks."""
        self.members.pop(who, None)
        self.invited.pop(who, None)
        if self.founder == who:
            self.founder = None
