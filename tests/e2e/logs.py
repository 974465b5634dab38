"""What applications were given, and whether it is what a group of profile `total` owes them.

It is read from the logs of the worker processes, not from their journals, and judged by code of its own: three plain
loops over lists.  Each function returns sentences about what is wrong, none if all is well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

Sent = tuple[str, int]  # sender and number


class Chapter(NamedTuple):
    """A view at one member, and what it delivered in it."""

    id: tuple[int, str]
    members: tuple[str, ...]
    joined: tuple[str, ...]
    transitional: tuple[str, ...]
    delivered: list[Sent]
    positions: list[int]
    gaps: list[tuple[str, int, int]]  # of a merged view: sender, first number, count


class Life(NamedTuple):
    """What one process's application was given, from its first view on; empty if it never had one."""

    address: str
    chapters: list[Chapter]
    left: dict[str, Any] | None  # the last event, unless the process died
    strange: list[str]  # events and payloads that nobody may ever see


def read_life(address: str, log: Path) -> Life:
    """The life of `address`; what stands behind the last line's end was being written when it died."""
    life: Life = Life(address, [], None, [])
    text = log.read_text() if log.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "M":
            sender, number, position = rest.split(" ")
            life.chapters[-1].delivered.append((sender, int(number)))
            life.chapters[-1].positions.append(int(position))
        elif kind == "G":
            sender, first, count = rest.split(" ")
            life.chapters[-1].gaps.append((sender, int(first), int(count)))
        elif kind == "V":
            life.chapters.append(_chapter(json.loads(rest)))
        elif kind == "R":
            pass  # the state was replaced: only splits.py looks at that
        elif kind == "L":
            life = life._replace(left=json.loads(rest))
        else:
            life.strange.append(rest)
    return life


def _chapter(view: dict[str, Any]) -> Chapter:
    number, leader = view["id"]
    members, joined, transitional = (tuple(view[name]) for name in ("members", "joined", "transitional"))
    return Chapter((number, leader), members, joined, transitional, [], [], [])


def all_faults(lives: Sequence[Life], profile: str = "total") -> list[str]:
    """Everything that the profile promises whoever died."""
    if profile == "fifo":
        return faults_without_order(lives)
    checks = (strange, sender_order, positions, one_order, together)
    return [fault for check in checks for fault in check(lives)]


def faults_without_order(lives: Sequence[Life]) -> list[str]:
    """The same for profile `fifo`, which promises each sender's order and no other."""
    ordered = [
        life._replace(chapters=[chapter._replace(delivered=sorted(chapter.delivered)) for chapter in life.chapters])
        for life in lives
    ]
    return [*strange(lives), *sender_order(lives), *positions(lives), *together(ordered)]


def strange(lives: Iterable[Life]) -> Iterator[str]:
    """Altered payloads, and events that have no place here."""
    for life in lives:
        for what in life.strange:
            yield f"{life.address} was given what nobody sent so: {what}"


def sender_order(lives: Iterable[Life]) -> Iterator[str]:
    """Each sender's messages without hole, repeat or disorder; of a sender that came later, from its first one.
    The messages of a gap do not come, and only these."""
    for life in lives:
        following: dict[str, int] = {}
        for place, chapter in enumerate(life.chapters):
            for sender in chapter.joined if place else (life.address,):
                following.setdefault(sender, 1)  # one that comes back by a merge goes on with its numbers
            for sender, first, count in chapter.gaps:
                expected = following.get(sender, first)
                if first != expected:
                    yield f"{life.address} has a gap of {sender} from {first} on in view {chapter.id}, not {expected}"
                following[sender] = first + count
            for sender, number in chapter.delivered:
                expected = following.get(sender, number)
                if number != expected:
                    yield f"{life.address} was given message {number} of {sender} in view {chapter.id}, not {expected}"
                following[sender] = number + 1


def positions(lives: Iterable[Life]) -> Iterator[str]:
    """In each view messages are counted from 0."""
    for life in lives:
        for chapter in life.chapters:
            if chapter.positions != list(range(len(chapter.delivered))):
                yield f"{life.address} was told other positions than 0, 1, 2, ... in view {chapter.id}"


def one_order(lives: Iterable[Life]) -> Iterator[str]:
    """In each view the same members, and one order: two members agree as far as both have the same messages.

    Whoever died or was cut off may have been ahead: then what it had more, nobody else has in this view.
    """
    views: dict[tuple[int, str], list[tuple[str, Chapter]]] = {}
    for life in lives:
        for chapter in life.chapters:
            views.setdefault(chapter.id, []).append((life.address, chapter))
    for id, chapters in views.items():
        first, reference = max(chapters, key=lambda pair: len(pair[1].delivered))
        for address, chapter in chapters:
            if chapter.members != reference.members:
                yield f"{first} and {address} have different members in view {id}"
            place = common(chapter.delivered, reference.delivered)
            both = set(chapter.delivered[place:]) & set(reference.delivered[place:])
            if both:
                yield f"{first} and {address} differ in view {id} at place {place}, and yet both have {min(both)} later"


def together(lives: Iterable[Life]) -> Iterator[str]:
    """Two members that go together from one view to the next, or leave it in good order, were given the same in it."""
    for one, other in combinations(lives, 2):
        theirs = {chapter.id: place for place, chapter in enumerate(other.chapters)}
        for place, chapter in enumerate(one.chapters):
            there = theirs.get(chapter.id)
            if there is None or not _go_together(one, place, other, there):
                continue
            same = common(chapter.delivered, other.chapters[there].delivered)
            if not same == len(chapter.delivered) == len(other.chapters[there].delivered):
                yield f"{one.address} and {other.address} left view {chapter.id} with different messages after {same}"


def _go_together(one: Life, place: int, other: Life, there: int) -> bool:
    onward = [
        life.chapters[n + 1] if n + 1 < len(life.chapters) else None for life, n in ((one, place), (other, there))
    ]
    if onward[0] is not None and onward[1] is not None:
        return onward[0].id == onward[1].id and other.address in onward[0].transitional
    ends = [life for life, view in zip((one, other), onward, strict=True) if view is None]
    return all(life.left is not None and life.left["reason"] == "left" for life in ends)


def complete(lives: Sequence[Life], accepted: dict[str, int]) -> Iterator[str]:
    """Of each sender in `accepted`, whoever was given anything was given all, and nobody else's messages last."""
    for life in lives:
        last = {sender: number for chapter in life.chapters for sender, number in chapter.delivered}
        for sender, number in accepted.items():
            if last.get(sender, 0) != number:
                yield f"{life.address} was given {last.get(sender, 0)} messages of {sender}, who sent {number}"


def common(one: Sequence[Sent], other: Sequence[Sent]) -> int:
    """How many first messages are the same."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(place for place in range(length) if one[place] != other[place])


def digest(life: Life) -> str:
    """One hash over everything that was delivered, in order: equal at members that share all their views."""
    words = hashlib.sha256()
    for chapter in life.chapters:
        for sender, number in chapter.delivered:
            words.update(f"{sender} {number}\n".encode())
    return words.hexdigest()
