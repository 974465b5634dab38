"""The exceptions of blocks, beside those of pygroups."""

from __future__ import annotations

from pygroups.core.errors import Error

from .gathering import Reply


class Overrun(Error):
    """The program reads the events of its blocks too slowly: too many were unread, and later ones were dropped."""


class NotHeld(Error):
    """The lock, the permit or the task does not belong to this caller any more: its lease is over, or its member was
    not in the group for a while.  Another member may have it."""


class NoReply(Error):
    """A request did not get the replies that its caller wants: members left, or their handlers raised errors.
    `replies` has those that came."""

    def __init__(self, text: str, replies: tuple[Reply, ...] = ()) -> None:
        super().__init__(text)
        self.replies = replies


class RequestTimeout(NoReply, TimeoutError):
    """The replies did not come in time.  Handlers may have run, or may still run."""
