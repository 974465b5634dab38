"""The public interface: the channel, its events and its configuration."""

from .channel import Channel
from .channel_events import (
    Blocked,
    Event,
    Gap,
    JournalLost,
    Left,
    MergeView,
    Message,
    Slow,
    StaysApart,
    Suspected,
    Unblocked,
    Undelivered,
    View,
)
from .config import Config
from .sending.demands import Payload, Until
from .state.states import State

__all__ = [
    "Blocked",
    "Channel",
    "Config",
    "Event",
    "Gap",
    "JournalLost",
    "Left",
    "MergeView",
    "Message",
    "Payload",
    "Slow",
    "State",
    "StaysApart",
    "Suspected",
    "Unblocked",
    "Undelivered",
    "Until",
    "View",
]
