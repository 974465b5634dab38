"""The Spark data source `pygroups`: journals as tables of records, of messages, or of quarantined places."""

import gc
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pygroups.journal.reader import SCHEMA, NotAJournal, Quarantine, Segment, find_segments, read_segments
from pygroups.pipeline.schemas import INGEST, MESSAGES, MESSAGES_COLUMNS, QUARANTINE, RECORDS

TABLES: Final[dict[str, StructType]] = {
    "records": RECORDS,  # one row per record
    "messages": MESSAGES,  # one row per delivered message; the payload if the journal was told to keep it
    "quarantine": QUARANTINE,  # one row per place that could not be read
    "ingest": INGEST,  # records and quarantine in one pass over the files
}
_PATH_SEPARATOR: Final = "\n"  # paths of several folders travel in one option


@dataclass
class SegmentsPartition(InputPartition):
    """The segments that one task reads."""

    segments: list[Segment]


class GroupsDataSource(DataSource):
    """`spark.read.format("pygroups").option("table", "records").load(DIR)`: journals of one or more groups."""

    @classmethod
    def name(cls) -> str:
        return "pygroups"

    def schema(self) -> StructType:
        return TABLES[self._table()]

    def reader(self, schema: StructType) -> DataSourceReader:
        paths = [path for path in self.options.get("path", "").split(_PATH_SEPARATOR) if path]
        if not paths:
            raise refusal('say where the journals are: .load(DIR) or .option("path", DIR)')
        try:
            segments = find_segments(paths)
        except NotAJournal as error:
            raise refusal(str(error)) from error
        return JournalsReader(self._table(), segments, int(self.options.get("partitions", 0)))

    def _table(self) -> str:
        table: str = self.options.get("table", "records")
        if table not in TABLES:
            raise refusal(f"there is no table {table!r}: use records, messages or quarantine")
        return table

    def streamReader(self, schema: StructType) -> Any:
        raise refusal("journals can be read in batches only so far: use spark.read, not spark.readStream")

    def simpleStreamReader(self, schema: StructType) -> Any:
        raise refusal("journals can be read in batches only so far: use spark.read, not spark.readStream")


class JournalsReader(DataSourceReader):
    """Reads segments in few fat partitions; each row of a partition has the table's columns."""

    def __init__(self, table: str, segments: list[Segment], partitions: int) -> None:
        self._table = table
        self._segments = segments
        self._partitions = partitions or 2 * (os.cpu_count() or 1)

    def partitions(self) -> Sequence[InputPartition]:
        return [SegmentsPartition(part) for part in shared_out(self._segments, self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SegmentsPartition)
        gc.disable()  # a worker decodes millions of small lists without a cycle among them; looking costs a third
        try:
            for part in read_segments(partition.segments):
                yield from _CONVERSIONS[self._table](part)
        finally:
            gc.enable()


def shared_out(segments: list[Segment], partitions: int) -> list[list[Segment]]:
    """The segments in at most `partitions` lists of about equal size, the largest first into the emptiest."""
    shares: list[tuple[int, list[Segment]]] = [(0, []) for _ in range(min(partitions, len(segments)))]
    for segment in sorted(segments, key=lambda segment: (-segment.size, segment.path)):
        least = min(range(len(shares)), key=lambda at: shares[at][0])
        size, share = shares[least]
        shares[least] = (size + segment.size, [*share, segment])
    return [share for _, share in shares]


def _records(part: pa.RecordBatch | Quarantine) -> Iterator[pa.RecordBatch]:
    if not isinstance(part, Quarantine):
        yield part


def _quarantine(part: pa.RecordBatch | Quarantine) -> Iterator[pa.RecordBatch]:
    if isinstance(part, Quarantine):
        life = part.segment
        row = [life.group, life.member, life.incarnation, life.path, part.offset, part.reason]
        yield pa.RecordBatch.from_arrays([pa.array([value]) for value in row], names=QUARANTINE.names)


def _ingest(part: pa.RecordBatch | Quarantine) -> Iterator[pa.RecordBatch]:
    """Records with three empty columns more, or one row that tells of a damaged place."""
    if not isinstance(part, Quarantine):
        strings, longs = pa.nulls(part.num_rows, pa.string()), pa.nulls(part.num_rows, pa.int64())
        yield pa.RecordBatch.from_arrays([*part.columns, strings, longs, strings], names=INGEST.names)
        return
    life = part.segment
    known = {"group": life.group, "member": life.member, "incarnation": life.incarnation, "file": life.path}
    values = known | {"offset": part.offset, "damage": part.reason}
    types = {**{field.name: field.type for field in SCHEMA}, "file": pa.string(), "offset": pa.int64()}
    yield pa.RecordBatch.from_arrays(
        [pa.array([values.get(name)], types.get(name, pa.string())) for name in INGEST.names], names=INGEST.names
    )


def _messages(part: pa.RecordBatch | Quarantine) -> Iterator[pa.RecordBatch]:
    """Each delivered run as the messages in it."""
    if isinstance(part, Quarantine):
        return
    delivered = part.filter(pa.compute.equal(part["kind"], "deliver"))
    columns: dict[str, list[Any]] = {name: [] for name in MESSAGES_COLUMNS}
    same = [name for name in MESSAGES_COLUMNS if name not in ("number", "position", "payload")]
    for row in delivered.to_pylist():
        payloads = row["payload"] or [None] * row["count"]
        for at, payload in enumerate(payloads):
            for name in same:
                columns[name].append(row[name])
            columns["number"].append(row["first"] + at)
            columns["position"].append(None if row["position"] is None else row["position"] + at)
            columns["payload"].append(payload)
    types = {**{field.name: field.type for field in SCHEMA}, "number": pa.int64(), "payload": pa.binary()}
    arrays = [pa.array(values, types[name]) for name, values in columns.items()]
    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


_CONVERSIONS: Final = {"records": _records, "messages": _messages, "quarantine": _quarantine, "ingest": _ingest}


def joined_paths(paths: Sequence[str]) -> str:
    """Several folders as one value of the option `path`."""
    return _PATH_SEPARATOR.join(paths)


def refusal(sentence: str) -> AnalysisException:
    """What Spark shows to whoever uses the data source wrongly."""
    return AnalysisException(sentence)
