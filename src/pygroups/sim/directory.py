"""Where the simulated processes find each other: it stands for the folder, or the list of hosts, of the real driver.

Other than the folder it waits for whoever is invited and paused as long as that lasts.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Found


class Directory:
    """Knows who lives and says that it has a view, and lets one process found at a time."""

    def __init__(self) -> None:
        self.members: dict[Address, str] = {}
        self.invited: dict[Address, None] = {}  # whom a group is taking in
        self.founder: Address | None = None  # who was told to found and has not announced itself

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
        self.members[who] = contact
        if self.founder == who:
            self.founder = None

    def ended(self, who: Address) -> None:
        """`who`'s process is gone; the kernel has given back its locks."""
        self.members.pop(who, None)
        self.invited.pop(who, None)
        if self.founder == who:
            self.founder = None
