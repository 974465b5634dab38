"""One fault planted into each of several drawn schedules: nobody chose where, and what else it breaks is not listed.

The journals of a schedule are read as bytes, changed at one member, and written again without a hole in the numbers.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import xxhash

from pygroups.journal.schema import FIELDS, PREFIX
from tests.pipeline.drawn import PROFILES, SCHEDULES, play_drawn

Record = list[Any]  # kind, index, time_us, mono_us, view, and the fields of the kind
Journal = list[Record]
KIND, INDEX, VIEW = 0, 1, 4
EACH: Final = 1
"""Of each fault and profile; `make long` plants more."""


def save_faulty(root: Path) -> Path:
    """Write the journals of drawn schedules, each fault planted into EACH of a profile; gives `root`.

    Their seeds come after those of `drawn.py`, so that one audit can judge both.
    """
    first = SCHEDULES * len(PROFILES)
    play_drawn(root, EACH * len(FAULTS), first)
    groups = [root / f"seed-{first + number}" for number in range(EACH * len(FAULTS) * len(PROFILES))]
    for number, group in enumerate(groups):
        assert plant(group, list(FAULTS)[number % len(FAULTS)], random.Random(number)) is not None
    return root


def plant(group: Path, fault: str, draw: random.Random) -> str | None:
    """Plants `fault` into one journal of a group; who has it and where, or None if no journal has room for it."""
    journals = sorted(path for path in group.iterdir() if path.is_dir())
    draw.shuffle(journals)
    for folder in journals:
        (path,) = folder.glob("*.journal")
        frames = list(_frames(path.read_bytes()))
        records = [record for frame in frames[1:] for record in frame]
        if (told := FAULTS[fault](records, draw)) is not None:
            _count_again(records)
            path.write_bytes(path.read_bytes()[:8] + b"".join(map(_frame, [frames[0], *([one] for one in records)])))
            return f"{folder.name}: {told}"
    return None


def _frames(data: bytes) -> Iterator[Any]:
    at = 8
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        yield msgspec.msgpack.decode(data[at + 8 : at + 8 + length])
        at += 8 + length


def _frame(records: list[Record]) -> bytes:
    body = msgspec.msgpack.encode(records)
    return struct.pack("<II", len(body), xxhash.xxh32_intdigest(body)) + body


def _field(record: Record, name: str) -> int:
    """Where in the record the field stands."""
    return len(PREFIX) + FIELDS[record[KIND]].index(name)


def _of(record: Record, name: str) -> Any:
    return record[_field(record, name)]


def _count_again(journal: Journal) -> None:
    """Indices and positions as the recorder would have counted them."""
    position, view = 0, None
    for index, record in enumerate(journal):
        record[INDEX] = index
        if record[KIND] == "view":
            position = 0
        if record[KIND] == "deliver" and _of(record, "position") is not None:
            if record[VIEW] != view:
                position, view = 0, record[VIEW]
            record[_field(record, "position")] = position
            position += _of(record, "count")


def _deliveries(journal: Journal) -> list[int]:
    return [at for at, record in enumerate(journal) if record[KIND] == "deliver"]


def _label(record: Record) -> str:
    return f"{_of(record, 'origin')}{_of(record, 'first')} in {record[VIEW]}"


def swapped(journal: Journal, draw: random.Random) -> str | None:
    """Two runs of two senders, one delivered after the other in a view, change places."""
    places = _deliveries(journal)
    pairs = [
        (one, two)
        for one, two in pairwise(places)
        if journal[one][VIEW] == journal[two][VIEW] and _of(journal[one], "origin") != _of(journal[two], "origin")
    ]
    if not pairs:
        return None
    one, two = draw.choice(pairs)
    journal[one], journal[two] = journal[two], journal[one]
    return _label(journal[one])


def duplicated(journal: Journal, draw: random.Random) -> str | None:
    places = _deliveries(journal)
    if not places:
        return None
    at = draw.choice(places)
    later = draw.choice([place for place in places if place >= at and journal[place][VIEW] == journal[at][VIEW]])
    journal.insert(later + 1, list(journal[at]))
    return _label(journal[at])


def dropped(journal: Journal, draw: random.Random) -> str | None:
    places = _deliveries(journal)
    return _label(journal.pop(draw.choice(places))) if places else None


def altered(journal: Journal, draw: random.Random) -> str | None:
    places = _deliveries(journal)
    if not places:
        return None
    record = journal[draw.choice(places)]
    record[_field(record, "checksum")] ^= 1
    return _label(record)


def reversed_list(journal: Journal, draw: random.Random) -> str | None:
    views = [record for record in journal if record[KIND] == "view" and len(_of(record, "members")) > 1]
    if not views:
        return None
    record = draw.choice(views)
    record[_field(record, "members")] = _of(record, "members")[::-1]
    return f"view {record[VIEW]}"


def late(journal: Journal, draw: random.Random) -> str | None:
    """A run is delivered in the view after its own."""
    views = [at for at, record in enumerate(journal) if record[KIND] == "view"]
    pairs = [
        (at, min(view for view in views if view > at)) for at in _deliveries(journal) if at < max(views, default=0)
    ]
    if not pairs:
        return None
    at, view = draw.choice(pairs)
    told, record = _label(journal[at]), journal[at]
    record[VIEW] = journal[view][VIEW]
    journal.insert(view, journal.pop(at))  # the view has moved one place forward: this is right behind it
    return told


def unsent(journal: Journal, draw: random.Random) -> str | None:
    places = [at for at, record in enumerate(journal) if record[KIND] == "send"]
    return _label(journal.pop(draw.choice(places))) if places else None


FAULTS: Final[dict[str, Callable[[Journal, random.Random], str | None]]] = {
    "swapped": swapped,
    "duplicated": duplicated,
    "dropped": dropped,
    "altered": altered,
    "reversed": reversed_list,
    "late": late,
    "unsent": unsent,
}
