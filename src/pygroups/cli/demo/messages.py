"""The messages between the director of the demo and its workers, as JSON lines."""

from __future__ import annotations

import msgspec

from .feeds import Feed


class Task(msgspec.Struct, frozen=True):
    """To a worker, first: its group, its name, its feeds and its files."""

    group: str
    name: str
    feeds: list[Feed]
    replica: str  # path of its table
    journal: str
    discovery: str
    profile: str


class Go(msgspec.Struct, frozen=True, tag=True):
    """To a worker: send the feeds, at the rate of one whole feed in `seconds`."""

    seconds: float


class Mark(msgspec.Struct, frozen=True, tag=True):
    """To a worker: write a mark into the journal."""

    kind: str
    reason: str
    members: list[str]


class TellBusy(msgspec.Struct, frozen=True, tag=True):
    """To a worker: answer Busy as soon as it has unacknowledged runs."""


class LeaveGroup(msgspec.Struct, frozen=True, tag=True):
    """To a worker: leave the group, and end."""


Order = Go | Mark | TellBusy | LeaveGroup


class Joined(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the worker is a member.  `records`: the records in its state; `lines`: the next line of each
    feed."""

    address: str
    records: int
    lines: dict[str, int]


class Views(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the worker has a new view."""

    at_us: int
    members: list[str]


class FirstDelivered(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the worker has delivered the first message after a view that a member left."""

    at_us: int


class Marked(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the mark is in the journal."""

    kind: str


class Busy(msgspec.Struct, frozen=True, tag=True):
    """From a worker: not all members have acknowledged its last `runs` runs."""

    at_us: int
    runs: int
    sent: dict[str, int]


class WorkerReport(msgspec.Struct, frozen=True, tag=True):
    """From a worker, periodically: sent lines and all lines by feed, applied records, and the sum of its gauges."""

    sent: dict[str, int]
    totals: dict[str, int]
    applied: int
    held: int


class End(msgspec.Struct, frozen=True, tag=True):
    """From a worker, last: the number of records in its replica, and their digest."""

    records: int
    digest: str


Report = Joined | Views | FirstDelivered | Marked | Busy | WorkerReport | End
