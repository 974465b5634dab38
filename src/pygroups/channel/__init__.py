"""The public interface: the channel, its events and its configuration."""

from .channel import Channel
from .config import Config
from .happenings import Happening, JournalLost, Left, Message, Slow, Suspected, Undelivered, View
from .outbox import Payload, Until
from .states import State

__all__ = [
    "Channel",
    "Config",
    "Happening",
    "JournalLost",
    "Left",
    "Message",
    "Payload",
    "Slow",
    "State",
    "Suspected",
    "Undelivered",
    "Until",
    "View",
]
