"""The public interface: the channel, its events and its configuration."""

from .channel import Channel
from .config import Config
from .demands import Payload, Until
from .happenings import (
    Blocked,
    Gap,
    Happening,
    JournalLost,
    Left,
    MergeView,
    Message,
    Slow,
    Suspected,
    Unblocked,
    Undelivered,
    View,
)
from .states import State

__all__ = [
    "Blocked",
    "Channel",
    "Config",
    "Gap",
    "Happening",
    "JournalLost",
    "Left",
    "MergeView",
    "Message",
    "Payload",
    "Slow",
    "State",
    "Suspected",
    "Unblocked",
    "Undelivered",
    "Until",
    "View",
]
