"""What a test of a group can fail with, beside its own assertions."""

from __future__ import annotations

from pygroups.core.errors import ChannelClosed


class Crashed(ChannelClosed):
    """The test ended this process with `group.crash`: whoever reads its events gets this."""


class Hang(AssertionError):
    """The test waits for something that cannot happen any more; the text says who waits for what."""


class Unsettled(AssertionError):
    """The group did not come to rest in the time given; the text says what is missing, and at whom."""


class LeftOpen(UserWarning):
    """At the end of a test something still ran, or was open, and was closed."""
