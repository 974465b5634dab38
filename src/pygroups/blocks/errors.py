"""The exceptions of blocks, beside those of pygroups."""

from __future__ import annotations

from pygroups.core.errors import Error


class Overrun(Error):
    """The program reads the events of its blocks too slowly: too many were unread, and later ones were dropped."""


class NotHeld(Error):
    """The lock, the permit or the task does not belong to this caller any more: its lease is over, or its member was
    not in the group for a while.  Another member may have it."""


class NoReply(Error):
    """A member left before it answered a request, or its handler raised an error; the text names the case."""
