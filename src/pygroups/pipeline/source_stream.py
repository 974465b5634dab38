"""Spark's stream of journals: the records that members append, each once, in segments that begin and go.

An offset has the place in every segment: `{"segments": {FILE: {"end": BYTE, "history": ID, "whole": true}}}`.  `end` is
the end of a frame, so that a batch that Spark repeats has the same rows.  `whole`: a next segment followed, so nothing
is appended any more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes
from pyspark.sql.types import StructType

from pygroups.journal.ranges import Reached, grown, header_of
from pygroups.journal.reader import NotAJournal, Range, Segment
from pygroups.journal.schema import SEGMENT_SUFFIX
from pygroups.pipeline.source_reader import Share, shared_out
from pygroups.pipeline.source_request import Request, WrongRequest
from pygroups.pipeline.source_rows import ROWS

_TASKS: Final = 16  # most tasks of one batch

Place = dict[str, Any]
Offset = dict[str, dict[str, Place]]


class JournalsStream(DataSourceStreamReader):
    """Reads what is behind the last offset.  A segment that its member removed before it was read is an error, unless
    the option `failOnDataLoss` is false."""

    def __init__(self, request: Request, schema: StructType) -> None:
        if request.table not in ROWS:
            *first, last = ROWS
            raise WrongRequest(
                f"table {request.table!r} can be read in batches only, because a row of it depends on rows before it: "
                f"use spark.read, or table {', '.join(first)} or {last}"
            )
        self.request = request
        self.columns = schema.names

    # -- offsets

    def initialOffset(self) -> Offset:
        return {"segments": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.request.bytes_per_trigger
        return ReadMaxBytes(most) if most else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        known, found = start["segments"], self._segments(start)
        self._check_losses(known, found)
        open_ones = [segment for segment in found if not known.get(segment.path, {}).get("whole")]
        growing = [one for one in open_ones if one.size > known.get(one.path, {}).get("end", 0)]
        share = None if most is None else max(1, most // max(1, len(growing)))
        places = {one.path: known[one.path] for one in found if one.path in known}
        for segment in open_ones:
            place = known.get(segment.path)
            reached = reached_of(segment, place, share)
            if reached.end or segment.trouble:
                places[segment.path] = place_of(segment, reached)
        return {"segments": places}

    def _segments(self, start: Offset) -> list[Segment]:
        try:
            return self.request.segments()
        except NotAJournal:
            if not start["segments"]:
                raise
            return []  # all members have removed their journals

    def _check_losses(self, known: dict[str, Place], found: Sequence[Segment]) -> None:
        """Raise WrongRequest if records are gone that no batch had."""
        if not self.request.fails_on_loss:
            return
        there = {segment.path for segment in found}
        for path, place in known.items():
            if path not in there and not place.get("whole"):
                raise WrongRequest(f"{path} was removed before all of it was read: {_GO_ON}")
        newest: dict[Path, int] = {}
        for path in known:
            newest[Path(path).parent] = max(newest.get(Path(path).parent, 0), _number(path))
        for segment in found:  # those of one member in their order
            folder, number = Path(segment.path).parent, _number(segment.path)
            if segment.path not in known and folder in newest:
                if number > newest[folder] + 1:
                    raise WrongRequest(f"the segment before {segment.path} was removed before it was read: {_GO_ON}")
                newest[folder] = number

    # -- rows

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        ranges = []
        for path, place in end["segments"].items():
            before = start["segments"].get(path, {"end": 0})
            if place["end"] > before["end"] or (place.get("trouble") and path not in start["segments"]):
                ranges.append(range_of(path, before, place))
        return [Share(one) for one in shared_out([[one] for one in ranges], _TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        yield from ROWS[self.request.table](partition.ranges, self.columns, None)


_GO_ON: Final = "its records are lost to this stream; with option failOnDataLoss=false the stream goes on without them"


def _number(path: str) -> int:
    return int(Path(path).name.removesuffix(SEGMENT_SUFFIX))


def reached_of(segment: Segment, place: Place | None, most: int | None) -> Reached:
    """How far `segment` can be read now."""
    start = Reached(0) if place is None else Reached(place["end"], place.get("history"))
    if segment.trouble is not None:
        return start
    if segment.size < start.end:
        raise WrongRequest(
            f"{segment.path} was shortened or replaced: it has {segment.size:,} bytes, and {start.end:,} were read"
        )
    if segment.size == start.end:
        return start
    try:
        return grown(segment, start, most)
    except FileNotFoundError:  # removed right now: the next trigger tells
        return start


def place_of(segment: Segment, reached: Reached) -> Place:
    place: Place = {"end": reached.end}
    if reached.history is not None:
        place["history"] = reached.history
    if segment.trouble is not None:
        place["trouble"] = segment.trouble
    if segment.following is not None and reached.end == segment.size:
        place["whole"] = True
    return place


def range_of(path: str, before: Place, place: Place) -> Range:
    """The bytes of a segment between two places."""
    life = Path(path).parent
    member, _, incarnation = life.name.partition("@")
    following = life / f"{_number(path) + 1:06}{SEGMENT_SUFFIX}"
    follows = str(following) if following.exists() else None
    segment = Segment(path, life.parent.name, member, incarnation, place["end"], follows, place.get("trouble"))
    if not before["end"]:
        return Range(segment, 0, segment.size)
    header = header_of(segment)
    if header is None:
        raise WrongRequest(f"{path} cannot be read again: its records are lost to this stream")
    return Range(segment, before["end"], place["end"], replace(header, in_force=[]), before.get("history"))
