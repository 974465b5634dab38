"""Reads the archives of a folder on, as their members write them."""

from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from pygroups.journal.ranges import header_of
from pygroups.journal.reader import Quarantine, Range, Segment, WantedRecords, read_segments
from pygroups.pipeline.ordered.archive import COLUMNS, KINDS, Archive
from pygroups.pipeline.source_request import Request, WrongRequest
from pygroups.pipeline.source_stream import place_of, range_of, reached_of

_STEP_BYTES: Final = 1 << 20  # a task reads at least the bytes of one step
_HEADS: Final = WantedRecords(COLUMNS, KINDS)
_PAYLOADS: Final = WantedRecords(frozenset({"payload"}), frozenset({"deliver"}))


class Index:
    """The archives by group, each read up to its last whole frame."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._archives: dict[Path, Archive] = {}
        self._places: dict[str, dict[str, Any]] = {}

    def groups(self) -> dict[str, list[Archive]]:
        found: dict[str, list[Archive]] = defaultdict(list)
        for archive in self._archives.values():
            found[archive.group].append(archive)
        return found

    def grow(self) -> None:
        """Read what members wrote since.  Raises WrongRequest for a group without one order, NotAJournal for a path
        without journals."""
        for segment in self._request.segments():
            if not self._places.get(segment.path, {}).get("whole"):
                self._read_on(segment)

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
