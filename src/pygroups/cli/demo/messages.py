"""What the director of the demo and its workers say to each other, as JSON lines."""

from __future__ import annotations

import msgspec

from .feeds import Feed


class Task(msgspec.Struct, frozen=True):
    """To a worker, first: who it is."""

    group: str
    name: str
    feeds: list[Feed]
    replica: str  # path of its table
    journal: str
    discovery: str


class Go(msgspec.Struct, frozen=True, tag=True):
    """To a worker: send the feeds, spread over so many seconds for a whole one."""

    seconds: float


class Mark(msgspec.Struct, frozen=True, tag=True):
    """To a worker: write a mark into the journal."""

    kind: str
    reason: str
    members: list[str]


class TellBusy(msgspec.Struct, frozen=True, tag=True):
    """To a worker: say Busy as soon as it is true."""


class Leave(msgspec.Struct, frozen=True, tag=True):
    """To a worker: leave the group, and end."""


Order = Go | Mark | TellBusy | Leave


class Joined(msgspec.Struct, frozen=True, tag=True):
    """From a worker: it is a member, began with so many records, and its feeds go on with these lines."""

    address: str
    records: int
    lines: dict[str, int]


class Views(msgspec.Struct, frozen=True, tag=True):
    """From a worker: it has a new view."""

    at_us: int
    members: list[str]


class Delivered(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the first message after a view that somebody is missing from."""

    at_us: int


class Marked(msgspec.Struct, frozen=True, tag=True):
    """From a worker: the mark stands in the journal before whatever happens now."""

    kind: str


class Busy(msgspec.Struct, frozen=True, tag=True):
    """From a worker: it has put so many runs on the wire that not everybody has acknowledged."""

    at_us: int
    runs: int
    sent: dict[str, int]


class Progress(msgspec.Struct, frozen=True, tag=True):
    """From a worker, again and again: lines sent and lines there are by feed, records applied, what its layers hold."""

    sent: dict[str, int]
    totals: dict[str, int]
    applied: int
    held: int


class End(msgspec.Struct, frozen=True, tag=True):
    """From a worker, last: what its replica holds."""

    records: int
    digest: str


Report = Joined | Views | Delivered | Marked | Busy | Progress | End
