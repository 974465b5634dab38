"""The events between the bottom of a stack and its driver.  Each docstring names the direction and both ends."""

from __future__ import annotations

from .address import Address
from .events import Event

# -- from the driver, given to the bottom of the stack with Stack.happened


class Found(Event):
    """Up, driver to discovery, gms: the answer to Find.

    `members`: the members with a view, and their contacts.  `may_found`: there is no such member, and this process may
    found the group.  Only one process has this permission until it announces its own view or ends.
    """

    members: dict[Address, str]
    may_found: bool


class Answered(Event):
    """Up, driver to failure: a new connection to `peer`'s contact was answered by `peer` itself."""

    peer: Address


class Ended(Event):
    """Up, driver to failure: a connection with `peer` ended.  That is no proof that the process ended."""

    peer: Address


class Dead(Event):
    """Up, driver to failure: a new connection to `peer`'s contact was refused, or another incarnation answered."""

    peer: Address


# -- to the driver, from the bottom of the stack


class Find(Event):
    """Down, gms to driver: look for the members of the group.  Answered by Found."""


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


COMMANDS = (Announce, Contacts, Disconnect, Find, Probe)  # those to the driver
