"""Spark's stream of a group's messages in their total order, each once: the table `ordered` of the data source.

An offset has a place in each group: `{"groups": {NAME: {"view": [NUMBER, CREATOR], "position": N, "path": [...]}}}`.
All messages before the place were given.  `path` has the views that ended since the offset before, each as
`[number, creator, end, next number, next creator]`, so that a batch that Spark repeats goes the same way.  The rest
says from where on a restarted query has to read the archives (`ordered/index.py`); older offsets lack it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes
from pyspark.sql.types import StructType

from pygroups.pipeline.ordered.archive import Archive, View
from pygroups.pipeline.ordered.index import Index
from pygroups.pipeline.ordered.line import Hole, Piece, Source, ahead, first_view, sources
from pygroups.pipeline.schemas import ORDERED
from pygroups.pipeline.source_request import Request, WrongRequest
from pygroups.pipeline.source_rows import messages_in

Place = dict[str, Any]
Offset = dict[str, dict[str, Place]]


@dataclass
class Stretch(InputPartition):
    """The messages of one group in a batch."""

    group: str
    sources: list[Source]


class OrderedStream(DataSourceStreamReader):
    """Reads the heads of all archives to find what is stable, and in tasks the payloads."""

    def __init__(self, request: Request, schema: StructType) -> None:
        self.request = request
        self.columns = schema.names
        self._index: Index | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Tasks need no index."""
        return vars(self) | {"_index": None}

    # -- offsets

    def initialOffset(self) -> Offset:
        return {"groups": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.request.bytes_per_trigger
        return ReadMaxBytes(most) if most else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        groups = self._grown(start)
        places = dict(start["groups"])
        for group, archives in sorted(groups.items()):
            try:
                place = self._next(archives, places.get(group), most)
            except Hole as hole:
                raise WrongRequest(f"group {group}: {hole}; {_FILL}") from None
            if place is not None:
                places[group] = place
        return {"groups": places}

    def _grown(self, start: Offset) -> dict[str, list[Archive]]:
        """The archives from a place on, each at least as new as the newest proof in another one: what a member says of
        a view, the members of that view have written before."""
        if self._index is None or not self._index.reaches(start["groups"]):
            self._index = Index(self.request, start["groups"])
        self._index.grow()
        self._index.grow()
        return self._index.groups()

    def _next(self, archives: Sequence[Archive], place: Place | None, most: int | None) -> Place | None:
        """The place behind the stable messages, or behind as many as fit; the same place if there is nothing new.

        Raises Hole if the very next messages are in no archive.
        """
        view = first_view(archives) if place is None else (place["view"][0], place["view"][1])
        if view is None:
            return None
        position = 0 if place is None else place["position"]
        at, path, left = (view, position), list[list[Any]](), most
        skips = not self.request.fails_on_loss
        try:
            for piece in ahead(archives, view, position, skips=skips):
                found = sources(archives, piece, skips=skips)
                taken, left = _fitting(found, left)
                if len(taken) < len(found):
                    at = (piece.view, taken[-1].high if taken else piece.low)
                    break
                if piece.next is not None:
                    path.append([*piece.view, piece.high, *piece.next])
                at = (piece.next, 0) if piece.next is not None else (piece.view, piece.high)
        except Hole:
            if at == (view, position):
                raise
        if place is not None and at == (view, position):
            return place
        return {"view": list(at[0]), "position": at[1], "path": path, **_heads(archives, at[0])}

    def commit(self, end: Offset) -> None:
        groups = {} if self._index is None else self._index.groups()
        for group, place in end["groups"].items():
            for archive in groups.get(group, ()):
                archive.forget((place["view"][0], place["view"][1]))

    # -- rows

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        groups, skips = self._grown(start), not self.request.fails_on_loss
        found = []
        for group, place in end["groups"].items():
            pieces = pieces_between(start["groups"].get(group), place)
            try:
                wanted = [source for piece in pieces for source in sources(groups.get(group, []), piece, skips=skips)]
            except Hole as hole:
                raise WrongRequest(f"group {group}: {hole}; {_FILL}") from None
            if wanted:
                found.append(Stretch(group, wanted))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a group are one partition, and so in their order."""
        assert isinstance(partition, Stretch)
        for source in partition.sources:
            yield from _rows(source, self.columns)


_FILL = (
    "add the archive of another member of this view, or use option failOnDataLoss=false to go on without its messages"
)


def _heads(archives: Sequence[Archive], view: View) -> Place:
    """A view as its members installed it, and with which record of each archive."""
    stays = {archive.address: archive.stays[view] for archive in archives if view in archive.stays}
    first = min(stays.values(), key=lambda stay: stay.began_us)
    heads = {address: stay.index for address, stay in sorted(stays.items())}
    of_all = {"members": list(first.members), "came": first.came, "primary": first.primary}
    return {"began_us": first.began_us, "heads": heads, **of_all}


def _fitting(found: Sequence[Source], most: int | None) -> tuple[Sequence[Source], int | None]:
    """The first sources whose bytes fit, at least one of a batch, and how many bytes are left."""
    if most is None:
        return found, None
    taken = []
    for source in found:
        size = source.place.end - source.place.begin
        if most <= 0:
            break
        taken.append(source)
        most -= size
    return taken, most


def pieces_between(start: Place | None, end: Place) -> list[Piece]:
    """The messages between two places of a group."""
    if start == end:
        return []
    position = 0 if start is None else start["position"]
    pieces = []
    for number, creator, high, *following in end["path"]:
        pieces.append(Piece((number, creator), position, high, (following[0], following[1])))
        position = 0
    pieces.append(Piece((end["view"][0], end["view"][1]), position, end["position"], None))
    return pieces


def _rows(source: Source, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Raises RuntimeError if the bytes have not all of the messages any more."""
    parts = list(messages_in([source.place], ORDERED.names))
    table = pa.Table.from_batches(parts) if parts else None
    found = 0
    if table is not None:
        number, creator = source.view
        here = pc.and_(pc.equal(table["view_number"], number), pc.equal(table["view_creator"], creator))
        inside = pc.and_(pc.greater_equal(table["position"], source.low), pc.less(table["position"], source.high))
        rows = table.filter(pc.and_(here, inside)).sort_by("position")
        found = rows.num_rows
        yield from rows.select(list(columns)).to_batches()
    if found != source.high - source.low:
        raise RuntimeError(f"{Path(source.place.segment.path)} was changed or removed while it was read")
