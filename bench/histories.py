"""Large histories for measuring the audit: drawn by numpy, written as tables or as journals.

Every group runs `total` in one view after another.  Every third view a member joins or one dies in the middle of its
view, by turns; newcomers are given a state.  Every member of a view delivers all runs of it (one that dies: a first
part), so that nothing is broken, unless `skip` asks for it.  A run has 1 to 1,000 messages, most runs few (median 5,
mean 79), so that their borders cross those of the audit's blocks.  A run is sent a few runs before it is
delivered; everybody votes once in VOTE_RUNS runs.

`stories` draws, `written.py` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

Longs = NDArray[np.int64]
SEND, DELIVER, STABLE, PURGE = 0, 1, 10, 11  # the first two as the column `kind` of the table `runs` has them
AHEAD: Final = 8  # a run is sent when so many others are under way
VOTE_RUNS: Final = 200
BEGIN_US: Final = 1_700_000_000_000_000
STEP_US: Final = 50


@dataclass(frozen=True)
class Shape:
    """How large: `records` counts sends and deliveries of all groups together; `members` is the least of a view."""

    records: int
    groups: int = 3
    members: int = 8
    views: int = 30
    skip: bool = False  # the third member lacks the first run of the last view
    seed: int = 1


@dataclass(eq=False)
class Member:
    """One life; `rank` counts the lives of the group."""

    group: str
    rank: int

    @property
    def name(self) -> str:
        return f"m{self.rank:02}"

    @property
    def incarnation(self) -> str:
        return f"{self.rank + 1:016x}"

    @property
    def address(self) -> str:
        return f"{self.name}@{self.incarnation}"

    @property
    def key(self) -> int:
        return key_of(self.group, self.name, self.incarnation)


@dataclass(eq=False)
class View:
    """A view and everything that is ordered in it: run r is `count[r]` messages of member `origin[r]` (a rank)."""

    number: int
    members: list[Member]
    before: View | None
    begin_us: int
    origin: Longs
    first: Longs
    count: Longs
    checksum: Longs
    marks: dict[int, int]  # by rank: the last number delivered before this view
    dies: Member | None = None
    delivered: int = 0  # by the one that dies
    joins: Member | None = None
    lacks: Member | None = None  # who does not deliver the first run
    position: Longs = field(init=False)

    def __post_init__(self) -> None:
        self.position = np.cumsum(self.count) - self.count

    @property
    def creator(self) -> Member:
        return self.members[0]

    @property
    def key(self) -> int:
        return key_of(self.creator.group, self.number, self.creator.address)

    def of(self, member: Member) -> tuple[NDArray[np.int8], Longs]:
        """What `member` writes in this view: kinds and the runs that they are about, in the order written."""
        runs = self.delivered if member is self.dies else len(self.count)
        every = np.arange(runs, dtype=np.int64)
        sent = np.flatnonzero(self.origin == member.rank).astype(np.int64)
        sent = sent[np.maximum(sent - AHEAD, 0) < runs]
        voted = np.arange(VOTE_RUNS - 1, runs, VOTE_RUNS, dtype=np.int64)
        kinds = np.repeat(np.array([SEND, DELIVER, STABLE, PURGE], np.int8), [len(sent), runs, len(voted), len(voted)])
        rows = np.concatenate([sent, every, voted, voted])
        at = np.concatenate([2 * np.maximum(sent - AHEAD, 0), 2 * every + 1, 2 * voted + 1, 2 * voted + 1])
        order = np.argsort(at, kind="stable")
        kinds, rows = kinds[order], rows[order]
        if member is self.lacks:
            there = (kinds != DELIVER) | (rows > 0)
            kinds, rows = kinds[there], rows[there]
        return kinds, rows

    def purged(self, run: int) -> int:
        """Below which run votes let go once `run` was delivered; a dead member's votes come no more."""
        mark = run + 1 - VOTE_RUNS
        return min(mark, self.delivered) if self.dies else mark

    @property
    def end_us(self) -> int:
        return self.begin_us + (2 * len(self.count) + 2) * STEP_US


def stories(shape: Shape) -> Iterator[list[View]]:
    """The views of each group."""
    for number in range(shape.groups):
        yield list(_views(shape, f"g{number}", np.random.default_rng([shape.seed, number])))


def _views(shape: Shape, group: str, draw: np.random.Generator) -> Iterator[View]:
    members = [Member(group, rank) for rank in range(shape.members)]
    lives, marks, before = list(members), dict.fromkeys(range(shape.members), 0), None
    each = shape.records / shape.groups / shape.views
    for number in range(1, shape.views + 1):
        joins = dies = None
        if number % 6 == 3:
            joins = Member(group, len(lives))
            lives.append(joins)
            members = [*members, joins]
            marks[joins.rank] = 0
        elif number % 6 == 0 and number < shape.views:
            dies = members[-2]
        view = _view(shape, draw, number, members, before, marks, dies, round(each / (len(members) + 1)))
        view.joins = joins
        yield view
        for rank in np.unique(view.origin).tolist():
            last = np.flatnonzero(view.origin == rank)[-1]
            marks[rank] = int(view.first[last] + view.count[last] - 1)
        members, before = [member for member in members if member is not dies], view


def _view(
    shape: Shape,
    draw: np.random.Generator,
    number: int,
    members: list[Member],
    before: View | None,
    marks: dict[int, int],
    dies: Member | None,
    runs: int,
) -> View:
    ranks = np.array([member.rank for member in members], np.int64)
    origin = ranks[draw.integers(len(ranks), size=runs)]
    if shape.skip and number == shape.views:
        origin[0] = members[1].rank
    delivered = runs * 7 // 10
    if dies is not None:
        unsent = np.flatnonzero(origin == dies.rank)
        origin[unsent[unsent - AHEAD >= delivered]] = members[0].rank
    count = np.clip(1000 ** (draw.random(runs) ** 2), 1, 1000).astype(np.int64)
    first = np.empty(runs, np.int64)
    for rank in ranks.tolist():
        mine = origin == rank
        own = count[mine]
        first[mine] = marks[rank] + 1 + np.cumsum(own) - own
    checksum = draw.integers(-(1 << 63), (1 << 63) - 1, size=runs)
    begin = before.end_us if before else BEGIN_US
    lacks = members[2] if shape.skip and number == shape.views else None
    view = View(number, members, before, begin, origin, first, count, checksum, dict(marks), dies, delivered)
    view.lacks = lacks
    return view


def key_of(*parts: str | int) -> int:
    """A key as the tables have it: the xxhash64 of Spark over these values."""
    value = 42
    for part in parts:
        data = part.encode() if isinstance(part, str) else part.to_bytes(8, "little", signed=True)
        value = xxhash.xxh64_intdigest(data, seed=value)
    return value - (1 << 64) if value >> 63 else value


def happened(view: View, member: Member) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of `member` as it comes into `view`, its kind and its fields by the names of the journal."""
    earlier = view.before
    fields: dict[str, Any] = {
        "members": [m.address for m in view.members],
        "transitional": [member.address],
        "primary": True,
    }
    if earlier is not None and member in earlier.members:
        fields["transitional"] = [m.address for m in view.members if m in earlier.members]
        fields |= {"previous_number": earlier.number, "previous_creator": earlier.creator.address}
    digest = {_address(view, rank): mark for rank, mark in view.marks.items() if mark}
    if member is view.joins:
        fields["digest"] = digest
    yield "view", fields
    state = {"bytes": 10, "checksum": view.number, "position": 0, "digest": digest}
    if view.joins is not None and member is view.creator:
        yield "state_get", state | {"peer": view.joins.address}
    if member is view.joins:
        yield "state_set", state | {"peer": view.creator.address}


def _address(view: View, rank: int) -> str:
    return Member(view.creator.group, rank).address
