"""The events between the bottom of a stack and its driver.  Each docstring names the direction and both ends."""

from __future__ import annotations

import msgspec

from .address import Address
from .events import Event
from .view import Contact


class Presence(msgspec.Struct, frozen=True, array_like=True):
    """The relation of a process to its group, as the process answers other processes that ask.

    `first`: the process that the sender lets found the group, with its contact; None if the sender does not look for a
    group.
    """

    process: Address
    contact: Contact
    member: bool  # the process has a view
    seeks: bool  # the process has no view, and looks for a group
    first: Address | None = None
    first_contact: Contact = ""


# -- from the driver, given to the bottom of the stack with Stack.happened


class Found(Event):
    """Up, driver to discovery, gms: the answer to Find.

    `members`: the members with a view, and their contacts.  `may_found`: there is no such member, and this process may
    found the group.  Only one process has this permission until it announces its own view or ends.  A process that has
    a view never gets it.  With discovery over the network each answer of a member becomes a Found of its own.
    `seekers`: other processes that look for the group, and their contacts.  `complete`: a member that was in an earlier
    answer and is not in this one has ended, or has left.
    """

    members: dict[Address, str]
    may_found: bool
    seekers: dict[Address, str] = msgspec.field(default_factory=dict)
    complete: bool = False


class Incompatible(Event):
    """Up, driver to gms: the member `peer` refuses this process, because their versions of the wire differ."""

    peer: Address
    detail: str


class Looked(Event):
    """Up, driver to discovery: the places where processes of the group may listen, as contacts.

    `to_all`: the multicast addresses among them, where any number of processes may answer.  `sure`: every lookup has
    been answered.
    """

    places: tuple[str, ...]
    to_all: tuple[str, ...]
    sure: bool


class Replied(Event):
    """Up, driver to discovery: the answer of a process to Ask.  `at`: the time in microseconds when it was asked."""

    place: str
    presence: Presence
    at: int


class Nobody(Event):
    """Up, driver to discovery: no process of this group listens at `place`."""

    place: str
    at: int


class Asked(Event):
    """Up, driver to discovery: another process asks this one.  Answered by Answer with the same token."""

    token: int
    presence: Presence


class Answered(Event):
    """Up, driver to failure: a new connection to `peer`'s contact was answered by `peer` itself."""

    peer: Address


class Ended(Event):
    """Up, driver to failure: a connection with `peer` ended.  The end of a connection is no proof that the process
    ended."""

    peer: Address


class Lost(Event):
    """Up, driver to unicast2: frames to or from `peer` may be lost, because a connection with it ended, or because the
    driver dropped frames to it.  A driver that reports every loss sets `env.lossless`."""

    peer: Address


class Dead(Event):
    """Up, driver to failure: a new connection to `peer`'s contact was refused, or another incarnation answered.

    `certain`: another process answered.  A firewall, or a port forwarder that restarts, can refuse as well.
    """

    peer: Address
    certain: bool = False


# -- to the driver, from the bottom of the stack


class Find(Event):
    """Down, gms to discovery, driver: look for the members of the group.  Answered by Found, and by Looked if members
    are found over the network.  With `members_only` this process does not found the group if there is no member."""

    members_only: bool = False


class Ask(Event):
    """Down, discovery to driver: ask the process at `place`.  Answered by Replied or Nobody, or not at all."""

    place: str
    presence: Presence


class Answer(Event):
    """Down, discovery to driver: the answer to Asked."""

    token: int
    presence: Presence


class Announce(Event):
    """Down, discovery to driver: this process is a member that others can find (`member`), or is none.  With
    `invited` a group is about to admit this process, and no process founds a group meanwhile."""

    member: bool
    invited: bool = False


class Contacts(Event):
    """Down, gms to driver: the contacts of these members."""

    contacts: dict[Address, str]


class Probe(Event):
    """Down, failure to driver: make a new connection to `peer`.  Answered by Answered or Dead, or not at all."""

    peer: Address


class Disconnect(Event):
    """Down, failure to driver: no layer needs the connection with `peer` any more."""

    peer: Address


COMMANDS = (Announce, Answer, Ask, Contacts, Disconnect, Find, Probe)  # those to the driver
