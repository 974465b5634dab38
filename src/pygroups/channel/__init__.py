"""What users import: the channel and the events it yields."""

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
