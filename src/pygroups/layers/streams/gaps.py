"""The gaps of a merge: which messages a member never delivers, and which members delivered them.

A member that announces a gap has a mark above these messages, and does not have them.  It keeps their numbers, and
tells the leader of a later merge.  Note: docs/layers/flush.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Final

from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks, Missing, NewView
from pygroups.core.view import Lack, Lacks

MISSING_MAX: Final = 8  # ranges of one origin at one member
LACKS_MAX: Final = 64  # ranges of one origin in a merge
TOLD_BYTES: Final = 256 << 10  # of ranges in one message: beside the marks of MARKS_MAX origins they fit into a frame
ORIGIN_BYTES: Final = 100  # the most that the name of an origin takes in it
RANGE_BYTES: Final = 20
RANK_BYTES: Final = 3
TOLD_MAX: Final = TOLD_BYTES // (ORIGIN_BYTES + RANGE_BYTES)  # origins in one message

Next = Annotated[int, Meta(ge=0, le=1 << 62)]
OriginRanges = Annotated[  # of a Missing, in a message
    dict[Address, Annotated[tuple[tuple[Next, Next], ...], Meta(max_length=MISSING_MAX)]], Meta(max_length=TOLD_MAX)
]


def note(missing: Missing, origin: Address, low: int, high: int) -> None:
    """This member never delivers the messages [low, high) of `origin`, which are above all that it misses so far.  Too
    many ranges become fewer and longer ones: the member then names itself for fewer messages than it has."""
    ranges = missing.get(origin, ())
    if ranges and ranges[-1][1] == low:
        ranges, low = ranges[:-1], ranges[-1][0]
    ranges = (*ranges, (low, high))
    if len(ranges) > MISSING_MAX:
        ranges = ((ranges[0][0], ranges[1][1]), *ranges[2:])
    missing[origin] = ranges


def all_below(marks: Marks) -> Missing:
    """All messages below `marks`: what a member lacks that begins there without a state."""
    return {origin: ((1, mark),) for origin, mark in marks.items() if mark > 1}


def below(marks: Marks, lacks: Missing | None) -> Missing:
    """The ranges of `lacks`, which another member has told, below `marks`.  None: any message there may be lacking."""
    if lacks is None:
        return all_below(marks)
    found: Missing = {}
    for origin, ranges in lacks.items():
        end, mark, kept = 1, marks.get(origin, 1), []
        for low, high in ranges:
            low, high = max(low, end), min(high, mark)
            if low < high:
                kept.append((low, high))
                end = high
        if kept:
            found[origin] = tuple(kept)
    return found


def gaps_below(lacks: Missing) -> list[Gap]:
    """The gaps of a state without these messages.  It is not known which members delivered them."""
    return [Gap(origin, low, high - low, ()) for origin, ranges in lacks.items() for low, high in ranges]


def told(missing: Missing) -> Missing | None:
    """The ranges for another member.  None if they are too large for a frame.  In a merge no gap names this member
    then."""
    size = sum([ORIGIN_BYTES + RANGE_BYTES * len(ranges) for ranges in missing.values()])
    return missing if size <= TOLD_BYTES else None


def lacks_of(
    missing: Iterable[tuple[Address, Missing | None]], apart: Mapping[Address, tuple[int, int]]
) -> Lacks | None:
    """The missing messages of all members of a merge, by origin, as far as another member announces a gap there:
    `apart` has the lowest and the highest mark of the sides, for the origins whose marks differ.  None if the result is
    too large for a frame: then no gap names any member."""
    found: dict[Address, dict[tuple[int, int], list[Address]]] = {}
    for member, origins in missing:
        everything = {origin: (span,) for origin, span in apart.items()} if origins is None else origins
        for origin, ranges in everything.items():
            low, high = apart.get(origin, (0, 0))
            for first, after in ranges:
                if first < high and after > low:
                    of_origin = found.setdefault(origin, {})
                    of_origin.setdefault((max(first, low), min(after, high)), []).append(member)
    lacks = {origin: _few(ranges) for origin, ranges in found.items()}
    return lacks if _bytes(lacks) <= TOLD_BYTES else None


def _few(ranges: Mapping[tuple[int, int], list[Address]]) -> tuple[Lack, ...]:
    if len(ranges) <= LACKS_MAX:
        return tuple([Lack(low, high, tuple(members)) for (low, high), members in ranges.items()])
    everybody = dict.fromkeys(member for members in ranges.values() for member in members)
    return (Lack(min(low for low, _ in ranges), max(high for _, high in ranges), tuple(everybody)),)


def _bytes(lacks: Lacks) -> int:
    ranges = [lack for of_origin in lacks.values() for lack in of_origin]
    members = sum([len(lack.members) for lack in ranges])
    return ORIGIN_BYTES * len(lacks) + RANGE_BYTES * len(ranges) + RANK_BYTES * members


def gaps_in(merged: NewView, origin: Address, low: int) -> tuple[Gap, ...]:
    """The gaps of a member that begins the merged view without the messages of `origin` from `low` on."""
    high, ahead = merged.digest[origin]
    if merged.lacks is None:
        return (Gap(origin, low, high - low, ()),)
    return gaps_of(origin, low, high, merged.subgroups[ahead].members, merged.lacks.get(origin, ()))


def gaps_of(origin: Address, low: int, high: int, side: tuple[Address, ...], lacks: Iterable[Lack]) -> tuple[Gap, ...]:
    """The gaps over the messages [low, high) of `origin`, each with the members of `side` that delivered its messages:
    those without an entry in `lacks`."""
    within = [lack for lack in lacks if lack.low < high and lack.high > low]
    ends = dict.fromkeys([low, high, *[max(low, lack.low) for lack in within], *[min(high, x.high) for x in within]])
    gaps: list[Gap] = []
    for first, after in pairwise(sorted(ends)):
        lacking = {member: None for lack in within if lack.low < after and lack.high > first for member in lack.members}
        having = tuple(member for member in side if member not in lacking)
        if gaps and gaps[-1].subgroup == having:
            gaps[-1].count += after - first
        else:
            gaps.append(Gap(origin, first, after - first, having))
    return tuple(gaps)
