"""What the director of a measurement and its members tell each other, in lines of JSON; and the head of a message."""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

HEAD: Final = Struct(">HxxId")  # of each payload: the sender, the number of the message there, and when it was sent


class Load(msgspec.Struct):
    """What the senders send, and how the members read."""

    size: int  # bytes of a message
    rate: float | None  # messages a second of each sender; None: as many as the window lets it
    each: bool  # read message by message


class Task(msgspec.Struct):
    """The first line to a member: the group that it joins."""

    group: str
    index: int
    profile: str
    transport: str
    discovery: str
    expect: int | None
    journal: str | None
    load: Load


class Begin(msgspec.Struct, tag="begin"):
    """Read from now on, and send between two instants, in seconds of the machine's monotonic clock."""

    sends: bool
    first: float  # the first instant of what is measured
    last: float
    until: float  # the last message is sent then


class Finish(msgspec.Struct, tag="finish"):
    """Report when all is delivered that these senders sent, or when nothing has come for `patience` seconds."""

    accepted: dict[int, int]
    killed_at: float | None
    patience: float


Order = Begin | Finish


class Viewed(msgspec.Struct, tag="view"):
    """The members of the view, by their indexes, the coordinator first."""

    members: list[int]


class Sent(msgspec.Struct, tag="sent"):
    """The load of this member is over: the messages that the channel has accepted."""

    accepted: int


class Seen(msgspec.Struct, tag="seen"):
    """What a member saw."""

    delivered: int  # in all
    order: str  # a hash of all deliveries in their order
    lost: int  # messages of a sender before a later one of it, or at its end
    double: int  # repeated, or after a later one of the same sender
    counted: int  # deliveries between the two instants
    seconds: float  # between them
    cpu_seconds: float  # of this process, user and system
    latencies: list[float]  # a sample, in seconds
    run_messages: list[int]  # how many messages each own run had; a sample
    run_messages_max: int
    bytes_sent_again: int
    gap: float | None  # the longest time between two deliveries of which the later is after the kill


class Failed(msgspec.Struct, tag="failed"):
    """The last line of a member that an error of pygroups ended."""

    text: str
    is_usage: bool  # the call was wrong


Report = Viewed | Sent | Seen | Failed
