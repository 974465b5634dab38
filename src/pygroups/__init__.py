"""Reliable group communication for Python: several processes, one view of the group, one order, no server."""

from pygroups._version import __version__
from pygroups.channel import (
    Channel,
    Config,
    Happening,
    JournalLost,
    Left,
    Message,
    Slow,
    State,
    Suspected,
    Undelivered,
    View,
)
from pygroups.core.address import Address
from pygroups.core.errors import (
    ChannelClosed,
    Error,
    Excluded,
    NameTaken,
    NotBuilt,
    NotSent,
    Refused,
    StateLost,
    Timeout,
    Unknown,
    UsageError,
    WouldBlock,
    WouldDeadlock,
)
from pygroups.core.view import ViewId

__all__ = [
    "Address",
    "Channel",
    "ChannelClosed",
    "Config",
    "Error",
    "Excluded",
    "Happening",
    "JournalLost",
    "Left",
    "Message",
    "NameTaken",
    "NotBuilt",
    "NotSent",
    "Refused",
    "Slow",
    "State",
    "StateLost",
    "Suspected",
    "Timeout",
    "Undelivered",
    "Unknown",
    "UsageError",
    "View",
    "ViewId",
    "WouldBlock",
    "WouldDeadlock",
    "__version__",
]
