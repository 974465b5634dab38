"""Reads the archives of a folder on, as their members write them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from pygroups.journal.ranges import header_of
from pygroups.journal.reader import Quarantine, Range, Segment, WantedRecords, read_segments
from pygroups.pipeline.ordered.archive import COLUMNS, KINDS, Archive, Stay
from pygroups.pipeline.source_request import Request, WrongRequest
from pygroups.pipeline.source_stream import place_of, range_of, reached_of

_STEP_BYTES: Final = 1 << 20  # a task reads at least the bytes of one step
STALE_US: Final = 24 * 3600 * 1_000_000  # more than clocks differ
_HEADS: Final = WantedRecords(COLUMNS, KINDS)
_INDEXES: Final = WantedRecords(frozenset({"index"}), None)
_PAYLOADS: Final = WantedRecords(frozenset({"payload"}), frozenset({"deliver"}))


class Index:
    """The archives by group, each read up to its last whole frame.

    `starts` has a place in each group, as in an offset: nothing in front of its view is needed.  So of an archive that
    has the view only the segments from the one with its `view` record on are read; `heads` of a place has the index of
    this record by address, and the segment with it may be gone.  An archive that has it not, and was not written to
    since STALE_US before the view began, is not read: its member had ended.  A copy of an archive may be newer, and is
    read.
    """

    def __init__(self, request: Request, starts: Mapping[str, Mapping[str, Any]]) -> None:
        self._request = request
        self._starts = starts
        self._archives: dict[Path, Archive] = {}
        self._places: dict[str, dict[str, Any]] = {}
        self.skipped: set[str] = set()

    def reaches(self, starts: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether the archives were read from these places on."""

        def began(place: Mapping[str, Any]) -> int:
            return int(place.get("began_us", 0))

        return all(group in starts and began(starts[group]) >= began(at) for group, at in self._starts.items())

    def groups(self) -> dict[str, list[Archive]]:
        found: dict[str, list[Archive]] = defaultdict(list)
        for archive in self._archives.values():
            found[archive.group].append(archive)
        return found

    def grow(self) -> None:
        """Read what members wrote since.  Raises WrongRequest for a group without one order, NotAJournal for a path
        without journals."""
        segments = self._request.segments()
        gone = self._places.keys() - {segment.path for segment in segments}
        for archive in self._archives.values() if gone else ():
            archive.removed(gone)
        for path in gone:
            del self._places[path]
        self._skip(segments)
        for segment in segments:
            if segment.path not in self.skipped and not self._places.get(segment.path, {}).get("whole"):
                self._read_on(segment)

    def _skip(self, segments: Sequence[Segment]) -> None:
        """Note the segments of new archives that are in front of the start."""
        new: dict[Path, list[Segment]] = defaultdict(list)
        for segment in segments:
            if Path(segment.path).parent not in self._archives:
                new[Path(segment.path).parent].append(segment)
        for of in new.values():
            archive = self._archive_of(of[-1])
            start = None if archive is None else self._starts.get(archive.group)
            if archive is not None and start is not None and "began_us" in start:
                self.skipped.update(segment.path for segment in of[: _needed(of, archive.address, start)])
                if archive.address in start["heads"]:
                    archive.resume((start["view"][0], start["view"][1]), _stay_of(archive.address, start))

    def _read_on(self, segment: Segment) -> None:
        while True:
            before = self._places.get(segment.path, {"end": 0})
            reached = reached_of(segment, before if before["end"] else None, _STEP_BYTES)
            if reached.end == before["end"]:
                return
            place = place_of(segment, reached)
            self._take(range_of(segment.path, before, place), segment)
            self._places[segment.path] = place

    def _take(self, place: Range, segment: Segment) -> None:
        archive = self._archive_of(segment)
        if archive is None:
            return
        parts = [part for part in read_segments([place], asked=_HEADS) if not isinstance(part, Quarantine)]
        rows = sorted((row for part in parts for row in part.to_pylist()), key=lambda row: row["index"])
        if archive.payloads is None and any(row["kind"] == "deliver" and row["count"] for row in rows):
            kept = [part for part in read_segments([place], asked=_PAYLOADS) if not isinstance(part, Quarantine)]
            archive.payloads = any(part["payload"].null_count < part.num_rows for part in kept)
        for row in rows:
            archive.take(row, place)

    def _archive_of(self, segment: Segment) -> Archive | None:
        """None for a segment whose header cannot be read."""
        folder = Path(segment.path).parent
        if folder not in self._archives:
            header = header_of(segment)
            if header is None:
                return None
            if "TOTAL" not in (header.services or ()):
                raise WrongRequest(
                    f"group {header.group} has the profile {header.profile}, which gives messages no total order: use "
                    "table 'messages'"
                )
            self._archives[folder] = Archive(header.group, f"{header.member}@{header.incarnation}")
        return self._archives[folder]


def _stay_of(address: str, start: Mapping[str, Any]) -> Stay:
    """The stay of a member in the view of a place, without its messages."""
    members, came, primary = tuple(start["members"]), start["came"], start["primary"]
    return Stay(members, start["began_us"], start["heads"][address], came, primary)


def _needed(segments: Sequence[Segment], address: str, start: Mapping[str, Any]) -> int:
    """Which segment of an archive is the first to read; their number if none is."""
    index = start["heads"].get(address)
    if index is None:
        return len(segments) if _written_us(segments[-1]) < start["began_us"] - STALE_US else 0
    return next((at for at in range(len(segments) - 1, 0, -1) if (_first_index(segments[at]) or 0) <= index), 0)


def _written_us(segment: Segment) -> int:
    try:
        return Path(segment.path).stat().st_mtime_ns // 1000
    except OSError:  # removed right now
        return 0


def _first_index(segment: Segment) -> int | None:
    """The index of the first record; None if it cannot be read."""
    try:
        reached = reached_of(segment, None, _STEP_BYTES)
        place = range_of(segment.path, {"end": 0}, place_of(segment, reached))
        parts = [part for part in read_segments([place], asked=_INDEXES) if not isinstance(part, Quarantine)]
    except OSError:
        return None
    found = [pc.min(part["index"]).as_py() for part in parts if part.num_rows]
    return min(found, default=None)
