"""The rows of the data source's tables, as Arrow batches with the asked columns in the asked order."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pygroups.journal.reader import TYPES, Quarantine, Range, WantedRecords, read_segments
from pygroups.pipeline.ingest import layout
from pygroups.pipeline.schemas import QUARANTINE, RANGES, TIME

_BATCH_MESSAGES: Final = 1 << 16
_MADE_OF: Final = {TIME.name: "time_us", "number": "first"}
_FIRST_US: Final = -62_135_596_800_000_000  # the years 1 to 9999, in UTC
_END_US: Final = 253_402_300_800_000_000
_Kinds = frozenset[str] | None
_HISTORY: Final = {"runs": layout.RUNS, "events": layout.EVENTS, "votes": layout.VOTES}
_FOLDERS: Final = pa.schema([("group", pa.string()), ("day", pa.date32())])


def _records(ranges: Iterable[Range], columns: Sequence[str], kinds: _Kinds) -> Iterator[pa.RecordBatch]:
    for part in read_segments(ranges, asked=WantedRecords(_read_for(columns), kinds)):
        if not isinstance(part, Quarantine):
            yield pa.RecordBatch.from_arrays([_column(part, name) for name in columns], names=list(columns))


def _read_for(columns: Sequence[str]) -> frozenset[str]:
    """The columns of the journal from which these are made."""
    return frozenset(_MADE_OF.get(name, name) for name in columns)


def _column(part: pa.RecordBatch, name: str) -> pa.Array:
    values = part[_MADE_OF.get(name, name)]
    return _points_in_time(values) if name == TIME.name else values


def _points_in_time(us: pa.Array) -> pa.Array:
    known = pc.and_(pc.greater_equal(us, _FIRST_US), pc.less(us, _END_US))
    return pc.if_else(known, us, pa.scalar(None, us.type)).cast(pa.timestamp("us", tz="UTC"))


def _quarantine(ranges: Iterable[Range], columns: Sequence[str], kinds: _Kinds) -> Iterator[pa.RecordBatch]:
    for part in read_segments(ranges):
        if isinstance(part, Quarantine):
            life = part.segment
            row = [life.group, life.member, life.incarnation, life.path, part.offset, part.reason]
            batch = pa.RecordBatch.from_arrays([pa.array([value]) for value in row], names=QUARANTINE.names)
            yield batch.select(columns)


def _messages(ranges: Iterable[Range], columns: Sequence[str], kinds: _Kinds) -> Iterator[pa.RecordBatch]:
    return messages_in(ranges, columns)


def messages_in(ranges: Iterable[Range], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Each delivered run as the messages in it."""
    of_records = _read_for(columns) | {"count", "payload"}
    for part in read_segments(ranges, asked=WantedRecords(of_records, frozenset({"deliver"}))):
        if isinstance(part, Quarantine):
            continue
        kept = pc.list_value_length(part["payload"])
        counts = np.maximum(pc.fill_null(pc.coalesce(kept, part["count"]), 1).to_numpy(zero_copy_only=False), 0)
        ends = np.cumsum(counts, dtype=np.int64)
        begin = 0
        while begin < part.num_rows:
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _BATCH_MESSAGES, side="right")))
            yield _messages_of(part.slice(begin, end - begin), counts[begin:end], columns)
            begin = end


def _messages_of(part: pa.RecordBatch, counts: Any, columns: Sequence[str]) -> pa.RecordBatch:
    """The messages of some runs: one row for each of `counts`."""
    run = np.repeat(np.arange(part.num_rows), counts)
    at = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)  # the place of a message in its run
    arrays = []
    for name in columns:
        if name == "payload":
            payloads = part["payload"]
            kept = payloads.is_valid().to_numpy(zero_copy_only=False)
            begins = np.cumsum(np.where(kept, counts, 0)) - np.where(kept, counts, 0)
            array = payloads.flatten().take(pa.array(begins[run] + at, mask=~kept[run]))
        else:
            array = _column(part, name).take(pa.array(run))
            if name in ("number", "position"):
                array = pc.add(array, pa.array(at, TYPES["first"]))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _ranges(ranges: Iterable[Range], columns: Sequence[str], kinds: _Kinds) -> Iterator[pa.RecordBatch]:
    """The ranges themselves: nothing is decoded."""
    for one in ranges:
        place = one.segment
        row = [place.group, place.member, place.incarnation, place.path, one.begin, one.end, place.following]
        arrays = [pa.array([value], pa.int64() if isinstance(value, int) else pa.string()) for value in row]
        arrays.append(pa.array([place.trouble], pa.string()))
        yield pa.RecordBatch.from_arrays(arrays, names=RANGES.names).select(columns)


def rows_of_history(lives: Sequence[str], table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """A table of the history of whole incarnations, given by their folders: the rows that `ingest` writes, without a
    file."""
    if not lives:
        return
    # Spark plans each query in a new process, which would import these for tables that do not need them.
    import pyarrow.dataset as ds

    from pygroups.pipeline.ingest import Table, ingest

    with tempfile.TemporaryDirectory(prefix="pygroups-") as folder:
        ingest(lives, Path(folder), jobs=1)
        made = Table(folder)
        if table == "manifest":
            rows = made.manifest()
            gone = {"commit": pa.nulls(len(rows), pa.string()), "files": pa.nulls(len(rows), pa.list_(pa.string()))}
            for name, nothing in gone.items():
                rows = rows.set_column(rows.schema.get_field_index(name), name, nothing)
            yield from rows.select(columns).to_batches()
        elif table == "names":
            yield from ds.dataset(made.names_files, schema=layout.NAMES).to_batches(columns=list(columns))
        else:
            files: list[str] = getattr(made, f"{table}_files")
            schema = pa.schema([*_HISTORY[table], *_FOLDERS])
            folders = ds.partitioning(_FOLDERS, flavor="hive")
            found = ds.dataset(
                files, schema=schema, format="parquet", partitioning=folders, partition_base_dir=f"{folder}/{table}"
            )
            yield from found.to_batches(columns=list(columns))


ROWS: Final[dict[str, Callable[[Iterable[Range], Sequence[str], _Kinds], Iterator[pa.RecordBatch]]]] = {
    "records": _records,
    "messages": _messages,
    "quarantine": _quarantine,
    "ranges": _ranges,
}
"""The tables of which a range of a segment has its rows, whatever stands before it."""
