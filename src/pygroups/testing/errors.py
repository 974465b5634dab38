"""The errors and warnings of a test with a group in memory."""

from __future__ import annotations

from pygroups.core.errors import ChannelClosed


class Crashed(ChannelClosed):
    """The test ended this process with `group.crash`.  A task that reads a channel of the process gets this error."""


class Hang(AssertionError):
    """The test does not end.  Either no event can wake a task of the test any more, or the test takes longer than its
    `limit` of virtual time, or a task continues although it was canceled.  The message names each task and the event
    that the task waits for."""


class Unsettled(AssertionError):
    """The group did not settle in time.  The message names the missing member or message."""


class LeftOpen(UserWarning):
    """A task or a channel was still open at the end of a test, and was closed.  The same warning reports a process that
    was queued in a fixture and never ran."""
