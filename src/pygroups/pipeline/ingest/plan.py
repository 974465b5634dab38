"""Finds the byte ranges of segments that are new to a table, and the journals that the table has to refuse."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pygroups.journal.frames import Damage, Header
from pygroups.journal.reader import HISTORY_AT, Segment, first_index
from pygroups.journal.scan import header_of
from pygroups.pipeline.ingest.keys import key_of
from pygroups.pipeline.ingest.known import LifeState, SegmentState, fingerprint


class NotTheSame(ValueError):
    """A journal differs from the records that the table has of it; the text is one sentence for people."""


@dataclass(frozen=True)
class Part:
    """Bytes [begin, size) of a segment.  `header` is the header of the segment, or the reason why the segment has no
    header; records begin at `first`.

    `told`: True if an earlier commit has reported the damage at `begin`.
    """

    segment: Segment
    number: int
    begin: int
    first: int
    header: Header | Damage
    history: str | None
    told: bool = False


@dataclass
class LifeParts:
    """The new byte ranges of one incarnation, in the order of its segments; `state` is the state before these
    ranges."""

    life: int
    group: str
    member: str
    incarnation: str
    state: LifeState
    parts: list[Part]

    @property
    def size(self) -> int:
        """The number of new bytes."""
        return sum(part.segment.size - part.begin for part in self.parts)


@dataclass
class Plan:
    """The work of one ingest: incarnations by group and key; `skipped` ranges are known already."""

    lives: list[LifeParts]
    files: int
    skipped: int


def plan(segments: Iterable[Segment], known: dict[int, LifeState]) -> Plan:
    """Compare the segments with those of a table. Raises NotTheSame, and OSError for a file that cannot be read.

    A segment that its writer has removed meanwhile is left out: the next one shows the loss by its index.
    """
    found: dict[tuple[int, int], tuple[LifeParts, Part]] = {}
    headers = list(_headers(segments))
    owners = _owners(headers)
    for segment, header, first in headers:
        owner = owners.get(Path(segment.path).parent, segment)
        life, part = _identified(segment, header, first, owner, known)
        place = life.life, part.number
        if place in found:
            part = _longer(life, found[place][1], part)
        found[place] = found.get(place, (life, part))[0], part
    lives: dict[int, LifeParts] = {}
    skipped = 0
    for key in sorted(found):
        life, part = found[key]
        state = known.get(life.life)
        before = state.segments.get(part.number) if state is not None else None
        new = part if state is None else _new_of(life, part, state)
        skipped += before is not None and before.end > 0
        if new is not None:
            lives.setdefault(life.life, life).parts.append(new)
    return Plan(sorted(lives.values(), key=lambda life: (life.group, life.life)), len(found), skipped)


def _headers(segments: Iterable[Segment]) -> Iterator[tuple[Segment, Header | Damage, int]]:
    """The segments by path, each with its header and the place of its first record; a file that cannot be opened has a
    damaged header."""
    for segment in sorted(segments, key=lambda one: one.path):
        if segment.trouble is None:
            try:
                yield segment, *header_of(segment.path)
                continue
            except FileNotFoundError:
                continue
            except OSError as error:
                segment = replace(segment, size=0, trouble=f"cannot be read: {error.strerror}")
        assert segment.trouble is not None
        yield segment, Damage(0, segment.trouble), 0


def _owners(headers: Iterable[tuple[Segment, Header | Damage, int]]) -> dict[Path, Header]:
    """The incarnation of each folder whose headers name one and the same."""
    found: dict[Path, dict[tuple[str, str, str], Header]] = {}
    for segment, header, _ in headers:
        if isinstance(header, Header):
            owner = header.group, header.member, header.incarnation
            found.setdefault(Path(segment.path).parent, {})[owner] = header
    return {folder: header for folder, same in found.items() if len(same) == 1 for header in same.values()}


def _identified(
    segment: Segment, header: Header | Damage, first: int, owner: Header | Segment, known: dict[int, LifeState]
) -> tuple[LifeParts, Part]:
    """The incarnation of a segment, by its header; without a header, by its `owner`, which the other segments of its
    folder or the names of the folders tell."""
    names = header if isinstance(header, Header) else owner
    key = key_of(names.group, names.member, names.incarnation)
    state = known.get(key, LifeState())
    life = LifeParts(key, names.group, names.member, names.incarnation, state, [])
    history = _in_force(header) if isinstance(header, Header) else None
    return life, Part(segment, int(Path(segment.path).stem), 0, first, header, history)


def _in_force(header: Header) -> str | None:
    history = None
    for record in header.in_force:
        if record[0] == "view":
            history = record[HISTORY_AT]
    return history


def _longer(life: LifeParts, one: Part, other: Part) -> Part:
    """Two copies of a segment: the longer one, if it begins with the other."""
    if other.segment.size > one.segment.size:
        one, other = other, one
    size = other.segment.size
    if other.segment.trouble is not None:
        return one
    if fingerprint(one.segment.path, size) != fingerprint(other.segment.path, size):
        raise NotTheSame(
            f"{one.segment.path} and {other.segment.path} are copies of segment {one.number} of {life.member}@"
            f"{life.incarnation} in group {life.group}, but their bytes differ: ingest only one of the copies"
        )
    return one


def _new_of(life: LifeParts, part: Part, state: LifeState) -> Part | None:
    """The part of a segment that is new to a table which knows its incarnation; None if the table has the whole
    segment."""
    path, size = part.segment.path, part.segment.size
    before = state.segments.get(part.number)
    later = max(state.segments, default=-1) > part.number
    if before is None:
        if later:
            raise NotTheSame(
                f"{path} appeared after a later segment of its member was ingested: ingest this member into a new table"
            )
        return part
    if part.segment.trouble is not None and before.end:
        raise NotTheSame(f"{path} {part.segment.trouble}, and was read before: ingest this member into a new table")
    if size < before.size:
        raise NotTheSame(
            f"{path} has {size} bytes, and had {before.size}, but a journal only grows: "
            "ingest this member into a new table"
        )
    if before.end and fingerprint(path, before.end) != before.print:
        raise NotTheSame(
            f"{path} was replaced: its first {before.end} bytes differ: ingest this member into a new table"
        )
    if size > before.size and later and not before.unreadable:
        raise NotTheSame(
            f"{path} has grown after a later segment of its member was ingested: ingest this member into a new table"
        )
    torn = before.end < size and part.segment.following is not None and not before.followed
    if before.unreadable or (size == before.size and not torn):
        return None
    return _from(part, before)


def _from(part: Part, before: SegmentState) -> Part:
    history = before.history if before.end else part.history
    first = max(part.first, before.end)
    return Part(part.segment, part.number, before.end, first, part.header, history, bool(before.told))


def goes_on(segment: Segment, expected: int | None, *, lossy: bool) -> bool:
    """True if the torn bytes at the end of a segment were never acknowledged: the next segment has their number, or
    there is none and the damage is not lossy."""
    if segment.following is None:
        return not lossy
    try:
        first = first_index(segment.following)
    except FileNotFoundError:  # its writer has removed both segments since
        return True
    return first is not None and (expected is None or first == expected)
