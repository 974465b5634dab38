"""The errors and warnings of a test with a group in memory."""

from __future__ import annotations

from pygroups.core.errors import ChannelClosed


class Crashed(ChannelClosed):
    """The test ended this process with `group.crash`.  A task that reads a channel of the process gets this error."""


class Hang(AssertionError):
    """The test waits for an event that cannot happen any more.  The message names each task and its event."""


class Unsettled(AssertionError):
    """The group did not settle in time.  The message names the missing member or message."""


class LeftOpen(UserWarning):
    """A task or a channel was still open at the end of a test, and was closed."""
